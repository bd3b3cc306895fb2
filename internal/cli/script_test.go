package cli

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/testbed"
)

// TestMain lets scripts run gdisim as a process of its own, the way that
// cmd/gdisim does. Under the names below, it has another backend.
func TestMain(m *testing.M) {
	command := func(b backend) func() {
		return func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			context.AfterFunc(ctx, stop)
			os.Exit(run(ctx, b, os.Args[1:], os.Stdout, os.Stderr))
		}
	}
	testscript.Main(m, map[string]func(){
		"gdisim":             command(testbed.Run),
		"gdisim-fake":        command(fake),
		"gdisim-interrupted": command(interrupted),
	})
}

// interrupted is a backend that gets a SIGINT when one point has finished.
func interrupted(ctx context.Context, s *scenarios.Scenario, o testbed.Options) (*result.Result, error) {
	r, err := fake(ctx, s, o)
	if err != nil {
		return nil, err
	}
	r.Points, r.Partial = r.Points[:1], true
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		return nil, err
	}
	<-ctx.Done()
	return r, ctx.Err()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			for name, text := range fixtureFiles() {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), []byte(text), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

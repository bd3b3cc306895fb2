package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sensitivity"
	"gdisim/testbed"
)

// sensitive is sweep --sensitivity: it varies the inputs of the first point.
func (f *runFlags) sensitive(cmd *cobra.Command, arg string) error {
	write, err := choose(map[string]func(io.Writer, *sensitivity.Report) error{
		"text": sensitivity.Text, "csv": sensitivity.CSV, "json": sensitivity.JSON, "md": sensitivity.Markdown,
	}, f.format)
	if err != nil {
		return err
	}
	if f.workers < 0 {
		return fmt.Errorf("--workers %d is negative", f.workers)
	}
	for _, flag := range []string{"plot", "trace", "all", "ascii", "no-breakdown"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s: has no meaning with --sensitivity", flag)
		}
	}
	if cmd.Flags().Changed("seed") {
		f.sets = append(f.sets, fmt.Sprintf("seed=%d", f.seed))
	}
	s, err := load(arg)
	if err != nil {
		return err
	}
	if err := s.Apply(f.sets); err != nil {
		return err
	}
	if sameFile(arg, f.out) {
		return fmt.Errorf("-o %s: is the scenario itself", f.out)
	}
	out, err := openOutput(cmd.OutOrStdout(), f.out)
	if err != nil {
		return err
	}
	defer out.discard()
	o := sensitivity.Options{
		Only: f.only, Workers: f.workers,
		Run: func(ctx context.Context, s *scenarios.Scenario) (*result.Result, error) {
			return f.backend(ctx, s, testbed.Options{Workers: 1})
		},
	}
	stop := func() {}
	if stderr := cmd.ErrOrStderr(); !f.quiet {
		every := 10 * time.Second
		tty := isTerminal(stderr)
		if tty {
			every = 200 * time.Millisecond
		}
		p := startProgress(stderr, tty, 0, every)
		o.Progress, stop = p.update, p.stop
	}
	rep, err := sensitivity.Of(cmd.Context(), s, o)
	stop()
	switch {
	case err != nil && cmd.Context().Err() != nil:
		return &failure{errors.New("interrupted; nothing is written")}
	case err != nil:
		return impossible(err)
	}
	if err := write(out.w, rep); err != nil {
		return &failure{err}
	}
	if err := out.commit(); err != nil {
		return &failure{err}
	}
	return nil
}

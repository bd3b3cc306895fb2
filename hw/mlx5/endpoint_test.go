//go:build cgo && linux

package mlx5

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gdisim/hw/verbs"
)

// The host's part against libraries that have one mlx5 device in this process
// (testdata/fake.c): another process, since libraries are found when it starts.
func TestOnFakeLibraries(t *testing.T) {
	if os.Getenv("GDISIM_TEST_FAKE") != "" {
		t.Skip("this is the other process")
	}
	dir := t.TempDir()
	lib := compile(t, "-std=gnu11", "-Wno-unused-parameter", "-shared", "-fPIC", "-pthread", "testdata/fake.c")
	for _, name := range []string{"libibverbs.so.1", "libmlx5.so.1"} {
		if err := os.Symlink(lib, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ refuse, want string }{
		{"", ""},
		{"uncached", ""},
		{"umem", "memory for queues: Operation not permitted"},
		{"reg_mr", "Operation not permitted"},
		{"uar", "page of doorbell registers: Operation not permitted"},
		{"create", "create_cq: the device makes no object: Remote I/O error, status 0x3, syndrome 0x00decade"},
	} {
		t.Run("refuse "+tt.refuse, func(t *testing.T) {
			live := filepath.Join(t.TempDir(), "live")
			cmd := exec.Command(os.Args[0], "-test.run", "^TestFake$", "-test.v")
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, "GDISIM_TEST_FAKE=1", "FAKE_LIVE="+live, "FAKE_REFUSE="+tt.refuse, "WANT="+tt.want)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: TestFake ") {
				t.Errorf("%v\n%s", err, out)
			}
			if b, err := os.ReadFile(live); err != nil || strings.TrimSpace(string(b)) != "0" {
				t.Errorf("objects left: %s, %v", b, err)
			}
		})
	}
}

func TestFake(t *testing.T) {
	if os.Getenv("GDISIM_TEST_FAKE") == "" {
		t.Skip("TestOnFakeLibraries starts this")
	}
	base := Config{Bytes: 4096, Depth: 64, CQEs: 64, Samples: 500}
	if want := os.Getenv("WANT"); want != "" {
		e, err := Open(base)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if e != nil {
			t.Error("an endpoint beside its error")
		}
		return
	}
	latency := Program{Shapes: []Shape{{Op: RDMAWrite, Inline: true, Bytes: 8}}, N: 500, Warmup: 20, Chain: 1, Window: 1, SignalEvery: 1, Order: SystemFence, Record: true, Budget: 5 * time.Second}
	for _, tt := range []struct {
		name   string
		change func(*Config, *Program, *verbs.Address)
		want   error
	}{
		{"inline", func(*Config, *Program, *verbs.Address) {}, nil},
		{"no record", func(_ *Config, p *Program, _ *verbs.Address) { p.Record = false }, nil},
		{"pointer", func(_ *Config, p *Program, _ *verbs.Address) { p.Shapes[0] = Shape{Op: RDMAWrite, Bytes: 4096} }, nil},
		{"stream", func(_ *Config, p *Program, _ *verbs.Address) { p.N, p.Chain, p.Window, p.SignalEvery = 70000, 4, 32, 4 }, nil},
		{"the CPU rings", func(c *Config, p *Program, _ *verbs.Address) { c.CPURings, p.CPURings = true, true }, nil},
		{"a wrong key", func(_ *Config, _ *Program, a *verbs.Address) { a.RKey++ }, &verbs.WCError{Status: 10, Vendor: 0x99}},
		{"an unknown route", func(_ *Config, _ *Program, a *verbs.Address) { a.GID = "fe80000000000000000000000000abcd" }, errRoute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, p := base, latency
			p.Shapes = append([]Shape(nil), p.Shapes...)
			target, err := verbs.Open(verbs.Config{QPs: 1, Depth: 1, Bytes: c.Bytes})
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			addr := target.Address()
			tt.change(&c, &p, &addr)
			e, err := Open(c)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if err := e.Connect(addr); err != nil {
				if !errors.Is(tt.want, errRoute) || !strings.Contains(err.Error(), "route") {
					t.Error(err)
				}
				return
			}
			// Twice: the queues go on where they stood.
			for seed := byte(1); seed < 3; seed++ {
				b := verbs.Batch{Op: verbs.Write, N: p.N, Warmup: p.Warmup, Bytes: p.Shapes[0].Bytes, Chain: 1, QPs: 1, Timeout: time.Second, Seed: seed, Target: true}
				if p.Window > 1 {
					b.Loop = verbs.Rate
				}
				if err := errors.Join(e.Prepare(b), target.Prepare(b)); err != nil {
					t.Fatal(err)
				}
				r, err := e.Post(t.Context(), p)
				var got, want *verbs.WCError
				if errors.As(tt.want, &want) {
					if !errors.As(err, &got) || got.Status != want.Status || got.Vendor != want.Vendor || r.Completed != 0 {
						t.Errorf("%v, %+v", err, r)
					}
					if _, err := e.Post(t.Context(), p); !errors.Is(err, verbs.ErrQPFatal) {
						t.Errorf("a queue pair in error: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatalf("%v, %+v", err, r)
				}
				if err := target.Verify(b); err != nil {
					t.Error(err)
				}
				if r.Completed != p.N+p.Warmup || p.Window == 1 && (len(r.Issue) != p.N || len(r.Done) != p.N) {
					t.Errorf("%d completed, %d and %d samples", r.Completed, len(r.Issue), len(r.Done))
				}
				for i := range r.Issue {
					if r.Issue[i] < 0 || r.Done[i] < r.Issue[i] {
						t.Fatalf("message %d: issue %d, done %d", i, r.Issue[i], r.Done[i])
					}
				}
			}
		})
	}
}

var errRoute = errors.New("no route")

func TestOpenRefused(t *testing.T) {
	if Available() == nil {
		t.Skip("this machine has an RDMA device")
	}
	if _, err := Open(Config{}); !errors.Is(err, verbs.ErrNoRDMA) {
		t.Error(err)
	}
}

package hw

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gdisim/hw/host"
	"gdisim/hw/mlx5"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

func doorbellScenario(t *testing.T, paths, workload string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("door.yaml", []byte("gdisim: v1\nname: door\nhardware: h200-cx7-ib200\npaths: "+paths+"\nworkload: "+workload+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What of a scenario the poster obeys, and what it refuses by name.
func TestReadDoorbell(t *testing.T) {
	const put = "{kind: put, bytes: 8B}"
	for _, tt := range []struct {
		name, path, workload, refused string
		want                          func(w *doorbellWork) bool
	}{
		{"mini-gda", "mini-gda", put, "", func(w *doorbellWork) bool {
			p := w.program
			return p.Order == mlx5.GPURelease && !p.Record && p.Shapes[0].Inline && p.Window == 1 && w.end.QueuesInGPU && w.end.PayloadInGPU
		}},
		{"system", "{name: x, stack: mini-gda, set: {fence: system, queues_in: host, payload_in: host}}", put, "", func(w *doorbellWork) bool {
			return w.program.Order == mlx5.SystemFence && w.program.Record && !w.end.QueuesInGPU && !w.end.PayloadInGPU
		}},
		{"record", "{name: x, stack: mini-gda, set: {fence: none, record: true}}", put, "", func(w *doorbellWork) bool {
			return w.program.Order == mlx5.NoOrder && w.program.Record
		}},
		{"CPU rings", "{name: x, stack: mini-gda, set: {rings_by: host}}", put, "", func(w *doorbellWork) bool {
			return w.program.CPURings && w.end.CPURings
		}},
		{"two WQEBBs", "mini-gda", "{kind: put, bytes: 92B}", "", func(w *doorbellWork) bool { return w.program.Shapes[0].WQEBBs() == 2 }},
		{"too long for inline", "mini-gda", "{kind: put, bytes: 93B}", "", func(w *doorbellWork) bool { return !w.program.Shapes[0].Inline }},
		{"stream", "mini-gda", "{kind: stream, bytes: 8B, outstanding: 32, wqes_per_doorbell: 8, iterations: 10}", "", func(w *doorbellWork) bool {
			return w.program.Chain == 8 && w.program.Window == 32 && w.program.SignalEvery == 8 && w.program.N == 320 && w.end.Depth >= 64
		}},
		{"proxy", "mini-proxy", put, "--backend verbs", nil},
		{"another library's steps", "nvshmem-ibgda", put, "post nvshmem", nil},
		{"shared queue", "{name: x, stack: mini-gda, set: {posting: lock, qps_per_peer: 1}}", put, "share a queue", nil},
		{"ping-pong", "mini-gda", "{kind: ping-pong, bytes: 8B}", "at the other end", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := readDoorbell(doorbellScenario(t, "["+tt.path+"]", tt.workload).Config(0, 0))
			switch {
			case tt.refused != "":
				if !errors.Is(err, errNoDoorbell) || !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("%v, want %q", err, tt.refused)
				}
			case err != nil:
				t.Error(err)
			case !tt.want(&w):
				t.Errorf("%+v", w)
			}
		})
	}
}

func TestDoorbellStages(t *testing.T) {
	ns := func(v ...int64) []sim.Duration { return durations(v) }
	for _, tt := range []struct {
		name  string
		fence estimate
		want  sim.Duration
	}{{"clear", estimate{value: 300 * sim.Nanosecond, spread: 20 * sim.Nanosecond}, 300 * sim.Nanosecond}, {"not clear", estimate{value: 10 * sim.Nanosecond, spread: 20 * sim.Nanosecond}, 0}, {"none", estimate{}, 0}} {
		b := doorbellStages(ns(700, 710, 690), ns(4000, 4100, 3900), tt.fence)
		var sum, fence sim.Duration
		for _, s := range b.Stages {
			sum += s.Time
			if s.Stage == stage.GPUFence {
				fence = s.Time
			}
			if s.Method == "" {
				t.Errorf("%s has no method", s.Stage)
			}
		}
		if sum != b.Total || b.Total != 4*sim.Microsecond || fence != tt.want {
			t.Errorf("%s: stages %v of %v, fence %v", tt.name, sum, b.Total, fence)
		}
	}
}

// The whole of it, on libraries that have a NIC of software in this process.
func TestDoorbellOnFakeLibraries(t *testing.T) {
	if host.Available() != nil || os.Getenv("GDISIM_TEST_FAKE") != "" {
		t.Skip("needs cgo, and is not the other process")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	lib := filepath.Join(dir, "libibverbs.so.1")
	if out, err := exec.Command(cc, "-std=gnu11", "-O1", "-shared", "-fPIC", "-pthread", "-o", lib, "mlx5/testdata/fake.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Symlink(lib, filepath.Join(dir, "libmlx5.so.1")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestDoorbellFake$", "-test.v")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, "GDISIM_TEST_FAKE=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestDoorbellFake ") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDoorbellFake(t *testing.T) {
	if os.Getenv("GDISIM_TEST_FAKE") == "" {
		t.Skip("TestDoorbellOnFakeLibraries starts this")
	}
	o := Options{Tool: "test", SkipHost: true, Doorbell: &GPUDoorbell{}}
	r, err := Loopback(t.Context(), doorbellScenario(t, "[mini-gda, {name: cpu-rings, stack: mini-gda, set: {fence: system, rings_by: host}}, mini-proxy]", "{kind: put, bytes: [8B, 1KiB], iterations: 50, warmup: 5}"), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Points) != 2 || r.Partial {
		t.Fatalf("%d points, partial %v", len(r.Points), r.Partial)
	}
	notices := strings.Join(r.Notices, "\n")
	for _, want := range []string{Untested, "not measured: mini-proxy: not by this GPU poster", "memory of a GPU: all is in host memory"} {
		if !strings.Contains(notices, want) {
			t.Errorf("no %q in\n%s", want, notices)
		}
	}
	for _, pt := range r.Points {
		if len(pt.Paths) != 2 {
			t.Fatalf("%d paths", len(pt.Paths))
		}
		for i := range pt.Paths {
			p := &pt.Paths[i]
			for _, m := range []stage.Metric{stage.Issue, stage.PutCompletion} {
				if x := p.Metric(m); x == nil || x.N != 50 {
					t.Errorf("%v %s: %s: %+v", pt.At, p.Name, m, x)
				}
			}
			if p.Stack != cpuDoorbell || p.Cost.Messages != 55 || p.Cost.CPUCores != 1 || p.Breakdown(stage.PutCompletion) == nil {
				t.Errorf("%s: stack %s, cost %+v", p.Name, p.Stack, p.Cost)
			}
		}
	}
	if r.Emulated == "" || strings.Contains(r.How(), "hardware") {
		t.Errorf("a NIC of software: emulated %q, %s", r.Emulated, r.How())
	}
	keep(t, "doorbell", r)
	r, err = Loopback(t.Context(), doorbellScenario(t, "[mini-gda]", "{kind: stream, bytes: 8B, iterations: 100, outstanding: 16, wqes_per_doorbell: 4}"), o)
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Points[0].Paths[0].Metric(stage.MessageRate); x == nil || x.Value <= 0 {
		t.Errorf("rate %+v", x)
	}
	r, err = Loopback(t.Context(), doorbellScenario(t, "[mini-proxy]", "{kind: put, bytes: 8B}"), o)
	if !errors.Is(err, ErrNothingRuns) || r != (*result.Result)(nil) {
		t.Errorf("%v", err)
	}
}

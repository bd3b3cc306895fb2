package hw

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gdisim/hw/host"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

func wakes(t *testing.T, workload string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("wake.yaml", []byte("gdisim: v1\nname: wakes\nhardware: h200-vm\n"+workload))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A scenario of wake-ups runs on the CPU alone, point by point, under the names
// that its simulation has.
func TestWakesOnTheHost(t *testing.T) {
	if err := host.Available(); err != nil {
		t.Skip(err)
	}
	s := wakes(t, "workload: {kind: wake, cpu: same, asleep: 20us, iterations: 10, warmup: 2}\nsweep: {workload.by: [futex, epoll, nanosleep]}\n")
	r, err := RunHost(t.Context(), s, Options{Tool: "test", SkipHost: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Backend != "hw" || len(r.Points) != 3 || len(r.Measured) != 0 || r.Partial {
		t.Fatalf("%+v", r)
	}
	for i := range r.Points {
		p := &r.Points[i].Paths[0]
		m := p.Metric(stage.Latency)
		if p.Name != "wake" || p.Err != "" || m == nil || m.N != 10 || m.P50 <= 0 {
			t.Errorf("%v: %+v", r.Points[i].At, p)
			continue
		}
		if r.Points[i].At[0] == (result.Setting{Key: "workload.by", Value: "nanosleep"}) && m.Min < 20*sim.Microsecond {
			t.Errorf("slept for %v of 20 us", m.Min)
		}
	}
}

// Steps of a GPU are named; without anything left to do, that is the error.
func TestOtherStepsOnTheHost(t *testing.T) {
	if err := host.Available(); err != nil {
		t.Skip(err)
	}
	s := wakes(t, "workload: {kind: fence, iterations: 10, warmup: 2}\n")
	if _, err := RunHost(t.Context(), s, Options{Tool: "test", SkipHost: true}); !errors.Is(err, ErrNothingRuns) {
		t.Error(err)
	}
	r, err := RunHost(t.Context(), s, Options{Tool: "test", Host: host.Options{Samples: 3}})
	if err != nil || len(r.Points) != 0 || !strings.Contains(strings.Join(r.Notices, "\n"), "workload fence needs more") {
		t.Errorf("%v: %q", err, r.Notices)
	}
	if _, err := Loopback(t.Context(), s, Options{SkipHost: true}); !errors.Is(err, ErrNothingRuns) || !strings.Contains(err.Error(), "workload fence sends no message") {
		t.Error(err)
	}
}

func TestWakesInterrupted(t *testing.T) {
	if err := host.Available(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	s := wakes(t, "workload: {kind: wake, by: nanosleep, asleep: 1ms, iterations: 1000000, warmup: 2}\n")
	r, err := RunHost(ctx, s, Options{Tool: "test", SkipHost: true})
	if !errors.Is(err, context.DeadlineExceeded) || !r.Partial || len(r.Points) != 1 || r.Points[0].Paths[0].Metric(stage.Latency) == nil {
		t.Errorf("%v: %+v", err, r)
	}
}

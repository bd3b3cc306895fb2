package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gdisim/sim"
)

// The whole set runs on this machine. No time is asserted: noise can make any of
// them long. What must hold whatever the noise: every experiment is there, those
// that need nothing special have samples, and quantiles are ordered.
func TestMeasure(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	ms, err := Measure(t.Context(), Options{Samples: 40})
	if err != nil {
		t.Fatal(err)
	}
	may := []string{"needs two cores", "no such instruction", "not allowed"}
	seen := map[string]bool{}
	for _, m := range ms {
		if seen[m.Name] {
			t.Errorf("%s is there twice", m.Name)
		}
		seen[m.Name] = true
		if m.Err != "" {
			if !slices.ContainsFunc(may, func(s string) bool { return strings.Contains(m.Err, s) }) {
				t.Errorf("%s: %s", m.Name, m.Err)
			}
			continue
		}
		if m.Name == "gap" && m.N == 0 {
			continue
		}
		if m.N == 0 || m.Min > m.P50 || m.P50 > m.P99 || m.P99 > m.Max || m.Min < 0 {
			t.Errorf("%s: n %d, min %v p50 %v p99 %v max %v", m.Name, m.N, m.Min, m.P50, m.P99, m.Max)
		}
		if m.Method == "" {
			t.Errorf("%s has no method", m.Name)
		}
		t.Logf("%-34s n %5d  p50 %-10v p99 %-10v max %v", m.Name, m.N, m.P50, m.P99, m.Max)
	}
	for _, name := range []string{"clock", "syscall", "wake.futex.same-core", "wake.futex.same-core.call", "switch.pipe", "timer.timerfd", "sched-delay.4-busy", "lock-memory.4KiB.4KiB-pages", "stolen-per-second"} {
		if !seen[name] {
			t.Errorf("no %s", name)
		}
	}
}

func TestMeasureEnds(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	ms, err := Measure(ctx, Options{Samples: 40, Progress: func(string, int, int) {
		if n++; n == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || len(ms) != 2 {
		t.Errorf("%d measured, %v; want the two before the end, and the context's error", len(ms), err)
	}
}

func TestCores(t *testing.T) {
	if _, err := Measure(t.Context(), Options{Cores: []int{1 << 20}}); err == nil {
		t.Error("a core that is not there was accepted")
	}
}

func TestOverheadIsSubtractedPerSample(t *testing.T) {
	for _, c := range []struct {
		name string
		e    experiment
		ns   []int64
		want sim.Duration
		over sim.Duration
	}{
		{"repetitions share the clock", experiment{reps: 4}, []int64{120}, 25 * sim.Nanosecond, 5 * sim.Nanosecond},
		{"half of a round trip", experiment{reps: 1, half: true}, []int64{120}, 50 * sim.Nanosecond, 10 * sim.Nanosecond},
		{"never below zero", experiment{reps: 1}, []int64{10}, 0, 20 * sim.Nanosecond},
		{"the clock itself", experiment{reps: 1, noClock: true}, []int64{21}, 21 * sim.Nanosecond, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.e.measured(c.ns, 20, nil)
			if m.P50 != c.want || m.Overhead != c.over || m.N != 1 {
				t.Errorf("got %v with %v of %d, want %v with %v", m.P50, m.Overhead, m.N, c.want, c.over)
			}
		})
	}
	if m := (&experiment{what: lock}).measured(nil, 0, syscall.ENOMEM); !strings.Contains(m.Err, "locked memory") {
		t.Errorf("no memory to lock: %q", m.Err)
	}
}

func TestStealShare(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64
		bad  bool
	}{
		{"cpu  1 1 1 5 0 0 0 2 0 0\ncpu0 1", 0.2, false},
		{"cpu  1 1 1 5 0 0", 0, true},
		{"cpu  1 x 1 5 0 0 0 2", 0, true},
		{"cpu  0 0 0 0 0 0 0 0", 0, true},
		{"", 0, true},
	} {
		if got, err := stealShare(c.text); got != c.want || (err != nil) != c.bad {
			t.Errorf("%q: %v, %v", c.text, got, err)
		}
	}
}

// Every way to wake a thread, on one core and across two: so many samples, and no
// less than the time asked for where the thread sleeps for a time.
func TestMeasureWake(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	may, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{"futex", "eventfd", "epoll", "condvar", "pipe", "yield", "nanosleep"} {
		for _, same := range []bool{true, false} {
			if !same && (len(may) < 2 || by == "yield" || by == "nanosleep") {
				continue
			}
			t.Run(fmt.Sprintf("%s same=%v", by, same), func(t *testing.T) {
				const asleep = 30 * time.Microsecond
				s, overhead, err := MeasureWake(t.Context(), Options{}, Wake{By: by, Asleep: asleep, Same: same, Slack: time.Microsecond, N: 20, Warmup: 3})
				if err != nil || len(s) != 20 || overhead <= 0 {
					t.Fatalf("%d samples, clock %v, %v", len(s), overhead, err)
				}
				for _, d := range s {
					if d <= 0 || by == "nanosleep" && d < sim.Duration(asleep)*sim.Nanosecond {
						t.Errorf("%v", d)
					}
				}
			})
		}
	}
	if _, _, err := MeasureWake(t.Context(), Options{}, Wake{By: "telepathy", N: 1}); err == nil {
		t.Error("a way that is none was accepted")
	}
	if len(may) > 0 {
		if _, _, err := MeasureWake(t.Context(), Options{Cores: may[:1]}, Wake{By: "futex", N: 1}); err == nil || !strings.Contains(err.Error(), "two cores") {
			t.Errorf("across one core: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s, _, err := MeasureWake(ctx, Options{}, Wake{By: "nanosleep", Asleep: time.Millisecond, N: 1_000_000})
	if !errors.Is(err, context.DeadlineExceeded) || len(s) == 0 {
		t.Errorf("interrupted: %d samples, %v", len(s), err)
	}
}

package host

import (
	"context"
	"fmt"
	"time"

	"gdisim/result"
	"gdisim/sim"
)

// Wake is a wake-up, or what stands for one, that a scenario asks for.
type Wake struct {
	By     string        // futex, eventfd, epoll, condvar, pipe, yield or nanosleep
	Asleep time.Duration // before the waker's call; how long a nanosleep asks for
	Same   bool          // the waker is on the sleeper's core
	Slack  time.Duration // of the thread's timer, for nanosleep
	N      int           // samples
	Warmup int           // wake-ups before the first
}

// means are the ways in which one thread wakes another.
var means = map[string]int{"futex": futex, "eventfd": event, "epoll": epoll, "condvar": condvar, "pipe": pipe}

// MeasureWake takes the samples of w on the cores of o: from the waker's call
// until the sleeper runs; from a sched_yield to another thread until it returns;
// from a nanosleep's call until it runs again, the time that it asked for
// included. What a clock read costs is subtracted, and returned. The error is
// ctx's, beside what was measured until then, or says why there is nothing.
func MeasureWake(ctx context.Context, o Options, w Wake) (samples []sim.Duration, overhead sim.Duration, err error) {
	if err := Available(); err != nil {
		return nil, 0, err
	}
	cores, err := Pick(o.Cores)
	if err != nil {
		return nil, 0, err
	}
	e := experiment{what: wake, cpuA: cores[0], cpuB: cores[1], n: w.N + w.Warmup, reps: 1, idle: w.Asleep, slack: w.Slack, deadline: 10*time.Second + time.Duration(w.N+w.Warmup)*2*(w.Asleep+time.Millisecond)}
	switch w.By {
	case "yield":
		e.what, e.cpuB, e.idle = yieldTwo, cores[0], 0
	case "nanosleep":
		e.what, e.idle = nanosleep, w.Asleep
	default:
		m, ok := means[w.By]
		if !ok {
			return nil, 0, fmt.Errorf("no way to wake by %s", w.By)
		}
		e.means = m
		if w.Same {
			e.cpuB = e.cpuA
		} else if e.cpuA == e.cpuB {
			return nil, 0, fmt.Errorf("a waker on another core needs two cores, this process may use one")
		}
	}
	clocks := experiment{what: clock, cpuA: cores[0], n: 1000, reps: 1, deadline: time.Second}
	ns, _, err := loop(ctx, &clocks)
	if err != nil {
		return nil, 0, err
	}
	overhead = result.Measure("", "", 0, durations(ns, 0)).P50
	ns, _, err = loop(ctx, &e)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	samples = durations(ns[min(w.Warmup, len(ns)):], overhead)
	if w.By == "nanosleep" { // the loop notes what comes after the time asked for
		for i := range samples {
			samples[i] += sim.Duration(w.Asleep) * sim.Nanosecond
		}
	}
	if err == nil && len(samples) < w.N {
		err = fmt.Errorf("%d of %d wake-ups before the deadline", len(samples), w.N)
	}
	return samples, overhead, err
}

func durations(ns []int64, overhead sim.Duration) []sim.Duration {
	out := make([]sim.Duration, len(ns))
	for i, v := range ns {
		out[i] = max(0, sim.Duration(v)*sim.Nanosecond-overhead)
	}
	return out
}

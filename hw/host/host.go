package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"gdisim/result"
	"gdisim/sim"
)

// Options say where and how long to measure.
type Options struct {
	// Cores are the two cores that the threads are pinned to; empty for the first
	// two that this process may use.
	Cores []int
	// Samples of each experiment, 0 for the usual 2000, at most MaxSamples. Slow
	// experiments take a tenth of it.
	Samples int
	// Progress is told the name of each experiment before it runs; may be nil.
	Progress func(name string, done, total int)
}

// MaxSamples bounds Options.Samples: a sample takes memory, and no more are needed
// for any quantile that a result keeps.
const MaxSamples = 1_000_000

// experiment is one call into the loops.
type experiment struct {
	name, method string
	what         int
	cpuA, cpuB   int
	n, reps      int
	means, pages int
	load         int
	idle         time.Duration
	slack        time.Duration
	bytes        int64
	deadline     time.Duration
	half         bool // a sample is a round trip of which one way is wanted
	noClock      bool // nothing to subtract: the clock reads are no part of it
}

// Measure runs every experiment and returns their costs in a fixed order, the
// clock's own first. An experiment that this machine cannot do is there with
// its reason. The error is ctx's, beside what was measured before, or says why
// nothing can be measured at all.
func Measure(ctx context.Context, o Options) ([]result.Measured, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	cores, err := Pick(o.Cores)
	if err != nil {
		return nil, err
	}
	if err := CheckSamples(o.Samples); err != nil {
		return nil, err
	}
	if o.Samples == 0 {
		o.Samples = 2000
	}
	var out []result.Measured
	var overhead int64 // of two clock reads, ns
	es := experiments(cores, o.Samples)
	for i := range es {
		e := &es[i]
		if o.Progress != nil {
			o.Progress(e.name, i, len(es))
		}
		if e.cpuA == e.cpuB && (e.what == line || e.what == wake && e.idle > 0) {
			out = append(out, result.Measured{Name: e.name, Method: e.method, Err: "needs two cores, this process may use one"})
			continue
		}
		ns, call, err := loop(ctx, e)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if e.what == clock && len(ns) > 0 {
			slices.Sort(ns)
			overhead = ns[result.Rank(len(ns), 500)]
		}
		out = append(out, e.measured(ns, overhead, err))
		if e.what == wake && err == nil {
			out = append(out, (&experiment{name: e.name + ".call", method: "the waker's own call; " + e.method, reps: 1}).measured(call, overhead, nil))
		}
	}
	return append(out, stolen()), nil
}

// measured turns the clock's nanoseconds into the cost of one repetition.
func (e *experiment) measured(ns []int64, overhead int64, err error) result.Measured {
	switch {
	case errors.Is(err, syscall.ENOSYS):
		err = errors.New("this processor has no such instruction, or none that is measured yet")
	case errors.Is(err, syscall.ENOMEM) && e.what == lock:
		err = errors.New("not allowed or no such pages: see the limits of locked memory and huge pages")
	case err == nil && len(ns) == 0 && e.what == gaps:
		return result.Measured{Name: e.name, Method: e.method + "; none seen"}
	case err == nil && len(ns) == 0:
		err = errors.New("no sample within its deadline")
	}
	if err != nil {
		return result.Measured{Name: e.name, Method: e.method, Err: err.Error()}
	}
	if e.noClock {
		overhead = 0
	}
	div := int64(e.reps)
	if e.half {
		div *= 2
	}
	samples := make([]sim.Duration, len(ns))
	for i, v := range ns {
		samples[i] = sim.Duration(max(0, v-overhead)) * sim.Nanosecond / sim.Duration(div)
	}
	return result.Measure(e.name, e.method, sim.Duration(overhead)*sim.Nanosecond/sim.Duration(div), samples)
}

func experiments(cores [2]int, n int) []experiment {
	a, b := cores[0], cores[1]
	slow := max(n/10, 3)
	es := []experiment{
		{name: "clock", method: "two reads of the monotonic clock, back to back", what: clock, n: n, reps: 1, noClock: true},
		{name: "syscall", method: "getppid", what: sysCall, n: n, reps: 16},
		{name: "eventfd.read", method: "read of a ready eventfd, each between two clock reads", what: eventRead, n: n, reps: 1},
		{name: "sched-yield", method: "sched_yield with nobody to yield to", what: yield, n: n, reps: 16},
		{name: "fence.full", method: "full fence, nothing outstanding", what: fenceFull, n: n, reps: 64},
		{name: "fence.full-after-store", method: "store and full fence", what: fenceSt, n: n, reps: 64},
		{name: "fence.load", method: "lfence", what: fenceLd, n: n, reps: 64},
		{name: "fence.store", method: "sfence", what: sfence, n: n, reps: 64},
		{name: "atomic.own-line", method: "locked add on a line of its own", what: xadd, n: n, reps: 64},
		{name: "store.64B-non-temporal", method: "64 B non-temporal store and sfence, to memory: a stand-in for a write-combining flush, not one to a device", what: ntStore, n: n, reps: 16},
		{name: "store.64B", method: "64 B ordinary store and sfence", what: wbStore, n: n, reps: 64},
		{name: "pause", method: "pause instruction", what: pause, n: n, reps: 64},
		{name: "copy.4KiB", method: "memcpy of 4 KiB in cache", what: copy4k, n: n, reps: 16},
		{name: "line.cross-core", method: "a line that two cores write in turn, half of a round trip", what: line, cpuB: b, n: n, reps: 16, half: true},
		{name: "switch.pipe", method: "pipe ping-pong of two threads on one core, half of a round trip: a switch and two system calls", what: ctxSwitch, n: n / 2, reps: 4, half: true},
		{name: "switch.yield", method: "sched_yield of two threads on one core, per call", what: yieldTwo, n: n / 2, reps: 8},
	}
	for _, m := range []struct {
		name  string
		means int
	}{{"futex", futex}, {"eventfd", event}, {"pipe", pipe}} {
		es = append(es,
			experiment{name: "wake." + m.name + ".same-core", method: "waker's call to running, both on one core", what: wake, cpuB: a, means: m.means, n: n / 4, reps: 1},
			experiment{name: "wake." + m.name + ".cross-core", method: "waker's call to running on another core, idle for 20 us", what: wake, cpuB: b, means: m.means, idle: 20 * time.Microsecond, n: n / 4, reps: 1})
	}
	for _, idle := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
		es = append(es, experiment{
			name: "idle-exit." + sim.Duration(idle*1000).String(), method: "futex wake of a core that was idle for that long, call to running",
			what: wake, cpuB: b, means: futex, idle: idle, n: max(slow/int(1+idle/(4*time.Millisecond)), 3), reps: 1,
		})
	}
	es = append(es,
		experiment{name: "timer.timerfd", method: "expiry of a 200 us timerfd to running", what: timer, idle: 200 * time.Microsecond, n: slow, reps: 1},
		experiment{name: "timer.nanosleep", method: "end of a 200 us clock_nanosleep to running, with the default slack", what: nanosleep, idle: 200 * time.Microsecond, n: slow, reps: 1})
	for _, k := range []int{1, 2, 4} {
		es = append(es, experiment{
			name: fmt.Sprintf("sched-delay.%d-busy", k), method: fmt.Sprintf("expiry of a 1 ms timerfd to running, beside %d busy threads on the core", k),
			what: timer, load: k, idle: time.Millisecond, n: max(slow/2, 3), reps: 1,
		})
	}
	es = append(es, experiment{
		name: "gap", method: "gaps above 1 us that a spinning thread sees: ticks, interrupts, other threads, the hypervisor",
		what: gaps, n: 100_000, reps: 1, noClock: true, deadline: time.Duration(max(n, 100)) * time.Millisecond / 4,
	})
	for _, p := range []struct {
		name  string
		pages int
		sizes []int64
	}{{"4KiB-pages", small, []int64{4 << 10, 64 << 10, 1 << 20}}, {"transparent-huge", thp, []int64{2 << 20}}, {"hugetlb", hugetlb, []int64{2 << 20}}} {
		for _, size := range p.sizes {
			es = append(es, experiment{
				name: fmt.Sprintf("lock-memory.%dKiB.%s", size>>10, p.name), method: "mlock of fresh pages: what registration pays the host, without the device's part",
				what: lock, pages: p.pages, bytes: size, n: max(slow/4, 3), reps: 1,
			})
		}
	}
	for i := range es {
		e := &es[i]
		e.cpuA = a
		e.n = max(e.n, 3)
		if e.deadline == 0 {
			e.deadline = 5 * time.Second
		}
	}
	return es
}

// CheckSamples says why no experiment can have that many samples.
func CheckSamples(n int) error {
	if n < 0 || n > MaxSamples {
		return fmt.Errorf("%d samples, want at most %d", n, MaxSamples)
	}
	return nil
}

// Pick returns the two cores to use, of those wanted or of all; the same twice where
// there is only one. The error names a core that this process may not use.
func Pick(want []int) ([2]int, error) {
	may, err := Allowed()
	if err != nil {
		return [2]int{}, fmt.Errorf("which cores this process may use: %w", err)
	}
	if len(want) == 0 {
		want = may[:min(2, len(may))]
	}
	for _, c := range want {
		if !slices.Contains(may, c) {
			return [2]int{}, fmt.Errorf("core %d is not one that this process may use (%v)", c, may)
		}
	}
	switch len(want) {
	case 1:
		return [2]int{want[0], want[0]}, nil
	case 2:
		return [2]int{want[0], want[1]}, nil
	}
	return [2]int{}, fmt.Errorf("%d cores given, want two", len(want))
}

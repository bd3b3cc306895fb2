package cpu

import (
	"math"

	"gdisim/sim"
)

// Rivals are threads that always want the core which the thread runs on. The
// scheduler is fair: shares go by weight, and a thread runs for a slice before
// another's turn comes.
type Rivals struct {
	Threads int
	Slice   sim.Duration // of a turn, whole timer ticks
	Nice    int          // of the thread
	Other   int          // nice of each rival
	// Escape, unless 0, is after how long a wait another core, which idles, takes
	// the thread over; it then has that core to itself. It pays Migration.
	Escape    sim.Duration
	Migration sim.Duration
	Phase     float64 // where in the cycle of turns the run begins, 0 to 1
}

// weights are the load weights of nice -20 to 19 (Linux, kernel/sched/core.c,
// sched_prio_to_weight): each step is a factor of 1.25.
var weights = [40]int64{
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
	1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
	110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
}

func weight(nice int) int64 { return weights[min(max(nice, -20), 19)+20] }

// Share is the part of the core that the thread gets if it always wants it.
func (x *Rivals) Share() float64 {
	if x.Escape > 0 {
		return 1
	}
	w, v := weight(x.Nice), weight(x.Other)
	return float64(w) / float64(w+int64(x.Threads)*v)
}

// Turns are how long the thread and the others have the core in turn, while all
// want it.
func (x *Rivals) Turns() (own, others sim.Duration) {
	w, v := weight(x.Nice), weight(x.Other)
	own, others = x.Slice, sim.Duration(x.Threads)*x.Slice
	if w > v {
		return sim.Duration(int64(own) * w / v), others
	}
	return own, sim.Duration(int64(others) * v / w)
}

// rivals is the run queue of a core as its thread sees it. While the thread
// wants the core, turns alternate: own, others, own. A thread that sleeps keeps
// account of the time that its share entitles it to: within it, it preempts
// whoever runs when it wakes; beyond, it waits until it has caught up.
type rivals struct {
	own, others sim.Duration // lengths of the turns
	yields      sim.Duration // what one sched_yield gives away
	slice       sim.Duration
	share       float64  // of the core that is the thread's
	since       sim.Time // when its turn began
	credit      sim.Duration
	asleep      sim.Time // since when it has slept, if it does
	free        sim.Time // when it is alone for good
}

const never = sim.Time(math.MaxInt64)

func newRivals(x Rivals) *rivals {
	w, v, k := weight(x.Nice), weight(x.Other), int64(x.Threads)
	r := &rivals{slice: x.Slice, share: x.Share(), free: never}
	r.own, r.others = x.Turns()
	// A yield puts the thread one slice of its own behind; a rival's whole turn
	// is the least that others take.
	r.yields = max(1, sim.Duration((k*v+w-1)/w)) * x.Slice
	r.since = -sim.Time(x.Phase * float64(r.own+r.others))
	if x.Escape > 0 {
		wait := x.Escape + x.Migration
		r.others, r.yields = min(r.others, wait), min(r.yields, wait)
		r.free = r.since.Add(r.own + r.others)
	}
	return r
}

func (r *rivals) at(t sim.Time) (taken bool, until sim.Time) {
	if t >= r.free {
		return false, never
	}
	cycle := r.own + r.others
	x := t.Sub(r.since) % cycle
	if x < 0 {
		return false, t.Add(-x)
	}
	if x < r.own {
		return false, t.Add(r.own - x)
	}
	return true, t.Add(cycle - x)
}

// turn is what a yield costs.
func (r *rivals) turn() sim.Duration {
	if r.free != never {
		return 0 // moved on in the first of them
	}
	return r.yields
}

// yield gives the core away at t and returns when it is back, for a whole turn.
func (r *rivals) yield(t sim.Time) sim.Time {
	if t >= r.free {
		return t
	}
	r.since = t.Add(r.yields)
	if r.free != never {
		r.free = r.since
	}
	return r.since
}

// sleep leaves the core to the others from t on.
func (r *rivals) sleep(t sim.Time) {
	spent := max(0, t.Sub(r.since))
	cycle := r.own + r.others
	on := spent/cycle*r.own + min(spent%cycle, r.own)
	r.earn(spent - on)
	r.credit -= sim.Duration(float64(on) * (1 - r.share))
	r.asleep = t
}

// earn adds what the thread was entitled to in d of others' time, up to a slice:
// more is not kept.
func (r *rivals) earn(d sim.Duration) {
	r.credit = min(r.slice, r.credit+sim.Duration(float64(d)*r.share))
}

// wake returns when the thread has the core that wants it again from t on.
func (r *rivals) wake(t sim.Time) sim.Time {
	if r.free != never {
		r.free = min(r.free, t) // it wakes on a core that idles
		return t
	}
	r.earn(max(0, t.Sub(r.asleep)))
	if r.credit < 0 {
		wait := min(sim.Duration(float64(-r.credit)/r.share), r.others)
		t = t.Add(wait)
		r.earn(wait)
		r.credit = max(r.credit, 0)
	}
	r.since = t
	return t
}

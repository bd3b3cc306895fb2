package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gdisim/model/cpu"
	"gdisim/sim"

	"pgregory.net/rapid"
)

const (
	us = sim.Microsecond
	ms = sim.Millisecond
)

func at(d sim.Duration) sim.Time { return sim.Time(d) }

func shared(r cpu.Rivals) *cpu.Core {
	return cpu.NewCore(&cpu.Config{}, rand.New(rand.NewPCG(1, 2)), cpu.Load{Rivals: r})
}

// TestTurns: a thread that always wants the core has it for a turn and then
// waits for those of the others, of a length by their weights.
func TestTurns(t *testing.T) {
	for _, tt := range []struct {
		rivals     cpu.Rivals
		own, cycle sim.Duration
		share      float64
	}{
		{cpu.Rivals{Threads: 1, Slice: 4 * ms}, 4 * ms, 8 * ms, 0.5},
		{cpu.Rivals{Threads: 3, Slice: 4 * ms}, 4 * ms, 16 * ms, 0.25},
		// nice -20 weighs 88761, nice 0 1024, nice 19 15.
		{cpu.Rivals{Threads: 1, Slice: 4 * ms, Nice: -20}, 4 * ms * 88761 / 1024, 4*ms*88761/1024 + 4*ms, 88761.0 / (88761 + 1024)},
		{cpu.Rivals{Threads: 2, Slice: 3 * ms, Nice: 19}, 3 * ms, 3*ms + 6*ms*1024/15, 15.0 / (15 + 2*1024)},
		{cpu.Rivals{Threads: 1, Slice: 4 * ms, Other: 19}, 4 * ms * 1024 / 15, 4*ms*1024/15 + 4*ms, 1024.0 / (1024 + 15)},
	} {
		c := shared(tt.rivals)
		if got := c.Available(at(tt.own - 1)); got != at(tt.own-1) {
			t.Errorf("%+v: not the thread's at the end of its turn, free at %v", tt.rivals, got)
		}
		if got := c.Available(at(tt.own)); got != at(tt.cycle) {
			t.Errorf("%+v: free again at %v, want %v", tt.rivals, got, tt.cycle)
		}
		if got := tt.rivals.Share(); math.Abs(got-tt.share) > 1e-12 {
			t.Errorf("%+v: share %v, want %v", tt.rivals, got, tt.share)
		}
		// Long work takes its time over its share.
		work := 1000 * tt.own
		if _, end := c.Run(0, work); math.Abs(float64(work)/float64(end)-tt.share) > 0.002 {
			t.Errorf("%+v: %v of work ends at %v, want a share of %.4f", tt.rivals, work, end, tt.share)
		}
	}
}

// TestYieldGivesTurns: one sched_yield costs a whole turn of everybody else.
func TestYieldGivesTurns(t *testing.T) {
	for _, tt := range []struct {
		rivals cpu.Rivals
		away   sim.Duration
	}{
		{cpu.Rivals{Threads: 1, Slice: 4 * ms}, 4 * ms},
		{cpu.Rivals{Threads: 3, Slice: 4 * ms}, 12 * ms},
		{cpu.Rivals{Threads: 1, Slice: 4 * ms, Nice: -20}, 4 * ms}, // a turn is the least that others take
		{cpu.Rivals{Threads: 1, Slice: 4 * ms, Escape: 1 * ms, Migration: 10 * us}, 1*ms + 10*us},
		{cpu.Rivals{}, 0},
	} {
		c := shared(tt.rivals)
		if got := c.Yield(at(100 * us)); got != at(100*us+tt.away) {
			t.Errorf("%+v: back at %v, want %v later", tt.rivals, got, tt.away)
		}
		// It begins a turn then.
		if got := c.Available(at(100*us + tt.away + 3*ms)); got != at(100*us+tt.away+3*ms) {
			t.Errorf("%+v: away again at %v", tt.rivals, got)
		}
		if x := tt.rivals; x.Escape > 0 {
			if got := c.Yield(at(50 * ms)); got != at(50*ms) {
				t.Errorf("%+v: a yield on a core of its own ends at %v", x, got)
			}
		}
	}
}

// TestSleepersPreempt: a thread that sleeps preempts whoever runs when it wakes
// as long as it keeps to its share, and gets no more than its share if it does
// not.
func TestSleepersPreempt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := cpu.Rivals{Threads: rapid.IntRange(1, 4).Draw(t, "rivals"), Slice: 4 * ms, Nice: rapid.IntRange(-20, 19).Draw(t, "nice")}
		c := shared(r)
		p := cpu.Policy{Waiting: cpu.Interrupt}
		w := cpu.NewWaiter(c, &p)
		work := sim.Duration(rapid.Int64Range(1, 3000).Draw(t, "work")) * us
		gap := sim.Duration(rapid.Int64Range(1, 3000).Draw(t, "gap")) * us
		now, did, waited := sim.Time(0), sim.Duration(0), sim.Duration(0)
		_, now = c.Run(now, work)
		for now < at(2*sim.Second) {
			w.Begin(now, 1)
			due, moved, lost := w.Notice(now.Add(gap), 0)
			if !moved || lost || due != now.Add(gap) {
				t.Fatalf("wakes at %v: %v, %v, want %v", due, moved, lost, now.Add(gap))
			}
			got := w.Wake(due)
			waited += got.Sub(due)
			start, end := c.Run(got, work)
			waited += start.Sub(got)
			did += work
			now = end
		}
		share := float64(did) / float64(now)
		wants := float64(work) / float64(work+gap)
		if fair := r.Share(); share > fair+0.02 || wants < 0.9*fair && waited > 0 && work < r.Slice {
			t.Fatalf("wants %.3f of the core, may have %.3f, got %.3f and waited %v", wants, fair, share, waited)
		}
	})
}

// TestSleepPollPreempts: a thread that sleeps between its looks uses little of the
// core, and waits for nobody.
func TestSleepPollPreempts(t *testing.T) {
	for _, gap := range []sim.Duration{2 * us, 7 * us, 100 * us} {
		c := shared(cpu.Rivals{Threads: 3, Slice: 4 * ms})
		w := cpu.NewWaiter(c, &cpu.Policy{Waiting: cpu.SleepPoll, Sleep: us})
		now := sim.Time(0)
		for range 1000 {
			w.Begin(now, us/20)
			due, _, _ := w.Notice(now.Add(gap), us/20)
			if got := w.Wake(due); got != due {
				t.Fatalf("every %v: found at %v, has the core at %v", gap, due, got)
			}
			_, now = c.Run(due, us/10)
		}
	}
}

// TestStalls: work takes its time outside the stalls, which come as often as
// they should, and forgetting old ones changes nothing.
func TestStalls(t *testing.T) {
	stall := func() cpu.Load {
		return cpu.Load{Stalls: []cpu.Stall{{Every: sim.Exponential(100 * us), Length: sim.Uniform(5*us, 15*us), Rand: rand.New(rand.NewPCG(7, 7))}}}
	}
	long, short := cpu.NewCore(&cpu.Config{}, nil, stall()), cpu.NewCore(&cpu.Config{}, nil, stall())
	const work = 200 * ms
	_, end := long.Run(0, work)
	if taken := float64(end.Sub(at(work))) / float64(end); math.Abs(taken-10.0/110) > 0.01 {
		t.Errorf("%.4f of the time taken, want 10 of 110", taken)
	}
	now := sim.Time(0)
	for range int(work / (10 * us)) {
		_, now = short.Run(now, 10*us)
	}
	if now != end {
		t.Errorf("in portions it ends at %v, in one at %v", now, end)
	}
	// What was asked for speculatively moves nothing.
	a := cpu.NewCore(&cpu.Config{}, nil, stall())
	a.Available(at(30 * ms))
	if _, e := a.Run(0, work); e != end {
		t.Errorf("after a look ahead it ends at %v, want %v", e, end)
	}
}

func ExampleCore_Yield() {
	core := cpu.NewCore(&cpu.Config{}, nil, cpu.Load{Rivals: cpu.Rivals{Threads: 1, Slice: 4 * sim.Millisecond}})
	fmt.Println(core.Yield(0))
	// Output: 4ms
}

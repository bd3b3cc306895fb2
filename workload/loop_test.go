package workload

import (
	"testing"

	"gdisim/sim"
	"gdisim/stage"
)

// fixedOp takes 10 ns each time, and 3 ns of preparing that no operation has.
type fixedOp struct {
	eng             *sim.Engine
	h               sim.HandlerID
	open, most, all int
	done            [4]sim.Sink
}

func (o *fixedOp) Prepare() sim.Duration { return 3 * sim.Nanosecond }

func (o *fixedOp) Begin(_ sim.Cause, done sim.Sink, arg uint32) {
	o.open++
	o.all++
	o.most = max(o.most, o.open)
	o.done[arg] = done
	o.eng.After(10*sim.Nanosecond, o.h, arg)
}

func (o *fixedOp) Handle(arg uint32) {
	o.open--
	o.done[arg].Done(arg, sim.Cause{})
}

// A loop measures the operation alone, keeps its window, and counts by its whole
// period: 10 ns of work, 3 of preparing, 7 of pause.
func TestLoop(t *testing.T) {
	for _, window := range []int{1, 3} {
		r := &Run{Eng: sim.New()}
		o := &fixedOp{eng: r.Eng}
		o.h = r.Eng.Register(o)
		g := NewGroup(r, stage.Latency, 1)
		NewLoop(g, o, 60, 2, window, sim.Fixed(7*sim.Nanosecond), nil).Start()
		r.Eng.Run()
		if r.Open() != 0 || o.most != window {
			t.Errorf("window %d: %d open, at most %d at a time", window, r.Open(), o.most)
		}
		for _, d := range r.Samples[stage.Latency] {
			if d != 10*sim.Nanosecond {
				t.Fatalf("window %d: an operation of %v", window, d)
			}
		}
		n, w := g.Rate()
		if period := w * sim.Duration(window) / sim.Duration(n); n != 60 || period < 19*sim.Nanosecond || period > 21*sim.Nanosecond {
			t.Errorf("window %d: %d in %v, a period of %v", window, n, w, period)
		}
	}
}

package cpu

import (
	"math/rand/v2"

	"gdisim/sim"
)

// Stall is a recurring interval of random place and length in which the core
// works for somebody else: time that a hypervisor steals, page migration by the
// kernel.
type Stall struct {
	Every  sim.Delay // from the end of one to the start of the next; mean 0: never
	Length sim.Delay
	Rand   *rand.Rand // of its own, so that it does not move other draws
}

// stalls are the intervals of a Stall, drawn as far as somebody has asked. They
// begin in the middle of a gap.
type stalls struct {
	Stall
	drawn []interval
	begun bool
}

type interval struct{ start, end sim.Time }

func (s *stalls) at(t sim.Time) (taken bool, until sim.Time) {
	for n := len(s.drawn); n == 0 || s.drawn[n-1].start <= t; n++ {
		s.draw()
	}
	for i := len(s.drawn) - 1; i > 0; i-- {
		if v := s.drawn[i-1]; v.end <= t {
			return false, s.drawn[i].start
		} else if v.start <= t {
			return true, v.end
		}
	}
	return false, s.drawn[0].start
}

func (s *stalls) draw() {
	gap := max(1, s.Every.Draw(s.Rand))
	var from sim.Time
	if n := len(s.drawn); n > 0 {
		from = s.drawn[n-1].end
	} else if !s.begun {
		gap = sim.Duration(s.Rand.Int64N(int64(gap))) + 1
		s.begun = true
	}
	start := from.Add(gap)
	s.drawn = append(s.drawn, interval{start, start.Add(s.Length.Draw(s.Rand))})
}

// forget drops what was over before t. The last interval stays: the next one is
// drawn from its end.
func (s *stalls) forget(t sim.Time) {
	n := 0
	for n < len(s.drawn)-1 && s.drawn[n].end <= t {
		n++
	}
	if n > 16 {
		s.drawn = s.drawn[:copy(s.drawn, s.drawn[n:])]
	}
}

package cpu

import "gdisim/sim"

// Outage is a recurring interval in which the core works for somebody else: a
// timer tick.
type Outage struct {
	Period sim.Duration
	Length sim.Duration
	Phase  sim.Duration // start of one of the intervals
}

func (o *Outage) at(t sim.Time) (taken bool, until sim.Time) {
	x := (sim.Duration(t) - o.Phase) % o.Period
	if x < 0 {
		x += o.Period
	}
	if x < o.Length {
		return true, t.Add(o.Length - x)
	}
	return false, t.Add(o.Period - x)
}

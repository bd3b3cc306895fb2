package cpu

import "gdisim/sim"

// IdleState is a state that an idle core may enter, in order of depth. The zero
// IdleState does nothing.
type IdleState struct {
	// Residency is the least idle time for which the governor chooses the state.
	// For a Halt it is the idle time after which the core is halted.
	Residency sim.Duration
	Exit      sim.Delay
}

// idler is the governor of one core's idle states, as Linux's menu: it takes the
// typical length of the last few idle times for the next one.
type idler struct {
	last [8]sim.Duration
	n    int
}

// slept tells the governor how long the core has been idle.
func (g *idler) slept(d sim.Duration) {
	g.last[g.n%len(g.last)] = d
	g.n++
}

// expected returns the typical length of the last idle times: their mean, once
// it is more than six deviations or those are within 20 us; the longest is left
// out, up to a quarter of all, until that is so. ok is false where nothing is
// typical, or too little is known.
func (g *idler) expected() (d sim.Duration, ok bool) {
	if g.n < len(g.last) {
		return 0, false
	}
	last := g.last
	kept := last[:]
	for {
		var sum, square float64
		longest := 0
		for i, d := range kept {
			x := float64(d) / float64(sim.Microsecond)
			sum += x
			square += x * x
			if d > kept[longest] {
				longest = i
			}
		}
		n := float64(len(kept))
		mean := sum / n
		variance := square/n - mean*mean
		if variance <= 400 || mean*mean > 36*variance {
			return sim.Duration(mean * float64(sim.Microsecond)), true
		}
		if len(kept)*4 <= len(g.last)*3 {
			return 0, false
		}
		kept[longest] = kept[len(kept)-1]
		kept = kept[:len(kept)-1]
	}
}

// exit returns how long the core takes to run again after it was idle for so
// long: the exit of the state that the governor had chosen for it, the deepest
// where it knew nothing, and then the host's.
func (c *Core) exit(idle sim.Duration) sim.Duration {
	if c.rivals != nil || idle <= 0 {
		return 0 // somebody else ran
	}
	var d sim.Duration
	expected, ok := c.idler.expected()
	for i := len(c.cfg.Idle) - 1; i >= 0; i-- {
		if s := &c.cfg.Idle[i]; !ok || expected >= s.Residency {
			d = c.Draw(s.Exit)
			break
		}
	}
	if h := &c.cfg.Halt; h.Residency > 0 && idle >= h.Residency {
		d += c.Draw(h.Exit)
	}
	return d
}

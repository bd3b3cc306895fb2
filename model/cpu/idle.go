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

// idler is the governor of one core's idle states. As Linux's menu it takes the
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
// out, up to a quarter of all, until that is so. Where nothing is typical it is
// the mean of all. ok is false before the first.
func (g *idler) expected() (d sim.Duration, ok bool) {
	last := g.last
	kept := last[:min(g.n, len(last))]
	if g.n == 0 {
		return 0, false
	}
	var all float64
	for len(kept)*4 >= min(g.n, len(last))*3 {
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
		if variance := square/n - mean*mean; variance <= 400 || mean*mean > 36*variance {
			return sim.Duration(mean * float64(sim.Microsecond)), true
		}
		all = max(all, mean) // the first one, which has the longest in it
		kept[longest] = kept[len(kept)-1]
		kept = kept[:len(kept)-1]
	}
	return sim.Duration(all * float64(sim.Microsecond)), true
}

// state is the idle state that the governor chooses: the deepest that pays off,
// or the deepest of all while nothing is known.
func (c *Core) state(expected sim.Duration, ok bool) *IdleState {
	for i := len(c.cfg.Idle) - 1; i >= 0; i-- {
		if s := &c.cfg.Idle[i]; !ok || expected >= s.Residency {
			return s
		}
	}
	return nil
}

// halts reports whether the host halts a core that idles for so long.
func (c *Core) halts(idle sim.Duration) bool {
	return c.cfg.Halt.Residency > 0 && idle >= c.cfg.Halt.Residency
}

// leave returns how long the core takes to run again after it was idle in that
// state for so long.
func (c *Core) leave(s *IdleState, idle sim.Duration) sim.Duration {
	if c.rivals != nil || idle <= 0 {
		return 0 // somebody else ran
	}
	var d sim.Duration
	if s != nil {
		d = c.Draw(s.Exit)
	}
	if c.halts(idle) {
		d += c.Draw(c.cfg.Halt.Exit)
	}
	return d
}

// exit is leave for the state that the governor chose by what it knows.
func (c *Core) exit(idle sim.Duration) sim.Duration {
	return c.leave(c.state(c.idler.expected()), idle)
}

package cpu

import (
	"math/rand/v2"

	"gdisim/sim"
)

// Core is one core with what takes it away from the thread.
type Core struct {
	cfg    *Config
	rng    *rand.Rand
	away   []away
	rivals *rivals // among away; nil: the core is the thread's
	stalls []*stalls
	idler  idler
}

// away is something that takes the core from the thread at times.
type away interface {
	// at reports whether it has the core at t, and until when that holds.
	at(t sim.Time) (taken bool, until sim.Time)
}

// Load is what takes a core away from the thread. The zero Load is nothing.
type Load struct {
	Outages []Outage
	Stalls  []Stall
	Rivals  Rivals
}

// NewCore returns a core. Outages without length and stalls that never come are
// left out. rng serves prices that are distributions.
func NewCore(cfg *Config, rng *rand.Rand, load Load) *Core {
	c := &Core{cfg: cfg, rng: rng}
	for i := range load.Outages {
		if o := &load.Outages[i]; o.Length > 0 && o.Period > o.Length {
			c.away = append(c.away, o)
		}
	}
	for _, s := range load.Stalls {
		if s.Every.Mean() > 0 {
			x := &stalls{Stall: s}
			c.stalls = append(c.stalls, x)
			c.away = append(c.away, x)
		}
	}
	if load.Rivals.Threads > 0 {
		c.rivals = newRivals(load.Rivals)
		c.away = append(c.away, c.rivals)
	}
	return c
}

// Config returns the prices.
func (c *Core) Config() *Config { return c.cfg }

// Draw returns the time of one step of price d.
func (c *Core) Draw(d sim.Delay) sim.Duration { return d.Draw(c.rng) }

// Within returns a moment in an interval of length d that nothing is tied to.
func (c *Core) Within(d sim.Duration) sim.Duration {
	if d <= 0 {
		return 0
	}
	return sim.Duration(c.rng.Int64N(int64(d)))
}

// Available returns the first moment from t on at which the thread has the
// core.
func (c *Core) Available(t sim.Time) sim.Time { return c.after(t, nil) }

// after is Available with one of those that take the core left out.
func (c *Core) after(t sim.Time, but away) sim.Time {
	for i := 0; i < len(c.away); i++ {
		if c.away[i] == but {
			continue
		}
		if taken, until := c.away[i].at(t); taken {
			t, i = until, -1
		}
	}
	return t
}

// Run returns when work that is ready at t starts and ends, what takes the core
// left out. Work is given in the order of its time.
func (c *Core) Run(t sim.Time, work sim.Duration) (start, end sim.Time) {
	if len(c.away) == 0 {
		return t, t.Add(work)
	}
	for _, s := range c.stalls {
		s.forget(t)
	}
	start = c.Available(t)
	end = start
	for {
		run := work
		for _, a := range c.away {
			_, until := a.at(end)
			run = min(run, until.Sub(end))
		}
		end = end.Add(run)
		if work -= run; work == 0 {
			return start, end
		}
		end = c.Available(end)
	}
}

// Yield returns when the thread has the core again that it offers to others at
// t.
func (c *Core) Yield(t sim.Time) sim.Time {
	if c.rivals == nil {
		return t
	}
	return c.rivals.yield(t.Add(c.Draw(c.cfg.Switch))).Add(c.Draw(c.cfg.Switch))
}

// yielding is the mean time that the core is away for after a yield.
func (c *Core) yielding() sim.Duration {
	if c.rivals == nil {
		return 0
	}
	return 2*c.cfg.Switch.Mean() + c.rivals.turn()
}

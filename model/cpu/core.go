package cpu

import (
	"math/rand/v2"

	"gdisim/sim"
)

// Config holds the price of each step of a proxy thread at the clocks of the
// run. Core cycles follow the core's clock, MMIO and last-level cache steps the
// uncore's; both are resolved to time before they get here.
type Config struct {
	Loop      sim.Delay // one pass of the polling loop, without what it looks at
	Check     sim.Delay // look at a ring whose line has not changed
	Miss      sim.Delay // load of a line that a device or another core has written
	Rewrite   sim.Delay // store to a line that a device or another core has read
	Dequeue   sim.Delay // check and decode one descriptor
	Build     sim.Delay // build one WQE (ibv_post_send, per WR)
	Post      sim.Delay // per ibv_post_send call: checks, doorbell record
	Flush     sim.Delay // doorbell or BlueFlame store with the flush of the write-combining buffer
	PollEmpty sim.Delay // ibv_poll_cq that finds nothing
	PollCQE   sim.Delay // ibv_poll_cq, per CQE found, without the line's miss
	Publish   sim.Delay // store of a completion counter, issue only
	Stream    sim.Delay // load of the next line of a run that a device has written
	Yield     sim.Delay // sched_yield with nobody else to run
	Lookup    sim.Delay // look-up in a tree or hash, or an uncontended lock

	Interrupt sim.Delay // MSI-X write, entry, handler
	Switch    sim.Delay // wake-up by the scheduler and context switch
	Idle      []IdleState
}

// IdleState is a state that an idle core may enter, in order of depth.
type IdleState struct {
	After sim.Duration // of idling
	Exit  sim.Delay
}

// Outage is a recurring interval in which the core works for somebody else.
type Outage struct {
	Period sim.Duration
	Length sim.Duration
	Phase  sim.Duration // start of one of the intervals
}

// Core is one core with what takes it away from the thread.
type Core struct {
	cfg     *Config
	rng     *rand.Rand
	outages []Outage
}

// NewCore returns a core. Outages without length are left out. rng serves
// prices that are distributions.
func NewCore(cfg *Config, rng *rand.Rand, outages ...Outage) *Core {
	c := &Core{cfg: cfg, rng: rng}
	for _, o := range outages {
		if o.Length > 0 && o.Period > o.Length {
			c.outages = append(c.outages, o)
		}
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

// Wake returns when the handler of an interrupt raised at t has run and when
// the thread that it wakes does; the core has been idle for so long at t.
func (c *Core) Wake(t sim.Time, idle sim.Duration) (irq, awake sim.Time) {
	var exit sim.Duration
	for i := range c.cfg.Idle {
		if s := &c.cfg.Idle[i]; idle >= s.After {
			exit = c.Draw(s.Exit)
		}
	}
	irq = t.Add(c.Draw(c.cfg.Interrupt))
	return irq, c.Available(irq.Add(exit + c.Draw(c.cfg.Switch)))
}

// since returns how far t is into the outage's period.
func (o *Outage) since(t sim.Time) sim.Duration {
	x := (sim.Duration(t) - o.Phase) % o.Period
	if x < 0 {
		x += o.Period
	}
	return x
}

// Available returns the first moment from t on at which the thread has the
// core.
func (c *Core) Available(t sim.Time) sim.Time {
	for again := true; again; {
		again = false
		for i := range c.outages {
			o := &c.outages[i]
			if x := o.since(t); x < o.Length {
				t = t.Add(o.Length - x)
				again = true
			}
		}
	}
	return t
}

// Run returns when work that is ready at t starts and ends, outages left out.
func (c *Core) Run(t sim.Time, work sim.Duration) (start, end sim.Time) {
	if len(c.outages) == 0 {
		return t, t.Add(work)
	}
	start = c.Available(t)
	end = start
	for {
		run := work
		for i := range c.outages {
			o := &c.outages[i]
			run = min(run, o.Period-o.since(end))
		}
		end = end.Add(run)
		if work -= run; work == 0 {
			return start, end
		}
		end = c.Available(end)
	}
}

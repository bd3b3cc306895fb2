package gpu

import (
	"math/rand/v2"

	"gdisim/sim"
)

// Scope is the reach of a fence.
type Scope uint8

// The scopes of the PTX memory model that matter here.
const (
	ScopeGPU Scope = iota
	ScopeSystem
	ScopeCTA
)

// Config holds the price of each step for one thread.
type Config struct {
	Call       sim.Delay // call and return of a function that is not inlined
	L1Hit      sim.Delay // dependent load that hits L1 or the constant cache
	Sector     int64     // bytes that a miss of L1 brings
	L1Refill   sim.Delay // what a line costs more after L1 was invalidated
	L2Load     sim.Delay // load served by L2, waited for
	Atomic     sim.Delay // atomic on GPU memory whose result is waited for
	Build      sim.Delay // assembling and storing one WQE or descriptor from registers
	InlineWord sim.Delay // copying 4 bytes of payload into the WQE
	Record     sim.Delay // issue of the doorbell record's store
	Ring       sim.Delay // issue of the doorbell's store
	HostStore  sim.Delay // issue of a store to host memory
	SyncWarp   sim.Delay
	Turn       sim.Delay // a word in shared memory seen by the next thread

	ReleaseGPU    sim.Delay // release at GPU scope
	ReleaseIdle   sim.Delay // the same with nothing stored since the last fence
	ReleaseSystem sim.Delay // release at system scope, nothing else on the GPU's PCIe edge
	SystemStores  sim.Delay // what it costs more with stores of the thread outstanding
	FullExtra     sim.Delay // a full fence over a release; it invalidates L1 too
	Acquire       sim.Delay // acquire at any scope; it invalidates L1

	ReadOnlyHit    sim.Delay // load through the read-only path that hits
	FenceCTA       sim.Delay // fence at CTA scope
	AtomicInterval sim.Delay // atomics on one address follow each other

	PollPeriod   sim.Delay // from one look at a word in L2 to the next
	FixedPhase   bool      // polls start at their period's beginning; else anywhere in it
	HostAcquire  sim.Delay // what an acquiring load of host memory costs more than a plain one
	LineWay      sim.Delay // from an SM to where reads of one host line follow each other, and back
	Routine      sim.Delay // completion routine behind the successful look
	StoreVisible sim.Delay // store until the L2, and so the NIC, has it; no fence waits for it
	SMs          int
	WarpSize     int
}

// Line names a cache line that communication code loads through L1.
type Line uint8

// The lines.
const (
	LineState   Line = 1 << iota // queue or ring state behind a pointer
	LinePayload                  // the payload's line
	LineRing                     // bookkeeping of a ring that several threads share
)

// SM is one streaming multiprocessor as a communicating thread sees it: the
// prices, and which lines its L1 holds.
type SM struct {
	cfg  *Config
	rng  *rand.Rand
	warm Line
}

// NewSM returns an SM whose L1 holds nothing. rng serves prices that are
// distributions.
func NewSM(cfg *Config, rng *rand.Rand) *SM { return &SM{cfg: cfg, rng: rng} }

// Draw returns the time of one step of price d.
func (s *SM) Draw(d sim.Delay) sim.Duration { return d.Draw(s.rng) }

// Load returns the time of n dependent loads from the line, the first of which
// refills it if an acquire or a full fence came since the last.
func (s *SM) Load(l Line, n int) sim.Duration {
	var d sim.Duration
	if s.warm&l == 0 {
		s.warm |= l
		d = s.Draw(s.cfg.L1Refill)
	}
	for range n {
		d += s.Draw(s.cfg.L1Hit)
	}
	return d
}

// Reload returns the time to get values back that a compiler must not keep over
// a fence, in n lines that lead from one to the next: nothing if L1 still holds
// them.
func (s *SM) Reload(l Line, n int) sim.Duration {
	if s.warm&l != 0 || n == 0 {
		return 0
	}
	s.warm |= l
	var d sim.Duration
	for range n {
		d += s.Draw(s.cfg.L1Refill)
	}
	return d
}

// Warm has the line in L1 from now on, by a load that is accounted for elsewhere.
func (s *SM) Warm(l Line) { s.warm |= l }

// Sectors is how many misses of a cold L1 bring n bytes.
func (c *Config) Sectors(n int64) int { return int((n + c.Sector - 1) / c.Sector) }

// Copy returns the time of copying n payload bytes into a WQE, word by word. Each
// sector that L1 lacks is waited for, as the words' stores follow their loads.
func (s *SM) Copy(n int64) sim.Duration {
	d := s.Reload(LinePayload, s.cfg.Sectors(n))
	for range (n + 3) / 4 {
		d += s.Draw(s.cfg.InlineWord)
	}
	return d
}

// Fence returns the time of a fence. A full one leaves L1 cold; so does an
// acquire. stores says that the thread stored since its last fence; backlog is
// how long the GPU's PCIe edge is busy with earlier outbound writes: a
// system-scope fence waits for both.
func (s *SM) Fence(scope Scope, full, stores bool, backlog sim.Duration) sim.Duration {
	var d sim.Duration
	if scope == ScopeCTA {
		return s.Draw(s.cfg.FenceCTA)
	}
	if scope == ScopeGPU {
		d = s.Draw(s.cfg.ReleaseGPU)
	} else {
		d = s.Draw(s.cfg.ReleaseSystem) + backlog
		if stores {
			d += s.Draw(s.cfg.SystemStores)
		}
	}
	if full {
		d += s.Draw(s.cfg.FullExtra)
		s.warm = 0
	}
	return d
}

// Acquire returns the time of an acquire and invalidates L1.
func (s *SM) Acquire() sim.Duration {
	s.warm = 0
	return s.Draw(s.cfg.Acquire)
}

// Seen returns when a thread that has polled a word in GPU memory since begin
// knows of a value that became visible at visible: polls follow each other at
// the period, and each samples the word in its middle. The loop's phase is
// drawn, since the little that each poll varies adds up to a period within a
// few polls.
func (s *SM) Seen(begin, visible sim.Time) sim.Time { return s.SeenBy(begin, visible, 1) }

// SeenBy is Seen for a loop of several dependent looks an iteration, the last
// of which is at the word.
func (s *SM) SeenBy(begin, visible sim.Time, looks int) sim.Time {
	var p, last sim.Duration
	for range looks {
		last = s.Draw(s.cfg.PollPeriod)
		p += last
	}
	if p <= 0 {
		return max(begin, visible)
	}
	before := p - last + last/2 // until the word is sampled
	if visible <= begin.Add(before) {
		return begin.Add(p)
	}
	first := begin.Add(before + s.Phase(p))
	wait := visible.Sub(first) % p
	if wait < 0 {
		wait += p
	}
	if wait > 0 {
		wait = p - wait
	}
	return visible.Add(wait + p - before)
}

// Phase returns where in a period of length p a polling loop stands.
func (s *SM) Phase(p sim.Duration) sim.Duration {
	if s.cfg.FixedPhase || p <= 0 {
		return 0
	}
	return sim.Duration(s.rng.Int64N(int64(p)))
}

// Config returns the prices.
func (s *SM) Config() *Config { return s.cfg }

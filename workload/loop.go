package workload

import (
	"math/rand/v2"

	"gdisim/sim"
	"gdisim/stage"
)

// Operation is one step or exchange that a Loop repeats. Begin starts it now;
// done is told with arg when it has ended, by the spans of c that led there.
type Operation interface {
	Begin(c sim.Cause, done sim.Sink, arg uint32)
}

// Preparer is an Operation with something to do before each, which is not part
// of it.
type Preparer interface {
	// Prepare does it now and returns how long it takes.
	Prepare() sim.Duration
}

// Loop repeats an operation, up to window at a time, and measures each from its
// begin to its end.
type Loop struct {
	run    *Run
	group  *Group
	op     Operation
	prep   Preparer  // nil: none
	pause  sim.Delay // between the end of one and the begin of the next
	rng    *rand.Rand
	wake   sim.HandlerID
	warm   int // still to end before the loop is warm
	left   int // still to end in the measured part
	begun  []begun
	paused []bool // the slot's next event ends a pause, not what prepares
}

// NewLoop returns a loop of op in a group: iterations measured operations after
// warmup ones (at least a window's), window of them at a time. pause is from the
// end of one to the begin of the next; rng serves it where it is a distribution.
func NewLoop(g *Group, op Operation, iterations, warmup, window int, pause sim.Delay, rng *rand.Rand) *Loop {
	l := &Loop{run: g.run, group: g, op: op, warm: max(warmup, window-1), left: iterations, pause: pause, rng: rng, begun: make([]begun, window), paused: make([]bool, window)}
	l.prep, _ = op.(Preparer)
	l.wake = g.run.Eng.Register(resumed{l})
	l.run.open++
	if l.warm > 0 {
		g.cold++
	}
	return l
}

// Start begins a window's operations.
func (l *Loop) Start() {
	for slot := range l.begun {
		l.begin(uint32(slot))
	}
}

// StartAfter begins a window's operations after d.
func (l *Loop) StartAfter(d sim.Duration) {
	for slot := range l.begun {
		l.paused[slot] = true
		l.run.Eng.After(d, l.wake, uint32(slot))
	}
}

// begin pauses, prepares and measures the slot's next operation.
func (l *Loop) begin(slot uint32) {
	if d := l.pause.Draw(l.rng); d > 0 {
		l.paused[slot] = true
		l.run.Eng.After(d, l.wake, slot)
		return
	}
	l.prepare(slot)
}

func (l *Loop) prepare(slot uint32) {
	if l.prep != nil {
		if d := l.prep.Prepare(); d > 0 {
			l.run.Eng.After(d, l.wake, slot)
			return
		}
	}
	l.measure(slot)
}

type resumed struct{ *Loop }

// Handle goes on after a pause or after what prepares.
func (r resumed) Handle(slot uint32) {
	if r.paused[slot] {
		r.paused[slot] = false
		r.prepare(slot)
		return
	}
	r.measure(slot)
}

func (l *Loop) measure(slot uint32) {
	g := l.group
	if g.over {
		return
	}
	var c sim.Cause
	if g.cold > 0 {
		c = l.run.Owner
	} else {
		if !l.run.measured {
			g.begin = l.run.Eng.Now() // nobody warms up
			l.run.measure()
		}
		c = l.run.begin(g.Metric != stage.NoMetric && g.seq%g.Every == 0)
		g.seq++
	}
	l.begun[slot] = begun{at: l.run.Eng.Now(), cause: c}
	l.op.Begin(c, l, slot)
}

// Done takes the end of an operation and goes on to the next.
func (l *Loop) Done(slot uint32, c sim.Cause) {
	l.ended(l.begun[slot].at, c)
	l.begin(slot)
}

func (l *Loop) ended(began sim.Time, c sim.Cause) {
	g := l.group
	l.run.Finished++
	l.run.Messages++
	switch {
	case l.warm > 0:
		if l.warm--; l.warm > 0 {
			return
		}
		if g.cold--; g.cold == 0 {
			g.begin, g.count = l.run.Eng.Now(), 0
			l.run.measure()
		}
	case !g.over && g.cold == 0:
		g.count++
		if began >= g.begin && g.Metric != stage.NoMetric {
			l.run.sample(g.Metric, began, c)
		}
		if l.left--; l.left == 0 {
			g.Close()
			l.run.end()
			l.run.open = 0 // the other loops of the group go on for ever
			l.run.Eng.Stop()
		}
	}
}

package sim

import "math"

// HandlerID names a handler registered with an Engine. The zero HandlerID is
// never given out.
type HandlerID uint32

// Handler is what an event calls. The meaning of arg is the handler's own.
type Handler interface{ Handle(arg uint32) }

// TimerID names one timer of an Engine, for ever: it does not pass to a later
// timer. The zero TimerID names none.
type TimerID uint64

// Engine is a clock and the events ahead of it. New makes one; it must be used
// by one goroutine only.
type Engine struct {
	now      Time
	q        queue
	pending  int
	executed uint64
	stopped  bool
	handlers []Handler
	timers   timers
}

// forever is later than every event.
const forever = Time(math.MaxInt64)

// New returns an engine at time 0 with no events.
func New() *Engine {
	e := &Engine{handlers: make([]Handler, 1)}
	e.q.init()
	return e
}

// Register adds h to the engine's handlers and returns its name for events.
func (e *Engine) Register(h Handler) HandlerID {
	e.handlers = append(e.handlers, h)
	return HandlerID(len(e.handlers) - 1)
}

// Now returns the time of the running event, between events that of the last.
func (e *Engine) Now() Time { return e.now }

// At schedules h with arg at time t, behind all events already scheduled for t.
// t must not be before Now.
func (e *Engine) At(t Time, h HandlerID, arg uint32) {
	if t < e.now {
		panic("sim: event in the past")
	}
	if h == timerEvent {
		panic("sim: event without a handler")
	}
	e.pending++
	e.q.push(entry{t, h, arg})
}

// After schedules h with arg at d from now. d must not be negative.
func (e *Engine) After(d Duration, h HandlerID, arg uint32) { e.At(e.now.Add(d), h, arg) }

// Run runs events until none is left or Stop is called.
func (e *Engine) Run() {
	e.stopped = false
	for !e.stopped && e.step(forever) {
	}
}

// RunUntil runs the events up to and including time t, then sets the clock to
// t. After Stop the clock stays at the event that called it.
func (e *Engine) RunUntil(t Time) {
	e.stopped = false
	for e.step(t) {
		if e.stopped {
			return
		}
	}
	e.now = max(e.now, t)
}

// Step runs one event. It returns false if there is none.
func (e *Engine) Step() bool { return e.step(forever) }

// step runs the next event unless it is later than limit.
func (e *Engine) step(limit Time) bool {
	for !e.q.empty() {
		if limit != forever && e.q.next() > limit {
			return false
		}
		x := e.q.pop()
		if x.h == timerEvent {
			if x = e.timers.fire(x); x.h == timerEvent {
				continue
			}
		}
		e.now = x.at
		e.pending--
		e.executed++
		e.handlers[x.h].Handle(x.arg)
		return true
	}
	e.q.last = e.now // cancelled timers may have moved it ahead of the clock
	return false
}

// Stop makes Run or RunUntil return once the running event is done.
func (e *Engine) Stop() { e.stopped = true }

// Pending returns the number of events ahead, without cancelled timers.
func (e *Engine) Pending() int { return e.pending }

// Executed returns the number of events run so far.
func (e *Engine) Executed() uint64 { return e.executed }

// Reset takes the engine back to time 0 with no events, handlers or timers, and
// keeps its memory for another run.
func (e *Engine) Reset() {
	e.q.reset()
	e.timers.reset()
	clear(e.handlers)
	*e = Engine{q: e.q, handlers: e.handlers[:1], timers: e.timers}
}

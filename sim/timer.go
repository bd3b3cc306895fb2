package sim

// timerEvent is the handler of queue entries that stand for a timer; their arg
// is its slot.
const timerEvent HandlerID = 0

type timer struct {
	gen uint32
	h   HandlerID // timerEvent: cancelled, or the slot is free
	arg uint32
}

// timers are the slots of pending timers. A cancelled timer's entry stays in
// the queue, and keeps its slot, until it is popped or swept.
type timers struct {
	slots []timer
	free  []uint32
	dead  int // cancelled, still in the queue
}

// Timer schedules h with arg at time t like At, and can be cancelled.
func (e *Engine) Timer(t Time, h HandlerID, arg uint32) TimerID {
	if h == timerEvent {
		panic("sim: event without a handler")
	}
	if t < e.now {
		panic("sim: event in the past")
	}
	s := e.timers.take()
	p := &e.timers.slots[s]
	p.h, p.arg = h, arg
	e.pending++
	e.q.push(entry{t, timerEvent, s})
	return TimerID(p.gen)<<32 | TimerID(s)
}

// Cancel takes back a timer. It returns false if the timer has fired or was
// cancelled before.
func (e *Engine) Cancel(id TimerID) bool {
	ts := &e.timers
	s := uint32(id)
	if uint64(s) >= uint64(len(ts.slots)) || ts.slots[s].gen != uint32(id>>32) || ts.slots[s].h == timerEvent {
		return false
	}
	ts.slots[s].end()
	e.pending--
	ts.dead++
	// Sweep once the dead outnumber the living: a constant cost per Cancel, and
	// the queue never holds much more than twice what is pending.
	if ts.dead > e.pending+1024 {
		e.q.sweep(ts)
	}
	return true
}

// end makes all TimerIDs of the slot stale.
func (t *timer) end() {
	t.h = timerEvent
	t.gen = max(1, t.gen+1) // never 0, so that no TimerID is 0
}

func (ts *timers) take() uint32 {
	if n := len(ts.free) - 1; n >= 0 {
		s := ts.free[n]
		ts.free = ts.free[:n]
		return s
	}
	ts.slots = append(ts.slots, timer{gen: 1})
	return uint32(len(ts.slots) - 1)
}

// fire frees the slot of a timer's entry and returns the event it stands for,
// of handler timerEvent if the timer was cancelled.
func (ts *timers) fire(x entry) entry {
	t := &ts.slots[x.arg]
	ts.free = append(ts.free, x.arg)
	if t.h == timerEvent {
		ts.dead--
		return x
	}
	x.h, x.arg = t.h, t.arg
	t.end()
	return x
}

// drop frees the slot of x and returns true if x is a cancelled timer.
func (ts *timers) drop(x entry) bool {
	if x.h != timerEvent || ts.slots[x.arg].h != timerEvent {
		return false
	}
	ts.free = append(ts.free, x.arg)
	ts.dead--
	return true
}

func (ts *timers) reset() {
	ts.free, ts.dead = ts.free[:0], 0
	for i := range ts.slots {
		if ts.slots[i].h != timerEvent {
			ts.slots[i].end()
		}
		ts.free = append(ts.free, uint32(i))
	}
}

package cpu

import "gdisim/sim"

// Waiting is how a thread waits for work.
type Waiting uint8

// The ways to wait.
const (
	Poll          Waiting = iota // look again and again
	SleepPoll                    // sleep between two looks
	Interrupt                    // ask for one event, look again, sleep until it interrupts
	SpinThenSleep                // look for a while, then as Interrupt
)

var waitingNames = [...]string{"poll", "sleep-poll", "interrupt", "spin-then-sleep"}

// ParseWaiting returns the way to wait of that name.
func ParseWaiting(s string) (Waiting, bool) {
	for i, n := range waitingNames {
		if n == s {
			return Waiting(i), true
		}
	}
	return 0, false
}

// String returns the name.
func (w Waiting) String() string { return waitingNames[w] }

// Policy is how a thread waits, with what that needs.
type Policy struct {
	Waiting    Waiting
	Yields     int          // sched_yield calls after a look that found nothing
	Sleep      sim.Duration // between two looks of SleepPoll
	Slack      sim.Duration // that the kernel adds to a sleep
	Spin       sim.Duration // of SpinThenSleep
	Moderation Moderation
	// OneLook leaves out the look behind the arming: what comes between the last
	// look and the arming raises no interrupt.
	OneLook bool
}

// Interrupts reports whether the policy ever asks for an interrupt.
func (p *Policy) Interrupts() bool { return p.Waiting == Interrupt || p.Waiting == SpinThenSleep }

// Waiter tells when a thread that waits finds what becomes visible. It stands
// for looks, sleeps and interrupts without an event for each.
type Waiter struct {
	core   *Core
	policy *Policy
	mod    moderator
	begin  sim.Time     // of a look that has found nothing
	look   sim.Duration // its length, yields included

	due    bool // the thread will look:
	at     sim.Time
	start  sim.Time     // of that look
	slept  bool         // the thread sleeps until then,
	since  sim.Time     // from here on
	irq    sim.Time     // handler of the interrupt that wakes it is over
	asleep sim.Duration // so far
}

// NewWaiter returns the waiter of a core's thread.
func NewWaiter(core *Core, p *Policy) *Waiter {
	return &Waiter{core: core, policy: p, mod: newModerator(&p.Moderation, core)}
}

// Begin says that a look of that length, which began at t, has found nothing.
func (w *Waiter) Begin(t sim.Time, look sim.Duration) {
	w.begin, w.due, w.slept, w.since = t, false, false, 0
	w.look = max(1, look+sim.Duration(w.policy.Yields)*w.core.yielding())
}

// Notice tells of something that became visible now, and that a look sees so
// long after its start. It returns when the thread finds it; moved is false if
// it will be up earlier anyway. lost says that it raises no interrupt, and
// nothing else does.
func (w *Waiter) Notice(now sim.Time, offset sim.Duration) (at sim.Time, moved, lost bool) {
	switch w.policy.Waiting {
	case SleepPoll:
		return w.sooner(w.sleepPoll(now, offset), offset, false)
	case Interrupt, SpinThenSleep:
		return w.interrupt(now, offset)
	}
	at = polled(w.begin, w.look, now, offset)
	if r := w.core.rivals; r != nil && w.policy.Yields > 0 {
		at = w.core.after(at, r) // its turn begins with the look
	} else {
		at = w.core.Available(at)
	}
	return w.sooner(at, offset, false)
}

// polled is the end of the first look at the place, of those that follow each
// other from begin on, which does not end before now.
func polled(begin sim.Time, look sim.Duration, now sim.Time, offset sim.Duration) sim.Time {
	at := begin.Add(offset)
	if now > at {
		at = at.Add((now.Sub(at) + look - 1) / look * look)
	}
	return at
}

func (w *Waiter) sooner(at sim.Time, offset sim.Duration, slept bool) (sim.Time, bool, bool) {
	if w.due && w.at <= at {
		return w.at, false, false
	}
	w.due, w.at, w.start, w.slept = true, at, at.Add(-offset), slept
	return at, true, false
}

// sleepPoll is the look after a sleep; the last one's end is drawn.
func (w *Waiter) sleepPoll(now sim.Time, offset sim.Duration) sim.Time {
	at := w.begin.Add(offset)
	if now <= at {
		return at
	}
	sleep := w.policy.Sleep + w.policy.Slack
	mean := w.core.napMean(sleep)
	round := w.look + sleep + mean
	n := (now.Sub(at) + round - 1) / round
	at = at.Add(n*round + w.core.nap(sleep) - mean)
	for at < now {
		at = at.Add(w.look + sleep + w.core.nap(sleep))
		n++
	}
	w.since = w.begin.Add(n * w.look) // all looks, then all sleeps: the same account
	return at
}

// interrupt tells the last look before the arming, the one behind it, and the
// interrupt apart.
func (w *Waiter) interrupt(now sim.Time, offset sim.Duration) (at sim.Time, moved, lost bool) {
	w.mod.sample(now)
	last := w.last()
	if at := polled(w.begin, w.look, now, offset); at <= last.Add(offset) {
		return w.sooner(w.core.Available(at), offset, false)
	}
	armed := last.Add(w.look + w.core.cfg.Arm.Mean())
	asleep := armed
	if !w.policy.OneLook {
		asleep = armed.Add(w.look)
		if second := armed.Add(offset); now <= second {
			return w.sooner(w.core.Available(second), offset, false)
		}
	} else if now <= armed && !w.due {
		return 0, false, true
	}
	if w.due {
		if !w.slept || !w.mod.more(now) {
			return w.at, false, false
		}
	} else {
		w.mod.first(now)
	}
	cfg := w.core.cfg
	w.since = asleep
	var awake sim.Duration // until the core that interrupts go to runs
	if h := &cfg.Handler; h.Residency > 0 && w.mod.leaves.Sub(w.irq) >= h.Residency {
		awake = w.core.Draw(h.Exit)
	}
	w.irq = w.mod.leaves.Add(awake + w.core.Draw(cfg.Interrupt))
	at = w.irq.Add(w.core.exit(w.mod.leaves.Sub(asleep)) + w.core.Draw(cfg.WakeUp) + w.core.Draw(cfg.Switch))
	at = max(at, asleep)
	if r := w.core.rivals; r != nil {
		at = w.core.after(at, r)
	} else {
		at = w.core.Available(at)
	}
	w.due, w.at, w.start, w.slept = true, at, at, true
	return at, true, false
}

// Wake is called when the time has come that Notice gave. It returns when the
// thread has the core: later than now only if rivals keep it.
func (w *Waiter) Wake(now sim.Time) sim.Time {
	w.asleep += w.nap(now)
	w.due = false
	if w.slept {
		w.core.idler.slept(max(0, w.mod.leaves.Sub(w.since)))
	}
	r := w.core.rivals
	if r == nil {
		return now
	}
	switch {
	case w.since > 0: // it has slept
		r.sleep(w.since)
		w.since = 0
		w.at = r.wake(now)
		return w.at
	case w.policy.Yields > 0:
		r.since = w.start
	}
	return now
}

// Asleep returns how long the thread has slept so far; waiting says whether it
// waits now.
func (w *Waiter) Asleep(now sim.Time, waiting bool) sim.Duration {
	if !waiting {
		return w.asleep
	}
	return w.asleep + w.nap(now)
}

// nap is how long the thread has slept of the time since it began to wait.
func (w *Waiter) nap(now sim.Time) sim.Duration {
	switch {
	case w.policy.Waiting == SleepPoll:
		sleep := w.policy.Sleep + w.policy.Slack
		return sim.Duration(float64(now.Sub(w.begin)) * float64(sleep) / float64(sleep+w.look+w.core.napMean(sleep)))
	case w.slept:
		return max(0, w.irq.Sub(w.since))
	case w.policy.Interrupts() && !w.due:
		return max(0, now.Sub(w.last().Add(2*w.look)))
	}
	return 0
}

// last is the beginning of the last look before the thread asks for an
// interrupt.
func (w *Waiter) last() sim.Time {
	looks := sim.Duration(1)
	if w.policy.Waiting == SpinThenSleep {
		looks = max(1, (w.policy.Spin+w.look-1)/w.look)
	}
	return w.begin.Add((looks - 1) * w.look)
}

// Woken returns when the handler was over and when the thread ran, of the last
// interrupt; ok is false if the thread found by looking what it found.
func (w *Waiter) Woken() (irq, awake sim.Time, ok bool) { return w.irq, w.at, w.slept }

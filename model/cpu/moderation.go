package cpu

import "gdisim/sim"

// Moderation is how a device holds interrupts back. The zero Moderation does
// not.
type Moderation struct {
	Time   sim.Duration // an interrupt is held for up to so long
	Frames int          // unless so many events wait for it; 0: whatever their number
	// FromEvent: the timer starts with the first event, which then waits for all
	// of it; else nothing ties it to the events.
	FromEvent bool
	Adaptive  Adaptive
}

// Adaptive moderation takes the time from the rate of the events: Low up to a
// rate of RateLow, Time from RateHigh on, and the line between them. The rate is
// that of the last Sample. A zero Sample is no adaptive moderation.
type Adaptive struct {
	Low               sim.Duration
	RateLow, RateHigh int64 // events per second
	Sample            sim.Duration
}

// moderator is the state of one event queue.
type moderator struct {
	cfg    *Moderation
	core   *Core
	leaves sim.Time // when the interrupt that is on its way leaves
	frames int      // events until it leaves at once
	hold   sim.Duration
	from   sim.Time // of the sample
	count  int64
}

func newModerator(cfg *Moderation, core *Core) moderator {
	m := moderator{cfg: cfg, core: core, hold: cfg.Time}
	if cfg.Adaptive.Sample > 0 {
		m.hold = cfg.Adaptive.Low
	}
	return m
}

// sample counts an event.
func (m *moderator) sample(now sim.Time) {
	a := &m.cfg.Adaptive
	if a.Sample == 0 {
		return
	}
	m.count++
	d := now.Sub(m.from)
	if d < a.Sample {
		return
	}
	rate := int64(float64(m.count) / float64(d) * float64(sim.Second))
	switch {
	case rate <= a.RateLow:
		m.hold = a.Low
	case rate >= a.RateHigh:
		m.hold = m.cfg.Time
	default:
		m.hold = a.Low + sim.Duration(float64(m.cfg.Time-a.Low)*float64(rate-a.RateLow)/float64(a.RateHigh-a.RateLow))
	}
	m.from, m.count = now, 0
}

// first returns when the interrupt leaves that an event raises now, with none on
// its way.
func (m *moderator) first(now sim.Time) sim.Time {
	m.leaves, m.frames = now, m.cfg.Frames-1
	if m.frames != 0 {
		if m.cfg.FromEvent {
			m.leaves = now.Add(m.hold)
		} else {
			m.leaves = now.Add(m.core.Within(m.hold))
		}
	}
	return m.leaves
}

// more counts one more event before an interrupt that is on its way; it reports
// whether that leaves now instead.
func (m *moderator) more(now sim.Time) bool {
	m.frames--
	if m.frames != 0 || m.leaves <= now {
		return false
	}
	m.leaves = now
	return true
}

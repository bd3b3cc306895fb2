package cpu

import "gdisim/sim"

// Means is what a thread sleeps on until another one wakes it.
type Means uint8

// The means.
const (
	Futex Means = iota
	Eventfd
	Epoll   // an eventfd in an epoll set, and the read behind it
	Condvar // a futex, with a mutex and a flag around it
	Pipe
)

var meansNames = [...]string{"futex", "eventfd", "epoll", "condvar", "pipe"}

// ParseMeans returns the means of that name.
func ParseMeans(s string) (Means, bool) {
	for i, n := range meansNames {
		if n == s {
			return Means(i), true
		}
	}
	return 0, false
}

// counts is what a means adds to a wake-up: system calls, kernel objects that are
// worked on, lines that the two threads write in turn.
var counts = [...]struct{ calls, objects, lines int }{
	Futex:   {calls: 2}, // the waker's, and the sleeper's that returns
	Eventfd: {calls: 2, objects: 1},
	Epoll:   {calls: 3, objects: 3}, // the eventfd written, the set told, the eventfd read
	Condvar: {calls: 2, lines: 5},   // mutex, flag and condition by the waker, mutex and condition by the sleeper
	Pipe:    {calls: 2, objects: 1},
}

// Sleeper is a thread that sleeps until another wakes it.
type Sleeper struct {
	Core  *Core
	Waker *Core // the same one where both share a core
	By    Means
}

// Wake returns when the sleeper runs that has slept since then, and for which
// the waker makes its call at t; and when the sleeper was runnable.
func (s *Sleeper) Wake(since, t sim.Time) (runnable, awake sim.Time) {
	c, cfg, n := s.Core, s.Core.cfg, &counts[s.By]
	work := s.Waker.Draw(cfg.WakeUp)
	for range n.calls {
		work += s.Waker.Draw(cfg.Syscall)
	}
	for range n.objects {
		work += s.Waker.Draw(cfg.Object)
	}
	if s.Core != s.Waker {
		for range n.lines {
			work += s.Waker.Draw(cfg.Line)
		}
	}
	_, runnable = s.Waker.Run(t, work)
	ready := runnable
	if s.Core != s.Waker {
		idle := ready.Sub(since)
		ready = ready.Add(c.Draw(cfg.Remote) + c.exit(idle))
		c.idler.slept(idle)
	}
	if r := c.rivals; r != nil {
		r.sleep(since)
		ready = r.wake(ready)
	}
	_, awake = c.Run(ready, c.Draw(cfg.Switch))
	return runnable, awake
}

// Yielded returns when a thread has the core again that yields it at t: beside
// threads that keep the core for their turn, or to one that yields it back.
func (c *Core) Yielded(t sim.Time) sim.Time {
	_, t = c.Run(t, c.Draw(c.cfg.Syscall))
	if c.rivals != nil {
		return c.Available(c.Yield(t))
	}
	_, t = c.Run(t, c.Draw(c.cfg.Switch)+c.Draw(c.cfg.Syscall)+c.Draw(c.cfg.Switch))
	return t
}

// Sleep returns when a thread runs again that calls nanosleep at t, for d with
// the slack that the kernel adds.
func (c *Core) Sleep(t sim.Time, d sim.Duration) sim.Time {
	_, t = c.Run(t, c.Draw(c.cfg.Syscall))
	end := t.Add(d + c.nap(d))
	if r := c.rivals; r != nil {
		r.sleep(t)
		end = r.wake(end)
	}
	return c.Available(end)
}

// nap is what the end of a sleep takes that a timer ends: the governor knew how
// long it would be.
func (c *Core) nap(d sim.Duration) sim.Duration {
	return c.Draw(c.cfg.Timer) + c.leave(c.state(d, true), d)
}

// napMean is nap in the mean.
func (c *Core) napMean(d sim.Duration) sim.Duration {
	m := c.cfg.Timer.Mean()
	if c.rivals != nil {
		return m
	}
	if s := c.state(d, true); s != nil {
		m += s.Exit.Mean()
	}
	if c.halts(d) {
		m += c.cfg.Halt.Exit.Mean()
	}
	return m
}

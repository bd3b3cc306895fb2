package sim

import "math/bits"

// ServerStats counts what a server, or several behind one queue, did.
type ServerStats struct {
	Count   int64    // takes
	Busy    Duration // sum of service times
	Waits   int64    // takes that had to wait
	Waited  Duration // sum of waits
	MaxWait Duration
}

func (s *ServerStats) add(wait, service Duration) {
	s.Count++
	s.Busy += service
	if wait > 0 {
		s.Waits++
		s.Waited += wait
		s.MaxWait = max(s.MaxWait, wait)
	}
}

// slot is the occupation of one server: until when, and by whom last.
type slot struct {
	free   Time
	holder Op
}

// next returns when work that arrives at now starts, and who it waits for.
func (s *slot) next(now Time) (start Time, blocker Op) {
	if s.free > now {
		return s.free, s.holder
	}
	return now, 0
}

// Server does one thing at a time, in the order of the Takes. The zero Server
// is idle.
type Server struct {
	slot  slot
	stats ServerStats
}

// Take occupies the server for service as soon as it is free, but not before
// now, and returns that interval. If who has to wait, blocker is the last
// holder before it, else 0.
func (s *Server) Take(now Time, service Duration, who Op) (start, end Time, blocker Op) {
	start, blocker = s.slot.next(now)
	end = start.Add(service)
	s.slot = slot{end, who}
	s.stats.add(start.Sub(now), service)
	return start, end, blocker
}

// FreeAt returns when the server will have done all it has taken.
func (s *Server) FreeAt() Time { return s.slot.free }

// Stats returns the counts so far.
func (s *Server) Stats() ServerStats { return s.stats }

// Servers are k equal servers behind one queue.
type Servers struct {
	slots []slot
	stats ServerStats
}

// NewServers returns k idle servers; k must be at least 1.
func NewServers(k int) *Servers { return &Servers{slots: make([]slot, k)} }

// Take occupies the server that is free first (of equals the lowest) like
// Server.Take.
func (s *Servers) Take(now Time, service Duration, who Op) (start, end Time, blocker Op) {
	first := s.first()
	start, blocker = first.next(now)
	end = start.Add(service)
	*first = slot{end, who}
	s.stats.add(start.Sub(now), service)
	return start, end, blocker
}

func (s *Servers) first() *slot {
	first := &s.slots[0]
	for i := range s.slots {
		if s.slots[i].free < first.free {
			first = &s.slots[i]
		}
	}
	return first
}

// FreeAt returns when the first of the servers will be free.
func (s *Servers) FreeAt() Time { return s.first().free }

// Stats returns the counts so far, of all servers together.
func (s *Servers) Stats() ServerStats { return s.stats }

// PipeStats counts what went through a pipe.
type PipeStats struct {
	ServerStats
	Bytes int64
}

// Pipe carries bytes at a fixed rate, one transfer after the other.
type Pipe struct {
	rate  uint64 // bits per second
	slot  slot
	stats PipeStats
	// The transfers since the pipe was last idle, which end at
	// since + bits/rate. Only their sum is rounded.
	since Time
	bits  uint64
}

// NewPipe returns an idle pipe of bitsPerSecond, which must be above 0.
func NewPipe(bitsPerSecond int64) *Pipe {
	if bitsPerSecond <= 0 {
		panic("sim: pipe without bandwidth")
	}
	return &Pipe{rate: uint64(bitsPerSecond)}
}

// Transfer returns the time that bytes alone take, rounded up to a picosecond.
func (p *Pipe) Transfer(bytes int64) Duration { return p.time(uint64(bytes) * 8) }

// time returns n/rate, rounded up.
func (p *Pipe) time(n uint64) Duration {
	hi, lo := bits.Mul64(n, uint64(Second))
	lo, carry := bits.Add64(lo, p.rate-1, 0)
	q, _ := bits.Div64(hi+carry, lo, p.rate)
	return Duration(q)
}

// Take sends bytes as soon as the pipe is free, but not before now, and returns
// from when to when. A transfer right behind another may be a picosecond
// shorter than Transfer says, since the sum is rounded, not each part. If who
// has to wait, blocker is the sender before it, else 0.
func (p *Pipe) Take(now Time, bytes int64, who Op) (start, end Time, blocker Op) {
	start, blocker = p.slot.next(now)
	if now > p.slot.free {
		p.since, p.bits = now, 0
	}
	p.bits += uint64(bytes) * 8
	end = p.since.Add(p.time(p.bits))
	p.slot = slot{end, who}
	p.stats.add(start.Sub(now), end.Sub(start))
	p.stats.Bytes += bytes
	return start, end, blocker
}

// FreeAt returns when the pipe will have sent all it has taken.
func (p *Pipe) FreeAt() Time { return p.slot.free }

// Stats returns the counts so far.
func (p *Pipe) Stats() PipeStats { return p.stats }

// CreditStats counts what went through a pool of credits.
type CreditStats struct {
	Count    int64    // grants
	Waits    int64    // grants that had to wait
	Waited   Duration // sum of the waits of grants
	MaxWait  Duration
	MaxQueue int // most waiters at a time
	Low      int // fewest credits available
}

type waiter struct {
	since Time
	n     int
	h     HandlerID
	arg   uint32
}

// Credits is a pool of credits that are taken and given back. Who has to wait
// is served in the order of arrival: a small request never overtakes a large
// one.
type Credits struct {
	e         *Engine
	size      int
	available int
	queue     []waiter // from head on
	head      int
	stats     CreditStats
}

// NewCredits returns a full pool of n credits.
func NewCredits(e *Engine, n int) *Credits {
	return &Credits{e: e, size: n, available: n, stats: CreditStats{Low: n}}
}

// Acquire takes n credits and returns true. If they are not to be had or others
// wait already, it returns false, and h is called with arg when the n credits
// have been taken for it. n must be from 0 to the size of the pool.
func (c *Credits) Acquire(n int, h HandlerID, arg uint32) bool {
	if n < 0 || n > c.size {
		panic("sim: more credits wanted than the pool has")
	}
	if c.head == len(c.queue) && n <= c.available {
		c.grant(n)
		return true
	}
	if c.head > 32 && c.head > len(c.queue)/2 {
		c.queue = c.queue[:copy(c.queue, c.queue[c.head:])]
		c.head = 0
	}
	c.queue = append(c.queue, waiter{c.e.Now(), n, h, arg})
	c.stats.MaxQueue = max(c.stats.MaxQueue, len(c.queue)-c.head)
	return false
}

func (c *Credits) grant(n int) {
	c.available -= n
	c.stats.Count++
	c.stats.Low = min(c.stats.Low, c.available)
}

// Release gives back n credits, and schedules the handlers of those who wait
// and can now be served, in their order, for this very moment.
func (c *Credits) Release(n int) {
	if n < 0 || c.available+n > c.size {
		panic("sim: more credits released than taken")
	}
	c.available += n
	for c.head < len(c.queue) && c.queue[c.head].n <= c.available {
		w := c.queue[c.head]
		c.head++
		c.grant(w.n)
		wait := c.e.Now().Sub(w.since)
		c.stats.Waits++
		c.stats.Waited += wait
		c.stats.MaxWait = max(c.stats.MaxWait, wait)
		c.e.After(0, w.h, w.arg)
	}
	if c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
	}
}

// Available returns the credits that nobody holds.
func (c *Credits) Available() int { return c.available }

// Stats returns the counts so far.
func (c *Credits) Stats() CreditStats { return c.stats }

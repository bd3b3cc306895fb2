package sim

import "math/bits"

// ServerStats counts what a server did.
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

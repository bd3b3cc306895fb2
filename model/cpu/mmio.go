package cpu

import (
	"math/bits"
	"math/rand/v2"

	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// MMIOConfig is what loads and stores to a device's memory cost a core, beside
// the bus.
type MMIOConfig struct {
	Call    sim.Delay // the routine around a run of stores or loads, its fence included
	Line    sim.Delay // from one line's store or load to the next's
	Buffers int       // lines that are on their way to the link while the core goes on
	Piece   int64     // bytes of one load; those of a line follow each other, less are two loads that overlap
	Loads   int       // lines that a core may be loading at a time
}

// mmioLine is what write-combining buffers hold, and what a load brings.
const mmioLine = 64

// MMIO is a core that copies runs of bytes to or from a device, one run at a
// time.
type MMIO struct {
	cfg  MMIOConfig
	eng  *sim.Engine
	rec  *sim.Recorder
	rng  *rand.Rand
	bus  *pcie.Fabric
	next sim.HandlerID
	end  sim.HandlerID

	to    pcie.Unit
	load  bool
	left  int64 // bytes to issue
	free  int   // buffers, or loads that may start
	away  int   // loads on their way
	busy  bool  // an issue is under way
	cause sim.Cause
	done  sim.Sink
	arg   uint32

	post, copied sim.Kind
}

// NewMMIO returns an idle core on a bus.
func NewMMIO(eng *sim.Engine, rec *sim.Recorder, rng *rand.Rand, bus *pcie.Fabric, cfg MMIOConfig) *MMIO {
	kind := func(s stage.Stage) sim.Kind { return sim.Kind{Stage: uint8(s), Lane: uint8(s.Lane())} }
	m := &MMIO{cfg: cfg, eng: eng, rec: rec, rng: rng, bus: bus, post: kind(stage.CPURing), copied: kind(stage.PCIeDoorbell), free: cfg.Buffers}
	m.next, m.end = eng.Register(issued{m}), eng.Register(returned{m})
	return m
}

// Store copies n bytes to a unit. done is told when the routine returns: the
// bytes are on their way, not there.
func (m *MMIO) Store(to pcie.Unit, n int64, c sim.Cause, done sim.Sink, arg uint32) {
	m.to, m.load, m.left, m.cause, m.done, m.arg = to, false, n, c, done, arg
	m.issue()
}

// Load copies n bytes from a unit. done is told when the last has come and the
// routine returns.
func (m *MMIO) Load(from pcie.Unit, n int64, c sim.Cause, done sim.Sink, arg uint32) {
	m.to, m.load, m.left, m.cause, m.done, m.arg, m.free = from, true, n, c, done, arg, m.cfg.Loads
	m.issue()
}

// issue starts the next line where a buffer is free.
func (m *MMIO) issue() {
	switch {
	case m.busy || m.done == nil:
	case m.left > 0 && m.free > 0:
		m.busy = true
		m.free--
		m.span(m.cfg.Line.Draw(m.rng), m.next)
	case m.left == 0 && m.away == 0:
		m.busy = true
		m.span(m.cfg.Call.Draw(m.rng), m.end)
	}
}

// span is the core's work until the handler is called.
func (m *MMIO) span(d sim.Duration, h sim.HandlerID) {
	now := m.eng.Now()
	m.cause = m.rec.Span(m.cause, m.post, now, now.Add(d), 0)
	m.eng.At(now.Add(d), h, 0)
}

type issued struct{ *MMIO }

// Handle hands a line to the bus.
func (i issued) Handle(uint32) {
	m := i.MMIO
	m.busy = false
	n := min(mmioLine, m.left)
	m.left -= n
	if m.load {
		m.away++
		m.piece(n, m.cause)
	} else {
		m.bus.Submit(pcie.Access{From: pcie.CPU, To: m.to, Write: true, Bytes: n, Sent: drained{m}}, m.cause, m.copied, forgotten{}, 0)
	}
	m.issue()
}

type drained struct{ *MMIO }

// Done has a buffer empty again.
func (d drained) Done(_ uint32, c sim.Cause) {
	d.free++
	if d.left > 0 && !d.busy {
		d.cause = d.rec.Later(d.cause, c)
	}
	d.issue()
}

// again marks the second of two loads that overlap.
const again = 1 << 31

// piece loads the next of a line's n bytes that are still to come. Less than a piece
// is left to the C library's memcpy, which takes two loads of the largest power of two
// that fits, the first and the last bytes; a single byte takes one.
func (m *MMIO) piece(n int64, c sim.Cause) {
	b, left := m.cfg.Piece, uint32(max(0, n-m.cfg.Piece))
	if n < b {
		b = 1 << (bits.Len64(uint64(n)) - 1)
		if n > 1 {
			left = again | uint32(b)
		}
	}
	m.get(b, c, left)
}

func (m *MMIO) get(b int64, c sim.Cause, left uint32) {
	m.bus.Submit(pcie.Access{From: pcie.CPU, To: m.to, Bytes: b}, c, m.copied, loaded{m}, left)
}

type loaded struct{ *MMIO }

// Done has a piece of a line in the core.
func (l loaded) Done(left uint32, c sim.Cause) {
	switch {
	case left&again != 0:
		l.get(int64(left&^again), c, 0)
		return
	case left > 0:
		l.piece(int64(left), c)
		return
	}
	l.free++
	l.away--
	if !l.busy {
		l.cause = l.rec.Later(l.cause, c)
	}
	l.issue()
}

type forgotten struct{}

// Done is told of a store that nobody waits for.
func (forgotten) Done(uint32, sim.Cause) {}

type returned struct{ *MMIO }

// Handle ends the routine.
func (r returned) Handle(uint32) {
	m := r.MMIO
	m.busy = false
	done, arg, c := m.done, m.arg, m.cause
	m.done = nil
	done.Done(arg, c)
}

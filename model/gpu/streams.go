package gpu

import (
	"gdisim/model/pcie"
	"gdisim/sim"
)

// The loads that may run beside what is measured, each at the full rate of those
// who make it, from now until the run ends. They are traffic like any other: what
// others wait for is the queues that they fill.

// StoreToHost lets n SMs store to host memory.
func (e *Edge) StoreToHost(n int) {
	e.out = sim.NewPipe(e.cfg.StoreRate)
	e.streams = make([]stream, n)
	gap := sim.NewPipe(e.cfg.SMRate).Transfer(e.cfg.StoreBurst)
	for i := range n {
		p := &producer{e: e, i: i, gap: gap}
		p.h = e.eng.Register(p)
		e.eng.After(gap*sim.Duration(i)/sim.Duration(n), p.h, 0)
	}
}

// producer is an SM's loop of stores: a burst whenever its queue has room.
type producer struct {
	e   *Edge
	i   int
	gap sim.Duration
	h   sim.HandlerID
}

// Handle stores a burst.
func (p *producer) Handle(uint32) {
	e := p.e
	s := &e.streams[p.i]
	if s.queued+e.cfg.StoreBurst <= e.cfg.SMQueue {
		s.queued += e.cfg.StoreBurst
		s.asked += e.cfg.StoreBurst
		if !e.moving {
			e.moving = true
			e.eng.After(0, e.hMove, 0)
		}
	}
	e.eng.After(p.gap, p.h, 0)
}

type move struct{ *Edge }

// Handle takes the next burst in turn into the shared queue, as long as it has
// room.
func (m move) Handle(uint32) {
	e := m.Edge
	n := e.cfg.CopyChunk
	room := e.out.Transfer(max(0, e.cfg.EdgeQueue-n))
	now := e.eng.Now()
	for range len(e.streams) {
		s := &e.streams[e.turn]
		e.turn = (e.turn + 1) % len(e.streams)
		if s.queued < n {
			continue
		}
		s.queued -= n
		s.moved += n
		_, end, _ := e.out.Take(now, n, e.who.Op)
		e.eng.At(end, e.hLeave, 0)
		next := max(now, end.Add(-room))
		e.eng.At(next, e.hMove, 0)
		e.check()
		return
	}
	e.moving = false
}

type leaves struct{ *Edge }

// Handle puts a burst on the link.
func (l leaves) Handle(uint32) {
	l.bus.Write(pcie.GPU, pcie.Host, l.cfg.CopyChunk, l.who, l.kind, forget{}, 0)
}

// forget is who does not wait for what it asked for.
type forget struct{}

// Done is told and forgets.
func (forget) Done(uint32, sim.Cause) {}

// LoadFromHost lets n SMs load from host memory, each its burst in lines of 128
// bytes.
func (e *Edge) LoadFromHost(n int) {
	e.readers(int64(n)*e.cfg.LoadBurst/lineBytes, lineBytes)
}

const lineBytes = 128

// PollWords lets n threads poll host memory, each a word of its own and none in step
// with another.
func (e *Edge) PollWords(n int) { e.pollers(n, nil) }

// PollLine lets n threads poll words of one line of host memory at system scope.
func (e *Edge) PollLine(n int, way sim.Duration) { e.pollers(n, NewHostLine(e, 1, way)) }

func (e *Edge) pollers(n int, line *HostLine) {
	read := e.bus.RoundTrip(pcie.GPU, pcie.Host, 8)
	for i := range n {
		l := &loader{e: e, bytes: 8, line: line}
		l.h = e.eng.Register(l)
		e.eng.After(read*sim.Duration(i)/sim.Duration(n), l.h, 0)
	}
}

// readers are n accesses of a size that follow each other for ever, each begun a
// little after the one before.
func (e *Edge) readers(n, bytes int64) {
	for i := range max(1, n) {
		l := &loader{e: e, bytes: bytes}
		l.h = e.eng.Register(l)
		e.eng.After(sim.Duration(i)*sim.Nanosecond, l.h, 0)
	}
}

// loader is whoever reads host memory over and over, one access after the other.
type loader struct {
	e     *Edge
	bytes int64
	line  *HostLine // nil: lines of its own
	h     sim.HandlerID
}

// Handle begins the first.
func (l *loader) Handle(uint32) { l.Done(0, sim.Cause{}) }

// Done is the data of an access.
func (l *loader) Done(uint32, sim.Cause) {
	if l.line != nil {
		l.line.Read(l.e.who, l.e.kind, l, 0)
		return
	}
	l.e.Read(l.bytes, l.e.who, l.e.kind, l, 0)
}

// CopyToGPU lets the copy engine of that direction read host memory, with a
// window of accesses under way.
func (e *Edge) CopyToGPU() { e.readers(e.cfg.CopyReads/e.cfg.CopyChunk, e.cfg.CopyChunk) }

// CopyToHost lets the copy engine of that direction write host memory, with a
// window of accesses under way. The next of them stands at the edge meanwhile.
func (e *Edge) CopyToHost() {
	x := &copyOut{e}
	for range max(1, e.cfg.CopyWrites/e.cfg.CopyChunk) {
		x.write()
	}
	e.copying = true
}

type copyOut struct{ e *Edge }

func (x *copyOut) write() {
	x.e.bus.Write(pcie.GPU, pcie.Host, x.e.cfg.CopyChunk, x.e.who, x.e.kind, x, 0)
}

// Done is a write that has arrived: the next passes the edge, and the fences
// behind it.
func (x *copyOut) Done(uint32, sim.Cause) {
	e := x.e
	x.write()
	for _, id := range e.behind {
		e.arrive(id)
	}
	e.behind = e.behind[:0]
}

// StoreToMemory lets n SMs store to GPU memory, each the next burst when the last
// is in L2.
func (e *Edge) StoreToMemory(n int) {
	e.memory = sim.NewPipe(e.cfg.MemoryRate)
	for range n {
		w := &writer{e: e}
		w.h = e.eng.Register(w)
		e.eng.After(0, w.h, 0)
	}
}

type writer struct {
	e *Edge
	h sim.HandlerID
}

// Handle stores a burst.
func (w *writer) Handle(uint32) {
	_, end, _ := w.e.memory.Take(w.e.eng.Now(), w.e.cfg.StoreBurst, w.e.who.Op)
	w.e.eng.At(end, w.h, 0)
}

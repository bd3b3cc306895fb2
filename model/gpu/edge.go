package gpu

import (
	"math/rand/v2"

	"gdisim/model/pcie"
	"gdisim/sim"
)

// EdgeConfig describes where a GPU's accesses leave it for the host, and what
// its engines and SMs keep under way there when they work at full rate.
type EdgeConfig struct {
	Out, Back sim.Delay // a fence at system scope on its way to the edge and from it
	FullExtra sim.Delay // what a full fence adds at its end

	StoreRate  int64        // bit/s of all SMs' stores to the host
	StoreTime  sim.Duration // of a single store to the host, whoever stores
	StoreAck   sim.Duration // from such a store until the edge has told that it took it
	Gather     sim.Duration // from a fence's begin, during which stores of others still count
	SMRate     int64        // bit/s of one SM's stores to the host
	MemoryRate int64        // bit/s of all SMs' stores to GPU memory
	StoreBurst int64        // bytes that an SM stores at a time
	LoadBurst  int64        // bytes that an SM loads at a time
	SMQueue    int64        // bytes of one SM's stores to the host that wait behind it
	EdgeQueue  int64        // bytes of stores to the host in the queue that all share

	CopyChunk  int64 // bytes of a copy engine's access
	CopyReads  int64 // bytes of host memory that a copy engine has asked for at a time
	CopyWrites int64 // bytes that a copy engine has on their way to host memory
}

// Edge is the GPU's door to the host. Threads' stores and loads pass it in their
// order, copy engines' accesses go to the link beside it, and a fence at system
// scope is a trip there and back: it waits for stores to GPU memory that are on
// their way to L2, for the stores to the host of all SMs that came before it (and
// until the edge has told that it took the last of them), and
// for the reads of the host that were asked for before it got there, since their
// data comes back by the way that its answer takes. On an idle GPU nothing of
// this waits.
type Edge struct {
	cfg  EdgeConfig
	eng  *sim.Engine
	rec  *sim.Recorder
	rng  *rand.Rand
	bus  *pcie.Fabric
	who  sim.Cause // stands for the streams
	kind sim.Kind  // of the streams' transactions

	memory  *sim.Pipe
	stored  bool       // a thread has stored to the host
	small   sim.Server // takes threads' stores to the host, one after the other
	out     *sim.Pipe  // SMs' stores to the host, nil without streams of them
	streams []stream
	turn    int
	moving  bool
	copying bool     // a copy engine's next write stands at the edge
	behind  []uint32 // fences behind it

	reads    []read
	free     sim.Free
	held     []access // behind the shared queue
	freeHeld sim.Free
	asked    uint64 // reads
	back     uint64 // of them, with their data
	fences   []fence
	hArrive  sim.HandlerID
	hEnd     sim.HandlerID
	hGather  sim.HandlerID
	hPass    sim.HandlerID
	hMove    sim.HandlerID
	hLeave   sim.HandlerID
}

// stream is one SM that stores to the host without a pause.
type stream struct{ queued, asked, moved int64 }

// access is a thread's load or store.
type access struct {
	n    int64
	c    sim.Cause
	k    sim.Kind
	read bool
	done sim.Sink
	arg  uint32
}

type read struct {
	done sim.Sink
	arg  uint32
}

type fence struct {
	c     sim.Cause
	k     sim.Kind
	full  bool
	begin sim.Time
	there sim.Time // when it was at the edge
	ack   sim.Time // of the last store to the host before it
	reads uint64   // that must be back
	left  []int64  // bytes of each stream that must have moved
	state uint8
	done  sim.Sink
	arg   uint32
}

// states of a fence.
const (
	unusedFence uint8 = iota
	toEdge
	atEdge
	ending
)

// NewEdge returns the idle edge of a GPU. who and kind stand for the load that
// StoreToHost and its like put on it.
func NewEdge(cfg EdgeConfig, eng *sim.Engine, rec *sim.Recorder, rng *rand.Rand, bus *pcie.Fabric, who sim.Cause, kind sim.Kind) *Edge {
	e := &Edge{cfg: cfg, eng: eng, rec: rec, rng: rng, bus: bus, who: who, kind: kind}
	e.hArrive, e.hEnd, e.hPass = eng.Register(fenceArrives{e}), eng.Register(fenceEnds{e}), eng.Register(passes{e})
	e.hGather = eng.Register(fenceGathers{e})
	e.hMove, e.hLeave = eng.Register(move{e}), eng.Register(leaves{e})
	return e
}

// Config returns what the edge is made of.
func (e *Edge) Config() EdgeConfig { return e.cfg }

// Read loads n bytes from the host. done is told when the thread has them; while
// it is, the bus's Sampled says when they were read.
func (e *Edge) Read(n int64, c sim.Cause, k sim.Kind, done sim.Sink, arg uint32) {
	id := sim.Alloc(&e.reads, &e.free)
	e.reads[id] = read{done: done, arg: arg}
	e.asked++
	e.pass(access{n: n, c: c, k: k, read: true, done: readBack{e}, arg: id})
}

// Write stores n bytes to the host; done is told when a core may see them.
func (e *Edge) Write(n int64, c sim.Cause, k sim.Kind, done sim.Sink, arg uint32) {
	e.small.Take(e.eng.Now(), e.cfg.StoreTime, e.who.Op)
	e.stored = true
	e.pass(access{n: n, c: c, k: k, done: done, arg: arg})
}

// pass lets a thread's access go behind the stores that wait in the shared queue.
func (e *Edge) pass(a access) {
	if e.out != nil && e.out.FreeAt() > e.eng.Now() {
		id := sim.Alloc(&e.held, &e.freeHeld)
		at := e.out.FreeAt()
		a.c = e.rec.Span(a.c, a.k, at, at, e.who.Op)
		e.held[id] = a
		e.eng.At(at, e.hPass, id)
		return
	}
	e.send(&a)
}

type passes struct{ *Edge }

// Handle sends an access that waited.
func (h passes) Handle(id uint32) {
	e := h.Edge
	a := e.held[id]
	sim.Release(&e.held, &e.freeHeld, id)
	e.send(&a)
}

func (e *Edge) send(a *access) {
	if a.read {
		e.bus.Read(pcie.GPU, pcie.Host, a.n, a.c, a.k, a.done, a.arg)
		return
	}
	e.bus.Write(pcie.GPU, pcie.Host, a.n, a.c, a.k, a.done, a.arg)
}

type readBack struct{ *Edge }

// Done is the data of a read.
func (r readBack) Done(id uint32, c sim.Cause) {
	e := r.Edge
	x := e.reads[id]
	sim.Release(&e.reads, &e.free, id)
	e.back++
	e.check()
	x.done.Done(x.arg, c)
}

// Fence begins a fence at system scope, a full one or a release; done is told when it is over.
func (e *Edge) Fence(c sim.Cause, k sim.Kind, full bool, done sim.Sink, arg uint32) {
	now := e.eng.Now()
	id := -1
	for i := range e.fences {
		if e.fences[i].state == unusedFence {
			id = i
			break
		}
	}
	if id < 0 {
		e.fences = append(e.fences, fence{})
		id = len(e.fences) - 1
	}
	f := &e.fences[id]
	*f = fence{c: c, k: k, full: full, begin: now, left: f.left[:0], state: toEdge, done: done, arg: arg}
	if e.stored {
		e.eng.After(e.cfg.Gather, e.hGather, uint32(id))
		return
	}
	e.leave(id, now)
}

type fenceGathers struct{ *Edge }

// Handle takes in the stores to the host so far.
func (h fenceGathers) Handle(id uint32) {
	f := &h.fences[id]
	f.ack = h.small.FreeAt().Add(h.cfg.StoreAck)
	h.leave(int(id), f.begin)
}

// leave lets a fence that began at from go to the edge.
func (e *Edge) leave(id int, from sim.Time) {
	if e.memory != nil {
		from = max(from, e.memory.FreeAt())
	}
	e.eng.At(max(e.eng.Now(), from.Add(e.cfg.Out.Draw(e.rng))), e.hArrive, uint32(id))
}

type fenceArrives struct{ *Edge }

// Handle has the fence at the edge, perhaps behind a copy engine's write.
func (h fenceArrives) Handle(id uint32) {
	e := h.Edge
	if e.copying {
		e.behind = append(e.behind, id)
		return
	}
	e.arrive(id)
}

func (e *Edge) arrive(id uint32) {
	f := &e.fences[id]
	f.state, f.there, f.reads = atEdge, e.eng.Now(), e.asked
	for i := range e.streams {
		f.left = append(f.left, e.streams[i].asked)
	}
	e.check()
}

// check lets fences go that wait for nothing any more.
func (e *Edge) check() {
	now := e.eng.Now()
	for i := range e.fences {
		f := &e.fences[i]
		if f.state != atEdge || e.back < f.reads || !e.gone(f.left) {
			continue
		}
		f.state = ending
		free := f.there
		if e.out != nil && len(f.left) > 0 {
			free = max(free, now, e.out.FreeAt())
		}
		// The data of a read that the fence waited for is back by now, and so is
		// the fence.
		end := max(now, free.Add(e.cfg.Back.Draw(e.rng)), f.ack)
		if f.full {
			end = end.Add(e.cfg.FullExtra.Draw(e.rng))
		}
		e.eng.At(end, e.hEnd, uint32(i))
	}
}

func (e *Edge) gone(left []int64) bool {
	for i, n := range left {
		if e.streams[i].moved < n {
			return false
		}
	}
	return true
}

type fenceEnds struct{ *Edge }

// Handle ends a fence. Beyond its own trip it waited.
func (h fenceEnds) Handle(id uint32) {
	e := h.Edge
	f := e.fences[id]
	e.fences[id] = fence{left: f.left[:0]}
	now := e.eng.Now()
	trip := e.cfg.Out.Mean() + e.cfg.Back.Mean()
	if f.full {
		trip += e.cfg.FullExtra.Mean()
	}
	start := max(f.begin, now.Add(-trip))
	blocker := sim.Op(0)
	if start > f.begin {
		blocker = e.who.Op
	}
	f.done.Done(f.arg, e.rec.Span(f.c, f.k, start, now, blocker))
}

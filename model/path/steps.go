package path

import (
	"gdisim/model/gpu"
	"gdisim/model/nic"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// Action is what a step does.
type Action uint8

// The actions of a GPU thread.
const (
	DoCall       Action = iota // call and return
	DoConst                    // loads of read-mostly state that stay in a read-only cache
	DoLoad                     // dependent loads through L1
	DoReload                   // values that must be loaded again if L1 was invalidated
	DoCheck                    // start a fresh L2 load that the following work does not need yet
	DoSettle                   // wait for that load
	DoFresh                    // fresh L2 load, waited for
	DoAtomic                   // atomic with result on GPU memory
	DoBuild                    // store a WQE or descriptor
	DoInline                   // copy the payload into the WQE
	DoSyncWarp                 // lanes of a warp wait for each other
	DoFence                    // fence or release
	DoAcquire                  // acquire
	DoRecord                   // doorbell record store
	DoRing                     // doorbell store
	DoHostLoad                 // load from host memory
	DoHostAtomic               // atomic on host memory: a PCIe round trip
	DoStores                   // stores to the thread's own memory that the next fence finds outstanding
	DoHostStore                // posted store to host memory
	DoRoom                     // wait until the ring's slot is free
	DoLock                     // take the queue's lock
	DoUnlock                   // release it
	DoAwaitTurn                // wait until all earlier slots are published
	DoPassTurn                 // let the next one publish
	DoReserve                  // take slots of the send queue; waits while it is full
	DoPublish                  // put the slots before the NIC, in order of reservation
	DoDecide                   // look whether this post must ring; if not, it is over
	DoMax                      // raise the producer index; if it is no lower already, go to the unlock
	DoSlot                     // leave the index to the CPU thread that rings
	DoPollCQ                   // poll the CQ until the awaited CQE shows
	DoPollRing                 // poll the ring's progress until it covers the oldest batch
	DoPollAnswer               // poll a worker's answer to a quiet
	DoVisit                    // look at a queue that has nothing outstanding
	DoReadOnly                 // loads through the read-only path, which no acquire makes cold
	doEnd                      // no step: where a program ends
	doSend                     // the posted write that the store before became leaves the SM
)

var actionNames = [...]string{
	DoCall: "call", DoConst: "load, read-only", DoLoad: "load, L1", DoReload: "reload if cold", DoCheck: "load, L2 (async)", DoSettle: "wait for it",
	DoFresh: "load, L2", DoAtomic: "atomic", DoBuild: "build", DoInline: "inline copy", DoSyncWarp: "syncwarp", DoFence: "fence", DoAcquire: "acquire",
	DoRecord: "doorbell record", DoRing: "doorbell", DoHostLoad: "load, host", DoHostAtomic: "atomic, host", DoStores: "stores, local", DoHostStore: "store, host", DoRoom: "await room", DoLock: "lock", DoUnlock: "unlock",
	DoAwaitTurn: "await turn", DoPassTurn: "pass turn", DoReserve: "reserve", DoPublish: "publish", DoDecide: "must it ring", DoMax: "atomic max",
	DoSlot: "doorbell slot", DoPollCQ: "poll CQ", DoPollRing: "poll counter", DoPollAnswer: "poll answer", DoVisit: "visit idle queue", DoReadOnly: "load, nc", doEnd: "", doSend: "",
}

// String returns the action's name.
func (a Action) String() string { return actionNames[a] }

// Step is one step of a GPU thread's program.
type Step struct {
	Do    Action
	Stage stage.Stage
	N     int
	Line  gpu.Line
	Scope gpu.Scope
	Full  bool
	Why   string
}

// Fence is what stands before the doorbell.
type Fence uint8

// The fences, by the names of the scenario key `fence`.
const (
	FenceNone Fence = iota
	FenceGPU
	FenceGPURecord
	FenceGPURelease
	FenceDevice
	FenceSystemRelease
	FenceSystem
)

var fenceNames = [...]string{"none", "gpu", "gpu+record", "gpu-release", "device", "system-release", "system"}

// ParseFence returns the fence of that name.
func ParseFence(s string) (Fence, bool) {
	for i, n := range fenceNames {
		if n == s {
			return Fence(i), true
		}
	}
	return 0, false
}

// String returns the fence's name.
func (f Fence) String() string { return fenceNames[f] }

// step returns the fence itself.
func (f Fence) step() Step {
	s := Step{Do: DoFence, Stage: stage.GPUFence, N: 1}
	switch f {
	case FenceGPU, FenceGPURecord:
		s.Why = "fence.release.gpu: the NIC must not see the doorbell before the WQE"
	case FenceGPURelease:
		s.Why = "st.release.gpu: the same order, as part of the store that publishes"
	case FenceDevice:
		s.Full, s.Why = true, "__threadfence(): full fence at GPU scope; L1 is invalidated"
	case FenceSystemRelease:
		s.Scope, s.Why = gpu.ScopeSystem, "st.release.sys: a queue at the GPU's PCIe edge"
	case FenceSystem:
		s.Scope, s.Full, s.Why = gpu.ScopeSystem, true, "__threadfence_system(): full fence at system scope; L1 is invalidated"
	}
	return s
}

// Posting is how threads share a send queue.
type Posting uint8

// The postings.
const (
	PostSingle      Posting = iota // one thread a queue
	PostLock                       // a lock per post
	PostHandoff                    // slots published in order, thread by thread
	PostCooperative                // a warp reserves, builds and rings together
)

var postingNames = [...]string{"single", "lock", "handoff", "cooperative"}

// ParsePosting returns the posting of that name.
func ParsePosting(s string) (Posting, bool) {
	for i, n := range postingNames {
		if n == s {
			return Posting(i), true
		}
	}
	return 0, false
}

// String returns the posting's name.
func (p Posting) String() string { return postingNames[p] }

// Message is what one put or get of the workload moves.
type Message struct {
	Bytes  int64
	Get    bool
	Signal Signal
	// Lands is the memory that it is written to; Word that of the word which its
	// receiver polls, of the data or of the signal. Both are GPU or Host.
	Lands, Word pcie.Unit
	// Fresh: the payload is a new word each time, as where the receiver polls it: a
	// thread whose NIC reads it from memory stores it there first.
	Fresh bool
	// Alone: the signal goes without a write before it, as an answer does.
	Alone bool
}

// Answer returns the message by which a peer says that it has m: a signal of m's
// kind alone, or a word of 8 bytes.
func (m Message) Answer() Message {
	m.Bytes, m.Alone = 8, m.Signal != SignalNone
	return m
}

// plain returns the message as background load: a put of the same size that nobody
// looks for.
func (m Message) plain() Message { return Message{Bytes: m.Bytes} }

// wqes is the number of WQEs of the message: an immediate is part of its write.
func (m Message) wqes() int {
	if !m.Alone && (m.Signal == SignalWrite || m.Signal == SignalAtomic) {
		return 2
	}
	return 1
}

// flag returns what tells the receiver of the write w: 8 bytes written or added
// behind it, or an empty write that brings the immediate.
func (m Message) flag(w nic.WQE) nic.WQE {
	w.Inline, w.Bytes, w.Flag, w.Remote = true, 8, true, m.Word
	switch m.Signal {
	case SignalAtomic:
		w.Opcode, w.Inline = nic.FetchAdd, false
	case SignalImmediate:
		w.Bytes, w.Flag, w.Imm = 0, false, true // its CQE tells
	case SignalNone, SignalWrite:
	}
	return w
}

// ends returns the memories that the initiator's NIC and the peer's reach for a
// message whose source lies in that of payload.
func (m Message) ends(payload pcie.Unit) (local, remote pcie.Unit) {
	if m.Get {
		return m.Lands, payload
	}
	return payload, m.Lands
}

// Signal is how a put tells its receiver, beyond the data itself.
type Signal uint8

// The signals.
const (
	SignalNone      Signal = iota // the receiver polls the data
	SignalWrite                   // a second, inline write
	SignalAtomic                  // a fetch-add by the NIC
	SignalImmediate               // an immediate in the write: a receive CQE, which a CPU thread of the receiver counts
)

// Counts are the step counts of a stack's post, each with its source in the
// stack's file.
type Counts struct {
	Calls       int // functions that are not inlined
	StateLoads  int // dependent loads of queue state through L1
	ConstLoads  int // loads of read-mostly state
	RingLoads   int // dependent loads of shared ring bookkeeping (general hand-off)
	Atomics     int // slot reservation (general hand-off, cooperative posting)
	HostLoads   int // loads of the host's progress (general hand-off)
	Stores      int // stores to local memory that the hand-off's first fence finds outstanding
	ColdLines   int // lines that a library loads in turn once its L1 was invalidated
	PublicCalls int // calls of the public entry
	PublicLines int // lines that the public entry loads beside
	TurnRounds  int // rounds of compare-and-swap from a publication to that of a poster that waits for its turn
}

// Doorbell configures the path whose GPU thread rings.
type Doorbell struct {
	Protocol
	Fence      Fence
	Record     bool // a doorbell record is written
	Inline     bool
	InRegister bool // the payload is an argument of the call
	Posting    Posting
	Queues     pcie.Unit // GPU or Host: where SQ, CQ and record live
	Payload    pcie.Unit
	Counts     Counts
	RingUnit   int // WQEs per doorbell when slots are handed on
}

// inlined reports whether the payload travels in the WQE.
func (d *Doorbell) inlined(m Message, limit int64) bool {
	return d.Inline && !m.Get && m.Bytes <= limit
}

// copyIn lists the inline copy. Host memory's sectors come by a PCIe read each;
// the words are then copied as if they had been in L1.
func (d *Doorbell) copyIn() []Step {
	words := Step{Do: DoInline, Stage: stage.GPUBuild, N: 1, Line: gpu.LinePayload, Why: "payload into the WQE, word by word"}
	if d.Payload == pcie.Host {
		return []Step{hostPayload, words}
	}
	return []Step{words}
}

// hostPayload fetches a payload that the poster itself copies.
var hostPayload = Step{Do: DoHostLoad, Stage: stage.GPUBuild, N: 1, Line: gpu.LinePayload, Why: "payload from host memory, a sector per PCIe read"}

// copies reports whether the step fetches a payload from host memory.
func (s *Step) copies() bool { return s.Do == DoHostLoad && s.Line == gpu.LinePayload }

// Of returns the step with its count for a payload of n bytes: words of an inline
// copy, reads of a payload in host memory.
func (s Step) Of(n int64, c *gpu.Config) Step {
	switch {
	case s.Do == DoInline:
		s.N = int(n+3) / 4
	case s.copies():
		s.N = c.Sectors(n)
	}
	return s
}

// Acquires reports whether completions and data are polled with acquire
// semantics, which every ordering but the unsafe control does.
func (d *Doorbell) Acquires() bool { return d.Fence != FenceNone }

// Ordered reports whether the fence makes WQEs in the queues' memory visible
// before the doorbell.
func (d *Doorbell) Ordered() bool {
	switch d.Fence {
	case FenceNone:
		return false
	case FenceSystem, FenceSystemRelease:
		return true
	}
	return d.Queues == pcie.GPU
}

// Program is a GPU thread's post: Before once, Each per message, After once.
type Program struct {
	Before, Each, After []Step
}

// Steps returns the whole list for n messages.
func (p *Program) Steps() []Step {
	out := append([]Step(nil), p.Before...)
	out = append(out, p.Each...)
	return append(out, p.After...)
}

// freshWord stores a payload that the NIC reads from memory.
var freshWord = Step{Do: DoStores, Stage: stage.GPUBuild, N: 1, Why: "the word that the receiver polls for"}

// Program lists the steps of a post. checks says that a free slot must be
// looked up, as with many outstanding.
func (d *Doorbell) Program(m Message, inlineLimit int64, checks bool) Program {
	if d.Library != LibBare {
		return d.library(m, inlineLimit)
	}
	var p Program
	add := func(list *[]Step, s Step) { *list = append(*list, s) }
	before, each, after := &p.Before, &p.Each, &p.After
	if d.Counts.Calls > 0 {
		add(before, Step{Do: DoCall, Stage: stage.GPUBuild, N: d.Counts.Calls, Why: "put, not inlined"})
	}
	if d.Counts.ConstLoads > 0 {
		add(before, Step{Do: DoConst, Stage: stage.GPUBuild, N: d.Counts.ConstLoads, Why: "read-mostly descriptor"})
	}
	if d.Counts.StateLoads > 0 {
		add(before, Step{Do: DoLoad, Stage: stage.GPUBuild, N: d.Counts.StateLoads, Line: gpu.LineState, Why: "queue state behind a pointer: SQ address, producer index"})
	}
	switch d.Posting {
	case PostSingle:
	case PostLock:
		add(before, Step{Do: DoLock, Stage: stage.GPUReserve, N: 1, Why: "compare-and-swap until the queue is ours"})
		add(before, Step{Do: DoFresh, Stage: stage.GPUReserve, N: 1, Why: "producer index, which the last holder moved"})
	case PostHandoff:
	case PostCooperative:
		add(before, Step{Do: DoAtomic, Stage: stage.GPUReserve, N: max(1, d.Counts.Atomics), Why: "one lane reserves a slot for every lane"})
	}
	if checks {
		add(each, Step{Do: DoCheck, Stage: stage.GPUReserve, N: 1, Why: "consumer index, fresh: is a slot free"})
	}
	if d.Posting == PostHandoff {
		add(each, Step{Do: DoAwaitTurn, Stage: stage.GPUReserve, N: 1, Why: "slots are published in order"})
	}
	why := "control, remote address, data segments into the send queue"
	if m.Alone {
		why = "the signal's segments into the send queue"
	}
	add(each, Step{Do: DoBuild, Stage: stage.GPUBuild, N: 1, Why: why})
	if m.Alone {
		// What it brings is a number in a register.
	} else if d.inlined(m, inlineLimit) {
		if !d.InRegister {
			*each = append(*each, d.copyIn()...)
		}
	} else if !m.Get {
		if m.Fresh {
			add(each, freshWord)
		}
		add(each, Step{Do: DoLoad, Stage: stage.GPUBuild, N: 2, Line: gpu.LinePayload, Why: "key and address of the payload"})
	}
	if m.wqes() == 2 {
		add(each, Step{Do: DoBuild, Stage: stage.GPUBuild, N: 1, Why: "second WQE: the signal"})
	}
	if checks {
		add(each, Step{Do: DoSettle, Stage: stage.GPUReserve, N: 1, Why: "the slot is free"})
	}
	if d.Posting == PostCooperative {
		add(after, Step{Do: DoSyncWarp, Stage: stage.GPUReserve, N: 1, Why: "all lanes have built"})
	}
	if d.Fence != FenceNone {
		add(after, d.Fence.step())
	}
	if d.Posting == PostCooperative {
		add(after, Step{Do: DoAwaitTurn, Stage: stage.GPUReserve, N: 1, Why: "ready index: earlier slots first"})
		add(after, Step{Do: DoAtomic, Stage: stage.GPUReserve, N: 1, Why: "compare-and-swap of the ready index"})
		add(after, Step{Do: DoAcquire, Stage: stage.GPUReserve, N: 1, Why: "what earlier posters wrote"})
	}
	reload := Step{Do: DoReload, Stage: stage.GPURing, N: 1, Line: gpu.LineState, Why: "record and doorbell addresses, if the fence invalidated L1"}
	full := (d.Fence == FenceDevice || d.Fence == FenceSystem) && d.Counts.StateLoads > 0
	if d.Record && !d.HostRings {
		if full {
			add(after, reload)
		}
		add(after, Step{Do: DoRecord, Stage: stage.GPURing, N: 1, Why: "doorbell record: what the NIC trusts after an error"})
		if d.Fence != FenceNone {
			f := d.Fence.step()
			f.Why = "record before doorbell"
			add(after, f)
		}
	}
	if full {
		add(after, reload)
	}
	ring := Step{Do: DoRing, Stage: stage.GPURing, N: 1, Why: "8-byte store of the control segment to the doorbell register"}
	if d.Posting == PostHandoff {
		ring.N = d.RingUnit
		ring.Why = "doorbell, by the thread that crosses the batch boundary"
	}
	if d.HostRings {
		ring.Do, ring.N, ring.Why = DoSlot, 1, d.slotWhy()
	}
	add(after, ring)
	switch d.Posting {
	case PostLock:
		add(after, Step{Do: DoUnlock, Stage: stage.GPUReserve, N: 1, Why: "plain store: the next holder's swap sees it"})
	case PostHandoff:
		add(after, Step{Do: DoPassTurn, Stage: stage.GPUReserve, N: 1, Why: "turn word in shared memory"})
	case PostCooperative:
		f := Step{Do: DoFence, Stage: stage.GPUReserve, N: 1, Why: "releasing unlock"}
		add(after, f)
		add(after, Step{Do: DoPassTurn, Stage: stage.GPUReserve, N: 1, Why: "the next warp may publish"})
	case PostSingle:
	}
	return p
}

// Price returns what one execution of the step costs a thread whose L1 is warm,
// and what more it costs after an acquire or a full fence; steps that wait for
// others or for PCIe have a price of 0 here.
func (s *Step) Price(c *gpu.Config) (warm, cold sim.Duration) {
	n := sim.Duration(s.N)
	switch s.Do {
	case DoCall:
		return n * c.Call.Mean(), 0
	case DoConst:
		return n * c.L1Hit.Mean(), 0
	case DoReadOnly:
		return n * c.ReadOnlyHit.Mean(), 0
	case DoLoad:
		return n * c.L1Hit.Mean(), c.L1Refill.Mean()
	case DoReload:
		return 0, n * c.L1Refill.Mean()
	case DoVisit:
		return 2 * n * (c.L2Load.Mean() + c.L1Hit.Mean()), 0
	case DoPollCQ:
		return n * c.PollPeriod.Mean(), 0
	case DoReserve, DoPublish, DoMax:
		return min(n, 1)*c.Atomic.Mean() + max(0, n-1)*c.AtomicInterval.Mean(), 0
	case DoSlot:
		return c.HostStore.Mean(), 0
	case DoCheck, DoFresh, DoDecide:
		return n * c.L2Load.Mean(), 0
	case DoAtomic, DoLock:
		return n * c.Atomic.Mean(), 0
	case DoBuild:
		return n * c.Build.Mean(), 0
	case DoInline:
		return n * c.InlineWord.Mean(), sim.Duration(c.Sectors(4*int64(s.N))) * c.L1Refill.Mean()
	case DoSyncWarp:
		return c.SyncWarp.Mean(), 0
	case DoFence:
		d := c.ReleaseGPU.Mean()
		switch s.Scope {
		case gpu.ScopeCTA:
			return n * c.FenceCTA.Mean(), 0
		case gpu.ScopeSystem:
			d = c.ReleaseSystem.Mean()
		case gpu.ScopeGPU:
		}
		if s.Full {
			d += c.FullExtra.Mean()
		}
		return d, 0
	case DoAcquire:
		return c.Acquire.Mean(), 0
	case DoRecord:
		return c.Record.Mean(), 0
	case DoRing:
		return c.Ring.Mean(), 0
	case DoHostStore, DoStores:
		return n * c.HostStore.Mean(), 0
	case DoPassTurn:
		return c.Turn.Mean(), 0
	}
	return 0, 0
}

package path

import (
	"gdisim/model/gpu"
	"gdisim/model/pcie"
	"gdisim/stage"
)

// Library is whose sequence of steps a GPU thread posts by.
type Library uint8

// The libraries, by the names of the path key `post`.
const (
	LibBare    Library = iota // the shortest sequence that is correct, posting by Posting
	LibDOCA                   // DOCA GPUNetIO, as NCCL GIN's GDAKI backend calls it
	LibNVSHMEM                // NVSHMEM IBGDA
	LibDeepEP                 // DeepEP V1 on NVSHMEM's queues
)

var libraryNames = [...]string{"bare", "doca", "nvshmem", "deepep"}

// ParseLibrary returns the library of that name.
func ParseLibrary(s string) (Library, bool) {
	for i, n := range libraryNames {
		if n == s {
			return Library(i), true
		}
	}
	return 0, false
}

// String returns the library's name.
func (l Library) String() string { return libraryNames[l] }

// Sharing is who may post to a queue, and so the scope of what orders posters.
type Sharing uint8

// The sharing modes.
const (
	ShareGPU Sharing = iota
	ShareCTA
	ShareThread
)

var sharingNames = [...]string{"gpu", "cta", "thread"}

// ParseSharing returns the sharing mode of that name.
func ParseSharing(s string) (Sharing, bool) {
	for i, n := range sharingNames {
		if n == s {
			return Sharing(i), true
		}
	}
	return 0, false
}

// String returns the mode's name.
func (s Sharing) String() string { return sharingNames[s] }

// Protocol is what the libraries' sequences vary in.
type Protocol struct {
	Library   Library
	Sharing   Sharing
	Public    bool // through the public entry
	SlotCheck bool // a post looks whether its slot is free
	Lanes     int  // lanes of a warp that take every step together
	RingBatch int  // slots between two batch boundaries
	HostRings bool // a CPU thread rings
	SlotIn    pcie.Unit
	AllQueues bool // completion visits every queue and DCI
	Context   bool // completion visits every peer of the context (DOCA)
	Peers     Peers
	DCIs      int
	SystemEnd bool // a system-scope fence ends the completion routine
	// SystemWait: a system-scope fence ends the wait for a message.
	SystemWait bool
	Depth      int   // WQEs that a queue holds; 0: the NIC's default
	Vector     int64 // bytes of the address vector of a WQE over DC; 0: over RC
	Insist     bool  // callers, but for background load, post and wait: every post must ring
	// PicksQueue: each post goes to the next of the QPs to its peer.
	PicksQueue bool
}

// Peers are those that a completion call looks at: the peers of a communicator
// (NCCL) or the other PEs (NVSHMEM), in the order of the walk. Messages go to one.
type Peers struct {
	Count  int // the messages' peer among them; 0 is 1
	Used   int // of those, peers that something was sent to
	Before int // peers ahead of the messages' in the walk
	Lanes  int // of a warp that share out the walk; 0 is 1
}

// others returns the rounds of the walk ahead of the messages' peer and behind it.
func (p Peers) others() (before, after int) {
	n := max(1, p.Count)
	return p.rounds(min(p.Before, n-1), n)
}

// rounds returns those ahead of visit i of n and behind it: the lanes visit side by
// side, one each.
func (p Peers) rounds(i, n int) (before, after int) {
	before = i / max(1, p.Lanes)
	return before, p.ceil(n) - 1 - before
}

// ceil returns the rounds of n visits.
func (p Peers) ceil(n int) int {
	lanes := max(1, p.Lanes)
	return (n + lanes - 1) / lanes
}

// meet has the lanes wait for each other, where there are several.
func (p Peers) meet(l *list) {
	if p.Lanes > 1 {
		l.add(stage.GPUPoll, DoSyncWarp, 1, "all lanes have made their visits")
	}
}

// list gathers steps of one program.
type list []Step

func (l *list) add(s stage.Stage, a Action, n int, why string) {
	*l = append(*l, Step{Do: a, Stage: s, N: n, Why: why})
}

func (l *list) load(s stage.Stage, a Action, n int, line gpu.Line, why string) {
	*l = append(*l, Step{Do: a, Stage: s, N: n, Line: line, Why: why})
}

func (l *list) fence(f Fence, why string) {
	s := f.step()
	s.Why = why
	*l = append(*l, s)
}

func (l *list) cta(s stage.Stage, n int) {
	*l = append(*l, Step{Do: DoFence, Stage: s, N: n, Scope: gpu.ScopeCTA, Why: "fence at CTA scope: keeps the compiler and the SM in order"})
}

func (l *list) acquire(why string) { l.add(stage.GPUReserve, DoAcquire, 1, why) }

// library lists the steps of a library's post: Each up to the publication of a
// message's slots, After what rings for the last of them.
func (d *Doorbell) library(m Message, limit int64) Program {
	var each, after list
	switch d.Library {
	case LibDOCA:
		each, after = d.doca(m, limit)
	case LibNVSHMEM:
		each, after = d.nvshmem(m, limit)
	case LibDeepEP:
		each, after = d.deepep(m, limit)
	}
	return Program{Each: each, After: after}
}

// wqe lists the stores of a message's WQEs.
func (d *Doorbell) wqe(l *list, m Message, limit int64) {
	if m.Alone {
		l.add(stage.GPUBuild, DoBuild, 1, "the signal's segments into the send queue")
		return
	}
	l.add(stage.GPUBuild, DoBuild, 1, "control, remote address and data segments into the send queue")
	if d.Vector > 0 {
		l.add(stage.GPUBuild, DoBuild, 1, "address vector: over DC each WQE names its peer")
	}
	switch {
	case m.Get:
	case !d.inlined(m, limit):
		if m.Fresh {
			*l = append(*l, freshWord)
		}
		l.load(stage.GPUBuild, DoLoad, 2, gpu.LinePayload, "key and address of the payload")
	case d.InRegister:
	default:
		*l = append(*l, d.copyIn()...)
	}
	if m.wqes() == 2 {
		l.add(stage.GPUBuild, DoBuild, 1, "second WQE: the signal, behind the data in the same queue")
	}
}

// doca is DOCA GPUNetIO: slots published in order, then under a lock an early
// doorbell, the record, and the doorbell again for the NIC's recovery; without
// a record neither lock nor second doorbell.
func (d *Doorbell) doca(m Message, limit int64) (each, after list) {
	if d.Counts.Calls > 0 {
		each.add(stage.GPUBuild, DoCall, d.Counts.Calls, "put, not inlined")
	}
	each.add(stage.GPUBuild, DoReadOnly, d.Counts.ConstLoads, "queue pair, keys and addresses through the read-only path, which an acquire leaves warm")
	if d.Counts.ColdLines > 0 {
		each.load(stage.GPUBuild, DoReload, d.Counts.ColdLines, gpu.LineState, "the caller's context, if an acquire invalidated L1")
	}
	check := func() {
		if d.SlotCheck {
			each.add(stage.GPUReserve, DoFresh, 1, "consumer index: is the slot free")
			each.acquire("of the slot")
			each.add(stage.GPUReserve, DoAtomic, 1, "consumer index, maximum")
		}
	}
	lanes := max(1, d.Lanes)
	switch d.Sharing {
	case ShareThread:
		each.add(stage.GPUReserve, DoFresh, 2, "plain counters: reserved and consumer index")
		each.add(stage.GPUReserve, DoReserve, 0, "slots")
		d.wqe(&each, m, limit)
		each.add(stage.GPUReserve, DoPublish, 0, "plain counter")
		d.ringTwice(&after, true)
		return each, after
	case ShareCTA:
		each.add(stage.GPUReserve, DoReserve, 1, "atomic add, block scope")
		check()
		d.wqe(&each, m, limit)
		each.cta(stage.GPUFence, 1)
		each.add(stage.GPUReserve, DoFresh, 1, "ready index: earlier slots first")
		each.add(stage.GPUReserve, DoPublish, 0, "stored, not swapped")
		each.cta(stage.GPUFence, 2)
		after.add(stage.GPUReserve, DoLock, 1, "one of the block rings at a time")
		after.add(stage.GPUReserve, DoMax, 1, "producer index, block scope; not larger: somebody has rung for us")
		d.ringTwice(&after, true)
		after.add(stage.GPUReserve, DoUnlock, 1, "")
		return each, after
	}
	each.add(stage.GPUReserve, DoReserve, lanes, "atomic add: slots")
	check()
	d.wqe(&each, m, limit)
	each.fence(d.Fence, "the WQE before its publication: another thread may ring for it")
	each.add(stage.GPUReserve, DoPublish, lanes, "compare-and-swap of the ready index, in order of reservation")
	each.acquire("what earlier posters wrote")
	if d.HostRings {
		after.add(stage.GPURing, DoSlot, 1, d.slotWhy())
		return each, after
	}
	if d.Record {
		after.add(stage.GPUReserve, DoLock, 1, "one thread rings at a time")
		after.acquire("what the last holder wrote")
	}
	after.add(stage.GPUReserve, DoMax, lanes, "producer index, maximum; not larger: somebody has rung for us")
	after.acquire("of the index")
	d.ringTwice(&after, false)
	if d.Record {
		after.fence(d.Fence, "releasing unlock")
		after.add(stage.GPUReserve, DoUnlock, 1, "the lock's word")
	}
	return each, after
}

// ringTwice rings and, with a record, writes it and rings again: the NIC starts
// at the first doorbell.
func (d *Doorbell) ringTwice(l *list, fenced bool) {
	if fenced {
		l.fence(d.Fence, "the WQE before the doorbell")
	}
	if d.HostRings {
		l.add(stage.GPURing, DoSlot, 1, d.slotWhy())
		return
	}
	d.ring(l, "8-byte store of the control segment: the NIC starts")
	if d.Record {
		l.add(stage.GPURing, DoRecord, 1, "doorbell record, behind the early doorbell")
		l.fence(d.Fence, "record before the second doorbell")
		d.ring(l, "again, for the NIC's recovery path, which trusts the record")
	}
}

func (d *Doorbell) ring(l *list, why string) { l.add(stage.GPURing, DoRing, max(1, d.Lanes), why) }

// nvshmem is NVSHMEM IBGDA: slots published in order, then whoever must ring
// does so under a lock, with fences around the record.
func (d *Doorbell) nvshmem(m Message, limit int64) (each, after list) {
	calls, lines := d.Counts.Calls, d.Counts.ColdLines
	if d.Public {
		calls += d.Counts.PublicCalls
		lines += d.Counts.PublicLines
		each.add(stage.GPUBuild, DoConst, 1, "public entry: is the peer reached by NVLink")
	}
	if calls > 0 {
		each.add(stage.GPUBuild, DoCall, calls, "library routines, not inlined")
	}
	if lines > 0 {
		each.load(stage.GPUBuild, DoReload, lines, gpu.LineState, "descriptor, keys and stack, if an acquire or a fence invalidated L1")
	}
	each.add(stage.GPUReserve, DoFresh, 1, "byte that picks the QP, and its increment")
	each.add(stage.GPUBuild, DoConst, d.Counts.ConstLoads, "descriptor fields, local and remote key, peer base, number of PEs")
	each.add(stage.GPUReserve, DoReserve, 1, "atomic add: slots")
	if d.SlotCheck {
		each.add(stage.GPUReserve, DoFresh, 1, "consumer index: is the slot free")
	}
	each.cta(stage.GPUReserve, 1)
	d.wqe(&each, m, limit)
	if d.Lanes > 1 || d.Posting == PostCooperative {
		each.add(stage.GPUReserve, DoSyncWarp, 1, "all lanes have written their WQEs")
	}
	publish := d.Fence
	if publish == FenceGPURelease { // the build for queues in GPU memory keeps this one
		publish = FenceDevice
	}
	each.fence(publish, "another thread may ring for us")
	each.add(stage.GPUReserve, DoPublish, 1, "compare-and-swap of the ready index, in order of reservation")
	each.cta(stage.GPUReserve, 1)
	after.add(stage.GPUReserve, DoDecide, 1, "reserved index: ring if nobody reserved after us, or a batch boundary was crossed")
	d.ringOnce(&after)
	return each, after
}

// deepep is DeepEP V1: NVSHMEM's queues, a doorbell every few messages, and
// release stores instead of fences around the record.
func (d *Doorbell) deepep(m Message, limit int64) (each, after list) {
	if d.Counts.Calls > 0 {
		each.add(stage.GPUBuild, DoCall, d.Counts.Calls, "library routines, not inlined")
	}
	if d.Counts.ColdLines > 0 {
		each.load(stage.GPUBuild, DoReload, d.Counts.ColdLines, gpu.LineState, "descriptor, if a fence invalidated L1")
	}
	each.add(stage.GPUBuild, DoConst, d.Counts.ConstLoads, "descriptor fields and keys")
	each.add(stage.GPUReserve, DoReserve, 1, "atomic add: slots; nobody looks whether they are free")
	d.wqe(&each, m, limit)
	each.fence(FenceDevice, "another warp may ring for us")
	each.add(stage.GPUReserve, DoPublish, 1, "compare-and-swap of the ready index, in order of reservation")
	after.add(stage.GPUReserve, DoDecide, 0, "ring if the message index crosses the batch, or the caller insists")
	d.ringOnce(&after)
	return each, after
}

func (d *Doorbell) slotWhy() string {
	where := "in GPU memory, which the CPU reads through BAR1"
	if d.SlotIn == pcie.Host {
		where = "in host memory"
	}
	return "maximum at system scope, result not waited for: the slot that the CPU rings by, " + where
}

// ringOnce rings under the lock, record first; or leaves the index to the CPU
// thread that rings.
func (d *Doorbell) ringOnce(l *list) {
	if d.HostRings {
		l.add(stage.GPUReserve, DoMax, 1, "producer index, maximum")
		l.add(stage.GPURing, DoSlot, 1, d.slotWhy())
		return
	}
	l.add(stage.GPUReserve, DoLock, 1, "one thread rings at a time")
	l.cta(stage.GPUReserve, 1)
	l.add(stage.GPUReserve, DoMax, 1, "producer index, maximum; not larger: somebody has rung for us")
	reload := func(why string) {
		if d.Counts.ColdLines > 0 {
			l.load(stage.GPURing, DoReload, 1, gpu.LineState, why)
		}
	}
	l.fence(d.Fence, "the WQE before the record")
	reload("record's address, if the fence invalidated L1")
	if d.Record {
		l.add(stage.GPURing, DoRecord, 1, "doorbell record")
		l.fence(d.Fence, "record before doorbell")
		reload("doorbell's address, if the fence invalidated L1")
	}
	d.ring(l, "8-byte store of the control segment to the doorbell register")
	l.cta(stage.GPUReserve, 1)
	l.add(stage.GPUReserve, DoUnlock, 1, "plain store")
}

// Wait lists the steps of the completion routine for a message in queue number
// used of queues; nil for the bare path, whose routine is one poll.
func (d *Doorbell) Wait(used, queues int) []Step {
	var l list
	const s = stage.GPUPoll
	switch d.Library {
	case LibBare:
		return nil
	case LibDOCA:
		before, after, first, last := 0, 0, 0, 0
		if d.Context {
			before, after = d.Peers.others()
			n := max(0, d.Peers.Used-1)
			ahead := min(n, d.Peers.Before)
			first, last = min(before, d.Peers.ceil(ahead)), min(after, d.Peers.ceil(n-ahead))
		}
		d.flushIdle(&l, before-first, first)
		l.add(s, DoFresh, 3, "flushAsync: last get issued, last get visible, reserved index: the ticket")
		l.add(s, DoPollCQ, 2, "wait: consumer index, then the CQE of the ticket, in turn")
		d.end(&l)
		l.add(s, DoAtomic, 1, "consumer index, maximum")
		d.flushIdle(&l, after-last, last)
		if d.Context {
			d.Peers.meet(&l)
		}
	case LibDeepEP:
		l.add(s, DoFresh, 2, "ready index, consumer index")
		l.add(s, DoPollCQ, 1, "WQE counter of the collapsed CQE")
		l.cta(s, 2)
	case LibNVSHMEM:
		if d.Public && d.Counts.PublicCalls > 0 {
			l.add(s, DoCall, d.Counts.PublicCalls, "public entry")
		}
		before, after := 0, 0
		if d.AllQueues { // the pool of DCIs, then the QPs of each peer in turn
			n := max(1, d.Peers.Count)
			before, after = d.Peers.rounds(d.DCIs+min(d.Peers.Before, n-1)*queues+used, d.DCIs+n*queues)
		}
		d.visit(&l, before)
		l.add(s, DoFresh, 1, "ready index")
		d.cold(&l)
		l.add(s, DoConst, 2, "CQ pointer, then its descriptor")
		l.add(s, DoFresh, 2, "consumer index; producer index: has it been rung")
		l.cta(s, 1)
		l.add(s, DoPollCQ, 2, "WQE counter of the collapsed CQE, consumer index")
		l.add(s, DoAtomic, 1, "consumer index, maximum")
		l.add(s, DoFresh, 1, "opcode: an error?")
		l.cta(s, 1)
		d.visit(&l, after)
		if d.AllQueues {
			d.Peers.meet(&l)
		}
		d.end(&l)
	}
	return l
}

// flushIdle flushes QPs to other peers: fresh ones that nothing was ever sent
// over, and used ones with nothing outstanding, whose ticket's CQE is there.
func (d *Doorbell) flushIdle(l *list, fresh, used int) {
	for range used {
		l.add(stage.GPUPoll, DoFresh, 4, "peer with nothing outstanding: get counters, ticket, consumer index")
		d.end(l)
		l.add(stage.GPUPoll, DoAtomic, 1, "its consumer index, maximum")
	}
	if fresh > 0 {
		l.add(stage.GPUPoll, DoFresh, 3*fresh, "peers never sent to: get counters and reserved index, which end their flush")
	}
}

// visit looks at n queues without anything outstanding.
func (d *Doorbell) visit(l *list, n int) {
	if n <= 0 {
		return
	}
	l.add(stage.GPUPoll, DoVisit, n, "queue with nothing outstanding: ready index, descriptor, consumer index")
}

func (d *Doorbell) cold(l *list) {
	if d.Counts.ColdLines > 0 {
		l.load(stage.GPUPoll, DoReload, d.Counts.ColdLines, gpu.LineState, "descriptor, if an acquire or a fence invalidated L1")
	}
}

func (d *Doorbell) end(l *list) {
	if d.SystemEnd {
		*l = append(*l, Step{Do: DoFence, Stage: stage.GPUPoll, N: 1, Scope: gpu.ScopeSystem, Full: true, Why: "full fence at system scope behind the completion"})
	} else {
		l.add(stage.GPUPoll, DoAcquire, 1, "what the completion orders")
	}
}

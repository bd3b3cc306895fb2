package path

import (
	"gdisim/model/cpu"
	"gdisim/model/gpu"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// Handoff is how a GPU thread gives a descriptor to the proxy.
type Handoff uint8

// The hand-offs.
const (
	HandoffGeneral        Handoff = iota // many producers: atomic slot, remote progress, system release
	HandoffSingleProducer                // validity inside one posted 16-byte store
	HandoffWords                         // many producers, cached progress, every 8-byte word valid by itself
	HandoffEntry                         // system release, then an entry of 16-byte stores valid by themselves
	HandoffFIFO                          // many producers, cached progress, one 16-byte releasing store
)

var handoffNames = [...]string{"general", "single-producer", "words", "entry", "fifo"}

// ParseHandoff returns the hand-off of that name.
func ParseHandoff(s string) (Handoff, bool) {
	for i, n := range handoffNames {
		if n == s {
			return Handoff(i), true
		}
	}
	return 0, false
}

// String returns the hand-off's name.
func (h Handoff) String() string { return handoffNames[h] }

// NextPut is what a thread of a round trip waits for, once it has its peer's
// message, before its next put.
type NextPut uint8

// What it waits for.
const (
	NextAtOnce     NextPut = iota
	NextProgress           // the progress of its ring past the last put
	NextCompletion         // the last put's completion, as the stack learns of it
)

var nextPutNames = [...]string{"at-once", "progress", "completion"}

// ParseNextPut returns the choice of that name.
func ParseNextPut(s string) (NextPut, bool) {
	for i, n := range nextPutNames {
		if n == s {
			return NextPut(i), true
		}
	}
	return 0, false
}

// Proxy configures the path whose CPU worker posts.
type Proxy struct {
	Handoff      Handoff
	Quiet        Quiet
	Workers      int
	Rings        int
	Chain        int // WRs per ibv_post_send call, at most
	Burst        int // descriptors that a pass takes from one ring, at most
	Depth        int // descriptors per ring
	Inline       bool
	ValueBytes   int64 // largest value that a descriptor carries
	Reference    bool  // values are sent from an array in host memory, not inline
	BlueFlame    bool
	CompletionIn pcie.Unit // Host or GPU: where the counter lives that GPU threads poll
	Payload      pcie.Unit
	NextPut      NextPut
	Stream       bool       // threads keep a window: they wait for progress, not for a quiet
	SignaledEach bool       // every WR asks for a CQE, not only a chain's last
	Pop          bool       // a slot is free, and counted, once its descriptor was read
	PublishEvery int        // popped descriptors per store of the progress, unless the ring is empty
	Gather       bool       // one chain takes descriptors of all the worker's rings
	SignalApart  bool       // a signal is a call of its own, not chained behind its write
	SignalHeld   bool       // and held back until the write has completed
	CQBatch      int        // CQEs that one poll of the CQ may return
	CQOnce       bool       // one poll of the CQ a pass, else until it is empty
	CQTests      bool       // a poll of the CQ per outstanding entry, not per pass
	DrainPolls   int        // empty polls after which a quiet counts as done
	Lock         bool       // the workers of a node take one lock to post
	Wait         cpu.Policy // how a worker waits for work
	Counts       Counts
	// Context: a completion call covers the context: every peer's ring where each
	// has its own, every worker where a quiet is an entry; else the thread's ring.
	Context         bool
	Peers           Peers
	Answered        bool // no completion is asked for: the peer answers
	RingPerPeer     bool // each peer has rings of its own
	Receiver        bool // a thread of its own takes the immediates that come, else the workers do
	NoSlotCheck     bool // a thread takes its slot without a look whether it is free
	CQDepth         int  // CQEs that a worker's CQ holds; 0: as many as can come
	DescriptorBytes int64
	SignalBytes     int64 // what a signal adds to its descriptor
	TailLines       int   // lines beside the descriptor that the worker must load
	Clears          int   // lines of the descriptor that the worker rewrites when it has read them
	Rewrites        int   // lines that the worker writes per completion after the GPU has read them
	Lookups         int   // tree or hash look-ups per message
	PassLookups     int   // the same per pass
}

// inlined reports whether the worker can put the payload into the WQE: the
// descriptor must carry it.
func (x *Proxy) inlined(m Message, limit int64) bool {
	return x.Inline && !m.Get && m.Bytes <= min(limit, x.ValueBytes)
}

// referenced reports whether the payload is a value that the descriptor brings
// and the NIC reads from host memory.
func (x *Proxy) referenced(m Message) bool {
	return x.Reference && m.Signal != SignalNone && !m.Get && m.Bytes <= x.ValueBytes
}

// descriptor returns the bytes of a message's descriptor.
func (x *Proxy) descriptor(m Message) int64 {
	if m.Signal != SignalNone {
		return x.DescriptorBytes + x.SignalBytes
	}
	return x.DescriptorBytes
}

// storeWidth is the bytes of one store to the ring.
func (x *Proxy) storeWidth() int64 {
	if x.Handoff == HandoffWords {
		return 8
	}
	return 16
}

// Program lists the steps of the enqueue.
func (x *Proxy) Program(m Message) Program {
	var p Program
	add := func(s Step) {
		if look := s.Do == DoFresh || s.Do == DoHostLoad; look && x.NoSlotCheck {
			return
		}
		p.Each = append(p.Each, s)
	}
	if x.Counts.Calls > 0 {
		add(Step{Do: DoCall, Stage: stage.GPUBuild, N: x.Counts.Calls, Why: "put, not inlined"})
	}
	if x.Counts.ConstLoads > 0 {
		add(Step{Do: DoConst, Stage: stage.GPUBuild, N: x.Counts.ConstLoads, Why: "ring base and mask; the index stays in registers"})
	}
	if x.Counts.StateLoads > 0 {
		add(Step{Do: DoLoad, Stage: stage.GPUBuild, N: x.Counts.StateLoads, Line: gpu.LineState, Why: "ring descriptor behind a pointer"})
	}
	if x.Counts.RingLoads > 0 {
		add(Step{Do: DoLoad, Stage: stage.GPUBuild, N: x.Counts.RingLoads, Line: gpu.LineRing, Why: "shared ring bookkeeping"})
	}
	if m.Fresh && (!x.Inline || m.Bytes > x.ValueBytes) {
		add(freshWord)
	}
	if value := x.Inline || x.referenced(m); value && x.Payload == pcie.Host && !m.Get && m.Bytes <= x.ValueBytes {
		p.Each = append(p.Each, hostPayload)
	}
	if x.Counts.Stores > 0 {
		add(Step{Do: DoStores, Stage: stage.GPUBuild, N: x.Counts.Stores, Why: "what the fence finds outstanding"})
	}
	atomic := Step{Do: DoAtomic, Stage: stage.GPUReserve, N: max(1, x.Counts.Atomics), Why: "slot among all producers"}
	cached := Step{Do: DoFresh, Stage: stage.GPUReserve, N: 1, Why: "cached copy of the host's progress: is the slot free"}
	remote := Step{Do: DoHostLoad, Stage: stage.GPUReserve, N: max(1, x.Counts.HostLoads), Why: "the host's progress, over PCIe: is the slot free"}
	room := Step{Do: DoRoom, Stage: stage.GPUReserve, N: 1, Why: "the slot's last descriptor is done with"}
	build := Step{Do: DoBuild, Stage: stage.GPUBuild, N: 1, Why: "descriptor in registers"}
	release := FenceSystemRelease.step()
	store := Step{Do: DoHostStore, Stage: stage.GPURing, N: int((x.descriptor(m) + x.storeWidth() - 1) / x.storeWidth())}
	switch x.Handoff {
	case HandoffGeneral:
		release.Why = "st.release.sys: payload and descriptor before validity"
		store.Why = "posted 16-byte store of the descriptor, validity inside"
		for _, s := range []Step{atomic, remote, room, build, release, store} {
			add(s)
		}
	case HandoffSingleProducer:
		store.Why = "posted 16-byte store of the descriptor, validity inside"
		add(room)
		add(build)
		add(store)
	case HandoffWords:
		f := FenceDevice.step()
		f.Why = "__threadfence(): the payload before the words; no system fence"
		store.Why = "posted 8-byte words, each with its validity flag"
		for _, s := range []Step{f, atomic, cached, room, build, store} {
			add(s)
		}
	case HandoffEntry:
		release.Why = "fence.release.sys: the payload before the entry"
		store.Why = "posted 16-byte stores, every word valid by itself"
		credit := remote
		if x.CompletionIn == pcie.GPU {
			credit = cached
			credit.Why = "consumed index, which the host stores into GPU memory: is the slot free"
		}
		for _, s := range []Step{release, atomic, credit, room, build, store} {
			add(s)
		}
	case HandoffFIFO:
		release.Why = "st.release.sys: payload before the entry"
		store.Why = "posted 16-byte store, validity inside"
		for _, s := range []Step{atomic, cached, room, build, release, store} {
			add(s)
		}
	}
	return p
}

// ringPeers is the number of rings that a context has for each of its threads'
// queues: one a peer, or one for all.
func (x *Proxy) ringPeers() int {
	if x.RingPerPeer {
		return max(1, x.Peers.Count)
	}
	return 1
}

// WorkerStep is one step of the proxy's pass, for explain.
type WorkerStep struct {
	Stage stage.Stage
	What  string
	Price sim.Duration
	Why   string
}

// Worker lists the steps of the worker for one message, in the order it takes
// them.
func (x *Proxy) Worker(c *cpu.Config, m Message) []WorkerStep {
	var out []WorkerStep
	add := func(s stage.Stage, price sim.Duration, what, why string) {
		out = append(out, WorkerStep{s, what, price, why})
	}
	times := func(n int, d sim.Delay) sim.Duration { return sim.Duration(n) * d.Mean() }
	if x.Wait.Interrupts() {
		add(stage.CPUInterrupt, c.Interrupt.Mean(), "MSI-X write, moderation, IRQ entry, handler", "an idle worker sleeps; moderation comes on top")
		add(stage.CPUWake, c.WakeUp.Mean()+c.Switch.Mean(), "idle-state exit, scheduler, switch", "host.idle.deepest decides the exit")
	}
	add(stage.CPUWait, c.Check.Mean(), "look at each ring in turn", "nothing is told; a pass looks at every ring and at the CQ")
	if x.PassLookups > 0 {
		add(stage.CPUWait, times(x.PassLookups, c.Lookup), "bookkeeping of the pass", "look-ups, whatever the pass finds")
	}
	if x.Wait.Yields > 0 {
		add(stage.CPUWait, times(x.Wait.Yields, c.Yield), "sched_yield", "after every pass, whether somebody else runs or not")
	}
	first := (x.descriptor(m) + 63) / 64
	add(stage.CPUDequeue, times(int(first), c.Miss), "load the descriptor's lines (missed: the GPU wrote them)", "descriptors below 64 B share a line")
	if x.TailLines > 0 {
		add(stage.CPUDequeue, times(x.TailLines, c.Miss), "load the published index's line (missed)", "general hand-off: validity is not inside the descriptor")
	}
	if x.Clears > 0 {
		add(stage.CPUDequeue, times(x.Clears, c.Rewrite), "clear the descriptor's lines", "validity is not told by the lap")
	}
	add(stage.CPUDequeue, c.Dequeue.Mean(), "check and decode", "up to the chain limit")
	if x.Lookups > 0 {
		add(stage.CPUPost, times(x.Lookups, c.Lookup), "look-ups", "keys, connection, request by tree or hash")
	}
	if x.Pop {
		add(stage.CPUDequeue, c.Publish.Mean(), "progress stored", "the slot is free before its write has completed")
	}
	add(stage.CPUPost, c.Build.Mean(), "ibv_post_send: WQE segments into the SQ", "per WR")
	add(stage.CPUPost, c.Post.Mean(), "doorbell record", "compiler barrier on x86 before it")
	what := "sfence; 8-byte doorbell; sfence"
	if x.BlueFlame {
		what = "sfence; BlueFlame copy (one WR) or 8-byte doorbell (a chain); sfence"
	}
	if m.Signal != SignalNone && !m.Alone && x.SignalApart {
		add(stage.CPURing, c.Flush.Mean(), what, "the write")
		add(stage.CPUPost, c.Build.Mean()+c.Post.Mean(), "ibv_post_send again", "the signal is a call of its own")
	}
	add(stage.CPURing, c.Flush.Mean(), what, "pushes the write-combining buffer out")
	why := "one CQE retires its whole chain"
	if x.SignaledEach {
		why = "every WR has a CQE"
	}
	add(stage.CPUPoll, c.Miss.Mean()+c.PollCQE.Mean(), "ibv_poll_cq: load the CQE's line (missed: the NIC wrote it)", why)
	if x.Rewrites > 0 {
		add(stage.CPUPoll, times(x.Rewrites, c.Rewrite), "progress line rewritten after the GPU has read it", "the GPU reads it over PCIe")
	}
	switch {
	case x.Answered && x.Quiet != QuietCounter: // nobody asks for a quiet
	case x.Quiet == QuietRequest:
		if n := x.Peers.Count - 1; n > 0 {
			add(stage.CPUPublish, times(n, c.Check), "look at the other peers' queues", "a quiet request drains the queues to every peer")
		}
		add(stage.CPUPublish, c.Publish.Mean(), "answer to a quiet request", "once every queue is drained; the ring is not served meanwhile")
	case x.Quiet == QuietEntry:
		add(stage.CPUPublish, c.Publish.Mean()+times(x.DrainPolls, c.PollEmpty), "answer to a quiet entry", "once what was posted before it has completed")
	case x.CompletionIn == pcie.GPU:
		add(stage.CPUPublish, c.Publish.Mean(), "completion counter stored into GPU memory through BAR1", "the GPU polls its own L2")
	default:
		add(stage.CPUPublish, c.Publish.Mean(), "completion counter stored in host memory", "the GPU polls it over PCIe")
	}
	return out
}

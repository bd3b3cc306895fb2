package path

import (
	"gdisim/model/cpu"
	"gdisim/model/gpu"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// ProxyPath is the set-up in which GPU threads write descriptors into rings
// and CPU workers of the node post them.
type ProxyPath struct {
	env     *Env
	node    *Node
	peer    int
	cfg     Proxy
	msg     Message
	batch   int
	kinds   *kindTable
	prog    []Step
	plain   []Step // of messages without a signal
	quiet   []Step // what a waiting thread does before it polls
	after   []Step // and after
	workers []*worker
	rings   []*ring
	lock    sim.Server // of all workers, where they share one
}

// ring is a descriptor ring with its progress counter.
type ring struct {
	path     *ProxyPath
	worker   *worker
	index    int                  // among the worker's rings
	issued   uint32               // slots given to threads
	shown    uint32               // of them, filled without a gap
	order    sim.FIFO[descriptor] // from there on, as they are filled
	taken    uint32               // descriptors that the worker has read
	visible  sim.FIFO[descriptor]
	requests sim.FIFO[request]
	done     uint32      // progress counter as the GPU may see it
	progress *hostWord   // that counter, if it lies in host memory
	answer   *hostWord   // where quiets are answered
	looks    *hostReader // at it, of the last thread's
	sm       *gpu.SM
	warp     int
	last     sim.Cause
	polls    []*producer
	room     sim.FIFO[*producer] // waiting for a slot
}

// descriptor is a request as the worker sees it.
type descriptor struct {
	cause sim.Cause
	land  sim.Sink
	at    sim.Time  // when it became visible
	there bool      // has arrived
	plain bool      // without the signal that other messages of the path have
	quiet *producer // who waits for the answer, if it is no message
}

// request asks for an answer once everything up to a slot has completed.
type request struct {
	upto  uint32
	cause sim.Cause
	from  *producer
}

// NewProxy sets the path up on node towards peer, with cfg.Rings rings shared
// out over cfg.Workers workers of one QP each.
func NewProxy(env *Env, node, peer int, cfg Proxy, m Message, batch int) (*ProxyPath, error) {
	p := &ProxyPath{env: env, node: env.Nodes[node], peer: peer, cfg: cfg, msg: m, batch: batch, kinds: newKinds(node)}
	p.prog = bind(cfg.Program(m), m, batch, false)
	bare := m
	bare.Signal = SignalNone
	p.plain = bind(cfg.Program(bare), bare, batch, false)
	before, after := cfg.QuietProgram()
	p.quiet, p.after = bind(Program{Each: before}, m, 1, false), after
	for i := range cfg.Workers {
		w := &worker{path: p, core: p.node.Core(i)}
		w.wait = cpu.NewWaiter(w.core, &p.cfg.Wait)
		qp, err := p.node.NIC.NewQP(peer, pcie.Host, cqe{w})
		if err != nil {
			return nil, err
		}
		w.qp = qp
		w.h = env.Eng.Register(act{w})
		p.workers = append(p.workers, w)
	}
	for i := range cfg.Rings {
		w := p.workers[i%cfg.Workers]
		r := &ring{path: p, worker: w, index: len(w.rings), progress: p.node.newHostWord(), answer: p.node.newHostWord()}
		w.rings = append(w.rings, r)
		p.rings = append(p.rings, r)
	}
	for _, w := range p.workers {
		w.idle()
	}
	if cfg.Wait.Interrupts() && cfg.Wait.OneLook && env.Find != nil {
		env.Find(0, stage.Hazard{
			Finding: stage.LostInterrupt, Grade: stage.Possible, Node: node, Queue: -1, Index: -1,
			Cause: "the thread does not look again once it has asked for an interrupt",
		})
	}
	return p, nil
}

// perMessage is the number of WQEs of a message.
func (p *ProxyPath) perMessage() int {
	if p.msg.Signal == SignalWrite || p.msg.Signal == SignalAtomic {
		return 2
	}
	return 1
}

// producer is a GPU thread of this path.
type producer struct {
	thread
	path    *ProxyPath
	ring    *ring
	land    sim.Sink
	due     sim.FIFO[uint32]
	post    []Step
	plain   bool // its messages have no signal
	doing   purpose
	slot    uint32      // of its present descriptor
	granted bool        // one was freed for the thread that waits for room
	looks   *hostReader // at the progress, with the threads of its warp
	asks    hostReader  // for an answer
	answer  struct {
		came  bool
		cause sim.Cause
	}
}

// purpose is what the program that a producer runs is for.
type purpose uint8

const (
	posting purpose = iota
	quieting
	settling  // what follows the poll of a quiet
	insisting // a GPU thread rings for a post that nobody has rung for
)

// NewThread adds a thread on the SM, of that warp of its CTA, that enqueues to ring.
// Threads of a warp are added one after the other.
func (p *ProxyPath) NewThread(sm *gpu.SM, warp, ring int, client Client) *producer {
	r := p.rings[ring]
	if r.looks == nil || r.sm != sm || r.warp != warp {
		r.looks, r.sm, r.warp = &hostReader{word: r.progress}, sm, warp
	}
	t := &producer{path: p, ring: r, post: p.prog, looks: r.looks, asks: hostReader{word: r.answer}}
	t.init(p.env, p.node, p.kinds, sm, client, t)
	t.acquires = p.cfg.Handoff != HandoffSingleProducer
	return t
}

// Plain makes the thread's messages plain ones, whatever signal others of the
// path have: it is background load.
func (t *producer) Plain() {
	t.plain = true
	t.post = t.path.plain
}

// message returns what the thread sends.
func (t *producer) message() Message {
	m := t.path.msg
	if t.plain {
		m.Signal = SignalNone
	}
	return m
}

// SendTo lets the thread's messages land at a thread of the peer.
func (t *producer) SendTo(r Receiver) { t.land = r.Landing() }

// Batch returns the messages per post.
func (t *producer) Batch() int { return t.path.batch }

// Settle is the stack's choice.
func (t *producer) Settle(c sim.Cause) bool {
	switch t.path.cfg.NextPut {
	case NextProgress:
		t.awaitProgress(c)
		return true
	case NextCompletion:
		t.AwaitCompletion(c)
		return true
	case NextAtOnce:
	}
	return false
}

// Post enqueues one batch of descriptors.
func (t *producer) Post(c sim.Cause) {
	t.doing = posting
	t.start(c, t.post)
}

func (t *producer) rings(*Step) bool { return true }

func (t *producer) stores() bool { return false }

func (t *producer) unfenced() {
	t.env.find(t.node, stage.FlagBeforeData, stage.Possible, t.ring.index, "a fault left out the release between the payload's stores and the descriptor that announces them to the proxy")
}

func (t *producer) shared(s *Step) bool {
	p, r := t.path, t.ring
	switch s.Do {
	case DoAtomic:
		t.times(s, t.sm.Config().Atomic)
	case DoHostLoad:
		t.loadHost(s.Stage, t.looks)
		return false
	case DoHostAtomic:
		// The word's new value is on its way to the worker while the thread
		// waits for the old one.
		p.node.Bus.Write(pcie.GPU, pcie.Host, 8, t.c, t.kinds[stage.PCIeNotify], asked{t}, r.issued)
		t.loadHost(s.Stage, &t.asks)
		return false
	case DoRoom:
		if t.granted {
			t.granted = false
			return true
		}
		full := r.free() <= 0
		if full && p.cfg.NoSlotCheck {
			t.env.find(t.node, stage.RingOverflow, stage.Possible, r.index, "a thread took a slot of the ring that was not known to be free: the stack does not look")
		} else if full || r.room.Len() > 0 {
			r.room.Push(t)
			if p.cfg.CompletionIn == pcie.Host {
				t.host.next = running
				t.pollHost(stage.GPUReserve, t.looks, false)
				return false
			}
			t.state = parked
			return false
		}
		r.issue(t)
	case doSend:
		if t.doing == quieting {
			p.node.Bus.Write(pcie.GPU, pcie.Host, p.cfg.DescriptorBytes, t.c, t.kinds[stage.PCIeNotify], quietArrival{t}, t.slot)
			return true
		}
		if t.pc == len(t.prog)-1 {
			t.due.Push(t.slot + 1)
		}
		p.node.Bus.Write(pcie.GPU, pcie.Host, p.cfg.descriptor(t.message()), t.c, t.kinds[stage.PCIeNotify], arrival{t}, t.slot)
	}
	return true
}

// issue gives the thread the next slot.
func (r *ring) issue(t *producer) {
	t.slot = r.issued
	r.issued++
	r.order.Push(descriptor{})
}

type arrival struct{ *producer }

// Done is a descriptor visible in its slot.
func (a arrival) Done(slot uint32, c sim.Cause) {
	a.ring.fill(slot, descriptor{cause: c, land: a.land, plain: a.plain})
}

type quietArrival struct{ *producer }

// Done is a quiet's descriptor visible in its slot.
func (a quietArrival) Done(slot uint32, c sim.Cause) {
	a.ring.fill(slot, descriptor{cause: c, quiet: a.producer})
}

// fill puts a descriptor into its slot. The worker goes by the slots' order: it
// comes past one only once that is filled.
func (r *ring) fill(slot uint32, d descriptor) {
	env := r.path.env
	d.there = true
	*r.order.At(int(slot - r.shown)) = d
	for r.order.Len() > 0 && r.order.Front().there {
		d := r.order.Pop()
		r.shown++
		d.at = env.Eng.Now()
		if r.visible.Len() == r.path.cfg.Depth { // its slot holds a descriptor that nobody has read
			*r.visible.Front() = d
			env.find(r.path.node, stage.RingOverflow, stage.Occurred, r.index, "a descriptor overwrote one that the proxy had not read: that message is lost")
			continue
		}
		r.visible.Push(d)
		r.worker.notice(r.index)
	}
}

type asked struct{ *producer }

// Done is a quiet request visible to the worker.
func (q asked) Done(upto uint32, c sim.Cause) {
	r := q.ring
	r.requests.Push(request{upto, c, q.producer})
	r.worker.notice(r.index)
}

// AwaitCompletion learns of the oldest batch's completion: by the progress
// counter, or by the stack's quiet, which tells of all.
func (t *producer) AwaitCompletion(c sim.Cause) {
	if p := t.path; p.cfg.Quiet != QuietCounter && !p.cfg.Stream && !t.plain {
		t.doing, t.answer.came = quieting, false
		t.start(c, p.quiet)
		return
	}
	t.awaitProgress(c)
}

// awaitProgress polls the progress counter for the oldest batch.
func (t *producer) awaitProgress(c sim.Cause) {
	t.c = c
	t.begin = t.env.Eng.Now()
	done, ok := t.Retire(c)
	if t.path.cfg.CompletionIn == pcie.Host {
		t.pollHost(stage.GPUPoll, t.looks, ok)
	}
	if ok {
		t.found(done)
		return
	}
	if t.state != pollingHost {
		t.state = polling
	}
	t.ring.polls = append(t.ring.polls, t)
}

// ended goes from the quiet's steps to its poll, and from those after it to
// the client.
func (t *producer) ended() bool {
	switch t.doing {
	case posting:
		return true
	case quieting:
		t.host.next = seen
		if len(t.path.after) > 0 {
			t.prog, t.pc, t.doing = t.path.after, 0, settling
			t.host.next = running
		}
		t.pollHost(stage.GPUPoll, &t.asks, t.answer.came)
		if t.answer.came {
			t.hostArrived(t.answer.cause)
		}
	case settling:
		t.client.Completed(t.c)
	}
	return false
}

// answered has the worker's answer to a quiet in host memory.
func (t *producer) answered(c sim.Cause) {
	for t.due.Len() > 0 {
		t.due.Pop()
	}
	if t.answer.came = true; t.state == pollingHost {
		t.hostArrived(c)
		return
	}
	t.answer.cause = c
}

func (t *producer) found(c sim.Cause) {
	if t.path.cfg.CompletionIn == pcie.Host {
		t.hostArrived(c)
		return
	}
	t.look(stage.GPUPoll, c, seen)
}

// Retire takes the oldest batch off if the counter shows it; own's operation
// has waited for it until now.
func (t *producer) Retire(own sim.Cause) (sim.Cause, bool) {
	if t.due.Len() == 0 || int32(t.ring.done-*t.due.Front()) < 0 {
		return own, false
	}
	if t.due.Pop() == t.ring.done {
		own = join(t.env.Rec, own, t.ring.last, t.kinds[stage.GPUPoll], t.env.Eng.Now())
	}
	return t.caughtUp(own), true
}

// Done is the progress counter, visible where the GPU polls it.
func (r *ring) Done(done uint32, c sim.Cause) {
	r.done, r.last = done, c
	for i := 0; i < len(r.polls); {
		t := r.polls[i]
		if int32(done-*t.due.Front()) < 0 {
			i++
			continue
		}
		r.polls = append(r.polls[:i], r.polls[i+1:]...)
		t.due.Pop()
		t.found(c)
	}
	for r.room.Len() > 0 && r.free() > 0 {
		t := r.room.Pop()
		t.granted = true
		r.issue(t)
		if t.state == pollingHost {
			t.hostArrived(c)
			continue
		}
		t.waited(stage.GPUReserve, c.Op)
		t.env.Eng.At(t.t, t.h, 0)
	}
}

// free is the number of slots that nobody has.
func (r *ring) free() int { return r.path.cfg.Depth - int(r.issued-r.done) }

// Busy returns the time that the workers spent on work, polling left out.
func (p *ProxyPath) Busy() sim.Duration {
	var d sim.Duration
	for _, w := range p.workers {
		d += w.busy
	}
	return d
}

// Asleep returns how long the workers have slept so far.
func (p *ProxyPath) Asleep() sim.Duration {
	var d sim.Duration
	for _, w := range p.workers {
		d += w.wait.Asleep(p.env.Eng.Now(), w.state == workerIdle)
	}
	return d
}

// Workers returns the number of worker threads, each of which keeps a core while
// it does not sleep.
func (p *ProxyPath) Workers() int { return len(p.workers) }

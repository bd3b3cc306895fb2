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
	plain   []Step // of background load
	quiet   []Step // completion routine; nil: one poll of the ring's progress
	workers []*worker
	rings   []*ring
	lock    sim.Server // of all workers, where they share one
	// receiver takes the immediates that come; nil: none do, or the workers take
	// them.
	receiver *receiver
}

// NewProxy sets the path up on node towards peer, with cfg.Rings rings shared
// out over cfg.Workers workers of one QP each.
func NewProxy(env *Env, node, peer int, cfg Proxy, m Message, batch int) (*ProxyPath, error) {
	p := &ProxyPath{env: env, node: env.Nodes[node], peer: peer, cfg: cfg, msg: m, batch: batch, kinds: newKinds(node)}
	p.prog = bind(cfg.Program(m), m, batch, false, p.node.GPU)
	load := m.plain()
	load.Fresh = m.Fresh // its threads run the same kernel
	p.plain = bind(cfg.Program(load), load, batch, false, p.node.GPU)
	p.quiet = bind(Program{Each: cfg.QuietProgram()}, m, 1, false, p.node.GPU)
	for i := range cfg.Workers {
		w := &worker{path: p, index: i, core: p.node.Core(i)}
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
		for peer := range cfg.ringPeers() {
			r := &ring{path: p, worker: w, index: len(w.rings)}
			w.rings = append(w.rings, r)
			if peer == 0 {
				r.progress, r.answer = p.node.newHostWord(), p.node.newHostWord()
				p.rings = append(p.rings, r) // messages go to the first peer; the others' rings stay empty
			}
		}
	}
	if m.Signal == SignalImmediate && cfg.Receiver {
		p.receiver = newReceiver(env, p.node, p.kinds, p.node.Core(cfg.Workers))
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

// perMessage is the number of WQEs of a message: posted apart, an immediate has
// an empty write of its own.
func (p *ProxyPath) perMessage() int {
	if p.cfg.SignalApart && p.msg.Signal == SignalImmediate && !p.msg.Alone {
		return 2
	}
	return p.msg.wqes()
}

// producer is a GPU thread of this path.
type producer struct {
	thread
	path    *ProxyPath
	ring    *ring
	land    sim.Sink
	due     sim.FIFO[uint32]
	post    []Step
	plain   bool // its messages are background load
	doing   purpose
	slot    uint32      // of its present descriptor
	granted bool        // one was freed for the thread that waits for room
	looks   *hostReader // at the progress, with the threads of its warp
	other   hostReader  // at that of another ring, which has no room for a quiet's entry
	// Of the quiet under way: entries written, answers polled for, answers.
	entries, polled int
	answers         []answer
}

// purpose is what the program that a producer runs is for.
type purpose uint8

const (
	posting purpose = iota
	quieting
	insisting // a GPU thread rings for a post that nobody has rung for
)

// NewThread adds a thread on the SM, of that warp of its CTA, that enqueues to ring.
// Threads of a warp are added one after the other.
func (p *ProxyPath) NewThread(sm *gpu.SM, warp, ring int, client Client) *producer {
	r := p.rings[ring]
	if r.looks == nil || r.sm != sm || r.warp != warp {
		r.looks, r.sm, r.warp = &hostReader{word: r.progress}, sm, warp
	}
	t := &producer{path: p, ring: r, post: p.prog, looks: r.looks}
	t.init(p.env, p.node, p.kinds, sm, client, t)
	t.acquires, t.looksIn = p.cfg.Handoff != HandoffSingleProducer, p.msg.Word
	t.answers = make([]answer, p.cfg.answers())
	for i := range t.answers {
		asked := r // the thread's own, or the first of each worker
		if len(t.answers) > 1 {
			asked = p.rings[i]
		}
		t.answers[i] = answer{by: t, ring: asked, asks: hostReader{word: asked.answer}}
	}
	return t
}

// Landing returns the sink of messages for this thread.
func (t *producer) Landing() sim.Sink {
	switch p := t.path; {
	case p.receiver != nil:
		return p.receiver.landing(&t.thread)
	case p.msg.Signal == SignalImmediate:
		return &arrived{t.ring.worker, &t.thread}
	}
	return t.thread.Landing()
}

// Background lets the thread hand over plain puts, whatever the path's messages are.
func (t *producer) Background() {
	t.plain = true
	t.post = t.path.plain
}

// message returns what the thread sends.
func (t *producer) message() Message {
	if t.plain {
		return t.path.msg.plain()
	}
	return t.path.msg
}

// SendTo lets the thread's messages land at a thread of the peer.
func (t *producer) SendTo(r Receiver) { t.land = r.Landing() }

// Batch returns the messages per post.
func (t *producer) Batch() int { return t.path.batch }

// Settle is the stack's choice.
func (t *producer) Settle(c sim.Cause) bool {
	switch t.path.cfg.NextPut {
	case NextProgress:
		t.doing = posting
		t.poll(c)
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
	p := t.path
	switch s.Do {
	case DoPollRing:
		t.poll(t.c)
		return false
	case DoPollAnswer:
		a := &t.answers[t.polled]
		t.polled++
		t.host.next = running
		t.pc++
		t.pollHost(s.Stage, &a.asks, a.came)
		if a.came {
			t.hostArrived(a.cause)
		}
		return false
	case DoAtomic:
		t.times(s, t.sm.Config().Atomic)
	case DoHostLoad:
		if s.copies() {
			t.loadHost(s.Stage, &t.payload)
		} else {
			t.loadHost(s.Stage, t.looks)
		}
		return false
	case DoHostAtomic:
		// The word's new value is on its way to the worker while the thread
		// waits for the old one.
		p.node.Bus.Write(pcie.GPU, pcie.Host, 8, t.c, t.kinds[stage.PCIeNotify], asked{t}, t.ring.issued)
		t.loadHost(s.Stage, &t.answers[0].asks)
		return false
	case DoRoom:
		return t.takeSlot()
	case doSend:
		if t.doing == quieting {
			a := &t.answers[t.entries]
			t.entries++
			p.node.Bus.Write(pcie.GPU, pcie.Host, p.cfg.DescriptorBytes, t.c, t.kinds[stage.PCIeNotify], a, t.slot)
			return true
		}
		if t.pc == len(t.prog)-1 {
			t.due.Push(t.slot + 1)
		}
		p.node.Bus.Write(pcie.GPU, pcie.Host, p.cfg.descriptor(t.message()), t.c, t.kinds[stage.PCIeNotify], arrival{t}, t.slot)
	}
	return true
}

// takeSlot gives the thread a slot for its next descriptor, in the ring of the
// worker that a quiet asks next, else in its own; it reports whether one was free.
func (t *producer) takeSlot() bool {
	if t.granted {
		t.granted = false
		return true
	}
	p, r, looks := t.path, t.ring, t.looks
	if t.doing == quieting {
		if a := &t.answers[t.entries]; a.ring != r {
			t.other.word = a.ring.progress
			r, looks = a.ring, &t.other
		}
	}
	full := r.free() <= 0
	if full && p.cfg.NoSlotCheck {
		t.env.find(t.node, stage.RingOverflow, stage.Possible, r.index, "a thread took a slot of the ring that was not known to be free: the stack does not look")
	} else if full || r.room.Len() > 0 {
		r.room.Push(t)
		if p.cfg.CompletionIn == pcie.Host {
			t.host.next = running
			t.pollHost(stage.GPUReserve, looks, false)
			return false
		}
		t.state = parked
		return false
	}
	r.issue(t)
	return true
}

// AwaitCompletion learns of the oldest batch's completion: by the progress
// counter, or by the stack's quiet, which tells of all.
func (t *producer) AwaitCompletion(c sim.Cause) {
	if p := t.path; len(p.quiet) > 0 && !p.cfg.Stream && !t.plain {
		t.doing, t.entries, t.polled = quieting, 0, 0
		for i := range t.answers {
			t.answers[i].came = false
		}
		t.start(c, p.quiet)
		return
	}
	t.poll(c)
}

// poll waits until the ring's progress covers the oldest batch.
func (t *producer) poll(c sim.Cause) {
	t.c = c
	listed := t.doing == quieting // as a step of the routine
	if listed {
		t.pc++
	}
	t.begin = t.env.Eng.Now()
	done, ok := t.Retire(c)
	if t.path.cfg.CompletionIn == pcie.Host {
		if listed {
			t.host.next = running
		}
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

// ended tells the client of a quiet's end.
func (t *producer) ended() bool {
	if t.doing == posting {
		return true
	}
	t.client.Completed(t.c)
	return false
}

func (t *producer) found(c sim.Cause) {
	if t.path.cfg.CompletionIn == pcie.Host {
		t.hostArrived(c)
		return
	}
	next := seen
	if t.doing == quieting {
		next = looked
	}
	t.look(stage.GPUPoll, c, next)
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

// Busy returns the time that the workers spent on work, polling left out.
func (p *ProxyPath) Busy() sim.Duration {
	var d sim.Duration
	for _, w := range p.workers {
		d += w.busy
	}
	if p.receiver != nil {
		d += p.receiver.busy
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

// Workers returns the number of CPU threads, each of which keeps a core while it
// does not sleep.
func (p *ProxyPath) Workers() int {
	if p.receiver != nil {
		return len(p.workers) + 1
	}
	return len(p.workers)
}

package path

import (
	"gdisim/model/gpu"
	"gdisim/model/nic"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// DoorbellPath is the set-up in which GPU threads of a node build WQEs and
// ring the NIC themselves.
type DoorbellPath struct {
	env   *Env
	node  *Node
	peer  int
	cfg   Doorbell
	msg   Message
	batch int
	// portion is how many of the batch's messages one reservation takes: a
	// library's thread reserves one by one.
	portion int
	kinds   *kindTable
	queues  []*queue
	prog    []Step
	load    []Step   // program of background posts, plain puts one by one
	waits   [][]Step // completion routine by the queue waited for; nil: one poll
	insist  []Step   // what a caller does that wants an unrung post rung
	ringer  *ringer  // nil: GPU threads ring
	// receiver takes the immediates that come; nil: none do.
	receiver *receiver
}

// queue is a QP with what the posting threads share.
type queue struct {
	path  *DoorbellPath
	qp    *nic.QP
	index int
	slot  int // where a CPU thread rings, that of its slots
	depth int
	cq    *hostWord  // its newest CQE, if the CQ lies in host memory
	words sim.Server // atomics on the queue's management words
	// The management words of a library, in WQEs.
	reserved, ready, rung uint32

	holder sim.Op
	locked bool
	lock   sim.FIFO[*poster] // waiting for the lock
	turn   uint32            // next ticket that may publish
	ticket uint32
	turns  []*poster // waiting for their turn
	since  int       // WQEs since the last ring
	polls  []*poster // waiting for a completion
	last   struct {  // latest CQE
		upto  uint32
		cause sim.Cause
	}
	room    sim.FIFO[*poster] // waiting for a slot
	granted int               // slots kept for those that have waited
}

// NewDoorbell sets the path up on node towards peer. Each queue in queues of
// them is one QP; batch is the number of messages per ring, and checks says
// that the threads keep more than one post outstanding.
func NewDoorbell(env *Env, node, peer int, cfg Doorbell, m Message, queues, batch int, checks bool) (*DoorbellPath, error) {
	p := &DoorbellPath{env: env, node: env.Nodes[node], peer: peer, cfg: cfg, msg: m, batch: batch, kinds: newKinds(node)}
	for range queues {
		q := &queue{path: p, index: len(p.queues), cq: p.node.newHostWord()}
		var qp *nic.QP
		var err error
		if cfg.Vector > 0 {
			qp, err = p.node.NIC.NewDCI(cfg.Vector, cfg.Queues, q)
		} else {
			qp, err = p.node.NIC.NewQP(peer, cfg.Queues, q)
		}
		if err != nil {
			return nil, err
		}
		q.qp, q.depth = qp, qp.Free()
		if cfg.Depth > 0 {
			q.depth = min(q.depth, cfg.Depth)
		}
		p.queues = append(p.queues, q)
	}
	prog := cfg.Program(m, env.InlineLimit, checks)
	p.prog = bind(prog, m, batch, cfg.Posting == PostCooperative || cfg.Lanes > 1, p.node.GPU)
	if cfg.Library != LibBare && cfg.Insist {
		for i := range p.queues {
			p.waits = append(p.waits, cfg.Wait(i, queues))
		}
	}
	p.portion = batch
	if cfg.Library != LibBare && cfg.Posting != PostCooperative && cfg.Lanes <= 1 {
		p.portion = 1
	}
	p.load = bind(cfg.Program(m.plain(), env.InlineLimit, checks), m.plain(), batch, cfg.Posting == PostCooperative || cfg.Lanes > 1, p.node.GPU)
	if cfg.Library == LibDeepEP {
		var l list
		cfg.ringOnce(&l)
		p.insist = bind(Program{After: l}, m, 1, true, p.node.GPU)
	}
	if cfg.HostRings {
		p.ringer = p.rung()
	}
	if m.Signal == SignalImmediate {
		p.receiver = newReceiver(env, p.node, p.kinds, p.node.Core(1)) // the ringer has core 0
	}
	if !cfg.Ordered() && env.Find != nil {
		env.Find(0, stage.Hazard{
			Finding: stage.StaleDescriptor, Grade: stage.Possible, Node: node, Queue: -1, Index: -1,
			Cause: "no fence orders the WQE's stores before the doorbell, in the memory where the queue lives",
		})
	}
	return p, nil
}

// Towards returns a path by the same queues, which are DC initiators, to another
// peer.
func (p *DoorbellPath) Towards(peer int) *DoorbellPath {
	other := *p
	other.peer = peer
	return &other
}

// bind repeats the per-message steps, gives copies of the payload their size, and
// lets every store that leaves the GPU be followed by its posted write. The
// lanes of a cooperative warp build side by side.
func bind(p Program, m Message, batch int, together bool, g *gpu.Config) []Step {
	var out []Step
	add := func(list []Step) {
		for _, s := range list {
			s = s.Of(m.Bytes, g)
			out = append(out, s)
			if s.Do == DoRing || s.Do == DoHostStore || s.Do == DoSlot {
				out = append(out, Step{Do: doSend, Stage: s.Stage, N: s.N})
			}
		}
	}
	add(p.Before)
	if together {
		batch = 1
	}
	for range batch {
		add(p.Each)
	}
	add(p.After)
	return out
}

// poster is a thread of this path.
type poster struct {
	thread
	path    *DoorbellPath
	msg     Message
	post    []Step
	queue   *queue // of the present post
	land    sim.Sink
	ticket  uint32
	due     sim.FIFO[batch] // not awaited
	doing   purpose
	granted int // slots kept for it since it waited
	gate    *gate
	lane    *lane // of its SM
	let     bool  // through the gate, where it waited

	// Of a library's post.
	base, end uint32     // its slots
	slot      uint32     // next to fill, where others' may be empty
	filled    int        // messages of the batch so far
	plain     bool       // posts background load
	open      bool       // a fault left out the fence before the doorbell
	picks     int        // posts so far, where the library picks the queue
	looks     hostReader // at the CQ
}

// batch is a post that a CQE will retire.
type batch struct {
	queue *queue
	upto  uint32 // producer index behind it
}

// NewThread adds a thread on the SM that posts to queue; what it sends lands
// in to (nil: nobody looks).
func (p *DoorbellPath) NewThread(sm *gpu.SM, queue int, client Client) *poster {
	t := &poster{path: p, queue: p.queues[queue], picks: queue, msg: p.msg, post: p.prog}
	t.init(p.env, p.node, p.kinds, sm, client, t)
	t.acquires, t.fences, t.looksIn = p.cfg.Acquires(), p.cfg.SystemWait, p.msg.Word
	if p.ringer == nil {
		t.gate = p.node.doorbells(p.env)
		t.lane = t.gate.lane(sm)
	}
	return t
}

// SendTo lets the thread's messages land at a thread of the peer.
func (t *poster) SendTo(r Receiver) { t.land = r.Landing() }

// Receiver is a thread that messages can land at.
type Receiver interface{ Landing() sim.Sink }

// Landing returns the sink of messages for this thread.
func (t *thread) Landing() sim.Sink { return landing{t} }

// Landing returns the sink of messages for this thread.
func (t *poster) Landing() sim.Sink {
	if r := t.path.receiver; r != nil {
		return r.landing(&t.thread)
	}
	return t.thread.Landing()
}

// Batch returns the messages per post.
func (t *poster) Batch() int { return t.path.batch }

// Settle is false: a reply says enough.
func (t *poster) Settle(sim.Cause) bool { return false }

// Post issues one batch.
func (t *poster) Post(c sim.Cause) {
	if p := t.path; p.cfg.PicksQueue {
		t.queue = p.queues[t.picks%len(p.queues)]
		t.picks++
	}
	t.start(c, t.post)
}

// Background lets the thread post plain puts, whatever the path's messages are.
func (t *poster) Background() {
	t.msg, t.post, t.plain = t.msg.plain(), t.path.load, true
}

func (t *poster) shared(s *Step) bool {
	p, q := t.path, t.queue
	cfg := t.sm.Config()
	switch s.Do {
	case DoAtomic, DoLock, DoReserve, DoPublish, DoMax:
		if s.N > 0 && p.ringer == nil && !t.gate.pass(t, 0) {
			return false
		}
	}
	switch s.Do {
	case DoAtomic:
		t.times(s, cfg.Atomic)
	case DoHostLoad:
		t.loadHost(s.Stage, &t.payload)
		return false
	case DoLock:
		if q.locked {
			q.lock.Push(t)
			t.state = parked
			return false
		}
		q.locked, q.holder = true, t.c.Op
		t.times(s, cfg.Atomic)
	case DoUnlock:
		q.locked = false
		if q.lock.Len() > 0 {
			next := q.lock.Pop()
			q.locked = true
			next.waited(stage.GPUReserve, t.c.Op)
			q.holder = next.c.Op
			next.spend(stage.GPUReserve, next.sm.Draw(cfg.Atomic))
			next.pc++
			p.env.Eng.At(next.t, next.h, 0)
		}
	case DoAwaitTurn:
		if t.ticket == 0 {
			q.ticket++
			t.ticket = q.ticket
		}
		if t.ticket != q.turn+1 {
			q.turns = append(q.turns, t)
			t.state = parked
			return false
		}
	case DoPassTurn:
		q.turn = t.ticket
		t.ticket = 0
		for i, w := range q.turns {
			if w.ticket == q.turn+1 {
				q.turns = append(q.turns[:i], q.turns[i+1:]...)
				w.waited(stage.GPUReserve, t.c.Op)
				w.spend(stage.GPUReserve, w.sm.Draw(cfg.Turn))
				p.env.Eng.At(w.t, w.h, 0)
				break
			}
		}
	case DoReserve:
		n := t.wqes()
		if !t.room(n) {
			return false
		}
		t.base = q.reserved
		q.reserved += uint32(n)
		t.end = q.reserved
		if p.node.Faults.TwoProducers {
			for range n {
				q.qp.Reserve()
			}
		}
		t.word(s)
	case DoPublish:
		switch {
		case q.ready == t.base:
		case p.node.Faults.TwoProducers:
			p.node.Faults.Producers.Strikes(p.env.Eng.Now())
			if p.env.Find != nil {
				p.env.Find(p.env.Eng.Now(), stage.Hazard{
					Finding: stage.StaleDescriptor, Grade: stage.Possible, Node: p.node.Index, Queue: q.qp.ID(), Index: -1,
					Cause: "a fault lets a thread ring for slots that others of its queue have not filled", Avoid: nic.InOrder,
				})
			}
		default:
			q.turns = append(q.turns, t)
			t.state = parked
			return false
		}
		t.publish(s)
	case DoDecide:
		for range s.N {
			t.spend(s.Stage, t.sm.Draw(cfg.L2Load))
		}
		if !t.mustRing() {
			t.skipTo(doEnd)
		}
	case DoMax:
		t.word(s)
		if int32(t.end-q.rung) <= 0 {
			t.skipTo(DoUnlock)
			break
		}
		q.rung = t.end
	case DoPollCQ:
		t.pollCQ()
		return false
	case doSend:
		if p.ringer == nil && !t.gate.pass(t, max(1, s.N)) {
			return false
		}
		if p.cfg.Library != LibBare {
			t.tell(s)
			break
		}
		if !t.room(t.wqes()) {
			return false
		}
		t.send()
	}
	return true
}

// rings: with slots handed on, only the thread that crosses the batch boundary
// stores to the doorbell.
func (t *poster) rings(s *Step) bool {
	return t.path.cfg.Posting != PostHandoff || t.queue.since+t.path.batch >= s.N
}

func (t *poster) stores() bool { return true }

func (t *poster) unfenced() {
	t.open = true
	t.env.find(t.node, stage.StaleDescriptor, stage.Possible, t.queue.qp.ID(), "a fault left out the fence between a WQE and its doorbell")
}

// wqes is the number of WQEs that the thread reserves at a time.
func (t *poster) wqes() int { return t.msg.wqes() * t.path.portion }

// send has the batch's WQEs in the send queue and, if it rings, the posted
// write to the doorbell register on its way.
func (t *poster) send() {
	p, q := t.path, t.queue
	t.fill()
	q.since += p.batch
	if p.cfg.Posting == PostHandoff && q.since < p.cfg.RingUnit {
		return
	}
	q.since = 0
	t.ring(q.qp.Head())
}

// ring has the posted write to the doorbell register on its way, or leaves the
// index to the CPU thread that rings.
func (t *poster) ring(head uint32) {
	p := t.path
	switch {
	case p.ringer == nil:
		p.node.ring(p.env, pcie.GPU, t.queue.qp, 8, t.c, p.kinds[stage.PCIeDoorbell], t.queue.qp.Doorbell(), head)
	case p.cfg.SlotIn == pcie.GPU:
		p.ringer.written(t.queue, head, t.c)
	default: // an atomic on host memory: read, modify, write
		p.node.Bus.Read(pcie.GPU, pcie.Host, 8, t.c, p.kinds[stage.PCIeNotify], slotRead{t.queue}, head)
	}
}

// fill has the WQEs of a reservation in the send queue.
func (t *poster) fill() {
	p, q := t.path, t.queue
	m := t.msg
	t.slot = t.base
	visible := t.t
	if !p.cfg.Ordered() || t.open {
		visible = t.built.Add(t.sm.Draw(t.sm.Config().StoreVisible))
	}
	t.open = false
	if p.node.Faults.Reorder.Strikes(p.env.Eng.Now()) {
		visible = t.t.Add(t.sm.Draw(t.sm.Config().Build) + t.sm.Draw(t.sm.Config().StoreVisible))
		p.env.find(p.node, stage.StaleDescriptor, stage.Possible, q.qp.ID(), "a fault let a doorbell leave before its WQE was stored")
	}
	w := nic.WQE{Opcode: nic.RDMAWrite, Bytes: m.Bytes, Inline: p.cfg.inlined(m, p.env.InlineLimit), Visible: visible, Cause: t.c, Peer: p.peer}
	w.Local, w.Remote = m.ends(p.cfg.Payload)
	if m.Get {
		w.Opcode = nic.RDMARead
	}
	sig := m.flag(w)
	if m.Alone {
		w = sig
	} else {
		w.Imm = m.Signal == SignalImmediate
	}
	each := p.cfg.Library == LibDOCA || p.cfg.Library == LibDeepEP // every WQE asks for a CQE
	w.Signaled, sig.Signaled = each, each
	for range p.portion {
		t.filled++
		if t.filled == p.batch { // one CQE retires the batch
			if m.wqes() == 1 {
				w.Signaled, w.Land = true, t.land
			}
			sig.Signaled, sig.Land = true, t.land
		}
		t.put(w)
		if m.wqes() == 2 {
			t.put(sig)
		}
	}
	if t.filled == p.batch {
		t.filled = 0
		t.due.Push(batch{q, t.last()})
	}
}

// last is the producer index behind what the thread has put there.
func (t *poster) last() uint32 {
	if t.node.Faults.TwoProducers {
		return t.end
	}
	return t.queue.qp.Head()
}

// put has a WQE in the send queue: in its own slot, where those before it need
// not be filled.
func (t *poster) put(w nic.WQE) {
	if !t.node.Faults.TwoProducers {
		t.queue.qp.Post(w)
		return
	}
	t.queue.qp.Fill(t.slot, w)
	t.slot++
}

// Done is a CQE, visible in the completion queue.
func (q *queue) Done(completed uint32, c sim.Cause) {
	for i := 0; i < len(q.polls); {
		t := q.polls[i]
		if int32(completed-t.due.Front().upto) < 0 {
			i++
			continue
		}
		q.polls = append(q.polls[:i], q.polls[i+1:]...)
		t.due.Pop()
		t.found(c)
	}
	q.last.upto, q.last.cause = completed, c
	for q.room.Len() > 0 && q.hasRoom((*q.room.Front()).wqes()) {
		t := q.room.Pop()
		t.granted = t.wqes()
		q.granted += t.granted
		t.waited(stage.GPUReserve, c.Op)
		t.env.Eng.At(t.t, t.h, 0)
	}
}

// AwaitCompletion polls the CQ for the oldest batch, by the library's routine.
func (t *poster) AwaitCompletion(c sim.Cause) {
	b := t.due.Front()
	if p := t.path; p.insist != nil && int32(b.upto-b.queue.rung) > 0 {
		t.queue, t.end, t.doing = b.queue, b.upto, insisting
		t.start(c, p.insist)
		return
	}
	t.await(c)
}

func (t *poster) await(c sim.Cause) {
	b := t.due.Front()
	if w := t.path.waits; w != nil && !t.plain {
		t.doing = quieting
		t.start(c, w[b.queue.index])
		return
	}
	t.c = c
	t.pollCQ()
}

// found has the CQE that the thread polls for.
func (t *poster) found(c sim.Cause) {
	if t.path.cfg.Queues == pcie.Host {
		t.hostArrived(c)
		return
	}
	next := seen
	if t.doing == quieting {
		next = running
	}
	t.look(stage.GPUPoll, c, next)
}

// Retire takes the oldest batch off if its CQE is visible; own's operation has
// waited for it until now.
func (t *poster) Retire(own sim.Cause) (sim.Cause, bool) {
	if t.due.Len() == 0 {
		return own, false
	}
	q := t.due.Front().queue
	if int32(q.qp.Completed()-t.due.Front().upto) < 0 {
		return own, false
	}
	if upto := t.due.Pop().upto; q.last.upto == upto {
		own = join(t.env.Rec, own, q.last.cause, t.kinds[stage.GPUPoll], t.env.Eng.Now())
	}
	return t.caughtUp(own), true
}

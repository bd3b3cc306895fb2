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
	env    *Env
	node   *Node
	peer   int
	cfg    Doorbell
	msg    Message
	batch  int
	kinds  *kindTable
	queues []*queue
	prog   []Step
}

// queue is a QP with what the posting threads share.
type queue struct {
	path   *DoorbellPath
	qp     *nic.QP
	holder sim.Op
	locked bool
	lock   fifo[*poster] // waiting for the lock
	turn   uint32        // next ticket that may publish
	ticket uint32
	turns  []*poster // waiting for their turn
	since  int       // WQEs since the last ring
	polls  []*poster // waiting for a completion
	last   struct {  // latest CQE
		upto  uint32
		cause sim.Cause
	}
	room []*poster // waiting for a slot
}

// NewDoorbell sets the path up on node towards peer. Each queue in queues of
// them is one QP; batch is the number of messages per ring, and checks says
// that the threads keep more than one post outstanding.
func NewDoorbell(env *Env, node, peer int, cfg Doorbell, m Message, queues, batch int, checks bool) (*DoorbellPath, error) {
	p := &DoorbellPath{env: env, node: env.Nodes[node], peer: peer, cfg: cfg, msg: m, batch: batch, kinds: newKinds(node)}
	for range queues {
		q := &queue{path: p}
		qp, err := p.node.NIC.NewQP(peer, cfg.Queues, q)
		if err != nil {
			return nil, err
		}
		q.qp = qp
		p.queues = append(p.queues, q)
	}
	prog := cfg.Program(m, env.InlineLimit, checks)
	p.prog = bind(prog, m, batch, cfg.Posting == PostCooperative)
	if !cfg.Ordered() && env.Find != nil {
		env.Find(stage.StaleDescriptor, stage.Possible, 0)
	}
	return p, nil
}

// bind repeats the per-message steps, gives the inline copy its bytes, and
// lets every store that leaves the GPU be followed by its posted write. The
// lanes of a cooperative warp build side by side.
func bind(p Program, m Message, batch int, together bool) []Step {
	var out []Step
	add := func(list []Step) {
		for _, s := range list {
			if s.Do == DoInline {
				s.N = int(m.Bytes)
			}
			out = append(out, s)
			if s.Do == DoRing || s.Do == DoHostStore {
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
	path   *DoorbellPath
	queue  *queue
	land   sim.Sink
	ticket uint32
	due    fifo[uint32] // producer indices of the batches not awaited
}

// NewThread adds a thread on the SM that posts to queue; what it sends lands
// in to (nil: nobody looks).
func (p *DoorbellPath) NewThread(sm *gpu.SM, smID, queue int, client Client) *poster {
	t := &poster{path: p, queue: p.queues[queue]}
	t.init(p.env, p.node, p.kinds, sm, smID, client, t)
	t.acquires = p.cfg.Acquires()
	return t
}

// SendTo lets the thread's messages land at a thread of the peer.
func (t *poster) SendTo(r Receiver) { t.land = r.Landing() }

// Receiver is a thread that messages can land at.
type Receiver interface{ Landing() sim.Sink }

// Landing returns the sink of messages for this thread.
func (t *thread) Landing() sim.Sink { return landing{t} }

// Batch returns the messages per post.
func (t *poster) Batch() int { return t.path.batch }

// ReplyAfterCompletion is false: the thread looks for the reply at once.
func (t *poster) ReplyAfterCompletion() bool { return false }

// Post issues one batch.
func (t *poster) Post(c sim.Cause) { t.start(c, t.path.prog) }

func (t *poster) shared(s *Step) bool {
	p, q := t.path, t.queue
	cfg := t.sm.Config()
	switch s.Do {
	case DoAtomic:
		t.times(s, cfg.Atomic)
	case DoLock:
		if q.locked {
			q.lock.push(t)
			t.state = parked
			return false
		}
		q.locked, q.holder = true, t.c.Op
		t.times(s, cfg.Atomic)
	case DoUnlock:
		q.locked = false
		if q.lock.len() > 0 {
			next := q.lock.pop()
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
	case doSend:
		if q.qp.Free() < t.wqes() {
			q.room = append(q.room, t)
			t.state = parked
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

func (t *poster) ended() bool { return true }

// wqes is the number of WQEs of a batch.
func (t *poster) wqes() int {
	if t.path.msg.Signal != SignalNone {
		return 2 * t.path.batch
	}
	return t.path.batch
}

// send has the batch's WQEs in the send queue and, if it rings, the posted
// write to the doorbell register on its way.
func (t *poster) send() {
	p, q := t.path, t.queue
	m := p.msg
	visible := t.t
	if !p.cfg.Ordered() {
		visible = t.built.Add(t.sm.Draw(t.sm.Config().StoreVisible))
	}
	w := nic.WQE{Opcode: nic.RDMAWrite, Bytes: m.Bytes, Inline: p.cfg.inlined(m, p.env.InlineLimit), Local: p.cfg.Payload, Remote: p.cfg.Payload, Visible: visible, Cause: t.c}
	if m.Get {
		w.Opcode = nic.RDMARead
	}
	sig := w
	sig.Inline, sig.Bytes = true, 8
	if m.Signal == SignalAtomic {
		sig.Opcode, sig.Inline = nic.FetchAdd, false
	}
	for i := range p.batch {
		if i == p.batch-1 { // one CQE retires the batch
			sig.Signaled, sig.Land = true, t.land
			w.Signaled, w.Land = m.Signal == SignalNone, t.land
			if m.Signal != SignalNone {
				w.Land = nil
			}
		}
		q.qp.Post(w)
		if m.Signal != SignalNone {
			q.qp.Post(sig)
		}
	}
	t.due.push(q.qp.Head())
	q.since += p.batch
	if p.cfg.Posting == PostHandoff && q.since < p.cfg.RingUnit {
		return
	}
	q.since = 0
	p.node.Bus.Write(pcie.GPU, pcie.NIC, 8, t.c, p.kinds[stage.PCIeDoorbell], q.qp.Doorbell(), q.qp.Head())
}

// Done is a CQE, visible in the completion queue.
func (q *queue) Done(completed uint32, c sim.Cause) {
	for i := 0; i < len(q.polls); {
		t := q.polls[i]
		if int32(completed-*t.due.front()) < 0 {
			i++
			continue
		}
		q.polls = append(q.polls[:i], q.polls[i+1:]...)
		t.due.pop()
		t.found(c)
	}
	q.last.upto, q.last.cause = completed, c
	for len(q.room) > 0 && q.qp.Free() >= q.room[0].wqes() {
		t := q.room[0]
		q.room = q.room[:copy(q.room, q.room[1:])]
		t.waited(stage.GPUReserve, c.Op)
		t.env.Eng.At(t.t, t.h, 0)
	}
}

// AwaitCompletion polls the CQ for the oldest batch.
func (t *poster) AwaitCompletion(c sim.Cause) {
	t.c = c
	t.begin = t.env.Eng.Now()
	done, ok := t.Retire(c)
	if t.path.cfg.Queues == pcie.Host {
		t.pollHost(stage.GPUPoll, ok)
	}
	if ok {
		t.found(done)
		return
	}
	if t.state != pollingHost {
		t.state = polling
	}
	t.queue.polls = append(t.queue.polls, t)
}

// found has the CQE that the thread polls for.
func (t *poster) found(c sim.Cause) {
	if t.path.cfg.Queues == pcie.Host {
		t.hostArrived(c)
		return
	}
	t.look(stage.GPUPoll, c, seen)
}

// Retire takes the oldest batch off if its CQE is visible; own's operation has
// waited for it until now.
func (t *poster) Retire(own sim.Cause) (sim.Cause, bool) {
	q := t.queue
	if t.due.len() == 0 || int32(q.qp.Completed()-*t.due.front()) < 0 {
		return own, false
	}
	upto := t.due.pop()
	if q.last.upto == upto {
		own = join(t.env.Rec, own, q.last.cause, t.kinds[stage.GPUPoll], t.env.Eng.Now())
	}
	return t.caughtUp(own), true
}

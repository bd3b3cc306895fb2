package path

import (
	"gdisim/model/cpu"
	"gdisim/model/gpu"
	"gdisim/model/nic"
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
	workers []*worker
	rings   []*ring
}

// ring is a descriptor ring with its completion counter.
type ring struct {
	path     *ProxyPath
	worker   *worker
	index    int // among the worker's rings
	enqueued uint32
	taken    uint32
	visible  fifo[descriptor]
	done     uint32 // completion counter as the GPU may see it
	last     sim.Cause
	polls    []*producer
	room     []*producer
}

// descriptor is a request as the worker sees it.
type descriptor struct {
	cause sim.Cause
	land  sim.Sink
}

// NewProxy sets the path up on node towards peer, with cfg.Rings rings shared
// out over cfg.Workers workers of one QP each.
func NewProxy(env *Env, node, peer int, cfg Proxy, m Message, batch int) (*ProxyPath, error) {
	p := &ProxyPath{env: env, node: env.Nodes[node], peer: peer, cfg: cfg, msg: m, batch: batch, kinds: newKinds(node)}
	p.prog = bind(cfg.Program(), m, batch, false)
	for i := range cfg.Workers {
		w := &worker{path: p, core: p.node.Core(i)}
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
		r := &ring{path: p, worker: w, index: len(w.rings)}
		w.rings = append(w.rings, r)
		p.rings = append(p.rings, r)
	}
	for _, w := range p.workers {
		w.begin()
	}
	return p, nil
}

// producer is a GPU thread of this path.
type producer struct {
	thread
	path *ProxyPath
	ring *ring
	land sim.Sink
	due  fifo[uint32]
}

// NewThread adds a thread on the SM that enqueues to ring.
func (p *ProxyPath) NewThread(sm *gpu.SM, smID, ring int, client Client) *producer {
	t := &producer{path: p, ring: p.rings[ring]}
	t.init(p.env, p.node, p.kinds, sm, smID, client, t)
	t.acquires = p.cfg.Handoff == HandoffGeneral
	return t
}

// SendTo lets the thread's messages land at a thread of the peer.
func (t *producer) SendTo(r Receiver) { t.land = r.Landing() }

// Batch returns the messages per post.
func (t *producer) Batch() int { return t.path.batch }

// ReplyAfterCompletion is the stack's choice.
func (t *producer) ReplyAfterCompletion() bool { return t.path.cfg.ReplyAfterCompletion }

// Post enqueues one batch of descriptors.
func (t *producer) Post(c sim.Cause) { t.start(c, t.path.prog) }

func (t *producer) rings(*Step) bool { return true }

func (t *producer) shared(s *Step) bool {
	p, r := t.path, t.ring
	switch s.Do {
	case DoAtomic:
		t.times(s, t.sm.Config().Atomic)
	case DoHostLoad:
		t.loadHost(s.Stage)
		return false
	case doSend:
		if int(r.enqueued-r.done) >= p.cfg.Depth {
			r.room = append(r.room, t)
			t.state = parked
			return false
		}
		r.enqueued++
		last := t.pc == len(t.prog)-1
		if last {
			t.due.push(r.enqueued)
		}
		p.node.Bus.Write(pcie.GPU, pcie.Host, p.cfg.DescriptorBytes, t.c, t.kinds[stage.PCIeNotify], arrival{t}, 0)
	}
	return true
}

type arrival struct{ *producer }

// Done is a descriptor visible in the ring.
func (a arrival) Done(_ uint32, c sim.Cause) {
	r := a.ring
	r.visible.push(descriptor{cause: c, land: a.land})
	r.worker.notice(r.index)
}

// AwaitCompletion polls the completion counter for the oldest batch.
func (t *producer) AwaitCompletion(c sim.Cause) {
	t.c = c
	t.begin = t.env.Eng.Now()
	done, ok := t.Retire(c)
	if t.path.cfg.CompletionIn == pcie.Host {
		t.pollHost(stage.GPUPoll, ok)
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
	if t.due.len() == 0 || int32(t.ring.done-*t.due.front()) < 0 {
		return own, false
	}
	if t.due.pop() == t.ring.done {
		own = join(t.env.Rec, own, t.ring.last, t.kinds[stage.GPUPoll], t.env.Eng.Now())
	}
	return t.caughtUp(own), true
}

func (t *producer) stores() bool { return false }

// Done is the completion counter, visible where the GPU polls it.
func (r *ring) Done(done uint32, c sim.Cause) {
	r.done, r.last = done, c
	for i := 0; i < len(r.polls); {
		t := r.polls[i]
		if int32(done-*t.due.front()) < 0 {
			i++
			continue
		}
		r.polls = append(r.polls[:i], r.polls[i+1:]...)
		t.due.pop()
		t.found(c)
	}
	for len(r.room) > 0 && int(r.enqueued-r.done) < r.path.cfg.Depth {
		t := r.room[0]
		r.room = r.room[:copy(r.room, r.room[1:])]
		t.waited(stage.GPUReserve, c.Op)
		t.env.Eng.At(t.t, t.h, 0)
		break // it takes the slot when it resumes; the next counter wakes the next
	}
}

// worker is a proxy thread: it looks at its rings and its CQ in turn, for ever.
type worker struct {
	path  *ProxyPath
	core  *cpu.Core
	qp    *nic.QP
	rings []*ring
	h     sim.HandlerID

	cqes   fifo[completion]
	chains fifo[chain]

	pos    int   // what the pass looks at next: a ring, or the CQ behind them
	owed   *ring // found the send queue full: the next free slot is its own
	state  workerState
	idleAt sim.Time     // when a pass began that has found nothing so far
	pass   sim.Duration // length of such a pass
	check  sim.Duration // of one ring's part in it
	timer  sim.TimerID
	timed  bool
	next   sim.Time
	cause  sim.Cause // of what the worker is about to send
	blue   bool
	busy   sim.Duration
	last   sim.Op // whom it worked for last
	ring   *ring
	count  uint32
}

type workerState uint8

const (
	workerIdle workerState = iota
	workerLooking
	workerPosting    // the doorbell leaves at the event
	workerPublishing // the completion counter leaves at the event
)

type completion struct {
	upto  uint32
	cause sim.Cause
}

// chain is one ibv_post_send call: what its CQE completes.
type chain struct {
	upto  uint32
	ring  *ring
	count uint32 // the ring's counter behind it
}

func (w *worker) begin() {
	cfg := w.core.Config()
	w.check = cfg.Check.Mean()
	w.pass = max(1, cfg.Loop.Mean()+sim.Duration(len(w.rings))*w.check+cfg.PollEmpty.Mean())
}

// notice is called when something became visible at position pos of the pass.
// An idle worker finds it when its pass comes by.
func (w *worker) notice(pos int) {
	if w.state != workerIdle {
		return
	}
	now := w.path.env.Eng.Now()
	at := w.idleAt.Add(sim.Duration(pos+1) * w.check)
	if now > at {
		k := (now.Sub(at) + w.pass - 1) / w.pass
		at = at.Add(k * w.pass)
	}
	at = w.core.Available(at)
	if w.timed {
		if w.next <= at {
			return
		}
		w.path.env.Eng.Cancel(w.timer)
	}
	w.timed, w.next = true, at
	w.pos = pos
	w.timer = w.path.env.Eng.Timer(at, w.h, 0)
}

type cqe struct{ *worker }

// Done is a CQE visible in the worker's CQ.
func (q cqe) Done(upto uint32, c sim.Cause) {
	q.cqes.push(completion{upto, c})
	q.notice(len(q.rings))
}

type act struct{ *worker }

// Handle goes on with the pass.
func (a act) Handle(uint32) {
	w := a.worker
	bus := w.path.node.Bus
	switch w.state {
	case workerIdle:
		w.timed = false
		w.state = workerLooking
	case workerLooking:
	case workerPosting:
		sink, bytes := w.qp.Doorbell(), int64(8)
		if w.blue {
			sink, bytes = w.qp.BlueFlame(), w.size()
		}
		w.state = workerLooking
		bus.Write(pcie.CPU, pcie.NIC, bytes, w.cause, w.path.kinds[stage.PCIeDoorbell], sink, w.qp.Head())
	case workerPublishing:
		w.state = workerLooking
		if w.path.cfg.CompletionIn == pcie.GPU {
			bus.Write(pcie.CPU, pcie.GPU, 8, w.cause, w.path.kinds[stage.PCIeNotify], w.ring, w.count)
		} else {
			w.ring.Done(w.count, w.cause)
		}
	}
	w.look()
}

func (w *worker) size() int64 {
	e := w.wqe(sim.Cause{}, nil)
	return e.Size()
}

// look goes through the pass from pos on until it finds work, or idles.
func (w *worker) look() {
	cfg := w.core.Config()
	now := w.path.env.Eng.Now()
	t := now
	for range len(w.rings) + 1 {
		if w.pos == len(w.rings) {
			if w.cqes.len() > 0 {
				w.reap(t)
				return
			}
			w.pos = 0
			t = t.Add(w.core.Draw(cfg.PollEmpty) + w.core.Draw(cfg.Loop))
			continue
		}
		r := w.rings[w.pos]
		if r.visible.len() > 0 && (w.owed == nil || w.owed == r) {
			if w.qp.Free() >= w.path.perMessage() {
				w.owed = nil
				w.serve(r, t)
				return
			}
			w.owed = r
		}
		w.pos++
		t = t.Add(w.core.Draw(cfg.Check))
	}
	w.state = workerIdle
	w.pos = 0
	w.idleAt = now
}

// run lets the worker work from t on, and charges it.
func (w *worker) run(t sim.Time, d sim.Duration) (start, end sim.Time) {
	w.busy += d
	return w.core.Run(t, d)
}

// wqe returns the WQE of a descriptor.
func (w *worker) wqe(c sim.Cause, land sim.Sink) nic.WQE {
	p := w.path
	e := nic.WQE{Opcode: nic.RDMAWrite, Bytes: p.msg.Bytes, Inline: p.cfg.inlined(p.msg, p.env.InlineLimit), Local: p.cfg.Payload, Remote: pcie.GPU, Cause: c, Land: land}
	if p.msg.Get {
		e.Opcode = nic.RDMARead
	}
	return e
}

// perMessage is the number of WQEs of a message.
func (p *ProxyPath) perMessage() int {
	if p.msg.Signal != SignalNone {
		return 2
	}
	return 1
}

// serve posts up to a chain of the ring's descriptors with one doorbell.
func (w *worker) serve(r *ring, t sim.Time) {
	p, cfg, rec := w.path, w.core.Config(), w.path.env.Rec
	perMessage := p.perMessage()
	n := min(r.visible.len(), p.cfg.Chain, w.qp.Free()/perMessage)
	lines := 1 + p.cfg.TailLines + (n-1)*int(p.cfg.DescriptorBytes)/64
	var deq, post sim.Duration
	for range lines {
		deq += w.core.Draw(cfg.Miss)
	}
	for range n {
		deq += w.core.Draw(cfg.Dequeue)
		for range perMessage {
			post += w.core.Draw(cfg.Build)
		}
	}
	post += w.core.Draw(cfg.Post)
	t0, t1 := w.run(t, deq)
	_, t2 := w.run(t1, post)
	_, t3 := w.run(t2, w.core.Draw(cfg.Flush))
	for i := range n {
		d := r.visible.pop()
		k := p.kinds[stage.CPUDequeue]
		k.Wait = uint8(stage.CPUWait)
		c := rec.Span(d.cause, k, t0, t1, w.last)
		c = rec.Span(c, p.kinds[stage.CPUPost], t1, t2, 0)
		c = rec.Span(c, p.kinds[stage.CPURing], t2, t3, 0)
		e := w.wqe(c, d.land)
		last := i == n-1
		if p.msg.Signal != SignalNone {
			sig := e
			sig.Bytes, sig.Inline, sig.Signaled = 8, true, last
			if p.msg.Signal == SignalAtomic {
				sig.Opcode, sig.Inline = nic.FetchAdd, false
			}
			e.Land = nil
			w.qp.Post(e)
			w.qp.Post(sig)
		} else {
			e.Signaled = last
			w.qp.Post(e)
		}
		w.cause = c
	}
	w.last = w.cause.Op
	w.blue = p.cfg.BlueFlame && n*perMessage == 1 && w.size() <= p.env.BlueFlame
	r.taken += uint32(n)
	w.chains.push(chain{upto: w.qp.Head(), ring: r, count: r.taken})
	w.state = workerPosting
	w.pos++
	p.env.Eng.At(t3, w.h, 0)
}

// reap takes one CQE and publishes what it completes.
func (w *worker) reap(t sim.Time) {
	p, cfg, rec := w.path, w.core.Config(), w.path.env.Rec
	e := w.cqes.pop()
	d := w.core.Draw(cfg.Miss) + w.core.Draw(cfg.PollCQE)
	for range p.cfg.Rewrites {
		d += w.core.Draw(cfg.Rewrite)
	}
	t0, t1 := w.run(t, d)
	_, t2 := w.run(t1, w.core.Draw(cfg.Publish))
	k := p.kinds[stage.CPUPoll]
	k.Wait = uint8(stage.CPUWait)
	c := rec.Span(e.cause, k, t0, t1, w.last)
	w.cause = rec.Span(c, p.kinds[stage.CPUPublish], t1, t2, 0)
	w.last = w.cause.Op
	ch := w.chains.pop()
	w.ring, w.count = ch.ring, ch.count
	w.state = workerPublishing
	p.env.Eng.At(t2, w.h, 0)
}

// Busy returns the time that the workers spent on work, polling left out.
func (p *ProxyPath) Busy() sim.Duration {
	var d sim.Duration
	for _, w := range p.workers {
		d += w.busy
	}
	return d
}

// Workers returns the number of worker threads, each of which keeps a core.
func (p *ProxyPath) Workers() int { return len(p.workers) }

package path

import (
	"gdisim/model/cpu"
	"gdisim/model/nic"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// worker is a proxy thread: it looks at its rings and its CQ in turn, for ever.
type worker struct {
	path  *ProxyPath
	index int
	core  *cpu.Core
	wait  *cpu.Waiter
	qp    *nic.QP
	rings []*ring
	h     sim.HandlerID

	cqes     sim.FIFO[completion]
	receives sim.FIFO[receive]
	token    *thread // whose count is about to leave
	chains   sim.FIFO[chain]
	drains   sim.FIFO[drain]
	reaped   uint32 // WQEs whose CQE the worker has seen

	pos     int  // what the pass looks at next: a ring, or the CQ behind them
	stuck   bool // a post waits for room in the send queue:
	resume  int  // that of this ring, with which the next pass begins
	taken   int  // descriptors of the ring at pos in this pass
	polled  int  // CQEs that this pass has found
	state   workerState
	timer   sim.TimerID
	timed   bool
	cause   sim.Cause // of what the worker is about to send
	blue    bool
	apart   bool // the second of two calls is to follow: head is the first's
	head    uint32
	kept    sim.Cause // of the write whose signal is held back,
	holding bool      // while another message's progress is published
	busy    sim.Duration
	last    sim.Op // whom it worked for last
	ring    *ring  // whose progress is about to be published
	count   uint32
	answer  *producer // who is about to be answered
}

type workerState uint8

const (
	workerIdle workerState = iota
	workerLooking
	workerPosting    // the doorbell leaves at the event
	workerReaping    // CQEs were taken that nobody is told of
	workerPublishing // the progress counter or an answer leaves at the event
	workerCounting   // the count of an immediate does
	workerHolding    // a signal waits for its write's CQE
	workerReleasing  // and has it at the event
)

type completion struct {
	upto  uint32
	cause sim.Cause
	at    sim.Time
}

// chain is what one CQE completes.
type chain struct {
	upto  uint32
	ring  *ring
	count uint32 // the ring's counter behind it
}

// idle lets the worker's passes go by without events until notice.
func (w *worker) idle() {
	cfg := w.core.Config()
	w.state, w.pos, w.polled = workerIdle, 0, 0
	if !w.stuck {
		w.taken = 0
	}
	w.wait.Begin(w.path.env.Eng.Now(), cfg.Loop.Mean()+sim.Duration(len(w.rings))*cfg.Check.Mean()+sim.Duration(w.tests())*cfg.PollEmpty.Mean()+
		sim.Duration(w.path.cfg.PassLookups)*cfg.Lookup.Mean()+sim.Duration(w.path.cfg.Wait.Yields)*cfg.Yield.Mean())
}

// tests is the number of polls of the CQ in a pass that finds nothing there.
func (w *worker) tests() int {
	if w.path.cfg.CQTests {
		return max(1, w.chains.Len())
	}
	return 1
}

// notice is called when something became visible at position pos of the pass.
// An idle worker finds it when its pass comes by, or when an interrupt has
// woken it.
func (w *worker) notice(pos int) {
	if w.state != workerIdle {
		return
	}
	env := w.path.env
	at, moved, lost := w.wait.Notice(env.Eng.Now(), sim.Duration(pos+1)*w.core.Config().Check.Mean())
	if lost && env.Find != nil {
		env.Find(env.Eng.Now(), stage.Hazard{
			Finding: stage.LostInterrupt, Grade: stage.Occurred, Node: w.path.node.Index, Queue: pos, Index: -1,
			Cause: "an event came between the thread's last look and the arming, which tells of later ones only",
		})
	}
	if !moved {
		return
	}
	if w.timed {
		env.Eng.Cancel(w.timer)
	}
	w.timed, w.pos = true, pos
	w.timer = env.Eng.Timer(at, w.h, 0)
}

type cqe struct{ *worker }

// Done is a CQE visible in the worker's CQ.
func (q cqe) Done(upto uint32, c sim.Cause) {
	if p := q.path; p.cfg.CQDepth > 0 && q.cqes.Len() == p.cfg.CQDepth {
		p.env.find(p.node, stage.CQOverflow, stage.Occurred, q.qp.ID(), "a CQE came to a CQ that was full of ones that the proxy had not polled")
		q.qp.Fail("CQ overrun")
		return
	}
	q.cqes.Push(completion{upto, c, q.path.env.Eng.Now()})
	if q.state == workerHolding {
		q.held()
		return
	}
	q.notice(len(q.rings))
}

type act struct{ *worker }

// Handle goes on with the pass.
func (a act) Handle(uint32) {
	w := a.worker
	p := w.path
	now := p.env.Eng.Now()
	if until := p.node.stalled(now); until > 0 {
		if w.state == workerIdle { // nothing wakes it meanwhile
			w.state, w.timed = workerLooking, false
		}
		if until < never {
			p.env.Eng.At(until, w.h, 0)
		}
		return
	}
	state := w.state
	w.state = workerLooking
	switch state {
	case workerIdle:
		w.timed = false
		if at := w.wait.Wake(now); at > now { // others have the core
			p.env.Eng.At(at, w.h, 0)
			return
		}
	case workerLooking, workerReaping:
	case workerPosting:
		head := w.qp.Head()
		if w.apart {
			head = w.head
		}
		w.ringUp(head)
		behind := now
		if d := w.core.Draw(w.core.Config().Drain); d > 0 {
			_, behind = w.run(now, d)
		}
		if w.apart {
			if p.cfg.SignalHeld {
				w.state = workerHolding
				w.held()
			} else {
				w.signal(behind)
			}
			return
		}
		if p.cfg.Pop {
			for _, r := range w.rings {
				if n := int(r.taken - r.done); n > 0 && (n >= p.cfg.PublishEvery || r.visible.Len() == 0) {
					r.Done(r.taken, w.cause)
				}
			}
		}
		if behind > now {
			p.env.Eng.At(behind, w.h, 0)
			return
		}
	case workerReleasing:
		w.signal(now)
		return
	case workerCounting:
		p.node.Bus.Write(pcie.CPU, pcie.GPU, 8, w.cause, p.kinds[stage.PCIeNotify], landing{w.token}, 0)
	case workerPublishing:
		switch {
		case w.answer != nil:
			w.answer.answered(w.index, w.cause)
			w.answer = nil
			if w.ring != nil && int32(w.count-w.ring.done) > 0 {
				w.ring.Done(w.count, w.cause)
			}
		case p.cfg.CompletionIn == pcie.GPU:
			p.node.Bus.Write(pcie.CPU, pcie.GPU, 8, w.cause, p.kinds[stage.PCIeNotify], w.ring, w.count)
		default:
			w.ring.Done(w.count, w.cause)
		}
	}
	if w.holding {
		w.holding, w.cause = false, w.kept
		w.state = workerHolding
		w.held()
		return
	}
	w.look()
}

// ringUp stores to the doorbell register, or the WQE itself to BlueFlame.
func (w *worker) ringUp(head uint32) {
	sink, bytes := w.qp.Doorbell(), int64(8)
	if w.blue {
		sink, bytes = w.qp.BlueFlame(), w.size()
	}
	p := w.path
	p.node.ring(p.env, pcie.CPU, w.qp, bytes, w.cause, p.kinds[stage.PCIeDoorbell], sink, head)
}

func (w *worker) size() int64 {
	e := w.wqe(sim.Cause{}, descriptor{})
	return e.Size()
}

// look goes through the pass from pos on until it finds work, or idles.
func (w *worker) look() {
	cfg, x := w.core.Config(), &w.path.cfg
	t := w.path.env.Eng.Now()
	if w.stuck {
		w.pos = len(w.rings) // whatever came meanwhile: the CQ, then that ring
	}
	for range len(w.rings) + 2 {
		if w.pos == len(w.rings) {
			if (w.cqes.Len() > 0 || w.receives.Len() > 0) && (w.polled == 0 || !x.CQOnce) {
				if w.receivedFirst() {
					w.tally(t)
				} else {
					w.reap(t)
				}
				return
			}
			if w.drains.Len() > 0 && int32(w.reaped-w.drains.Front().upto) >= 0 {
				w.finish(t)
				return
			}
			w.polled = 0
			if w.stuck { // with what is left of its burst, or others would starve
				w.pos = w.resume
			} else {
				w.pos, w.taken = 0, 0
			}
			for range w.tests() {
				t = t.Add(w.core.Draw(cfg.PollEmpty))
			}
			t = t.Add(w.core.Draw(cfg.Loop) + w.times(x.PassLookups, cfg.Lookup))
			for range x.Wait.Yields {
				t = w.core.Yield(t.Add(w.core.Draw(cfg.Yield)))
			}
			continue
		}
		r := w.rings[w.pos]
		for r.requests.Len() > 0 && int32(r.taken-r.requests.Front().upto) >= 0 {
			q := r.requests.Pop()
			w.drains.Push(drain{upto: w.qp.Head(), cause: q.cause, from: q.from})
		}
		w.stuck = w.full(r)
		if w.serves(r) {
			w.serve(r, t)
			return
		}
		t = t.Add(w.core.Draw(cfg.Check))
		if w.stuck {
			// The post waits for room: this ring's turn comes first then.
			w.resume, w.pos = w.pos, len(w.rings)
			continue
		}
		w.pos++
		w.taken = 0
	}
	w.idle()
}

// free is the number of WQEs that fit the send queue as far as the worker knows:
// what the CQEs that it has seen have retired.
func (w *worker) free() int { return w.qp.Free() - int(w.qp.Completed()-w.reaped) }

// full reports whether the ring's next message waits for room in the send queue.
func (w *worker) full(r *ring) bool {
	return r.visible.Len() > 0 && r.visible.Front().quiet == nil && w.free() < w.path.perMessage()
}

// serves reports whether the ring has something that the worker takes now. A
// drain for a request keeps it from serving.
func (w *worker) serves(r *ring) bool {
	x := &w.path.cfg
	if r.visible.Len() == 0 || w.taken >= x.Burst || x.Quiet == QuietRequest && w.drains.Len() > 0 {
		return false
	}
	return r.visible.Front().quiet != nil || w.free() >= w.path.perMessage()
}

func (w *worker) times(n int, d sim.Delay) sim.Duration {
	var sum sim.Duration
	for range n {
		sum += w.core.Draw(d)
	}
	return sum
}

// run lets the worker work from t on, and charges it.
func (w *worker) run(t sim.Time, d sim.Duration) (start, end sim.Time) {
	w.busy += d
	return w.core.Run(t, d)
}

// wqe returns the WQE of a descriptor.
func (w *worker) wqe(c sim.Cause, d descriptor) nic.WQE {
	p := w.path
	m := p.msg
	if d.plain {
		m = m.plain()
	}
	e := nic.WQE{Opcode: nic.RDMAWrite, Bytes: m.Bytes, Inline: p.cfg.inlined(m, p.env.InlineLimit), Cause: c, Land: d.land}
	e.Local, e.Remote = m.ends(p.cfg.Payload)
	if p.cfg.referenced(m) {
		e.Local, e.Inline = pcie.Host, false
	}
	if m.Get {
		e.Opcode = nic.RDMARead
	}
	return e
}

// woken lets work that waited for an interrupt show it.
func (w *worker) woken(c sim.Cause, at sim.Time) sim.Cause {
	irq, awake, ok := w.wait.Woken()
	if !ok || at >= awake || awake > w.path.env.Eng.Now() {
		return c
	}
	rec, k := w.path.env.Rec, w.path.kinds
	irq = max(at, irq)
	c = rec.Span(c, k[stage.CPUInterrupt], at, irq, 0)
	return rec.Span(c, k[stage.CPUWake], irq, awake, 0)
}

// serve posts up to a chain of the ring's descriptors with one doorbell; with
// gathering, of all rings from here on.
func (w *worker) serve(r *ring, t sim.Time) {
	p, cfg, rec := w.path, w.core.Config(), w.path.env.Rec
	x := &p.cfg
	if r.visible.Front().quiet != nil {
		w.quiet(r, t)
		return
	}
	perMessage := p.perMessage()
	room := min(x.Chain, w.free()/perMessage)
	n, lines := 0, 0
	last := w.pos
	before := w.taken // of this ring in this pass
	for i := w.pos; i < len(w.rings) && n < room; i++ {
		if v := &w.rings[i].visible; v.Len() > 0 && v.Front().quiet != nil {
			break // it is read in its own turn, which a chain must not pass
		}
		k := w.ahead(w.rings[i], min(room-n, x.Burst-before))
		before = 0
		if k > 0 {
			n += k
			lines += w.lines(k)
			last = i
		}
		if !x.Gather {
			break
		}
	}
	deq := w.times(lines+x.TailLines, cfg.Miss) + w.times(n, cfg.Dequeue)
	if x.Clears > 0 {
		deq += w.times(max(1, lines*x.Clears/w.lines(1)), cfg.Rewrite)
	}
	if x.Pop {
		deq += w.times((n+x.PublishEvery-1)/x.PublishEvery, cfg.Publish)
	}
	calls := n
	w.apart = false
	if perMessage == 2 {
		if x.SignalApart {
			w.apart = !r.visible.Front().plain
		} else {
			calls += w.signals(n)
		}
	}
	post := w.times(n*x.Lookups, cfg.Lookup) + w.times(calls, cfg.Build) + w.core.Draw(cfg.Post)
	ready := t.Add(w.times(last-w.pos, cfg.Check))
	t0, t1 := w.run(ready, deq)
	if x.Lock {
		start, _, _ := p.lock.Take(t1, post+cfg.Flush.Mean(), 0)
		t1 = start
	}
	_, t2 := w.run(t1, post)
	_, t3 := w.run(t2, w.core.Draw(cfg.Flush))
	for left := n; left > 0; w.pos++ {
		r := w.rings[w.pos]
		k := w.ahead(r, min(left, x.Burst-w.taken))
		left -= k
		for i := range k {
			d := r.visible.Pop()
			kind := p.kinds[stage.CPUDequeue]
			kind.Wait = uint8(stage.CPUWait)
			c := rec.Span(w.woken(d.cause, d.at), kind, t0, t1, w.last)
			c = rec.Span(c, p.kinds[stage.CPUPost], t1, t2, 0)
			c = rec.Span(c, p.kinds[stage.CPURing], t2, t3, 0)
			r.taken++
			w.enqueue(r, c, d, left == 0 && i == k-1)
			w.taken++
			w.cause = c
		}
		if left == 0 {
			break
		}
		w.taken = 0
	}
	if x.Burst <= x.Chain || w.taken >= x.Burst {
		w.pos++
		w.taken = 0
	}
	w.last = w.cause.Op
	w.blue = x.BlueFlame && calls == 1 && w.size() <= p.env.BlueFlame
	w.state = workerPosting
	p.env.Eng.At(t3, w.h, 0)
}

// ahead is the number of messages at the ring's front, up to n.
func (w *worker) ahead(r *ring, n int) int {
	n = min(n, r.visible.Len())
	if w.path.cfg.Quiet != QuietEntry {
		return max(0, n)
	}
	for i := range n {
		if r.visible.At(i).quiet != nil {
			return i
		}
	}
	return max(0, n)
}

// signals is the number of signals among the next n messages from pos on.
func (w *worker) signals(n int) int {
	sum := 0
	for _, r := range w.rings[w.pos:] {
		for i := range min(n, r.visible.Len()) {
			if !r.visible.At(i).plain {
				sum++
			}
		}
		if n -= r.visible.Len(); n <= 0 {
			break
		}
	}
	return sum
}

// lines is the number of cache lines that n descriptors of a ring bring.
func (w *worker) lines(n int) int {
	b := w.path.cfg.descriptor(w.path.msg)
	return int((b+63)/64) + int(int64(n-1)*b/64)
}

// enqueue puts a message's WQEs into the send queue.
func (w *worker) enqueue(r *ring, c sim.Cause, d descriptor, last bool) {
	p := w.path
	signaled := p.cfg.SignaledEach || last
	e := w.wqe(c, d)
	if p.perMessage() == 2 && !d.plain {
		sig := p.msg.flag(e)
		sig.Signaled = signaled
		e.Land = nil
		e.Signaled = p.cfg.SignalApart && (p.cfg.SignaledEach || p.cfg.SignalHeld)
		w.qp.Post(e)
		w.head = w.qp.Head()
		if e.Signaled {
			w.chains.Push(chain{upto: w.head})
		}
		w.qp.Post(sig)
	} else {
		switch {
		case d.plain:
		case p.msg.Alone:
			e = p.msg.flag(e)
		default:
			e.Imm = p.msg.Signal == SignalImmediate
		}
		e.Signaled = signaled
		w.qp.Post(e)
	}
	if signaled {
		w.chains.Push(chain{upto: w.qp.Head(), ring: r, count: r.taken})
	}
}

// held takes the next CQE, if there is one, while a signal waits for its
// write's: the worker polls the CQ and does nothing else.
func (w *worker) held() {
	if w.cqes.Len() == 0 {
		return
	}
	p, cfg := w.path, w.core.Config()
	e := w.cqes.Pop()
	ch := w.chains.Pop()
	w.reaped = e.upto
	t0, t1 := w.run(p.env.Eng.Now().Add(w.core.Within(cfg.PollEmpty.Mean())), w.core.Draw(cfg.Miss)+w.core.Draw(cfg.PollCQE))
	k := p.kinds[stage.CPUPoll]
	k.Wait = uint8(stage.CPUWait)
	c := p.env.Rec.Span(e.cause, k, t0, t1, w.last)
	w.last = c.Op
	if int32(w.reaped-w.head) >= 0 {
		w.cause = join(p.env.Rec, w.cause, c, p.kinds[stage.CPUPoll], p.env.Eng.Now())
		w.state = workerReleasing
		p.env.Eng.At(t1, w.h, 0)
		return
	}
	if p.cfg.Pop || ch.ring == nil {
		w.held()
		return
	}
	_, t2 := w.run(t1, w.times(p.cfg.Rewrites, cfg.Rewrite)+w.core.Draw(cfg.Publish)) // of a message before
	w.kept, w.holding = w.cause, true
	w.cause = p.env.Rec.Span(c, p.kinds[stage.CPUPublish], t1, t2, 0)
	w.ring, w.count = ch.ring, ch.count
	w.state = workerPublishing
	p.env.Eng.At(t2, w.h, 0)
}

// signal is the second call: the signal behind its write.
func (w *worker) signal(t sim.Time) {
	p, cfg, rec := w.path, w.core.Config(), w.path.env.Rec
	w.apart = false
	_, t1 := w.run(t, w.core.Draw(cfg.Build)+w.core.Draw(cfg.Post))
	_, t2 := w.run(t1, w.core.Draw(cfg.Flush))
	c := rec.Span(w.cause, p.kinds[stage.CPUPost], t, t1, 0)
	w.cause = rec.Span(c, p.kinds[stage.CPURing], t1, t2, 0)
	w.state = workerPosting
	p.env.Eng.At(t2, w.h, 0)
}

// reap takes one CQE and publishes what it completes.
func (w *worker) reap(t sim.Time) {
	p, cfg, rec := w.path, w.core.Config(), w.path.env.Rec
	x := &p.cfg
	e := w.cqes.Pop()
	ch := w.chains.Pop()
	line := cfg.Miss
	if w.polled%x.CQBatch > 0 {
		line = cfg.Stream // one poll returns several: the prefetcher is ahead
	}
	w.polled++
	publishes := !x.Pop && ch.ring != nil
	d := w.core.Draw(line) + w.core.Draw(cfg.PollCQE)
	if publishes {
		d += w.times(x.Rewrites, cfg.Rewrite)
	}
	t0, t1 := w.run(t, d)
	k := p.kinds[stage.CPUPoll]
	k.Wait = uint8(stage.CPUWait)
	c := rec.Span(w.woken(e.cause, e.at), k, t0, t1, w.last)
	w.reaped = e.upto
	w.last = c.Op
	if !publishes {
		w.cause = c
		w.state = workerReaping
		p.env.Eng.At(t1, w.h, 0)
		return
	}
	_, t2 := w.run(t1, w.core.Draw(cfg.Publish))
	w.cause = rec.Span(c, p.kinds[stage.CPUPublish], t1, t2, 0)
	w.last = w.cause.Op
	w.ring, w.count = ch.ring, ch.count
	w.state = workerPublishing
	p.env.Eng.At(t2, w.h, 0)
}

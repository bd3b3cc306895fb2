package path

import (
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// Quiet is how a GPU thread learns that its puts are complete.
type Quiet uint8

// The quiet protocols.
const (
	QuietCounter Quiet = iota // a completion counter per ring, polled
	QuietRequest              // a request word in host memory; the worker drains its queues and answers in another
	QuietEntry                // an entry in the ring; the worker answers in a word of host memory
)

var quietNames = [...]string{"counter", "request", "entry"}

// ParseQuiet returns the quiet protocol of that name.
func ParseQuiet(s string) (Quiet, bool) {
	for i, n := range quietNames {
		if n == s {
			return Quiet(i), true
		}
	}
	return 0, false
}

// String returns the protocol's name.
func (q Quiet) String() string { return quietNames[q] }

// answers is the number of workers that answer a quiet.
func (x *Proxy) answers() int {
	if x.Quiet == QuietEntry && x.Context {
		return x.Workers
	}
	return 1
}

// QuietProgram lists what a GPU thread does to learn of completion; nil where
// that is one poll of its ring's progress.
func (x *Proxy) QuietProgram() []Step {
	var l list
	const s = stage.GPUPoll
	switch x.Quiet {
	case QuietRequest:
		l.add(s, DoFresh, 1, "how much was issued")
		l.add(s, DoHostAtomic, 1, "maximum into the request word in host memory")
		l.add(s, DoPollAnswer, 1, "ack word in host memory, over PCIe: every queue to every peer is drained")
		f := FenceSystem.step()
		f.Stage, f.Why = s, "what the quiet orders"
		l = append(l, f)
	case QuietEntry:
		p := x.Program(Message{})
		for i := range p.Each {
			p.Each[i].Stage = s
		}
		for range x.answers() {
			l = append(l, p.Each...)
		}
		for range x.answers() {
			l.add(s, DoPollAnswer, 1, "the worker's answer in host memory, over PCIe")
		}
	case QuietCounter:
		if !x.Context || !x.RingPerPeer {
			return nil
		}
		before, after := x.Peers.others()
		x.idle(&l, before)
		l.add(s, DoFresh, 1, "produced index of the ring")
		l.add(s, DoPollRing, 1, "consumed index, until it has passed")
		x.idle(&l, after)
		x.Peers.meet(&l)
	}
	return l
}

// idle lists the looks at n rings whose entries are all consumed.
func (x *Proxy) idle(l *list, n int) {
	if n == 0 {
		return
	}
	l.add(stage.GPUPoll, DoFresh, n, "other peers: produced index of a ring")
	if x.CompletionIn == pcie.Host {
		l.add(stage.GPUPoll, DoHostLoad, n, "other peers: consumed index in host memory, a read over PCIe each")
	} else {
		l.add(stage.GPUPoll, DoFresh, n, "other peers: consumed index, which the host stores into GPU memory")
	}
}

// answer is a worker's to the quiet of a thread; the entry that asks for it goes to
// its ring.
type answer struct {
	by    *producer
	ring  *ring
	asks  hostReader
	came  bool
	cause sim.Cause
}

// Done is a quiet's entry visible in its slot.
func (a *answer) Done(slot uint32, c sim.Cause) {
	a.ring.fill(slot, descriptor{cause: c, quiet: a.by})
}

// request asks for an answer once everything up to a slot has completed.
type request struct {
	upto  uint32
	cause sim.Cause
	from  *producer
}

type asked struct{ *producer }

// Done is a quiet request visible to the worker.
func (q asked) Done(upto uint32, c sim.Cause) {
	r := q.ring
	r.requests.Push(request{upto, c, q.producer})
	r.worker.notice(r.index)
}

// drain is a quiet that waits for the CQEs of what was posted before it.
type drain struct {
	upto  uint32
	cause sim.Cause
	from  *producer
	ring  *ring  // where the slot of its entry is freed, if it is one
	count uint32 // the ring's counter behind the entry
}

// quiet reads a quiet entry: what was posted so far must complete.
func (w *worker) quiet(r *ring, t sim.Time) {
	p, cfg := w.path, w.core.Config()
	d := r.visible.Pop()
	r.taken++
	w.taken++
	t0, t1 := w.run(t, w.core.Draw(cfg.Miss)+w.core.Draw(cfg.Dequeue)+w.core.Draw(cfg.Publish))
	k := p.kinds[stage.CPUDequeue]
	k.Wait = uint8(stage.CPUWait)
	c := p.env.Rec.Span(w.woken(d.cause, d.at), k, t0, t1, w.last)
	q := drain{upto: w.qp.Head(), cause: c, from: d.quiet}
	if p.cfg.Pop {
		r.Done(r.taken, sim.Cause{})
	} else {
		q.ring, q.count = r, r.taken
	}
	w.drains.Push(q)
	w.last = c.Op
	w.state = workerReaping
	p.env.Eng.At(t1, w.h, 0)
}

// finish answers the oldest quiet.
func (w *worker) finish(t sim.Time) {
	p, cfg, rec := w.path, w.core.Config(), w.path.env.Rec
	d := w.drains.Pop()
	work := w.times(p.cfg.DrainPolls, cfg.PollEmpty) + w.core.Draw(cfg.Publish)
	if p.cfg.Quiet == QuietRequest {
		work += w.times(p.cfg.Peers.Count-1, cfg.Check) // the other peers' queues have nothing outstanding
	}
	t0, t1 := w.run(t, work)
	c := join(rec, d.cause, w.cause, p.kinds[stage.CPUPoll], p.env.Eng.Now())
	k := p.kinds[stage.CPUPublish]
	k.Wait = uint8(stage.CPUWait)
	w.cause = rec.Span(c, k, t0, t1, w.last)
	w.last = w.cause.Op
	w.answer, w.ring, w.count = d.from, d.ring, d.count
	w.state = workerPublishing
	p.env.Eng.At(t1, w.h, 0)
}

// answered has worker number w's answer to a quiet in host memory.
func (t *producer) answered(w int, c sim.Cause) {
	if len(t.answers) == 1 {
		w = 0
	}
	for t.due.Len() > 0 {
		t.due.Pop()
	}
	a := &t.answers[w]
	a.came, a.cause = true, c
	if t.state == pollingHost && t.polled == w+1 {
		t.hostArrived(c)
	}
}

package path

import (
	"gdisim/model/cpu"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// ringer is the CPU thread of a node that rings for its GPU threads: it looks at the
// slot of every queue to every peer in turn, for ever, and where the index has grown
// it writes the record and the doorbell. Posts between two looks share a ring.
type ringer struct {
	path  *DoorbellPath // the node's first
	core  *cpu.Core
	slots []ringSlot
	h     sim.HandlerID

	busy   bool
	pos    int
	look   sim.Duration // at one slot
	pass   sim.Duration // at all, finding nothing
	idleAt sim.Time
	timer  sim.TimerID
	timed  bool
	next   sim.Time
	ring   bool // the doorbell leaves at the event
	cause  sim.Cause
	head   uint32
	last   sim.Op
	work   sim.Duration
}

// ringSlot is a queue's index as the CPU sees it.
type ringSlot struct {
	queue *queue
	head  uint32
	rung  uint32
	cause sim.Cause
}

// rung returns the node's ringer, which looks at the path's queues too from now on.
func (p *DoorbellPath) rung() *ringer {
	r := p.node.ringer
	if r == nil {
		r = &ringer{path: p, core: p.node.Core(0)}
		r.look = r.core.Config().Check.Mean()
		if p.cfg.SlotIn == pcie.GPU {
			r.look = p.node.Bus.RoundTrip(pcie.CPU, pcie.GPU, 8)
		}
		r.h = p.env.Eng.Register(ringing{r})
		p.node.ringer = r
	}
	for _, q := range p.queues {
		q.slot = len(r.slots)
		r.slots = append(r.slots, ringSlot{queue: q})
	}
	n := len(r.slots)
	if p.cfg.DCIs > 0 {
		n++ // their slots come with one copy
	}
	r.pass = max(1, r.core.Config().Loop.Mean()+sim.Duration(n)*r.look)
	return r
}

// slotRead is a queue's slot in host memory, read for an atomic on it.
type slotRead struct{ *queue }

// Done has the old index; the new one is written.
func (s slotRead) Done(head uint32, c sim.Cause) {
	p := s.path
	p.node.Bus.Write(pcie.GPU, pcie.Host, 8, c, p.kinds[stage.PCIeNotify], slot(s), head)
}

// slot is a queue's slot in host memory.
type slot struct{ *queue }

// Done is the index visible in host memory.
func (s slot) Done(head uint32, c sim.Cause) { s.path.ringer.written(s.queue, head, c) }

// written is called when a slot shows a new index.
func (r *ringer) written(q *queue, head uint32, c sim.Cause) {
	s := &r.slots[q.slot]
	if int32(head-s.head) <= 0 {
		return
	}
	s.head, s.cause = head, c
	if r.busy {
		return
	}
	// An idle thread samples the slot when its pass comes by.
	now := r.path.env.Eng.Now()
	at := r.idleAt.Add(sim.Duration(q.slot)*r.look + r.look/2)
	if now > at {
		at = at.Add((now.Sub(at) + r.pass - 1) / r.pass * r.pass)
	}
	at = r.core.Available(at.Add(r.look / 2))
	if r.timed {
		if r.next <= at {
			return
		}
		r.path.env.Eng.Cancel(r.timer)
	}
	r.timed, r.next, r.pos = true, at, q.slot
	r.timer = r.path.env.Eng.Timer(at, r.h, 0)
}

type ringing struct{ *ringer }

// Handle goes on with the pass.
func (g ringing) Handle(uint32) {
	r := g.ringer
	p := r.path
	if until := p.node.stalled(p.env.Eng.Now()); until > 0 {
		r.timed, r.busy = false, true // whatever is written meanwhile is found afterwards
		if until < never {
			p.env.Eng.At(until, r.h, 0)
		}
		return
	}
	woken := !r.busy
	if r.ring {
		r.ring = false
		q := r.slots[r.pos].queue.qp
		p.node.ring(p.env, pcie.CPU, q, 8, r.cause, p.kinds[stage.PCIeDoorbell], q.Doorbell(), r.head)
		r.pos++
	}
	r.timed, r.busy = false, true
	now := p.env.Eng.Now()
	t := now
	cfg := r.core.Config()
	for range r.slots {
		if r.pos == len(r.slots) {
			r.pos = 0
			t = t.Add(r.core.Draw(cfg.Loop))
		}
		s := &r.slots[r.pos]
		if s.head != s.rung {
			r.serve(s, t, woken)
			return
		}
		t = t.Add(r.look)
		r.pos++
		woken = false
	}
	r.busy, r.pos, r.idleAt = false, 0, now
}

// serve rings for the slot, whose look begins at t, or has just ended if it woke
// an idle thread.
func (r *ringer) serve(s *ringSlot, t sim.Time, woken bool) {
	p, cfg := r.path, r.core.Config()
	look := r.look
	switch {
	case p.cfg.SlotIn == pcie.Host:
		look = r.core.Draw(cfg.Miss)
	case woken:
		look = 0
	}
	stores := r.core.Draw(cfg.Publish) + r.core.Draw(cfg.Publish)
	t0, t1 := r.core.Run(t, look)
	_, t2 := r.core.Run(t1, stores)
	r.work += look + stores
	k := p.kinds[stage.CPUDequeue]
	k.Wait = uint8(stage.CPUWait)
	c := p.env.Rec.Span(s.cause, k, t0, t1, r.last)
	r.cause = p.env.Rec.Span(c, p.kinds[stage.CPURing], t1, t2, 0)
	r.last, r.head, r.ring = r.cause.Op, s.head, true
	s.rung = s.head
	p.env.Eng.At(t2, r.h, 0)
}

// Ringer lists the steps of the CPU thread that rings, with the time of a read
// of GPU memory through BAR1; nil where GPU threads ring.
func (d *Doorbell) Ringer(c *cpu.Config, bar1 sim.Duration) []WorkerStep {
	if !d.HostRings {
		return nil
	}
	look, why := c.Miss.Mean(), "the line that the GPU wrote; an unchanged one is a hit"
	if d.SlotIn == pcie.GPU {
		look, why = bar1, "a read of GPU memory through BAR1, for each queue in turn, changed or not"
	}
	out := []WorkerStep{{stage.CPUDequeue, "look at each queue's slot in turn", look, why}}
	if d.DCIs > 0 {
		out = append(out, WorkerStep{stage.CPUWait, "copy the slots of all DCIs", look, "once a pass"})
	}
	return append(out,
		WorkerStep{stage.CPURing, "doorbell record", c.Publish.Mean(), "in host memory; compiler barrier on x86 behind it"},
		WorkerStep{stage.CPURing, "8-byte doorbell", c.Publish.Mean(), "page that does not combine writes: nothing to flush; posts between two looks share it"})
}

// Busy returns the time that the CPU threads which ring and receive spent on work.
func (p *DoorbellPath) Busy() (d sim.Duration) {
	if p.ringer != nil {
		d += p.ringer.work
	}
	if p.receiver != nil {
		d += p.receiver.busy
	}
	return d
}

// Workers returns the number of CPU threads, each of which keeps a core.
func (p *DoorbellPath) Workers() (n int) {
	if p.ringer != nil {
		n++
	}
	if p.receiver != nil {
		n++
	}
	return n
}

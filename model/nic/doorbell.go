package nic

import (
	"gdisim/sim"
)

// Doorbell returns the sink that a posted write to the doorbell register must
// name, with the producer index as its argument.
func (q *QP) Doorbell() sim.Sink { return doorbell{q} }

// BlueFlame returns the sink of a posted write that carries the WQE itself.
func (q *QP) BlueFlame() sim.Sink { return blueFlame{q} }

type doorbell struct{ *QP }

// Done is the doorbell at the NIC.
func (d doorbell) Done(head uint32, c sim.Cause) {
	q, n := d.QP, d.nic
	n.Doorbells++
	now := n.eng.Now()
	if start, _, _ := n.bell.Take(now, n.cfg.Doorbell, c.Op); start > now {
		n.bells.Push(rung{q, head, c})
		n.eng.At(start, n.hBell, 0)
		return
	}
	q.ringUp(head, c)
}

// DoorbellStall returns how long a store to a doorbell register is held now: PCIe
// flow control reaches back to its sender while too many doorbells wait.
func (n *NIC) DoorbellStall() sim.Duration {
	wait := n.bell.FreeAt().Sub(n.eng.Now())
	return max(0, wait-sim.Duration(n.cfg.DoorbellMax)*n.cfg.Doorbell)
}

// DoorbellTime is what the doorbell unit needs for one.
func (n *NIC) DoorbellTime() sim.Duration { return n.cfg.Doorbell }

// rung is a doorbell that waits for the doorbell unit.
type rung struct {
	qp    *QP
	head  uint32
	cause sim.Cause
}

type belled struct{ *NIC }

// Handle takes the oldest doorbell.
func (b belled) Handle(uint32) {
	r := b.bells.Pop()
	r.qp.ringUp(r.head, r.cause)
}

// ringUp is a doorbell in its turn: the queue has work up to head.
func (q *QP) ringUp(head uint32, c sim.Cause) {
	if int32(head-q.rung) <= 0 || q.failed != "" {
		return // a ring for the recovery path: nothing new
	}
	n := q.nic
	now := n.eng.Now()
	for i := q.rung; i != head; i++ {
		w := &q.sq[i%uint32(len(q.sq))]
		if w.Cause.Op == c.Op {
			w.Cause = c
		} else { // somebody else rang for it
			w.Cause = n.rec.Span(w.Cause, n.kind.sched, now, now, c.Op)
		}
		w.rung = now
	}
	q.rung = head
	n.eng.After(n.cfg.Sched.Draw(n.rng), n.hSched, uint32(q.id))
}

type blueFlame struct{ *QP }

// Done is a WQE at the NIC, doorbell included.
func (b blueFlame) Done(head uint32, c sim.Cause) {
	q, n := b.QP, b.nic
	if q.failed != "" || q.rung != head-1 || q.fetching > 0 || q.here != q.rung && q.pushed != q.rung {
		doorbell(b).Done(head, c) // earlier WQEs are still to come
		return
	}
	n.Doorbells++
	w := q.at(head - 1)
	w.Cause, w.rung = c, n.eng.Now()
	q.rung, q.pushed = head, head
	n.eng.After(n.cfg.Sched.Draw(n.rng), n.hPush, uint32(q.id))
}

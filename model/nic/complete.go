package nic

import (
	"slices"

	"gdisim/model/pcie"
	"gdisim/sim"
)

type ackArrived struct{ *NIC }

// Done has the ACK at the source NIC.
func (a ackArrived) Done(id uint32, c sim.Cause) { a.answered(id, a.cfg.AckLatency, c) }

// answered has a message's answer, whose CQE leaves after the delay.
func (n *NIC) answered(id uint32, d sim.Delay, c sim.Cause) {
	now := n.eng.Now()
	end := max(now.Add(d.Draw(n.rng)), n.lastAck)
	n.lastAck = end
	n.msgs[id].wqe.Cause = n.rec.Span(c, n.kind.ack, now, end, 0)
	n.eng.At(end, n.hAck, id)
}

type acked struct{ *NIC }

// Handle writes the CQE.
func (a acked) Handle(id uint32) { a.complete(id, a.msgs[id].wqe.Cause) }

// complete has a message's answer, and completes the queue's messages in order.
func (n *NIC) complete(id uint32, c sim.Cause) {
	m := &n.msgs[id]
	q, index := m.qp, m.index
	if q.failed != "" {
		return
	}
	if q.dc != nil {
		q.answered()
	}
	if len(q.slow) > 0 && int32(index-q.slow[0]) > 0 {
		m.wqe.Cause = c
		i := len(q.late)
		for i > 0 && int32(n.msgs[q.late[i-1]].index-index) > 0 {
			i--
		}
		q.late = slices.Insert(q.late, i, id)
		return
	}
	n.finish(id, c)
	for len(q.slow) > 0 && q.slow[0] == index {
		q.slow = q.slow[:copy(q.slow, q.slow[1:])]
		for len(q.late) > 0 {
			late := &n.msgs[q.late[0]]
			if len(q.slow) > 0 && int32(late.index-q.slow[0]) > 0 {
				return
			}
			id, index = q.late[0], late.index
			q.late = q.late[:copy(q.late, q.late[1:])]
			now := n.eng.Now()
			n.finish(id, n.rec.Span(late.wqe.Cause, n.kind.ack, now, now, c.Op))
			if len(q.slow) > 0 && q.slow[0] == index {
				break
			}
		}
	}
}

func (n *NIC) finish(id uint32, c sim.Cause) {
	m := &n.msgs[id]
	if !m.wqe.Signaled {
		n.release(id)
		return
	}
	if n.Faults.CQEError.Strikes(n.eng.Now()) {
		m.qp.fail("CQE with an error, by a fault", m.index-1)
		return
	}
	n.bus.Write(pcie.NIC, m.qp.queues, n.cfg.CQEBytes, c, n.kind.cqe, cqeVisible{n}, id)
}

type cqeVisible struct{ *NIC }

// Done has the CQE visible in the completion queue; it retires every WQE
// before it in its send queue.
func (v cqeVisible) Done(id uint32, c sim.Cause) {
	n := v.NIC
	m := &n.msgs[id]
	q := m.qp
	q.completed = m.index
	n.release(id)
	q.onCQE.Done(q.completed, c)
}

package nic

import (
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// Faults are what goes wrong with a NIC's requests; their chances are WQEs.
type Faults struct {
	Unregistered sim.Triggers // the local address has no registration
	WrongRKey    sim.Triggers // the remote key does not cover the access
	CQEError     sim.Triggers // the CQE tells of an error
	NoReceive    sim.Triggers // the peer has posted no receive
}

// corrupt lets the faults of a WQE's keys strike.
func (n *NIC) corrupt(w *WQE) {
	now := n.eng.Now()
	if !w.Inline && len(n.Faults.Unregistered) > 0 { // inline payload has no address
		w.badLocal = n.Faults.Unregistered.Strikes(now)
	}
	w.badRKey = n.Faults.WrongRKey.Strikes(now)
}

// find tells of what occurred to a WQE of the queue.
func (n *NIC) find(at sim.Time, q *QP, index uint32, f stage.Finding, cause string) {
	n.hazard(at, stage.Hazard{Finding: f, Queue: q.id, Index: int(index), Cause: cause})
}

func (n *NIC) hazard(at sim.Time, h stage.Hazard) {
	if h.Grade, h.Node = stage.Occurred, n.node; n.Find != nil {
		n.Find(at, h)
	}
}

// InOrder is what avoids that two threads write one send queue in each other's
// way.
const InOrder = "slots published in the order of their reservation before anybody rings for them, or a queue for each thread"

// fail puts the queue into the error state: the WQE's CQE says why, and nothing
// behind it is executed (InfiniBand Architecture Specification vol. 1, 10.3.1).
func (q *QP) fail(why string, index uint32) {
	n := q.nic
	if q.failed != "" {
		return
	}
	n.Failures++
	q.failed, q.since, q.failedAt = why, n.eng.Now(), index
	q.abandon()
	if q.rel != nil {
		q.rel.stop(n.eng)
	}
	n.bus.Write(pcie.NIC, q.queues, n.cfg.CQEBytes, sim.Cause{}, n.kind.cqe, errorCQE{}, 0)
}

// Fail puts the queue into the error state for a reason that its software's side
// has found; the WQE is the oldest that is not complete.
func (q *QP) Fail(why string) { q.fail(why, q.completed) }

// errorCQE is a CQE that ends the software which polls for success.
type errorCQE struct{}

// Done has it visible.
func (errorCQE) Done(uint32, sim.Cause) {}

// Failure is a queue in the error state.
type Failure struct {
	Queue int
	WQE   uint32
	At    sim.Time
	Why   string
}

// Node returns the NIC's node.
func (n *NIC) Node() int { return n.node }

// Failed returns the queues in the error state.
func (n *NIC) Failed() (out []Failure) {
	for _, q := range n.qps {
		if q.failed != "" {
			out = append(out, Failure{q.id, q.failedAt, q.since, q.failed})
		}
	}
	return out
}

// Unrung returns the queues with WQEs that nobody has rung for.
func (n *NIC) Unrung() (out []*QP) {
	for _, q := range n.qps {
		if q.failed == "" && q.rung != q.head {
			out = append(out, q)
		}
	}
	return out
}

// ID returns the queue's number at its NIC.
func (q *QP) ID() int { return q.id }

// Rung returns the producer index up to which doorbells have come.
func (q *QP) Rung() uint32 { return q.rung }

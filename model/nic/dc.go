package nic

import (
	"gdisim/model/pcie"
	"gdisim/sim"
)

// initiator is what makes a queue pair a DC initiator: it goes from target to
// target, one at a time, and each target keeps a responder for it (a DCR), found
// by who asks.
type initiator struct {
	vector     int64 // bytes of the address vector of a WQE
	target     int   // node that it is connected to; -1: none
	unanswered int   // messages to it that have no answer yet
	targets    []responder
}

// NewDCI creates a DC initiator, whose WQEs name their peer in an address vector
// of so many bytes; the rest is as for NewQP.
func (n *NIC) NewDCI(vector int64, queues pcie.Unit, onCQE sim.Sink) (*QP, error) {
	q, err := n.newQP(queues, onCQE)
	if err == nil {
		q.dc = &initiator{vector: vector, target: -1, targets: make([]responder, len(n.peers))}
	}
	return q, err
}

// connected has the initiator connected to where the message goes, and reports
// whether it is: for another target it waits until the last one has answered all,
// and sends a connect, which the message follows at once. A connect that the wire
// loses is not missed: what follows finds the responder too.
func (q *QP) connected(id uint32) bool {
	n, d := q.nic, q.dc
	w := &n.msgs[id].wqe
	if d.target == w.Peer {
		return true
	}
	if d.unanswered > 0 {
		return false
	}
	d.target = w.Peer
	pk := n.allocPkt()
	n.pkts[pk] = packet{msg: id, qp: uint32(q.id), op: dcConnect, first: true, last: true}
	q.taken = n.emit(pk, w.Cause, true)
	return true
}

// asks counts a message whose answer the target owes. A post ends with one, so that
// where all of them have come the target has everything.
func (d *initiator) asks(m *message, tracked bool) {
	if tracked || m.wqe.Signaled || m.wqe.Opcode != RDMAWrite {
		d.unanswered++
	}
}

// answered counts one off; the last lets the initiator leave its target.
func (q *QP) answered() {
	if q.dc.unanswered--; q.dc.unanswered == 0 {
		q.transmit()
	}
}

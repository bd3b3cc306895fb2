package nic

import (
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// buffer is the room for payload between a NIC's requests for it and the port.
// Queues take turns, a packet at a time, so that what a long message reads ahead
// neither grows without bound nor stands before other queues' messages.
type buffer struct {
	room    int64
	waiting sim.FIFO[*QP] // queues with payload to read
	leaving sim.FIFO[leaving]
	timed   bool
}

// leaving is a packet whose last bit leaves the port at that time.
type leaving struct {
	at    sim.Time
	qp    *QP
	bytes int64
}

// reads reports whether the NIC reads the WQE's payload from memory.
func (w *WQE) reads() bool { return w.Opcode == RDMAWrite && !w.Inline && w.Bytes > 0 }

// want moves on to the queue's first message that has payload to be read.
func (q *QP) want() {
	n := q.nic
	for q.wants != 0 {
		m := &n.msgs[q.wants]
		if m.wqe.badLocal {
			n.find(n.eng.Now(), q, m.index-1, stage.UnregisteredMemory, "no registration covers the local address")
			q.fail("local protection error", m.index-1)
			return
		}
		if !m.wqe.reads() {
			m.fetched, m.asked = m.wqe.Bytes, m.wqe.Bytes
		}
		m.started = true
		if m.asked < m.wqe.Bytes {
			return
		}
		q.wants = m.next
	}
}

// read lines the queue up for the buffer. One packet a queue may always have, so
// that the packets of one whose peer is not ready do not stop the others.
func (q *QP) read() {
	if q.wants != 0 && q.failed == "" && q.buffered == 0 {
		q.ask()
	}
	if q.wants != 0 && q.failed == "" && !q.lined {
		q.lined = true
		q.nic.waiting.Push(q)
	}
}

// ask requests the payload of the queue's next packet.
func (q *QP) ask() {
	n, id := q.nic, q.wants
	m := &n.msgs[id]
	b := q.packet()
	at := m.wqe.addr + uint64(m.asked)
	m.asked += b
	n.room -= b
	q.buffered += b
	n.reach(pcie.Access{From: pcie.NIC, To: m.wqe.Local, Bytes: b, Addr: at}, m.wqe.Cause, n.kind.payload, payloadFetched{n}, id)
	q.want()
}

// packet returns the payload of the packet that is to be read next.
func (q *QP) packet() int64 {
	m := &q.nic.msgs[q.wants]
	return min(q.nic.cfg.MTU, m.wqe.Bytes-m.asked)
}

// fill requests packets' payload as long as there is room.
func (n *NIC) fill() {
	now := n.eng.Now()
	for n.leaving.Len() > 0 && n.leaving.Front().at <= now {
		l := n.leaving.Pop()
		n.room += l.bytes
		l.qp.buffered -= l.bytes
		l.qp.read()
	}
	for n.waiting.Len() > 0 {
		q := *n.waiting.Front()
		if q.wants != 0 && q.failed == "" {
			if q.packet() > n.room {
				break
			}
			q.ask()
		}
		n.waiting.Pop()
		q.lined = false
		q.read()
	}
	if n.waiting.Len() > 0 && n.leaving.Len() > 0 && !n.timed {
		n.timed = true
		n.eng.At(n.leaving.Front().at, n.hRoom, 0)
	}
}

type roomy struct{ *NIC }

// Handle has room in the buffer again.
func (r roomy) Handle(uint32) {
	r.timed = false
	r.fill()
}

// left has given a packet to the port, which it leaves in its turn.
func (n *NIC) left(q *QP, bytes int64) {
	n.leaving.Push(leaving{n.net.FreeAt(n.node), q, bytes})
	n.fill()
}

// abandon takes a failed queue's payload out of the buffer.
func (q *QP) abandon() {
	n := q.nic
	for id := q.first; id != 0; id = n.msgs[id].next {
		if m := &n.msgs[id]; m.wqe.reads() {
			n.room += m.asked - m.sent
		}
	}
}

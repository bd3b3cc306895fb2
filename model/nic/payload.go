package nic

import (
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// buffers of queues lie so far apart in a unit's addresses; queues and CQs are
// below all of them.
const (
	bufferShift = 36
	flagPage    = 2 << 20
)

// place returns where the next message's payload lies, at either end: in the
// queue's buffer behind the message before it, until the buffer is at its end.
func (q *QP) place(w *WQE) uint64 {
	bytes := w.Bytes
	if w.Flag { // in a page of its own
		return uint64(q.id+1)<<bufferShift - flagPage
	}
	if q.cursor+bytes > q.nic.cfg.Window {
		q.cursor = 0
	}
	at := uint64(q.id+1)<<bufferShift + uint64(q.cursor)
	if q.nic.cfg.Window > 0 {
		q.cursor += bytes
	}
	return at
}

// place writes a packet's payload to memory.
func (n *NIC) place(m *message, to pcie.Unit, p *packet, done sim.Sink, pk uint32) {
	at := m.wqe.addr + uint64(m.placed)
	m.placed += p.bytes
	relaxed := n.cfg.Relaxed
	if m.wqe.Flag {
		relaxed, p.behind = n.cfg.RelaxedFlag, m.qp.placed
	} else if p.op == RDMAWrite {
		m.qp.placed++
		m.qp.into = to
	}
	n.reach(pcie.Access{From: pcie.NIC, To: to, Write: true, Bytes: p.bytes, Addr: at, Relaxed: relaxed}, p.cause, n.kind.deliver, done, pk)
}

// OneMemory is what avoids that a flag is visible ahead of data in another memory.
// Posted writes keep their order on one link; behind the fork to two memories nothing
// orders them.
const OneMemory = "the flag in the memory of the data (notify_in)"

// saw takes a packet that is visible, and tells of a flag that is so before data
// placed ahead of it. Data behind the flag counts as landed too, so that not
// every case is found, and none that is not one.
func (q *QP) saw(m *message, p *packet) {
	if !m.wqe.Flag {
		q.seen++
	} else if int32(p.behind-q.seen) > 0 {
		h := stage.Hazard{Finding: stage.FlagBeforeData, Queue: q.id, Index: int(m.index - 1), Cause: "relaxed writes: the flag was visible while data placed before it was not"}
		if m.wqe.Remote != q.into {
			h.Cause, h.Avoid = "two memories: the flag was visible in its own while data placed before it was not in the other", OneMemory
		}
		q.nic.hazard(q.nic.eng.Now(), h)
	}
}

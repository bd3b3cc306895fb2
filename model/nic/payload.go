package nic

import (
	"gdisim/model/pcie"
	"gdisim/sim"
)

// buffers of queues lie so far apart in a unit's addresses; queues and CQs are
// below all of them.
const bufferShift = 36

// place returns where the next message's payload lies, at either end: in the
// queue's buffer behind the message before it, until the buffer is at its end.
func (q *QP) place(bytes int64) uint64 {
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
		relaxed = n.cfg.RelaxedFlag
	}
	n.reach(pcie.Access{From: pcie.NIC, To: to, Write: true, Bytes: p.bytes, Addr: at, Relaxed: relaxed}, p.cause, n.kind.deliver, done, pk)
}

package nic

import (
	"gdisim/model/fabric"
	"gdisim/model/pcie"
	"gdisim/sim"
)

type arrived struct{ *peer }

// Done has a packet of the peer at the port.
func (a arrived) Done(pk uint32, c sim.Cause) {
	a.remote.pkts[pk].cause = c
	if a.local.cfg.Context.Cache > 0 && a.waits(pk) {
		return
	}
	a.accept(pk)
}

// accept takes a packet through the message engine.
func (a arrived) accept(pk uint32) {
	n := a.local
	p := &a.remote.pkts[pk]
	c := p.cause
	now := n.eng.Now()
	start, blocker := now, sim.Op(0)
	if p.first {
		start, _, blocker = n.engine.Take(now, n.cfg.RxMessage, c.Op)
	}
	end := max(start.Add(n.cfg.RxLatency.Draw(n.rng)), n.lastRx)
	n.lastRx = end
	p.cause = n.rec.Span(c, n.kind.rx, start, end, blocker)
	n.eng.At(end, a.hRx, pk)
}

type received struct{ *peer }

// Handle delivers a packet: DMA write and ACK, or what a request asks for.
func (r received) Handle(pk uint32) {
	n, src := r.local, r.remote
	p := &src.pkts[pk]
	if p.op == dcConnect {
		src.freePkt(pk)
		return
	}
	if src.qps[p.qp].rel != nil && !r.inOrder(pk) {
		return
	}
	if len(n.full) > 0 || p.op == RDMAWrite && n.inbound > 0 && n.inbound+p.bytes > rxBuffer {
		n.full = append(n.full, uint64(src.node)<<32|uint64(pk))
		return
	}
	r.deliver(pk)
}

// rxBuffer is the payload that a NIC takes from the wire ahead of what PCIe has
// carried to memory. What comes beyond is not acknowledged, so that senders with
// a window slow down to PCIe's pace.
const rxBuffer = 256 << 10

func (r received) deliver(pk uint32) {
	n, src := r.local, r.remote
	p := &src.pkts[pk]
	m := &src.msgs[p.msg]
	switch p.op {
	case RDMAWrite:
		n.inbound += p.bytes
		if m.qp.rel != nil {
			r.acknowledge(p)
		} else if p.last && m.wqe.Signaled {
			n.net.Send(n.node, src.node, fabric.Ack, 0, true, p.cause, ackArrived{src}, p.msg)
		}
		if p.last && m.wqe.Imm {
			p.parts = 1
			n.bus.Write(pcie.NIC, pcie.Host, n.cfg.CQEBytes, p.cause, n.kind.deliver, landed{r.peer}, pk)
		}
		n.place(m, m.wqe.Remote, p, landed{r.peer}, pk)
	case RDMARead:
		if src.unwanted(p) {
			src.freePkt(pk)
			return
		}
		for left := m.wqe.Bytes; left > 0; {
			b := min(n.cfg.MTU, left)
			left -= b
			resp := src.allocPkt()
			src.pkts[resp] = packet{msg: p.msg, qp: p.qp, psn: p.psn, try: p.try, op: RDMARead, bytes: b, last: left == 0}
			n.reach(pcie.Access{From: pcie.NIC, To: m.wqe.Remote, Bytes: b, Addr: m.wqe.addr + uint64(m.wqe.Bytes-left-b)}, p.cause, n.kind.payload, readDone{r.peer}, resp)
			p = &src.pkts[pk]
		}
		src.freePkt(pk)
	case FetchAdd:
		n.atomics = append(n.atomics, uint64(src.node)<<32|uint64(pk))
		n.nextAtomic()
	}
}

type landed struct{ *peer }

// Done has a packet's bytes visible in the destination memory.
func (l landed) Done(pk uint32, c sim.Cause) {
	src := l.remote
	if q := &src.pkts[pk]; q.parts > 0 {
		q.parts--
		q.cause = c
		return
	}
	p := src.pkts[pk]
	c = src.rec.Later(c, p.cause)
	src.freePkt(pk)
	m := &src.msgs[p.msg]
	m.landed += p.bytes
	m.qp.saw(m, &p)
	if m.wqe.Opcode == RDMAWrite {
		l.local.drained(p.bytes)
	}
	if m.landed < m.wqe.Bytes { // relaxed writes may land in any order
		return
	}
	land, arg := m.wqe.Land, m.wqe.LandArg
	src.release(p.msg)
	if land != nil {
		land.Done(arg, c)
	}
}

// drained has bytes out of the receive buffer.
func (n *NIC) drained(bytes int64) {
	n.inbound -= bytes
	for len(n.full) > 0 {
		src, pk := n.peers[n.full[0]>>32], uint32(n.full[0])
		if p := &src.remote.pkts[pk]; n.inbound > 0 && n.inbound+p.bytes > rxBuffer {
			return
		}
		n.full = n.full[:copy(n.full, n.full[1:])]
		received{src}.deliver(pk)
	}
}

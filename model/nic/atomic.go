package nic

import (
	"gdisim/model/fabric"
	"gdisim/model/pcie"
	"gdisim/sim"
)

// nextAtomic runs the read-modify-writes one at a time.
func (n *NIC) nextAtomic() {
	if n.atomicBusy || len(n.atomics) == 0 {
		return
	}
	n.atomicBusy = true
	src, pk := n.peers[n.atomics[0]>>32], uint32(n.atomics[0])
	p := &src.remote.pkts[pk]
	n.bus.Read(pcie.NIC, src.remote.msgs[p.msg].wqe.Remote, 8, p.cause, n.kind.deliver, atomicRead{src}, pk)
}

type atomicRead struct{ *peer }

// Done has the old value: the answer leaves, the new value is written.
func (a atomicRead) Done(pk uint32, c sim.Cause) {
	n, src := a.local, a.remote
	p := &src.pkts[pk]
	now := n.eng.Now()
	end := now.Add(n.cfg.Atomic.Draw(n.rng))
	c = n.rec.Span(c, n.kind.deliver, now, end, 0)
	p.cause = c
	n.eng.At(end, a.hAtomic, pk)
}

type atomicDone struct{ *peer }

// Handle answers an atomic and writes its result.
func (a atomicDone) Handle(pk uint32) {
	n, src := a.local, a.remote
	p := &src.pkts[pk]
	m := &src.msgs[p.msg]
	if m.qp.rel != nil {
		n.net.Send(n.node, src.node, fabric.Ack, 0, true, p.cause, answered{m.qp}, p.psn)
	} else {
		n.net.Send(n.node, src.node, fabric.Ack, 0, true, p.cause, ackArrived{src}, p.msg)
	}
	n.bus.Write(pcie.NIC, m.wqe.Remote, 8, p.cause, n.kind.deliver, atomicWritten{a.peer}, pk)
}

type atomicWritten struct{ *peer }

// Done has the new value visible; the next atomic may start.
func (a atomicWritten) Done(pk uint32, c sim.Cause) {
	n := a.local
	n.atomics = n.atomics[:copy(n.atomics, n.atomics[1:])]
	n.atomicBusy = false
	n.nextAtomic()
	landed(a).Done(pk, c)
}

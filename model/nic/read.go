package nic

import (
	"gdisim/model/fabric"
	"gdisim/sim"
)

type readDone struct{ *peer }

// Done has data for a READ response at the responder; the response passes its
// transmit pipeline.
func (r readDone) Done(pk uint32, c sim.Cause) {
	n, src := r.local, r.remote
	now := n.eng.Now()
	end := max(now.Add(n.cfg.TxLatency.Draw(n.rng)), n.lastTx)
	n.lastTx = end
	src.pkts[pk].cause = n.rec.Span(c, n.kind.tx, now, end, 0)
	n.eng.At(end, r.hRespond, pk)
}

type respond struct{ *peer }

// Handle puts a READ response on the wire.
func (r respond) Handle(pk uint32) {
	n, src := r.local, r.remote
	p := &src.pkts[pk]
	if !n.net.Send(n.node, src.node, fabric.ReadResponse, p.bytes, false, p.cause, responseArrived{src.peers[n.node]}, pk) {
		src.freePkt(pk)
	}
}

type responseArrived struct{ *peer }

// Done has a READ response at the requester's port.
func (r responseArrived) Done(pk uint32, c sim.Cause) {
	n := r.local
	now := n.eng.Now()
	end := max(now.Add(n.cfg.RxLatency.Draw(n.rng)), n.lastRx)
	n.lastRx = end
	n.pkts[pk].cause = n.rec.Span(c, n.kind.rx, now, end, 0)
	n.eng.At(end, r.hRead, pk)
}

type responseReceived struct{ *peer }

// Handle writes a READ response to where the data was wanted.
func (r responseReceived) Handle(pk uint32) {
	n := r.local
	p := &n.pkts[pk]
	if n.unwanted(p) {
		n.freePkt(pk)
		return
	}
	m := &n.msgs[p.msg]
	n.place(m, m.wqe.Local, p, readLanded{n}, pk)
	p = &n.pkts[pk]
	if !n.cfg.OnDemand {
		n.answer(*p, p.cause)
	}
}

// answer counts a READ response; the last one completes the READ. Its CQE leaves
// behind the data, which posted writes keep in front of it: on the way to one
// memory it passes none, and the NIC waits for neither.
func (n *NIC) answer(p packet, c sim.Cause) {
	if q := n.qps[p.qp]; q.rel != nil {
		q.responded(&p, c)
	} else if p.last {
		n.answered(p.msg, n.cfg.Response, c)
	}
}

type readLanded struct{ *NIC }

// Done has a READ response in memory.
func (r readLanded) Done(pk uint32, c sim.Cause) {
	p := r.pkts[pk]
	r.freePkt(pk)
	if r.cfg.OnDemand { // its page may have been missing
		r.answer(p, c)
	}
}

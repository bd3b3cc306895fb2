package nic

import (
	"gdisim/model/fabric"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// next takes the next WQE that was rung for: its queue is scheduled now.
func (q *QP) next() *WQE {
	w := q.at(q.fetched)
	w.Cause = q.nic.rec.Span(w.Cause, q.nic.kind.sched, w.rung, q.nic.eng.Now(), 0)
	q.fetched++
	return w
}

type pushed struct{ *NIC }

// Handle starts the queue's next WQE that came through BlueFlame.
func (p pushed) Handle(id uint32) {
	q := p.qps[id]
	if q.absent(p.hPush) {
		return
	}
	q.next()
	q.enqueue(q.fetched)
	schedule(p).Handle(id)
}

type schedule struct{ *NIC }

// Handle starts the queue's work: fetch what is rung and not fetched, start
// what is here.
func (s schedule) Handle(id uint32) {
	n := s.NIC
	q := n.qps[id]
	if int32(q.pushed-q.fetched) > 0 {
		return // a WQE before these is being scheduled: its turn first
	}
	if q.fetched != q.rung && q.absent(n.hSched) {
		return
	}
	for q.fetched != q.rung {
		// WQEBBs that are contiguous in the ring come with one read.
		first, size, cnt := q.fetched, int64(0), uint32(0)
		for q.fetched != q.rung && (cnt == 0 || size+q.at(q.fetched).Size() <= int64(n.cfg.FetchMax)*WQEBB) {
			size += q.next().Size()
			cnt++
		}
		f := sim.Alloc(&n.fetches, &n.fetched)
		n.fetches[f] = fetch{qp: q, first: first, n: cnt}
		n.WQEFetches++
		q.fetching++
		n.bus.Read(pcie.NIC, q.queues, size, q.at(first).Cause, n.kind.wqe, wqeFetched{n}, f)
	}
	q.start()
}

func (q *QP) at(i uint32) *WQE { return &q.sq[i%uint32(len(q.sq))] }

type wqeFetched struct{ *NIC }

// Done has WQEs at the NIC.
func (w wqeFetched) Done(f uint32, c sim.Cause) {
	n := w.NIC
	ft := n.fetches[f]
	ft.qp.fetching--
	sim.Release(&n.fetches, &n.fetched, f)
	now := n.eng.Now()
	for i := ft.first; i != ft.first+ft.n; i++ {
		e := ft.qp.at(i)
		if e.Cause.Op == c.Op {
			e.Cause = c
		} else { // carried by another operation's fetch
			e.Cause = n.rec.Span(e.Cause, n.kind.wqe, now, now, c.Op)
		}
		if e.Visible > n.bus.Sampled() {
			if e.reserved { // nobody will ring for it again
				e.Land = nil
				n.hazard(n.bus.Sampled(), stage.Hazard{Finding: stage.StaleDescriptor, Queue: ft.qp.id, Index: int(i), Cause: "the NIC read a slot that another thread had reserved and not filled: its write is lost", Avoid: InOrder})
			} else {
				n.find(n.bus.Sampled(), ft.qp, i, stage.StaleDescriptor, "the NIC read the WQE before its stores were visible")
			}
		}
		ft.qp.enqueue(i + 1)
	}
	ft.qp.start()
}

// enqueue appends the WQE in front of producer index i to the queue's
// messages.
func (q *QP) enqueue(i uint32) {
	n := q.nic
	q.here = i
	id := sim.Alloc(&n.msgs, &n.msgFree)
	m := &n.msgs[id]
	*m = message{wqe: *q.at(i - 1), qp: q, index: i, refs: 1}
	if m.wqe.Opcode == FetchAdd || m.wqe.Opcode == RDMAWrite && (m.wqe.Signaled || q.rel != nil) {
		m.refs = 2 // its landing and its answer
	}
	n.corrupt(&m.wqe)
	if m.wqe.Opcode != RDMAWrite {
		q.slow = append(q.slow, i)
	}
	if q.last == 0 {
		q.first = id
	} else {
		n.msgs[q.last].next = id
	}
	q.last = id
	if q.wants == 0 {
		q.wants = id
	}
}

// start begins the payload reads of new messages and transmits what it can.
func (q *QP) start() {
	q.want()
	q.read()
	q.nic.fill()
	q.transmit()
}

type payloadFetched struct{ *NIC }

// Done has one packet's payload at the NIC.
func (p payloadFetched) Done(id uint32, c sim.Cause) {
	n := p.NIC
	m := &n.msgs[id]
	if m.qp.failed != "" {
		return
	}
	m.fetched += min(n.cfg.MTU, m.wqe.Bytes-m.fetched)
	m.wqe.Cause = n.rec.Later(m.wqe.Cause, c)
	m.qp.transmit()
}

type pump struct{ *NIC }

// Handle resumes a queue whose unit was busy.
func (p pump) Handle(id uint32) {
	q := p.qps[id]
	q.pumping = false
	q.transmit()
}

// transmit sends, in order, the packets whose payload is here.
func (q *QP) transmit() {
	n := q.nic
	now := n.eng.Now()
	if q.failed != "" || q.rel != nil && q.rel.held() {
		return
	}
	for !q.pumping && q.first != 0 {
		id := q.first
		m := &n.msgs[id]
		first := m.sent == 0
		if !m.started || m.wqe.Bytes > 0 && m.fetched == m.sent {
			return
		}
		if first {
			if q.dc != nil && !q.connected(id) {
				return
			}
			// The queue's unit holds one message until the engine takes it: so
			// the engine goes round the queues, however much each has to send.
			if free := max(q.unit.FreeAt(), q.taken); free > now {
				q.pumping = true
				n.eng.At(free, n.hPump, uint32(q.id))
				return
			}
			q.unit.Take(now, n.cfg.QPMessage, m.wqe.Cause.Op)
		}
		b := m.wqe.Bytes
		if m.wqe.Opcode == RDMAWrite {
			b = min(n.cfg.MTU, m.fetched-m.sent)
		}
		m.sent += b
		last := m.sent == m.wqe.Bytes
		pk := n.allocPkt()
		n.pkts[pk] = packet{msg: id, qp: uint32(q.id), op: m.wqe.Opcode, bytes: b, first: first, last: last, read: m.wqe.reads()}
		if q.rel != nil {
			q.track(pk)
		}
		q.taken = n.emit(pk, m.wqe.Cause, first)
		if last {
			if q.dc != nil {
				q.dc.asks(m, q.rel != nil)
			}
			q.first = m.next
			m.next = 0
			if q.first == 0 {
				q.last = 0
			}
		}
	}
}

// emit passes a packet through the message engine to the port and returns when
// the engine takes it.
func (n *NIC) emit(pk uint32, c sim.Cause, first bool) sim.Time {
	now := n.eng.Now()
	start, blocker := now, sim.Op(0)
	if first {
		start, _, blocker = n.engine.Take(now, n.cfg.TxMessage, c.Op)
	}
	end := max(start.Add(n.cfg.TxLatency.Draw(n.rng)), n.lastTx) // packets leave in order
	n.lastTx = end
	n.pkts[pk].cause = n.rec.Span(c, n.kind.tx, start, end, blocker)
	n.eng.At(end, n.hTx, pk)
	return start
}

// deth is the datagram extended transport header, which requests over DC carry
// beside RC's (InfiniBand Architecture Specification vol. 1, section 9.3.1).
const deth = 8

type transmit struct{ *NIC }

// Handle puts the packet on the wire.
func (t transmit) Handle(pk uint32) {
	n := t.NIC
	p := &n.pkts[pk]
	kind, bytes := fabric.WriteNext, p.bytes
	switch {
	case p.op == dcConnect: // names no memory
	case p.op == RDMARead:
		kind, bytes = fabric.ReadRequest, 0
	case p.op == FetchAdd:
		kind, bytes = fabric.AtomicRequest, 0
	case p.first:
		kind = fabric.WriteFirst
	}
	q := n.qps[p.qp]
	to := q.peer
	if q.dc != nil {
		bytes += deth
		to = q.dc.target
	}
	dst, read, size := n.peers[to].remote, p.read, p.bytes
	if !n.net.Send(n.node, dst.node, kind, bytes, false, p.cause, arrived{dst.peers[n.node]}, pk) {
		n.freePkt(pk)
	}
	if read {
		n.left(q, size)
	}
}

package nic

import (
	"fmt"

	"gdisim/model/fabric"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// Retry is how a reliable connection deals with what is lost or refused. The
// values are those of ibv_modify_qp.
type Retry struct {
	On      bool         // packets may be lost or refused, and are tracked
	Timeout sim.Duration // without an answer until the oldest packet is sent again; 0: never
	Count   int          // retry_cnt: of one packet, without progress
	RNR     int          // rnr_retry; 7: for ever
	RNRWait sim.Duration // min_rnr_timer
}

// forever is the rnr_retry that has no end.
const forever = 7

// reliable is the retransmission state of a connection, go-back-N: what the
// requester has sent and has no answer for, and what the responder at the peer
// expects. Every packet of a request has a sequence number; READs and atomics
// have one.
type reliable struct {
	psn      uint32 // of the next packet
	oldest   uint32 // PSN of flight[0]
	flight   []sent
	reads    int    // of payload that is to be sent again
	cursor   uint32 // next packet to be sent again; psn: none
	waits    bool
	timer    sim.TimerID
	retries  int
	rnr      int
	expected uint32 // at the responder
	told     bool   // it has sent a NAK since
	refused  bool   // it takes nothing more
}

// sent is a packet without an answer.
type sent struct {
	msg         uint32
	bytes       int64
	offset      int64 // in the message
	landed      int64 // of a READ's response
	op          Opcode
	try         uint8
	first, last bool
	done        bool // answered; those before it are not
	ready       bool // to be sent again
	reading     bool
}

// held reports whether new packets must wait for older ones.
func (r *reliable) held() bool { return r.waits || r.reads > 0 }

func (r *reliable) stop(eng *sim.Engine) {
	eng.Cancel(r.timer)
	r.flight, r.waits = nil, false
}

// at returns the packet of that number if it has no answer yet.
func (r *reliable) at(psn uint32) *sent {
	if i := psn - r.oldest; i < uint32(len(r.flight)) && !r.flight[i].done {
		return &r.flight[i]
	}
	return nil
}

// track numbers a new packet and keeps what is needed to send it again.
func (q *QP) track(pk uint32) {
	r, p := q.rel, &q.nic.pkts[pk]
	p.psn = r.psn
	r.psn++
	r.flight = append(r.flight, sent{msg: p.msg, bytes: p.bytes, offset: q.nic.msgs[p.msg].sent - p.bytes, op: p.op, first: p.first, last: p.last})
	if len(r.flight) == 1 {
		q.arm()
	}
}

// arm starts the timer of the oldest packet.
func (q *QP) arm() {
	n, r := q.nic, q.rel
	n.eng.Cancel(r.timer)
	if len(r.flight) > 0 && n.cfg.Retry.Timeout > 0 {
		r.timer = n.eng.Timer(n.eng.Now().Add(n.cfg.Retry.Timeout), n.hTimeout, uint32(q.id))
	}
}

// settle takes answered packets off the front: that is progress.
func (q *QP) settle() {
	r := q.rel
	i := 0
	for i < len(r.flight) && r.flight[i].done {
		i++
	}
	if i > 0 {
		r.oldest += uint32(i)
		r.flight = r.flight[:copy(r.flight, r.flight[i:])]
		r.retries, r.rnr = 0, 0
		q.arm()
	}
}

// acked has an ACK of all writes up to and including psn.
func (q *QP) acked(psn uint32, c sim.Cause) {
	r := q.rel
	for i := range r.flight {
		s := &r.flight[i]
		if int32(psn-r.oldest)-int32(i) < 0 {
			break
		}
		if !s.done && s.op == RDMAWrite {
			s.done = true
			if s.last {
				ackArrived{q.nic}.Done(s.msg, c)
			}
		}
	}
	q.settle()
}

type ack struct{ *QP }

// Done has an ACK at the requester.
func (a ack) Done(psn uint32, c sim.Cause) {
	if a.failed == "" {
		a.acked(psn, c)
	}
}

type answered struct{ *QP }

// Done has an atomic's answer.
func (a answered) Done(psn uint32, c sim.Cause) {
	if s := a.rel.at(psn); s != nil && a.failed == "" {
		s.done = true
		id := s.msg
		a.acked(psn-1, c)
		ackArrived{a.nic}.Done(id, c)
	}
}

// unwanted reports whether a READ's response answers a request that was repeated
// or is over.
func (n *NIC) unwanted(p *packet) bool {
	q := n.qps[p.qp]
	if q.rel == nil {
		return false
	}
	s := q.rel.at(p.psn)
	return s == nil || s.try != p.try || q.failed != ""
}

// responded has bytes of a READ in memory.
func (q *QP) responded(p *packet, c sim.Cause) {
	if q.nic.unwanted(p) {
		return
	}
	s := q.rel.at(p.psn)
	if s.landed += p.bytes; s.landed < s.bytes {
		return
	}
	s.done = true
	id, n := s.msg, q.nic
	q.acked(p.psn-1, c) // a response answers for what came before it
	n.answered(id, n.cfg.Response, c)
}

type nak struct{ *QP }

// Done has a NAK: the responder misses psn.
func (k nak) Done(psn uint32, c sim.Cause) {
	q := k.QP
	if q.failed != "" {
		return
	}
	q.acked(psn-1, c)
	if s := q.rel.at(psn); s != nil {
		q.retry(fmt.Sprintf("sequence error NAKs: retry_cnt %d", q.nic.cfg.Retry.Count))
	}
}

type timeout struct{ *NIC }

// Handle has waited for an answer in vain.
func (t timeout) Handle(id uint32) {
	q := t.qps[id]
	if !q.rel.held() {
		q.retry(fmt.Sprintf("no answer: timeout %v, retry_cnt %d", t.cfg.Retry.Timeout, t.cfg.Retry.Count))
		return
	}
	q.arm()
}

// retry sends everything from the oldest packet on again, or gives up.
func (q *QP) retry(why string) {
	n, r := q.nic, q.rel
	if r.retries++; r.retries > n.cfg.Retry.Count {
		q.giveUp(why, "transport retry counter exceeded")
		return
	}
	q.goBack()
}

func (q *QP) giveUp(cause, status string) {
	n := q.nic
	index := n.msgs[q.rel.flight[0].msg].index - 1
	n.find(n.eng.Now(), q, index, stage.RetryExceeded, cause)
	q.fail(status, index)
}

// goBack sends everything without an answer again, in order; payload that is not
// in the WQE is read again.
func (q *QP) goBack() {
	n, r := q.nic, q.rel
	q.arm()
	r.cursor = r.oldest
	for i := range r.flight {
		s := &r.flight[i]
		s.ready = s.op != RDMAWrite || s.bytes == 0 || n.msgs[s.msg].wqe.Inline
		if s.done || s.ready || s.reading {
			continue
		}
		s.reading = true
		r.reads++
		w := &n.msgs[s.msg].wqe
		n.bus.Submit(pcie.Access{From: pcie.NIC, To: w.Local, Bytes: s.bytes, Addr: w.addr + uint64(s.offset)}, w.Cause, n.kind.ack, reread{q}, r.oldest+uint32(i))
	}
	q.repeat(sim.Cause{})
}

type reread struct{ *QP }

// Done has the payload of a packet once more.
func (r reread) Done(psn uint32, c sim.Cause) {
	q := r.QP
	q.rel.reads--
	if q.failed != "" {
		return
	}
	if s := q.rel.at(psn); s != nil {
		s.ready, s.reading = true, false
	}
	q.repeat(c)
	q.transmit()
}

// repeat sends the packets again whose turn it is; c is the cause of the one
// whose payload has just come.
func (q *QP) repeat(c sim.Cause) {
	n, r := q.nic, q.rel
	now := n.eng.Now()
	r.cursor = max(r.cursor, r.oldest)
	for ; r.cursor != r.psn; r.cursor++ {
		s := r.at(r.cursor)
		if s == nil {
			continue
		}
		if !s.ready {
			return
		}
		if s.op == RDMARead {
			s.try++
			s.landed, n.msgs[s.msg].placed = 0, 0
		}
		if w := &n.msgs[s.msg].wqe; c.Op != w.Cause.Op {
			c = w.Cause
		}
		n.Retransmits++
		pk := n.allocPkt()
		n.pkts[pk] = packet{msg: s.msg, qp: uint32(q.id), psn: r.cursor, op: s.op, try: s.try, bytes: s.bytes, first: s.first, last: s.last}
		n.emit(pk, n.rec.Span(c, n.kind.ack, now, now, 0), s.first)
	}
}

// inOrder is the responder's look at a packet's number: it reports whether the
// packet is taken. One that came before is answered again; one that leaves a gap
// brings a NAK, once.
func (r received) inOrder(pk uint32) bool {
	n, src := r.local, r.remote
	p := src.pkts[pk]
	q := src.qps[p.qp]
	rel := q.rel
	d := int32(p.psn - rel.expected)
	if d == 0 && !rel.refused && !r.refuse(&p) {
		rel.expected++
		rel.told = false
		return true
	}
	repeat := d < 0 && p.op == RDMARead && rel.at(p.psn) != nil && rel.at(p.psn).try == p.try
	if repeat && !rel.refused {
		return true // executed once more, as a READ may be
	}
	src.freePkt(pk)
	switch {
	case rel.refused || d == 0:
	case d > 0 && !rel.told:
		rel.told = true
		n.net.Send(n.node, src.node, fabric.Ack, 0, true, p.cause, nak{q}, rel.expected)
	case d < 0 && p.op == FetchAdd: // the answer is kept, the operation not repeated
		n.net.Send(n.node, src.node, fabric.Ack, 0, true, p.cause, answered{q}, p.psn)
	case d < 0 && p.op == RDMAWrite:
		n.net.Send(n.node, src.node, fabric.Ack, 0, true, p.cause, ack{q}, rel.expected-1)
	}
	return false
}

// acknowledge answers a message's last packet.
func (r received) acknowledge(p *packet) {
	if p.last {
		q := r.remote.qps[p.qp]
		r.local.net.Send(r.local.node, r.remote.node, fabric.Ack, 0, true, p.cause, ack{q}, p.psn)
	}
}

// refuse reports whether the responder cannot take the packet that it expects:
// its key is wrong, or it needs a receive or a page and there is none.
func (r received) refuse(p *packet) bool {
	n, src := r.local, r.remote
	q := src.qps[p.qp]
	w := &src.msgs[p.msg].wqe
	switch {
	case w.badRKey:
		q.rel.refused = true
		n.net.Send(n.node, src.node, fabric.Ack, 0, true, p.cause, accessError{q}, p.psn)
	case w.Imm && p.last && src.Faults.NoReceive.Strikes(n.eng.Now()):
		src.find(n.eng.Now(), q, src.msgs[p.msg].index-1, stage.RNR, "the peer had no receive posted for the immediate")
		r.notReady(p)
	case r.awaits(w, q.rel.at(p.psn)):
		src.hazard(n.eng.Now(), stage.Hazard{
			Finding: stage.RNR, Queue: q.id, Index: int(src.msgs[p.msg].index - 1),
			Cause: "a page of the target's buffer was not there (on-demand paging): the message is tried again after qp.min_rnr_timer",
			Avoid: "registration: pool, a buffer whose pages were touched before, or a shorter qp.min_rnr_timer",
		})
		r.notReady(p)
	default:
		return false
	}
	return true
}

// notReady sends an RNR NAK.
func (r received) notReady(p *packet) {
	q := r.remote.qps[p.qp]
	q.rel.told = true
	r.local.net.Send(r.local.node, r.remote.node, fabric.Ack, 0, true, p.cause, rnrNak{q}, p.psn)
}

type accessError struct{ *QP }

// Done has a NAK of an access that the key does not cover.
func (a accessError) Done(psn uint32, _ sim.Cause) {
	n, q := a.nic, a.QP
	s := q.rel.at(psn)
	if s == nil || q.failed != "" {
		return
	}
	index := n.msgs[s.msg].index - 1
	n.find(n.eng.Now(), q, index, stage.RKeyViolation, "the remote key does not cover the access: the responder refused it")
	q.fail("remote access error", index)
}

type rnrNak struct{ *QP }

// Done has an RNR NAK: the same again after the receiver's timer.
func (k rnrNak) Done(psn uint32, c sim.Cause) {
	n, q := k.nic, k.QP
	if q.failed != "" {
		return
	}
	q.acked(psn-1, c)
	r := q.rel
	if r.at(psn) == nil || r.waits {
		return
	}
	if r.rnr++; n.cfg.Retry.RNR != forever && r.rnr > n.cfg.Retry.RNR {
		q.giveUp(fmt.Sprintf("receiver not ready: rnr_retry %d", n.cfg.Retry.RNR), "RNR retry counter exceeded")
		return
	}
	r.waits = true
	n.eng.After(n.cfg.Retry.RNRWait, n.hReady, uint32(q.id))
}

type receiverReady struct{ *NIC }

// Handle tries a receiver that was not ready once more.
func (t receiverReady) Handle(id uint32) {
	q := t.qps[id]
	if q.failed != "" {
		return
	}
	q.rel.waits = false
	q.goBack()
	q.transmit()
}

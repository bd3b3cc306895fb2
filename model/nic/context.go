package nic

import (
	"errors"
	"fmt"

	"gdisim/model/pcie"
	"gdisim/sim"
)

// Context describes the cache of connection state on the NIC, made of lines that
// are replaced one by one. Each QP has two entries: what its requester needs
// (context, translations, the WQEs of a visit) and what the responder at the peer
// needs; a DC initiator has one of these at each of its targets. A miss is a PCIe
// read of host memory. A requester's is read before its queue is served, beside other
// queues' work. A packet whose responder state is missing waits for it while
// others pass, until Reads such reads are under way: then the next such packet
// stops the NIC's receiving, answers to its own requests included.
type Context struct {
	Cache     int64 // bytes, which hold the state of one connection at least; 0: everything fits
	Line      int64 // bytes
	Requester int64 // bytes of an entry
	Page      int64 // more of a requester's for each page of a queue in host memory
	Responder int64
	Fetch     int64     // bytes of a read
	DCR       int64     // bytes of an entry for a DC initiator at its target
	DCRReads  int       // reads of its miss, one after the other; 0: one
	Reads     int       // misses of received packets that are served at a time; 0: one
	Install   sim.Delay // from the read's data until the state can be used
}

// entry is connection state, of which lines may be in the cache.
type entry struct{ lines int }

// cache holds lines; which one goes for a new one is drawn, each alike: a line is
// at the mercy of all that come, where a hash puts them.
type cache struct{ owners []*entry }

// cached reports whether all of an entry is there.
func (n *NIC) cached(e *entry, size int64) bool {
	return n.cfg.Context.Cache == 0 || int64(e.lines)*n.cfg.Context.Line >= size
}

// touch reports whether the entry was cached; afterwards it is.
func (n *NIC) touch(e *entry, size int64) bool {
	if n.cached(e, size) {
		return true
	}
	x, c := &n.cfg.Context, &n.contexts
	for !n.cached(e, size) {
		if int64(len(c.owners)) < x.Cache/x.Line {
			c.owners = append(c.owners, e)
		} else {
			i := n.rng.IntN(len(c.owners))
			c.owners[i].lines--
			c.owners[i] = e
		}
		e.lines++
	}
	n.ContextReads++
	return false
}

// checkContext refuses a cache that cannot hold the largest entry.
func (n *NIC) checkContext() error {
	x := &n.cfg.Context
	if x.Cache == 0 {
		return nil
	}
	if x.Line <= 0 {
		return errors.New("hardware.nic.context.line: 0 B beside a cache (want 1 B at least)")
	}
	if need := max(n.requesterSize(pcie.Host), x.Responder, x.DCR); x.Cache/x.Line*x.Line < need {
		return fmt.Errorf("hardware.nic.context.cache: %d B in lines of %d B do not hold the %d B of one connection (want more, or 0 for no limit)", x.Cache, x.Line, need)
	}
	return nil
}

// requesterSize returns the bytes of the entry of a requester with such queues: the
// addresses of their pages are part of it. GPU memory is mapped in pages that hold a
// queue.
func (n *NIC) requesterSize(queues pcie.Unit) int64 {
	x := &n.cfg.Context
	if queues != pcie.Host {
		return x.Requester
	}
	pages := func(element int64) int64 { return (int64(n.cfg.SQDepth)*element + hostPage - 1) / hostPage }
	return x.Requester + x.Page*(pages(WQEBB)+pages(n.cfg.CQEBytes))
}

// create has the entry cached, as what makes a connection leaves it.
func (n *NIC) create(e *entry, size int64) {
	before := n.ContextReads
	n.touch(e, size)
	n.ContextReads = before
}

// responder is what the NIC at the peer has of a connection.
type responder struct {
	entry
	held, last uint32 // packets that wait for the entry
	left       int    // reads until it is there
}

// absent reports whether the queue's work has to wait for its requester's
// context; h is called again with the queue when it is there.
func (q *QP) absent(h sim.HandlerID) bool {
	n := q.nic
	if q.loading {
		q.again = append(q.again, h)
		return true
	}
	if q.came == n.eng.Now() || n.touch(&q.requester, n.requesterSize(q.queues)) {
		return false
	}
	q.loading = true
	q.again = append(q.again, h)
	n.bus.Read(pcie.NIC, pcie.Host, n.cfg.Context.Fetch, sim.Cause{}, n.kind.sched, requesterRead{n}, uint32(q.id))
	return true
}

type requesterRead struct{ *NIC }

// Done has a requester's context at the NIC.
func (r requesterRead) Done(id uint32, _ sim.Cause) {
	r.eng.After(r.cfg.Context.Install.Draw(r.rng), r.hRequester, id)
}

type requesterThere struct{ *NIC }

// Handle lets the queue's work go on.
func (r requesterThere) Handle(id uint32) {
	q := r.qps[id]
	q.loading = false
	now := r.eng.Now()
	q.came = now // and is used at once, even if another's has taken its place meanwhile
	for _, h := range q.again {
		r.eng.At(now, h, id)
	}
	q.again = q.again[:0]
}

// responderAt returns the queue's responder on a node, and the bytes of its entry
// and the reads of a miss there.
func (q *QP) responderAt(n *NIC) (r *responder, size int64, reads int) {
	x := &n.cfg.Context
	if q.dc != nil {
		return &q.dc.targets[n.node], x.DCR, max(1, x.DCRReads)
	}
	return &q.responder, x.Responder, 1
}

// waits reports whether a received packet has to wait for its responder's
// context, behind which the connection's later packets wait too.
func (a arrived) waits(pk uint32) bool {
	n, src := a.local, a.remote
	p := &src.pkts[pk]
	r, size, reads := src.qps[p.qp].responderAt(n)
	switch {
	case r.held != 0:
		src.pkts[r.last].next = pk
		r.last = pk
	case n.cached(&r.entry, size):
		return false
	case n.reading == max(1, n.cfg.Context.Reads):
		n.stuck = stuck{a, pk}
		n.net.Hold(n.node)
	default:
		n.touch(&r.entry, size)
		n.reading++
		r.held, r.last, r.left = pk, pk, reads
		responderRead{a.peer}.next(r, p.qp)
	}
	return true
}

// stuck is the packet that stops a NIC's receiving.
type stuck struct {
	arrived
	pk uint32 // 0: none
}

type responderRead struct{ *peer }

func (r responderRead) next(x *responder, qp uint32) {
	n := r.local
	x.left--
	n.bus.Read(pcie.NIC, pcie.Host, n.cfg.Context.Fetch, r.remote.pkts[x.held].cause, n.kind.rx, r, qp)
}

// Done has a responder's context at the NIC, or what says where it is.
func (r responderRead) Done(id uint32, c sim.Cause) {
	n := r.local
	x, _, _ := r.remote.qps[id].responderAt(n)
	now := n.eng.Now()
	end := now.Add(n.cfg.Context.Install.Draw(n.rng))
	r.remote.pkts[x.held].cause = n.rec.Span(c, n.kind.rx, now, end, 0)
	n.eng.At(end, r.hContext, id)
}

type responderThere struct{ *peer }

// Handle lets the packets that waited for the context go on.
func (r responderThere) Handle(id uint32) {
	n, src := r.local, r.remote
	x, _, _ := src.qps[id].responderAt(n)
	if x.left > 0 {
		responderRead(r).next(x, id)
		return
	}
	n.reading--
	for pk := x.held; pk != 0; {
		p := &src.pkts[pk]
		next := p.next
		p.next = 0
		arrived(r).accept(pk)
		pk = next
	}
	x.held, x.last = 0, 0
	if s := n.stuck; s.pk != 0 {
		n.stuck.pk = 0
		s.Done(s.pk, s.remote.pkts[s.pk].cause) // a read is free: it goes on
		n.net.Release(n.node)
	}
}

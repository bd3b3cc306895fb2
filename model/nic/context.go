package nic

import (
	"gdisim/model/pcie"
	"gdisim/sim"
)

// Context describes the cache of connection state on the NIC. Each QP has two
// entries: what its requester needs (context, translations, the WQEs of a
// visit) and what the responder at the peer needs. A miss is a PCIe read of
// host memory. A requester's is read before its queue is served, beside other
// queues' work; a packet whose responder state is missing waits for it, and at
// most Reads such reads are under way.
type Context struct {
	Cache     int64 // bytes; 0: everything fits
	Requester int64 // bytes of an entry
	Responder int64
	Fetch     int64     // bytes of a read
	Reads     int       // misses of received packets that are served at a time
	Install   sim.Delay // from the read's data until the state can be used
}

// entry is connection state that may be in the cache.
type entry struct {
	at int // index in the cache plus one; 0: not there
}

// cache holds entries; which one goes for a new one is drawn, each alike: an
// entry's bytes are at the mercy of all bytes that come, where a hash puts them.
type cache struct {
	used  int64
	items []cached
}

type cached struct {
	e    *entry
	size int64
}

// touch reports whether the entry was cached; afterwards it is.
func (n *NIC) touch(e *entry, size int64) bool {
	limit := n.cfg.Context.Cache
	if limit == 0 || e.at > 0 {
		return true
	}
	c := &n.contexts
	for c.used+size > limit && len(c.items) > 0 {
		i, last := n.rng.IntN(len(c.items)), len(c.items)-1
		c.used -= c.items[i].size
		c.items[i].e.at = 0
		if i != last {
			c.items[i] = c.items[last]
			c.items[i].e.at = i + 1
		}
		c.items = c.items[:last]
	}
	c.items = append(c.items, cached{e, size})
	c.used += size
	e.at = len(c.items)
	n.ContextReads++
	return false
}

// absent reports whether the queue's work has to wait for its requester's
// context; h is called again with the queue when it is there.
func (q *QP) absent(h sim.HandlerID) bool {
	n := q.nic
	if q.loading {
		q.again = append(q.again, h)
		return true
	}
	if q.came == n.eng.Now() || n.touch(&q.requester, n.cfg.Context.Requester) {
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

// waits reports whether a received packet has to wait for its responder's
// context, behind which the QP's later packets wait too.
func (a arrived) waits(pk uint32) bool {
	n, src := a.local, a.remote
	q := src.qps[src.pkts[pk].qp]
	if q.heldLast == 0 {
		if n.touch(&q.responder, n.cfg.Context.Responder) {
			return false
		}
		n.missing = append(n.missing, q)
		q.held = pk
	} else {
		src.pkts[q.heldLast].next = pk
	}
	q.heldLast = pk
	n.readResponder()
	return true
}

// readResponder starts the next read for packets that wait.
func (n *NIC) readResponder() {
	for n.reading < max(1, n.cfg.Context.Reads) && n.reading < len(n.missing) {
		q := n.missing[n.reading]
		n.reading++
		n.bus.Read(pcie.NIC, pcie.Host, n.cfg.Context.Fetch, q.nic.pkts[q.held].cause, n.kind.rx, responderRead{n.peers[q.nic.node]}, uint32(q.id))
	}
}

type responderRead struct{ *peer }

// Done has a responder's context at the NIC.
func (r responderRead) Done(id uint32, c sim.Cause) {
	n := r.local
	now := n.eng.Now()
	end := now.Add(n.cfg.Context.Install.Draw(n.rng))
	r.remote.pkts[r.remote.qps[id].held].cause = n.rec.Span(c, n.kind.rx, now, end, 0)
	n.eng.At(end, r.hContext, id)
}

type responderThere struct{ *peer }

// Handle lets the packets that waited for the context go on.
func (r responderThere) Handle(id uint32) {
	n, src := r.local, r.remote
	q := src.qps[id]
	for i, m := range n.missing {
		if m == q {
			n.missing = append(n.missing[:i], n.missing[i+1:]...)
			break
		}
	}
	n.reading--
	for pk := q.held; pk != 0; {
		p := &src.pkts[pk]
		next := p.next
		p.next = 0
		arrived(r).accept(pk)
		pk = next
	}
	q.held, q.heldLast = 0, 0
	n.readResponder()
}

package nic

import (
	"gdisim/model/pcie"
	"gdisim/sim"
)

// hostPage is a page of host memory: what the kernel brings in for a device, and of
// which a queue there has many.
const hostPage = 4 << 10

// faults are the pages of payload in host memory that the NIC has touched: with
// on-demand paging the first touch of each waits for the kernel, which brings in
// one after the other. What comes behind an access that waits for a page waits
// too; a write that arrives is refused instead (see awaits).
type faults struct {
	there   map[uint64]sim.Time // since when, or from when on
	kernel  sim.Time            // when it has brought in all it was asked for
	until   sim.Time            // when the accesses that wait will have gone on
	waiting []parked
	free    sim.Free
	resume  sim.HandlerID
	Count   int
}

// parked is an access that waits for a page.
type parked struct {
	access pcie.Access
	cause  sim.Cause
	kind   sim.Kind
	done   sim.Sink
	arg    uint32
}

// present returns when these pages of payload are there, and asks for those that
// nobody has.
func (n *NIC) present(addr uint64, bytes int64) sim.Time {
	f := &n.pages
	if f.there == nil {
		f.there, f.resume = map[uint64]sim.Time{}, n.eng.Register(resumed{n})
	}
	now := n.eng.Now()
	at := now
	for p := addr / hostPage; p <= (addr+uint64(max(1, bytes))-1)/hostPage; p++ {
		t, ok := f.there[p]
		if !ok {
			f.Count++
			f.kernel = max(now, f.kernel).Add(n.cfg.PageFault.Draw(n.rng))
			t = f.kernel
			f.there[p] = t
		}
		at = max(at, t)
	}
	return at
}

// awaits reports whether a packet that the responder expects writes to a page
// that is not there. The responder answers such a one as a receiver that is not
// ready, and has the rest of the message's pages brought in as well, so that the
// next try does not fault packet by packet (Linux, drivers/infiniband/hw/mlx5/
// odp.c: the packet's pages first, then those of the rest of the operation).
func (r received) awaits(w *WQE, s *sent) bool {
	n := r.local
	if !n.cfg.OnDemand || s == nil || w.Remote != pcie.Host || s.op != RDMAWrite || s.bytes == 0 {
		return false
	}
	now := n.eng.Now()
	late := n.present(w.addr+uint64(s.offset), s.bytes) > now
	if late {
		n.present(w.addr+uint64(s.offset), w.Bytes-s.offset)
	}
	return late
}

// reach accesses payload, when its pages are there.
func (n *NIC) reach(a pcie.Access, c sim.Cause, k sim.Kind, done sim.Sink, arg uint32) {
	if !n.cfg.OnDemand || a.To != pcie.Host {
		n.bus.Submit(a, c, k, done, arg)
		return
	}
	f := &n.pages
	now := n.eng.Now()
	at := max(n.present(a.Addr, a.Bytes), f.until)
	if at == now {
		n.bus.Submit(a, c, k, done, arg)
		return
	}
	f.until = at
	id := sim.Alloc(&f.waiting, &f.free)
	f.waiting[id] = parked{access: a, cause: n.rec.Span(c, k, now, at, 0), kind: k, done: done, arg: arg}
	n.eng.At(at, f.resume, id)
}

type resumed struct{ *NIC }

// Handle goes on with an access whose pages have come.
func (r resumed) Handle(id uint32) {
	f := &r.pages
	p := f.waiting[id]
	sim.Release(&f.waiting, &f.free, id)
	r.bus.Submit(p.access, p.cause, p.kind, p.done, p.arg)
}

// PageFaults returns how often the NIC has waited for a page.
func (n *NIC) PageFaults() int { return n.pages.Count }

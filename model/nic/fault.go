package nic

import (
	"gdisim/model/pcie"
	"gdisim/sim"
)

// faultPage is the page that the kernel brings in for a device.
const faultPage = 4 << 10

// faults are the pages of payload in host memory that the NIC has touched: with
// on-demand paging the first touch of each waits for the kernel, and what comes
// behind waits too.
type faults struct {
	touched map[uint64]struct{}
	until   sim.Time
	waiting []parked
	free    uint32
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
	next   uint32
}

// reach accesses payload, when its pages are there.
func (n *NIC) reach(a pcie.Access, c sim.Cause, k sim.Kind, done sim.Sink, arg uint32) {
	f := &n.pages
	if !n.cfg.OnDemand || a.To != pcie.Host {
		n.bus.Submit(a, c, k, done, arg)
		return
	}
	if f.touched == nil {
		f.touched, f.waiting, f.resume = map[uint64]struct{}{}, make([]parked, 1), n.eng.Register(resumed{n})
	}
	now := n.eng.Now()
	at := max(now, f.until)
	for p := a.Addr / faultPage; p <= (a.Addr+uint64(max(1, a.Bytes))-1)/faultPage; p++ {
		if _, ok := f.touched[p]; !ok {
			f.touched[p] = struct{}{}
			f.Count++
			at = at.Add(n.cfg.PageFault.Draw(n.rng))
		}
	}
	if at == now {
		n.bus.Submit(a, c, k, done, arg)
		return
	}
	f.until = at
	id := f.free
	if id == 0 {
		f.waiting = append(f.waiting, parked{})
		id = uint32(len(f.waiting) - 1)
	} else {
		f.free = f.waiting[id].next
	}
	f.waiting[id] = parked{access: a, cause: n.rec.Span(c, k, now, at, 0), kind: k, done: done, arg: arg}
	n.eng.At(at, f.resume, id)
}

type resumed struct{ *NIC }

// Handle goes on with an access whose pages have come.
func (r resumed) Handle(id uint32) {
	f := &r.pages
	p := f.waiting[id]
	f.waiting[id] = parked{next: f.free}
	f.free = id
	r.bus.Submit(p.access, p.cause, p.kind, p.done, p.arg)
}

// PageFaults returns how often the NIC has waited for a page.
func (n *NIC) PageFaults() int { return n.pages.Count }

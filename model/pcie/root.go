package pcie

import "gdisim/sim"

// root is the root complex: what it does to devices' requests.
type root struct {
	works   bool // else nothing below is looked at
	iotlb   *tlb
	atc     [units]*tlb
	walker  sim.Server
	last    sim.Time // when the last ordered write passed
	posted  [2]sim.Time
	Walks   int
	Ordered int // ordered write TLPs so far, where they have a distance
}

func newRoot(c *Config) root {
	r := root{works: c.IOMMU.Page > 0 || c.OrderedWrite > 0}
	if c.IOMMU.Page > 0 {
		r.iotlb = newTLB(c.IOMMU.Entries)
		if c.IOMMU.ATC > 0 {
			r.atc[GPU], r.atc[NIC] = newTLB(c.IOMMU.ATC), newTLB(c.IOMMU.ATC)
		}
	}
	return r
}

// meetRoot is what the root complex does to a device's request whose head and
// last byte come at these times: it translates each page, and takes ordered
// writes one after the other. Posted requests and what is behind them keep
// their order.
func (f *Fabric) meetRoot(t *txn, head, tail sim.Time) (sim.Time, sim.Time) {
	r := &f.root
	from, span := head, tail.Sub(head)
	if r.iotlb != nil && !t.direct {
		size := uint64(f.cfg.IOMMU.Page)
		n := (t.addr+uint64(max(1, t.bytes))-1)/size - t.addr/size + 1
		hit := f.cfg.IOMMU.Hit.Draw(f.rng)
		from = head.Add(hit)
		tail = tail.Add(hit)
		for i := range n {
			ready := f.lookup(f.page(t, t.addr+i*size), from.Add(span/sim.Duration(n)*sim.Duration(i)))
			if tail = max(tail, ready); i == 0 {
				head = ready
			}
		}
	}
	if t.write && !t.relaxed && f.cfg.OrderedWrite > 0 {
		head, tail = f.inOrder(t, from, span, head, tail)
	}
	if !t.relaxed {
		head, tail = max(head, r.posted[0]), max(tail, r.posted[1])
	}
	if t.write { // whether a later one may pass is the later one's attribute
		r.posted = [2]sim.Time{max(head, r.posted[0]), max(tail, r.posted[1])}
	}
	return head, tail
}

// inOrder lets an ordered write pass when each of its TLPs is so far behind the
// one before it as the root complex wants. They come evenly over span, begun at
// from, but none passes before head and not the last before tail; so the first
// and the last two decide.
func (f *Fabric) inOrder(t *txn, from sim.Time, span sim.Duration, head, tail sim.Time) (sim.Time, sim.Time) {
	r, gap, n := &f.root, f.cfg.OrderedWrite, sim.Duration(t.tlps)
	each := span // of a full TLP
	if n > 1 {
		each = sim.Duration(float64(span) * float64(f.cfg.MPS+f.cfg.RequestHeader) / float64(t.onLink))
	}
	first := max(from.Add(each), head)
	if r.Ordered > 0 {
		first = max(first, r.last.Add(gap))
	}
	tail = max(tail, first.Add((n-1)*gap))
	if n > 1 {
		tail = max(tail, max(from.Add((n-1)*each), head).Add(gap))
	}
	r.Ordered += int(n)
	r.last = tail
	return max(head, first.Add(-each)), tail
}

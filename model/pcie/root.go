package pcie

import "gdisim/sim"

// root is the root complex: what it does to devices' requests.
type root struct {
	works  bool // else nothing below is looked at
	iotlb  *tlb
	atc    [units]*tlb
	walker sim.Server
	ports  [units]port
	Walks  int
}

// port is where devices' requests enter the root complex, in order.
type port struct {
	posted [2]sim.Time // when the last write's head and tail had passed
	gap    sim.Time    // from then on the next ordered write may
}

// port returns a device's: devices below one switch share it.
func (f *Fabric) port(u Unit) *port {
	if f.cfg.Class == PIX || f.cfg.Class == PXB {
		u = 0
	}
	return &f.root.ports[u]
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
	r, p := &f.root, f.port(t.from)
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
		head, tail = max(head, p.posted[0]), max(tail, p.posted[1])
	}
	if t.write { // whether a later one may pass is the later one's attribute
		p.posted = [2]sim.Time{max(head, p.posted[0]), max(tail, p.posted[1])}
	}
	return head, tail
}

// inOrder lets an ordered write pass when each of its TLPs is so far behind the
// one before it as the root complex wants. They come evenly over span, begun at
// from, but none passes before head and not the last before tail; so the first
// and the last two decide.
func (f *Fabric) inOrder(t *txn, from sim.Time, span sim.Duration, head, tail sim.Time) (sim.Time, sim.Time) {
	p, gap, n := f.port(t.from), f.cfg.OrderedWrite, sim.Duration(t.tlps)
	each := span // of a full TLP
	if n > 1 {
		each = sim.Duration(float64(span) * float64(f.cfg.MPS+f.cfg.RequestHeader) / float64(t.onLink))
	}
	first := max(from.Add(each), head, p.gap)
	tail = max(tail, first.Add((n-1)*gap))
	if n > 1 {
		tail = max(tail, max(from.Add((n-1)*each), head).Add(gap))
	}
	p.gap = tail.Add(gap)
	return max(head, first.Add(-each)), tail
}

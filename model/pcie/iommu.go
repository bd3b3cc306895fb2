package pcie

import (
	"math/rand/v2"

	"gdisim/sim"
)

// IOMMU is the translation that a device's request meets in the root complex.
type IOMMU struct {
	Page     int64        // bytes of a page; 0: requests are not translated
	Entries  int          // translations that the IOTLB holds
	Hit      sim.Delay    // look-up
	Walk     sim.Delay    // what a miss costs more
	Interval sim.Duration // a walk starts at most so often, however many wait
	ATC      int          // translations that a device caches itself (ATS); 0: none
}

// tlb is a cache of translations. Which one goes for a new one is drawn, each
// alike.
type tlb struct {
	size  int
	pages []uint64
	at    map[uint64]int32
}

func newTLB(size int) *tlb {
	return &tlb{size: size, pages: make([]uint64, 0, size), at: make(map[uint64]int32, size)}
}

// touch reports whether the page was cached; afterwards it is.
func (c *tlb) touch(page uint64, rng *rand.Rand) bool {
	if _, ok := c.at[page]; ok {
		return true
	}
	if len(c.pages) < c.size {
		c.at[page] = int32(len(c.pages))
		c.pages = append(c.pages, page)
		return false
	}
	i := rng.IntN(c.size)
	delete(c.at, c.pages[i])
	c.pages[i], c.at[page] = page, int32(i)
	return false
}

// root is the root complex: what it does to devices' requests.
type root struct {
	works   bool // else nothing below is looked at
	iotlb   *tlb
	atc     [units]*tlb
	walker  sim.Server
	ordered sim.Time // until then the root complex is busy with ordered writes
	posted  [2]sim.Time
	Walks   int
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

// page names a page of a unit's address space.
func (f *Fabric) page(t *txn, addr uint64) uint64 {
	return uint64(t.to)<<60 | addr/uint64(f.cfg.IOMMU.Page)
}

// lookup returns when a translation that is wanted at a moment is there.
func (f *Fabric) lookup(page uint64, at sim.Time) sim.Time {
	m := &f.cfg.IOMMU
	at = at.Add(m.Hit.Draw(f.rng))
	if f.root.iotlb.touch(page, f.rng) {
		return at
	}
	f.root.Walks++
	start, _, _ := f.root.walker.Take(at, m.Interval, 0)
	return start.Add(m.Walk.Draw(f.rng))
}

// meetRoot is what the root complex does to a device's request whose head and
// last byte come at these times: it translates each page, and takes ordered
// writes one after the other. Posted requests and what is behind them keep
// their order.
func (f *Fabric) meetRoot(t *txn, head, tail sim.Time) (sim.Time, sim.Time) {
	r := &f.root
	if r.iotlb != nil && !t.direct {
		span := tail.Sub(head)
		size := uint64(f.cfg.IOMMU.Page)
		n := (t.addr+uint64(max(1, t.bytes))-1)/size - t.addr/size + 1
		var slip, first sim.Duration
		for i := range n {
			at := head.Add(span / sim.Duration(n) * sim.Duration(i))
			slip = max(slip, f.lookup(f.page(t, t.addr+i*size), at).Sub(at))
			if i == 0 {
				first = slip
			}
		}
		head, tail = head.Add(first), tail.Add(slip)
	}
	if t.write && !t.relaxed && f.cfg.OrderedWrite > 0 {
		head = max(head, r.ordered)
		tail = max(tail, head.Add(sim.Duration(t.tlps)*f.cfg.OrderedWrite))
		r.ordered = tail
	}
	if !t.relaxed {
		head, tail = max(head, r.posted[0]), max(tail, r.posted[1])
	}
	if t.write && !t.relaxed {
		r.posted = [2]sim.Time{head, tail}
	}
	return head, tail
}

// ats lets a device look up its own translations before a request leaves at
// end, and ask the IOMMU for what it lacks: a round trip to the root complex.
func (f *Fabric) ats(t *txn, end sim.Time) sim.Time {
	if f.translated(t) {
		t.direct = true
		size := uint64(f.cfg.IOMMU.Page)
		for a := t.addr / size; a <= (t.addr+uint64(max(1, t.bytes))-1)/size; a++ {
			p := f.page(t, a*size)
			if f.root.atc[t.from].touch(p, f.rng) {
				continue
			}
			up, _ := f.cfg.ReadRequestBytes(8)
			down, _ := f.cfg.CompletionBytes(8)
			there := end.Add(f.idle(f.routes[t.from][Host], up))
			end = f.lookup(p, there).Add(f.idle(f.routes[Host][t.from], down))
		}
	}
	return end
}

// translated reports whether the request would be translated on its way.
func (f *Fabric) translated(t *txn) bool {
	for _, h := range f.routes[t.from][t.to] {
		if h.root {
			return true
		}
	}
	return false
}

// Walks returns the page walks so far.
func (f *Fabric) Walks() int { return f.root.Walks }

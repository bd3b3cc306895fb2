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
	size    int
	entries []translation
	at      map[uint64]int32
}

// translation is a page's, which a walk may still be under way for.
type translation struct {
	page  uint64
	ready sim.Time
}

func newTLB(size int) *tlb {
	return &tlb{size: size, entries: make([]translation, 0, size), at: make(map[uint64]int32, size)}
}

// touch returns the page's translation, and whether it was there or on its way.
func (c *tlb) touch(page uint64, rng *rand.Rand) (e *translation, hit bool) {
	if i, ok := c.at[page]; ok {
		return &c.entries[i], true
	}
	i := len(c.entries)
	if i < c.size {
		c.entries = append(c.entries, translation{})
	} else {
		i = rng.IntN(c.size)
		delete(c.at, c.entries[i].page)
	}
	c.at[page] = int32(i)
	c.entries[i].page = page
	return &c.entries[i], false
}

// page names a page of a unit's address space.
func (f *Fabric) page(t *txn, addr uint64) uint64 {
	return uint64(t.to)<<60 | addr/uint64(f.cfg.IOMMU.Page)
}

// lookup returns when a translation that was looked for until a moment is
// there.
func (f *Fabric) lookup(page uint64, at sim.Time) sim.Time {
	m := &f.cfg.IOMMU
	e, hit := f.root.iotlb.touch(page, f.rng)
	if hit {
		return max(at, e.ready)
	}
	f.root.Walks++
	start, _, _ := f.root.walker.Take(at, m.Interval, 0)
	e.ready = start.Add(m.Walk.Draw(f.rng))
	return e.ready
}

// ats lets a device look up its own translations before a request leaves at
// end, and ask the IOMMU for what it lacks: a round trip to the root complex.
func (f *Fabric) ats(t *txn, end sim.Time) sim.Time {
	if f.translated(t) {
		t.direct = true
		size := uint64(f.cfg.IOMMU.Page)
		for a := t.addr / size; a <= (t.addr+uint64(max(1, t.bytes))-1)/size; a++ {
			p := f.page(t, a*size)
			e, hit := f.root.atc[t.from].touch(p, f.rng)
			if hit {
				end = max(end, e.ready)
				continue
			}
			up, _ := f.cfg.ReadRequestBytes(8)
			down, _ := f.cfg.CompletionBytes(8)
			there := end.Add(f.idle(f.routes[t.from][Host], up))
			end = f.lookup(p, there.Add(f.cfg.IOMMU.Hit.Draw(f.rng))).Add(f.idle(f.routes[Host][t.from], down))
			e.ready = end
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

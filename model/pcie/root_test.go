package pcie_test

import (
	"fmt"
	"testing"

	"gdisim/model/pcie"
	"gdisim/sim"

	"pgregory.net/rapid"
)

// ends runs n accesses that start together and returns when each ended.
func ends(t interface{ Fatal(...any) }, c pcie.Config, n int, access func(i int) pcie.Access) ([]sim.Time, *pcie.Fabric) {
	eng, f := build(t, c)
	out := make([]sim.Time, n)
	for i := range n {
		f.Submit(access(i), sim.Cause{}, sim.Kind{}, done(func(arg uint32) { out[arg] = eng.Now() }), uint32(i))
	}
	eng.Run()
	if err := f.Idle(); err != nil {
		t.Fatal(err)
	}
	return out, f
}

func read(from, to pcie.Unit, page uint64) pcie.Access {
	return pcie.Access{From: from, To: to, Bytes: 8, Addr: page * 4096}
}

// TestTranslation: a hit costs the look-up, a miss the walk too, and walks are
// so far apart as the IOMMU starts them. Requests of a CPU, and those of a GPU
// over its coherent link, are not translated.
func TestTranslation(t *testing.T) {
	c := config(pcie.PIX)
	plain, _ := ends(t, c, 1, func(int) pcie.Access { return read(pcie.NIC, pcie.Host, 0) })
	c.IOMMU = pcie.IOMMU{Page: 4096, Entries: 8, Hit: fixed(7), Walk: fixed(300), Interval: 50 * ns}
	eng, f := build(t, c)
	var got [5]sim.Time
	submit := func(i int, page uint64) {
		f.Submit(read(pcie.NIC, pcie.Host, page), sim.Cause{}, sim.Kind{}, done(func(uint32) { got[i] = eng.Now() }), 0)
	}
	submit(4, 9)
	eng.Run()
	begin := eng.Now()
	for i, page := range []uint64{0, 1, 2, 9} {
		submit(i, page)
	}
	eng.Run()
	for i := range 4 {
		got[i] = sim.Time(got[i].Sub(begin))
	}
	for i, extra := range []sim.Duration{307, 307 + 50, 307 + 100} {
		// The look-up starts with a request's first byte.
		if d := got[i].Sub(plain[0]) - extra*ns; d < -5*ns || d > 5*ns {
			t.Errorf("read %d of a new page took %v more, want %v ns", i, got[i].Sub(plain[0]), extra)
		}
	}
	// The hit passes the misses before it, as a read may pass reads.
	if d := got[3].Sub(plain[0]) - 7*ns; d < 0 || d > 15*ns {
		t.Errorf("a read that hits took %v more behind misses, want 7 ns", got[3].Sub(plain[0]))
	}
	if f.Walks() != 4 {
		t.Errorf("%d walks, want 4", f.Walks())
	}
	for _, a := range []pcie.Access{read(pcie.CPU, pcie.NIC, 0), read(pcie.NIC, pcie.GPU, 0)} {
		before, _ := ends(t, config(pcie.PIX), 1, func(int) pcie.Access { return a })
		after, _ := ends(t, c, 1, func(int) pcie.Access { return a })
		if before[0] != after[0] {
			t.Errorf("%v to %v is translated", a.From, a.To)
		}
	}
	c2c := config(pcie.C2C)
	before, _ := ends(t, c2c, 1, func(int) pcie.Access { return read(pcie.GPU, pcie.Host, 0) })
	c2c.IOMMU = c.IOMMU
	if after, _ := ends(t, c2c, 1, func(int) pcie.Access { return read(pcie.GPU, pcie.Host, 0) }); after[0] != before[0] {
		t.Error("a load over C2C is translated")
	}
}

// TestPages: an access is translated page by page, and its last byte waits for
// the last of them.
func TestPages(t *testing.T) {
	c := config(pcie.PHB)
	plain, _ := ends(t, c, 1, func(int) pcie.Access {
		return pcie.Access{From: pcie.NIC, To: pcie.Host, Write: true, Bytes: 8192}
	})
	c.IOMMU = pcie.IOMMU{Page: 4096, Entries: 8, Walk: fixed(300), Interval: 900 * ns}
	for _, tt := range []struct {
		addr  uint64
		walks int
	}{{0, 2}, {4095, 3}, {4096, 2}} {
		got, f := ends(t, c, 1, func(int) pcie.Access {
			return pcie.Access{From: pcie.NIC, To: pcie.Host, Write: true, Bytes: 8192, Addr: tt.addr}
		})
		if f.Walks() != tt.walks {
			t.Errorf("at %d: %d walks, want %d", tt.addr, f.Walks(), tt.walks)
		}
		// The last page's walk starts 900 ns after the one before it.
		least := sim.Duration(tt.walks-1) * 900 * ns
		if d := got[0].Sub(plain[0]); d < 300*ns || d > least+300*ns {
			t.Errorf("at %d: %v more, want from 300 ns to %v", tt.addr, d, least+300*ns)
		}
	}
}

// TestATS: a device that holds a translation pays nothing, one that lacks it
// asks first; translated peer traffic goes straight although ACS redirects.
func TestATS(t *testing.T) {
	direct, _ := ends(t, config(pcie.PIX), 1, func(int) pcie.Access { return read(pcie.NIC, pcie.GPU, 0) })
	c := config(pcie.PIX)
	c.Redirect = true
	up, _ := ends(t, c, 1, func(int) pcie.Access { return read(pcie.NIC, pcie.GPU, 0) })
	// Up and down by the root complex: two more links, one more switch, the root.
	more := 2 * (25 + 25 + 110 + 59) * ns
	if d := up[0].Sub(direct[0]) - more; d < 0 || d > 10*ns {
		t.Errorf("redirected: %v more, want %v", up[0].Sub(direct[0]), more)
	}
	c.IOMMU = pcie.IOMMU{Page: 4096, Entries: 8, Hit: fixed(7), Walk: fixed(300), ATC: 4}
	got, _ := ends(t, c, 2, func(int) pcie.Access { return read(pcie.NIC, pcie.GPU, 0) })
	eng, f := build(t, c)
	ask := f.RoundTrip(pcie.NIC, pcie.Host, 8) - c.Units[pcie.NIC].Egress.Mean() - c.Units[pcie.NIC].Return.Mean() - c.Units[pcie.Host].Read.Mean()
	if want := direct[0].Add(ask + 307*ns); got[0] != want {
		t.Errorf("first read at %v, want %v", got[0], want)
	}
	second := sim.Time(0)
	f.Submit(read(pcie.NIC, pcie.GPU, 0), sim.Cause{}, sim.Kind{}, done(func(uint32) {}), 0)
	eng.Run()
	begin := eng.Now()
	f.Submit(read(pcie.NIC, pcie.GPU, 0), sim.Cause{}, sim.Kind{}, done(func(uint32) { second = eng.Now() }), 0)
	eng.Run()
	if d := second.Sub(begin); d != sim.Duration(direct[0]) {
		t.Errorf("a read with its translation at hand took %v, want %v", d, sim.Duration(direct[0]))
	}
	for _, l := range f.Traffic() {
		if l.Name == "node0.pcie.switch.up" && l.Bytes != 0 {
			t.Errorf("%d B of translated peer traffic at the root complex", l.Bytes)
		}
	}
}

// TestRedirectSharesUplink: each byte crosses the uplink in both directions.
func TestRedirectSharesUplink(t *testing.T) {
	c := config(pcie.PIX)
	c.Redirect = true
	const n = 1 << 20
	_, f := ends(t, c, 1, func(int) pcie.Access { return pcie.Access{From: pcie.NIC, To: pcie.GPU, Write: true, Bytes: n} })
	want, _ := c.WriteBytes(n)
	seen := 0
	for _, l := range f.Traffic() {
		switch l.Name {
		case "node0.pcie.switch.up", "node0.pcie.switch.down", "node0.pcie.nic.up", "node0.pcie.gpu.down":
			seen++
			if l.Bytes != want {
				t.Errorf("%s carried %d B, want %d", l.Name, l.Bytes, want)
			}
		default:
			if l.Bytes != 0 {
				t.Errorf("%s carried %d B", l.Name, l.Bytes)
			}
		}
	}
	if seen != 4 {
		t.Errorf("%d links, want 4", seen)
	}
}

// TestOrderedWrites: ordered writes pass the root complex one after the other,
// relaxed ones as they come, and may be seen before ordered ones.
func TestOrderedWrites(t *testing.T) {
	c := config(pcie.PHB)
	c.OrderedWrite = 40 * ns
	const k = 64
	writes := func(relaxed bool) []sim.Time {
		got, _ := ends(t, c, k, func(int) pcie.Access {
			return pcie.Access{From: pcie.NIC, To: pcie.Host, Write: true, Bytes: 256, Relaxed: relaxed}
		})
		return got
	}
	ordered, relaxed := writes(false), writes(true)
	if d := ordered[k-1].Sub(ordered[0]); d != (k-1)*40*ns {
		t.Errorf("%d ordered writes took %v, want %v", k, d, (k-1)*40*ns)
	}
	link := sim.NewPipe(c.NICLink.BitsPerSecond()).Transfer(280 * (k - 1))
	if d := relaxed[k-1].Sub(relaxed[0]); d < link-ns || d > link+ns {
		t.Errorf("%d relaxed writes took %v, want the link's %v", k, d, link)
	}
	mixed, _ := ends(t, c, 12, func(i int) pcie.Access {
		return pcie.Access{From: pcie.NIC, To: pcie.Host, Write: true, Bytes: 256, Relaxed: i == 11}
	})
	if mixed[11] >= mixed[10] {
		t.Errorf("a relaxed write was seen at %v, behind ordered ones at %v", mixed[11], mixed[10])
	}
}

// TestRelaxedKeepsOthersOrder: a relaxed write may pass those before it; an
// ordered one behind it may not pass it, whatever either takes in the target.
func TestRelaxedKeepsOthersOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := config(pcie.PHB)
		c.Units[pcie.Host] = pcie.Timing{Write: sim.Exponential(500 * ns)}
		c.IOMMU = pcie.IOMMU{Page: 4096, Entries: 2, Hit: fixed(5), Walk: sim.Exponential(300 * ns), Interval: 20 * ns}
		n := rapid.IntRange(2, 40).Draw(t, "writes")
		relaxed := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "relaxed")
		pages := rapid.SliceOfN(rapid.Uint64Range(0, 5), n, n).Draw(t, "pages")
		got, _ := ends(t, c, n, func(i int) pcie.Access {
			return pcie.Access{From: pcie.NIC, To: pcie.Host, Write: true, Bytes: 64, Addr: pages[i] * 4096, Relaxed: relaxed[i]}
		})
		for i := range n {
			for j := range i {
				later := pcie.TLP{Kind: pcie.PostedWrite, Relaxed: relaxed[i]}
				if got[i] < got[j] && !pcie.MayPass(later, pcie.TLP{Kind: pcie.PostedWrite, Relaxed: relaxed[j]}) {
					t.Fatalf("write %d was seen at %v, before write %d at %v", i, got[i], j, got[j])
				}
			}
		}
	})
}

func TestColdAndFar(t *testing.T) {
	c := config(pcie.PIX)
	c.ColdRead = fixed(45)
	access := pcie.Access{From: pcie.NIC, To: pcie.Host, Bytes: 64}
	warm, _ := ends(t, c, 1, func(int) pcie.Access { return access })
	access.Cold = true
	cold, _ := ends(t, c, 1, func(int) pcie.Access { return access })
	if d := cold[0].Sub(warm[0]); d != 45*ns {
		t.Errorf("a line from DRAM took %v more, want 45 ns", d)
	}
	c.HostFar = true
	far, _ := ends(t, c, 1, func(int) pcie.Access { return access })
	if d := far[0].Sub(cold[0]); d != 200*ns {
		t.Errorf("memory of the other socket took %v more, want 200 ns", d)
	}
}

// TestMayPass holds the rules against the table of the specification, row by
// row: may the later TLP pass the earlier one?
func TestMayPass(t *testing.T) {
	w, r, a, c := pcie.PostedWrite, pcie.ReadRequest, pcie.AtomicRequest, pcie.CompletionTLP
	tlp := func(k pcie.Kind) pcie.TLP { return pcie.TLP{Kind: k, Requester: pcie.NIC} }
	relaxed := func(k pcie.Kind) pcie.TLP { return pcie.TLP{Kind: k, Requester: pcie.NIC, Relaxed: true} }
	ido := func(k pcie.Kind) pcie.TLP { return pcie.TLP{Kind: k, Requester: pcie.GPU, IDO: true} }
	for _, tt := range []struct {
		later, earlier pcie.TLP
		want           bool
	}{
		{tlp(w), tlp(w), false},
		{tlp(r), tlp(w), false},
		{tlp(a), tlp(w), false},
		{tlp(c), tlp(w), false},
		{relaxed(w), tlp(w), true},
		{relaxed(r), tlp(w), false}, // reads push writes whatever their attribute
		{relaxed(a), tlp(w), true},  // how a flag by atomic passes its data
		{relaxed(c), tlp(w), true},
		{ido(w), tlp(w), true},
		{ido(r), tlp(w), true},
		{tlp(w), tlp(r), true},
		{tlp(c), tlp(r), true},
		{tlp(r), tlp(r), true},
		{pcie.TLP{Kind: r, Path: 1}, tlp(w), true},
	} {
		if got := pcie.MayPass(tt.later, tt.earlier); got != tt.want {
			t.Errorf("%+v past %+v: %v", tt.later, tt.earlier, got)
		}
	}
	same := ido(r)
	same.Requester = pcie.NIC
	if pcie.MayPass(same, tlp(w)) {
		t.Error("IDO lets a requester's own read pass its writes")
	}
}

// TestCoalescing: an access of many TLPs is carried as one, which must be what
// its TLPs one by one give where no other traffic comes between them: the same
// end to the picosecond, and the same bytes and TLPs on every link.
func TestCoalescing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := config(pcie.Class(rapid.IntRange(0, int(pcie.C2C)).Draw(t, "class")))
		c.Redirect = rapid.Bool().Draw(t, "redirect")
		c.MPS = rapid.SampledFrom([]int64{128, 256, 512}).Draw(t, "mps")
		c.MRRS = c.MPS * rapid.SampledFrom([]int64{1, 2, 4}).Draw(t, "mrrs over mps")
		if rapid.Bool().Draw(t, "ordered") {
			c.OrderedWrite = sim.Duration(rapid.Int64Range(1, 30).Draw(t, "interval")) * ns
		}
		if rapid.Bool().Draw(t, "translated") {
			c.IOMMU = pcie.IOMMU{Page: 2 << 20, Entries: 4, Hit: fixed(5), Walk: fixed(200), Interval: 50 * ns}
		}
		pair := rapid.SampledFrom([][2]pcie.Unit{{pcie.NIC, pcie.Host}, {pcie.NIC, pcie.GPU}, {pcie.GPU, pcie.NIC}, {pcie.GPU, pcie.Host}}).Draw(t, "pair")
		whole := pcie.Access{From: pair[0], To: pair[1], Write: rapid.Bool().Draw(t, "write"), Bytes: rapid.Int64Range(1, 32<<10).Draw(t, "bytes")}
		piece := c.MRRS
		if whole.Write {
			piece = c.MPS
		}
		k := int((whole.Bytes + piece - 1) / piece)
		one, f1 := ends(t, c, 1, func(int) pcie.Access { return whole })
		many, f2 := ends(t, c, k, func(i int) pcie.Access {
			p := whole
			p.Addr = uint64(i) * uint64(piece)
			p.Bytes = min(piece, whole.Bytes-int64(i)*piece)
			return p
		})
		last := many[0]
		for _, e := range many {
			last = max(last, e)
		}
		// Each of several transfers is rounded to a picosecond, on each link. Gaps
		// that the root complex puts between TLPs are known to within one of them
		// on the links behind it.
		slack := sim.Duration(8 * k)
		if c.OrderedWrite > 0 && whole.Write {
			slack += sim.NewPipe(c.UpLink.BitsPerSecond()).Transfer(c.MPS + c.RequestHeader)
		}
		if d := one[0].Sub(last); d < -slack || d > slack {
			t.Fatalf("%+v: %v in one, %v in %d", whole, sim.Duration(one[0]), sim.Duration(last), k)
		}
		a, b := fmt.Sprint(counters(f1)), fmt.Sprint(counters(f2))
		if a != b {
			t.Fatalf("%+v: links\n%s\n%s", whole, a, b)
		}
	})
}

func counters(f *pcie.Fabric) (out []string) {
	for _, l := range f.Traffic() {
		out = append(out, fmt.Sprintf("%s %d TLPs %d B", l.Name, l.TLPs, l.Bytes))
	}
	return out
}

// TestTranslationAllocates: nothing, once the caches are full.
func TestTranslationAllocates(t *testing.T) {
	c := config(pcie.PHB)
	c.IOMMU = pcie.IOMMU{Page: 4096, Entries: 96, Hit: fixed(5), Walk: fixed(200), Interval: 50 * ns}
	eng, f := build(t, c)
	page := uint64(1)
	sink := done(func(uint32) {})
	round := func() {
		for range 1000 {
			page = page*6364136223846793005 + 1442695040888963407
			f.Submit(read(pcie.NIC, pcie.Host, page>>44), sim.Cause{}, sim.Kind{}, sink, 0)
			eng.Run()
		}
	}
	round()
	if n := testing.AllocsPerRun(5, round); n > 0 {
		t.Errorf("%.0f allocations in 1000 reads that miss", n)
	}
}

// TestAccessSharesTags: a read of more requests than there are tags has them
// all out and no more, so that a window of them comes every round trip; a write
// of more TLPs than there are credits, a window every time that they are held.
// TLP by TLP is the reference.
func TestAccessSharesTags(t *testing.T) {
	const n = 1 << 20
	for _, tt := range []struct {
		name  string
		write bool
		set   func(*pcie.Config)
		bytes int64 // of a TLP
		limit int64
	}{
		{"32 tags", false, func(c *pcie.Config) { c.Tags[pcie.NIC] = 32 }, 512, 32},
		{"1 tag", false, func(c *pcie.Config) { c.Tags[pcie.NIC] = 1 }, 512, 1},
		{"17 tags", false, func(c *pcie.Config) { c.Tags[pcie.NIC] = 17 }, 512, 17},
		{"enough tags", false, func(*pcie.Config) {}, 512, 0},
		{"8 posted credits", true, func(c *pcie.Config) { c.PostedCredits = 8 }, 256, 8},
		{"enough credits", true, func(*pcie.Config) {}, 256, 0},
	} {
		c := config(pcie.PHB)
		// 25 ns of a link and 41 of the root complex each way; 1 us in all.
		c.Units[pcie.NIC] = pcie.Timing{Egress: fixed(60), Return: fixed(50)}
		c.Units[pcie.Host] = pcie.Timing{Read: fixed(758)}
		tt.set(&c)
		a := pcie.Access{From: pcie.NIC, To: pcie.Host, Write: tt.write, Bytes: n}
		whole, _ := ends(t, c, 1, func(int) pcie.Access { return a })
		each, _ := ends(t, c, int(n/tt.bytes), func(i int) pcie.Access {
			p := a
			p.Addr, p.Bytes = uint64(int64(i)*tt.bytes), tt.bytes
			return p
		})
		got, one := sim.Duration(whole[0]), sim.Duration(each[len(each)-1])
		if d := float64(got)/float64(one) - 1; d < -0.01 || d > 0.07 {
			t.Errorf("%s: %v, TLP by TLP %v", tt.name, got, one)
		}
		f := func(bytes int64) sim.Duration { return sim.NewPipe(c.NICLink.BitsPerSecond()).Transfer(bytes) }
		hold := 1000*ns + f(c.RequestHeader) + f(tt.bytes+20*tt.bytes/256) // a tag: from its request to its data
		if tt.write {
			hold = 66*ns + f(tt.bytes+c.RequestHeader) // a credit: until its TLP is there
		}
		if tt.limit == 0 {
			continue
		}
		if want := hold * sim.Duration(n/tt.bytes/tt.limit); float64(got) < 0.93*float64(want) || float64(got) > 1.07*float64(want) {
			t.Errorf("%s: %v, want %v", tt.name, got, want)
		}
	}
}

// TestShortReadBehindLong: a read that comes while a long one wants every tag
// waits for its turn, and all tags are back in the end.
func TestShortReadBehindLong(t *testing.T) {
	c := config(pcie.PHB)
	c.Tags[pcie.NIC] = 4
	at, f := ends(t, c, 2, func(i int) pcie.Access {
		return pcie.Access{From: pcie.NIC, To: pcie.Host, Bytes: []int64{64 << 10, 64}[i]}
	})
	if alone := f.RoundTrip(pcie.NIC, pcie.Host, 64); at[1] < at[0] || at[1].Sub(at[0]) > alone {
		t.Errorf("the long read ended at %v, the short one at %v", at[0], at[1])
	}
}

package pcie_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gdisim/model/pcie"
	"gdisim/sim"

	"pgregory.net/rapid"
)

const ns = sim.Nanosecond

func fixed(n int64) sim.Delay { return sim.Fixed(sim.Duration(n) * ns) }

// config has a different number for each latency, so that no sum comes out
// right by accident.
func config(class pcie.Class) pcie.Config {
	c := pcie.Config{
		Class:   class,
		GPULink: pcie.LinkSpec{MTps: 32000, Lanes: 16}, NICLink: pcie.LinkSpec{MTps: 16000, Lanes: 16}, UpLink: pcie.LinkSpec{MTps: 8000, Lanes: 16},
		C2CRate: 3_600_000_000_000, MPS: 256, MRRS: 512, RCB: 64, RequestHeader: 24, CompletionHeader: 20,
		LinkLatency: fixed(25), SwitchLatency: fixed(110), RootLatency: fixed(41), RootPeerLatency: fixed(59), MeshLatency: fixed(33), SocketLatency: fixed(100), SocketP2PRate: 40_000_000_000,
		PostedCredits: 512, NonPostedCredits: 256, CompletionCredits: 512,
	}
	c.Tags[pcie.GPU], c.Tags[pcie.NIC] = 256, 256
	c.Units[pcie.GPU] = pcie.Timing{Egress: fixed(250), Read: fixed(180), Write: fixed(445), Return: fixed(300)}
	c.Units[pcie.NIC] = pcie.Timing{Egress: fixed(60), Read: fixed(70), Write: fixed(20), Return: fixed(50)}
	c.Units[pcie.Host] = pcie.Timing{Read: fixed(130), Write: fixed(30)}
	c.Units[pcie.CPU] = pcie.Timing{Egress: fixed(90)}
	return c
}

func build(t interface{ Fatal(...any) }, c pcie.Config) (*sim.Engine, *pcie.Fabric) {
	eng := sim.New()
	f, err := pcie.New(eng, nil, rand.New(rand.NewPCG(1, 2)), "node0", c)
	if err != nil {
		t.Fatal(err)
	}
	return eng, f
}

// done calls a function when a transaction ends.
type done func(arg uint32)

func (d done) Done(arg uint32, _ sim.Cause) { d(arg) }

// at calls a function at an event.
type at func(arg uint32)

func (a at) Handle(arg uint32) { a(arg) }

func TestBytes(t *testing.T) {
	// Kalia et al. (ATC 2016) and Neugebauer et al. (SIGCOMM 2018): a write of S
	// is S + ceil(S/MPS) x 24, a read ceil(S/MRRS) x 24 up and
	// S + ceil(S/MPS) x 20 down.
	for _, tt := range []struct {
		n                            int64
		write, request, completion   int64
		writes, requests, completers int
	}{
		{1, 25, 24, 21, 1, 1, 1},
		{8, 32, 24, 28, 1, 1, 1},
		{64, 88, 24, 84, 1, 1, 1},
		{256, 280, 24, 276, 1, 1, 1},
		{257, 305, 24, 297, 2, 1, 2},
		{512, 560, 24, 552, 2, 1, 2},
		{513, 585, 48, 573, 3, 2, 3},
		{4096, 4096 + 16*24, 8 * 24, 4096 + 16*20, 16, 8, 16},
		{65536, 65536 + 256*24, 128 * 24, 65536 + 256*20, 256, 128, 256},
	} {
		c := config(pcie.PIX)
		for _, x := range []struct {
			what  string
			f     func(int64) (int64, int)
			bytes int64
			tlps  int
		}{{"write", c.WriteBytes, tt.write, tt.writes}, {"request", c.ReadRequestBytes, tt.request, tt.requests}, {"completion", c.CompletionBytes, tt.completion, tt.completers}} {
			if b, n := x.f(tt.n); b != x.bytes || n != x.tlps {
				t.Errorf("%s of %d B: %d B in %d TLPs, want %d in %d", x.what, tt.n, b, n, x.bytes, x.tlps)
			}
		}
	}
}

func TestLinkRate(t *testing.T) {
	for _, tt := range []struct {
		link pcie.LinkSpec
		text string
		gbps float64
	}{
		{pcie.LinkSpec{MTps: 2500, Lanes: 1}, "2.5GT/s x1", 2},
		{pcie.LinkSpec{MTps: 5000, Lanes: 8}, "5GT/s x8", 32},
		{pcie.LinkSpec{MTps: 8000, Lanes: 16}, "8GT/s x16", 126.03},
		{pcie.LinkSpec{MTps: 16000, Lanes: 16}, "16GT/s x16", 252.06},
		{pcie.LinkSpec{MTps: 32000, Lanes: 16}, "32GT/s x16", 504.12},
		{pcie.LinkSpec{MTps: 64000, Lanes: 16}, "64GT/s x16", 944},
	} {
		if got := float64(tt.link.BitsPerSecond()) / 1e9; got < tt.gbps-0.006 || got > tt.gbps+0.006 {
			t.Errorf("%v: %.3f Gb/s, want %.2f", tt.link, got, tt.gbps)
		}
		if tt.link.String() != tt.text {
			t.Errorf("%v prints as %q", tt.text, tt.link.String())
		}
	}
}

func TestClassNames(t *testing.T) {
	for c := pcie.PIX; c <= pcie.C2C; c++ {
		if got, ok := pcie.ParseClass(c.String()); !ok || got != c {
			t.Errorf("%v parses as %v, %v", c, got, ok)
		}
	}
	if _, ok := pcie.ParseClass("pix"); ok {
		t.Error("a class in lower case is taken")
	}
}

func TestConfigErrors(t *testing.T) {
	for _, change := range []func(*pcie.Config){
		func(c *pcie.Config) { c.MPS = 0 }, func(c *pcie.Config) { c.MRRS = 0 }, func(c *pcie.Config) { c.RCB = -1 },
		func(c *pcie.Config) { c.DLLPShare = 1 }, func(c *pcie.Config) { c.DLLPShare = -0.1 },
	} {
		c := config(pcie.PIX)
		change(&c)
		if _, err := pcie.New(sim.New(), nil, nil, "node0", c); err == nil {
			t.Errorf("no error for %+v", c)
		}
	}
}

// way is what a TLP crosses: latencies in ns, and the links' rates in b/s.
type way struct {
	latency int64
	rates   []int64
}

// ways sums by hand what a TLP crosses, per class and pair of units. Either
// direction is the same.
func ways(c pcie.Config) map[[2]pcie.Unit]way {
	gpu, nic, up := c.GPULink.BitsPerSecond(), c.NICLink.BitsPerSecond(), c.UpLink.BitsPerSecond()
	var peer, nicHost, gpuHost way
	switch c.Class {
	case pcie.PIX:
		peer = way{25 + 110 + 25, []int64{gpu, nic}}
		nicHost = way{25 + 110 + 25 + 41, []int64{nic, up}}
		gpuHost = way{25 + 110 + 25 + 41, []int64{gpu, up}}
	case pcie.PXB:
		peer = way{4*25 + 3*110, []int64{gpu, up, up, nic}}
		nicHost = way{3*25 + 2*110 + 41, []int64{nic, up, up}}
		gpuHost = way{3*25 + 2*110 + 41, []int64{gpu, up, up}}
	case pcie.PHB:
		peer = way{25 + 59 + 25, []int64{gpu, nic}}
	case pcie.NODE:
		peer = way{25 + 59 + 33 + 25, []int64{gpu, nic}}
	case pcie.SYS:
		peer = way{25 + 59 + 100 + 25, []int64{gpu, c.SocketP2PRate, nic}}
	case pcie.C2C:
		gpu = c.C2CRate
		peer = way{25 + 41 + 25, []int64{gpu, nic}}
	}
	if nicHost.rates == nil { // both on a root complex
		nicHost, gpuHost = way{25 + 41, []int64{nic}}, way{25 + 41, []int64{gpu}}
	}
	if c.Class == pcie.SYS { // the host is on one of the two sockets
		if c.HostNearGPU {
			nicHost.latency += 100
		} else {
			gpuHost.latency += 100
		}
	}
	return map[[2]pcie.Unit]way{
		{pcie.GPU, pcie.NIC}: peer, {pcie.NIC, pcie.GPU}: peer,
		{pcie.NIC, pcie.Host}: nicHost, {pcie.Host, pcie.NIC}: nicHost, {pcie.NIC, pcie.CPU}: nicHost, {pcie.CPU, pcie.NIC}: nicHost,
		{pcie.GPU, pcie.Host}: gpuHost, {pcie.Host, pcie.GPU}: gpuHost, {pcie.GPU, pcie.CPU}: gpuHost, {pcie.CPU, pcie.GPU}: gpuHost,
	}
}

// time is the idle time of n bytes on the way: switches cut through, so that
// the bytes count once, at the slowest link.
func (w way) time(n int64) sim.Duration {
	slowest := w.rates[0]
	for _, r := range w.rates {
		slowest = min(slowest, r)
	}
	return sim.Duration(w.latency)*ns + sim.NewPipe(slowest).Transfer(n)
}

func TestIdleTimes(t *testing.T) {
	for class := pcie.PIX; class <= pcie.C2C; class++ {
		for _, n := range []int64{8, 64, 300, 4096, 65536} {
			c := config(class)
			c.HostNearGPU = n == 300 // one size suffices for the other socket
			for pair, w := range ways(c) {
				from, to := pair[0], pair[1]
				bytes, _ := c.WriteBytes(n)
				write := c.Units[from].Egress.Mean() + w.time(bytes) + c.Units[to].Write.Mean()
				req := c.RequestHeader // the first to come is served first
				cpl, _ := c.CompletionBytes(n)
				read := c.Units[from].Egress.Mean() + w.time(req) + c.Units[to].Read.Mean() + w.time(cpl) + c.Units[from].Return.Mean()

				eng, f := build(t, c)
				name := fmt.Sprintf("%v %v to %v, %d B", class, from, to, n)
				if got := f.OneWay(from, to, n); got != write {
					t.Errorf("%s: OneWay %v, want %v", name, got, write)
				}
				if got := f.RoundTrip(from, to, n); got != read {
					t.Errorf("%s: RoundTrip %v, want %v", name, got, read)
				}
				ends := 0
				f.Write(from, to, n, sim.Cause{}, sim.Kind{}, done(func(uint32) {
					ends++
					if got := sim.Duration(eng.Now()); got != write {
						t.Errorf("%s: a write took %v, want %v", name, got, write)
					}
				}), 0)
				eng.Run()
				begin := eng.Now()
				f.Read(from, to, n, sim.Cause{}, sim.Kind{}, done(func(uint32) {
					ends++
					if got := eng.Now().Sub(begin); got != read {
						t.Errorf("%s: a read took %v, want %v", name, got, read)
					}
					sampled := begin.Add(c.Units[from].Egress.Mean() + w.time(req) + c.Units[to].Read.Mean()/2)
					if f.Sampled() != sampled {
						t.Errorf("%s: sampled at %v, want %v", name, f.Sampled(), sampled)
					}
				}), 0)
				eng.Run()
				if err := f.Idle(); err != nil || ends != 2 {
					t.Errorf("%s: %d transactions ended, %v", name, ends, err)
				}
			}
		}
	}
}

// TestDLLPShare: what DLLPs take is not there for TLPs.
func TestDLLPShare(t *testing.T) {
	c := config(pcie.PHB)
	_, full := build(t, c)
	c.DLLPShare = 0.5
	_, half := build(t, c)
	const n = 1 << 20
	d := half.OneWay(pcie.NIC, pcie.Host, n) - full.OneWay(pcie.NIC, pcie.Host, n)
	bytes, _ := c.WriteBytes(n)
	if want := sim.NewPipe(c.NICLink.BitsPerSecond()).Transfer(bytes); d < want-2 || d > want+2 {
		t.Errorf("half the rate costs %v more, want %v", d, want)
	}
}

// TestFIFO: writes that leave together share the link one after the other.
func TestFIFO(t *testing.T) {
	c := config(pcie.PHB)
	eng, f := build(t, c)
	const k, n = 20, 4096
	var ends []sim.Time
	for i := range k {
		f.Write(pcie.NIC, pcie.Host, n, sim.Cause{}, sim.Kind{}, done(func(arg uint32) {
			if int(arg) != len(ends) {
				t.Errorf("write %d came as number %d", arg, len(ends))
			}
			ends = append(ends, eng.Now())
		}), uint32(i))
	}
	bytes, _ := c.WriteBytes(n)
	p := sim.NewPipe(c.NICLink.BitsPerSecond())
	if got := f.Backlog(pcie.NIC); got != 0 {
		t.Errorf("backlog %v before anything is on the link", got)
	}
	eng.RunUntil(sim.Time(60 * ns)) // the NIC's egress
	if got, want := f.Backlog(pcie.NIC), p.Transfer(k*bytes); got != want {
		t.Errorf("backlog %v with %d writes, want %v", got, k, want)
	}
	eng.Run()
	for i, e := range ends {
		want := f.OneWay(pcie.NIC, pcie.Host, n) - p.Transfer(bytes) + p.Transfer(bytes*int64(i+1))
		if sim.Duration(e) != want {
			t.Errorf("write %d was visible at %v, want %v", i, e, want)
		}
	}
}

// TestTags: no more reads are outstanding than there are tags.
func TestTags(t *testing.T) {
	c := config(pcie.PHB)
	c.Tags[pcie.GPU] = 2
	eng, f := build(t, c)
	rtt := f.RoundTrip(pcie.GPU, pcie.Host, 8)
	var ends []sim.Time
	for i := range 7 {
		f.Read(pcie.GPU, pcie.Host, 8, sim.Cause{}, sim.Kind{}, done(func(uint32) { ends = append(ends, eng.Now()) }), uint32(i))
	}
	eng.Run()
	for i, e := range ends {
		if i >= 2 {
			e = sim.Time(e.Sub(ends[i-2])) // the one whose tag it got
		}
		if d := sim.Duration(e) - rtt; d < 0 || d > ns {
			t.Errorf("read %d ended %v after it had a tag, want %v", i, sim.Duration(e), rtt)
		}
	}
	if len(ends) != 7 {
		t.Errorf("%d reads ended, want 7", len(ends))
	}
}

// TestCredits: too few credits delay writes and lose none; a read behind them
// does not pass, a completion does.
func TestCredits(t *testing.T) {
	last := func(credits int) (writes, read, completed sim.Time) {
		c := config(pcie.PHB)
		c.PostedCredits = credits
		eng, f := build(t, c)
		n := 0
		// The host reads nothing; the GPU reads the NIC, whose completion goes
		// the same way as the NIC's writes.
		f.Read(pcie.GPU, pcie.NIC, 8, sim.Cause{}, sim.Kind{}, done(func(uint32) { completed = eng.Now() }), 0)
		for i := range 40 {
			f.Write(pcie.NIC, pcie.GPU, 8, sim.Cause{}, sim.Kind{}, done(func(arg uint32) {
				if int(arg) != n {
					t.Errorf("%d credits: write %d came as number %d", credits, arg, n)
				}
				n++
				writes = eng.Now()
			}), uint32(i))
		}
		f.Read(pcie.NIC, pcie.GPU, 8, sim.Cause{}, sim.Kind{}, done(func(uint32) { read = f.Sampled() }), 0)
		eng.Run()
		if err := f.Idle(); err != nil || n != 40 || read == 0 || completed == 0 {
			t.Errorf("%d credits: %d writes, read at %v, completion at %v, %v", credits, n, read, completed, err)
		}
		return writes, read, completed
	}
	w1, r1, c1 := last(1)
	w512, r512, c512 := last(512)
	if w1 < w512.Add(10*445*ns) {
		t.Errorf("40 writes took %v with one credit and %v with 512", w1, w512)
	}
	// The last write reaches the GPU 445 ns before it is visible.
	if r1 < w1.Add(-445*ns) || r512 < w512.Add(-445*ns) {
		t.Errorf("reads at %v and %v passed writes visible at %v and %v", r1, r512, w1, w512)
	}
	// Without relaxed ordering a completion may not pass writes either.
	if c1 < c512.Add(10*445*ns) {
		t.Errorf("a completion came at %v behind blocked writes and at %v else", c1, c512)
	}
}

// TestRandomTraffic: whatever is sent arrives once, in order where PCIe keeps
// order, and leaves nothing behind.
func TestRandomTraffic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := config(rapid.Map(rapid.IntRange(0, int(pcie.C2C)), func(i int) pcie.Class { return pcie.Class(i) }).Draw(t, "class"))
		few := rapid.SampledFrom([]int{1, 2, 5, 1000})
		c.PostedCredits, c.NonPostedCredits, c.CompletionCredits = few.Draw(t, "posted"), few.Draw(t, "non-posted"), few.Draw(t, "completion")
		c.Tags[pcie.GPU], c.Tags[pcie.NIC] = few.Draw(t, "gpu tags"), few.Draw(t, "nic tags")
		c.Tags[pcie.CPU] = 4
		if rapid.Bool().Draw(t, "random latencies") {
			c.LinkLatency, c.SwitchLatency, c.RootLatency = sim.Uniform(0, 900*ns), sim.Exponential(200*ns), sim.Exponential(100*ns)
			c.Units[pcie.NIC].Egress, c.Units[pcie.GPU].Egress = sim.Exponential(100*ns), sim.Exponential(300*ns)
		}
		c.Redirect, c.HostFar = rapid.Bool().Draw(t, "redirect"), c.Class != pcie.SYS && rapid.Bool().Draw(t, "far")
		if rapid.Bool().Draw(t, "ordered") {
			c.OrderedWrite = sim.Duration(rapid.Int64Range(1, 50).Draw(t, "gap between ordered")) * ns
		}
		if rapid.Bool().Draw(t, "translated") {
			c.IOMMU = pcie.IOMMU{Page: 4096, Entries: rapid.IntRange(1, 8).Draw(t, "entries"), Hit: fixed(4), Walk: sim.Exponential(300 * ns), Interval: 50 * ns}
			c.IOMMU.ATC = rapid.IntRange(0, 4).Draw(t, "atc")
		}
		eng, f := build(t, c)

		type issued struct {
			write    bool
			from, to pcie.Unit
			bytes    int64
			addr     uint64
			at, end  sim.Time
			arrived  sim.Time // at the target
			ended    int
		}
		units := []pcie.Unit{pcie.GPU, pcie.NIC, pcie.Host, pcie.CPU}
		ops := make([]issued, rapid.IntRange(1, 60).Draw(t, "transactions"))
		when := sim.Time(0)
		over := done(func(i uint32) {
			o := &ops[i]
			o.ended++
			o.end = eng.Now()
			if o.write {
				o.arrived = o.end.Add(-c.Units[o.to].Write.Mean())
			} else {
				o.arrived = f.Sampled().Add(-c.Units[o.to].Read.Mean() / 2)
			}
		})
		start := eng.Register(at(func(i uint32) {
			o := &ops[i]
			f.Submit(pcie.Access{From: o.from, To: o.to, Write: o.write, Bytes: o.bytes, Addr: o.addr}, sim.Cause{}, sim.Kind{}, over, i)
		}))
		out, in := map[pcie.Unit]int64{}, map[pcie.Unit]int64{}
		for i := range ops {
			o := &ops[i]
			o.write = rapid.Bool().Draw(t, "write")
			pair := rapid.SampledFrom([][2]int{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {3, 0}, {3, 1}}).Draw(t, "pair")
			o.from, o.to = units[pair[0]], units[pair[1]]
			o.bytes = rapid.Int64Range(1, 9000).Draw(t, "bytes")
			o.addr = rapid.Uint64Range(0, 1<<16).Draw(t, "address")
			when = when.Add(sim.Duration(rapid.Int64Range(0, 300).Draw(t, "gap")) * ns)
			o.at = when
			eng.At(when, start, uint32(i))
			if o.write {
				b, _ := c.WriteBytes(o.bytes)
				out[o.from] += b
				in[o.to] += b
			} else {
				req, _ := c.ReadRequestBytes(o.bytes)
				cpl, _ := c.CompletionBytes(o.bytes)
				out[o.from] += req
				in[o.to] += req
				out[o.to] += cpl
				in[o.from] += cpl
			}
		}
		eng.Run()
		if err := f.Idle(); err != nil {
			t.Fatal(err)
		}
		type flow [2]pcie.Unit
		lastWrite := map[flow]*issued{}
		for i := range ops {
			o := &ops[i]
			if o.ended != 1 {
				t.Fatalf("transaction %d ended %d times", i, o.ended)
			}
			if o.end <= o.at {
				t.Fatalf("transaction %d ended at %v, begun at %v", i, o.end, o.at)
			}
			if w := lastWrite[flow{o.from, o.to}]; w != nil {
				if o.write && o.end < w.end {
					t.Fatalf("write %d passed a write of its flow: %v before %v", i, o.end, w.end)
				}
				// A read that waited for a tag leaves later than it was issued.
				if !o.write && o.arrived < w.arrived {
					t.Fatalf("read %d passed a write of its flow: %v before %v", i, o.arrived, w.arrived)
				}
			}
			if o.write {
				lastWrite[flow{o.from, o.to}] = o
			}
		}
		for _, l := range f.Traffic() {
			if l.Busy > sim.Duration(eng.Now()) || l.Bytes > 0 && l.Busy == 0 {
				t.Fatalf("%s: %d B, busy for %v of %v", l.Name, l.Bytes, l.Busy, eng.Now())
			}
			var want int64
			switch l.Name {
			case "node0.pcie.gpu.up":
				want = out[pcie.GPU]
			case "node0.pcie.gpu.down":
				want = in[pcie.GPU]
			case "node0.pcie.nic.up":
				want = out[pcie.NIC]
			case "node0.pcie.nic.down":
				want = in[pcie.NIC]
			default:
				continue
			}
			if l.Bytes != want {
				t.Fatalf("%s carried %d B, want %d", l.Name, l.Bytes, want)
			}
		}
	})
}

// TestTrafficInFlight: a link is not busy with what it has yet to send.
func TestTrafficInFlight(t *testing.T) {
	eng, f := build(t, config(pcie.PHB))
	for range 100 {
		f.Write(pcie.NIC, pcie.Host, 4096, sim.Cause{}, sim.Kind{}, done(func(uint32) {}), 0)
	}
	for eng.Step() {
		for _, l := range f.Traffic() {
			if l.Busy < 0 || l.Busy > sim.Duration(eng.Now()) {
				t.Fatalf("%s: busy for %v at %v", l.Name, l.Busy, eng.Now())
			}
		}
	}
}

// TestKaliaBytes: the byte counts that Kalia et al. (ATC 2016) give for ten WQEs
// of 65 B on their way to the NIC: pushed in lines of 64 B, or fetched as blocks
// of 128 B in completions of 128 B behind one doorbell.
func TestKaliaBytes(t *testing.T) {
	c := pcie.Config{MPS: 128, MRRS: 512, RCB: 64, RequestHeader: 26, CompletionHeader: 22}
	line, _ := c.WriteBytes(64)
	if got := 10 * 2 * line; got != 1800 {
		t.Errorf("WQEs by MMIO take %d B, want 1800", got)
	}
	doorbell, _ := c.WriteBytes(8)
	blocks, n := c.CompletionBytes(10 * 128)
	if got := doorbell + blocks; got != 1534 || n != 10 {
		t.Errorf("a doorbell and WQEs by DMA take %d B with %d completions, want 1534 with 10", got, n)
	}
}

package gpu_test

import (
	"math/rand/v2"
	"testing"

	"gdisim/model/gpu"
	"gdisim/model/pcie"
	"gdisim/sim"
)

// told calls a function at the end of what was asked for.
type told func(arg uint32)

func (t told) Done(arg uint32, _ sim.Cause) { t(arg) }

type moment func(arg uint32)

func (m moment) Handle(arg uint32) { m(arg) }

// edge returns the edge of a GPU whose bus takes 100 ns each way and 30 ns at the
// host, with a fence of 50 + 40 + 7 ns.
func edge(t testing.TB, change func(*gpu.EdgeConfig)) (*sim.Engine, *pcie.Fabric, *gpu.Edge) {
	fixed := func(n int64) sim.Delay { return sim.Fixed(sim.Duration(n) * ns) }
	c := pcie.Config{
		Class:   pcie.NODE,
		GPULink: pcie.LinkSpec{MTps: 32000, Lanes: 16}, NICLink: pcie.LinkSpec{MTps: 32000, Lanes: 16}, UpLink: pcie.LinkSpec{MTps: 32000, Lanes: 16},
		MPS: 256, MRRS: 512, RCB: 64, RequestHeader: 24, CompletionHeader: 20, LinkLatency: fixed(60), RootLatency: fixed(40),
		PostedCredits: 4096, NonPostedCredits: 4096, CompletionCredits: 4096,
	}
	c.Tags[pcie.GPU] = 1024
	c.Units[pcie.Host] = pcie.Timing{Read: fixed(30)}
	eng := sim.New()
	bus, err := pcie.New(eng, nil, nil, "n", c)
	if err != nil {
		t.Fatal(err)
	}
	ec := gpu.EdgeConfig{
		Out: fixed(50), Back: fixed(40), FullExtra: fixed(7), StoreRate: 400_000_000_000, SMRate: 400_000_000_000, MemoryRate: 8_000_000_000_000,
		StoreBurst: 16384, LoadBurst: 8192, SMQueue: 65536, EdgeQueue: 32768, CopyChunk: 4096, CopyReads: 65536, CopyWrites: 32768,
	}
	if change != nil {
		change(&ec)
	}
	return eng, bus, gpu.NewEdge(ec, eng, nil, rand.New(rand.NewPCG(1, 2)), bus, sim.Cause{}, sim.Kind{})
}

// after returns how long a fence takes that begins so long after the start.
func after(eng *sim.Engine, e *gpu.Edge, begin sim.Duration) (took sim.Duration) {
	eng.At(sim.Time(begin), eng.Register(moment(func(uint32) {
		e.Fence(sim.Cause{}, sim.Kind{}, true, told(func(uint32) { took = eng.Now().Sub(sim.Time(begin)); eng.Stop() }), 0)
	})), 0)
	eng.Run()
	return took
}

// A fence alone is its trip. With a read under way it ends when the data is back;
// a read that is asked for after it got to the edge does not hold it.
func TestFenceAndReads(t *testing.T) {
	for _, tt := range []struct {
		name string
		read sim.Duration // asked for at; negative: none
		want func(rtt sim.Duration) sim.Duration
	}{
		{"alone", -1, func(sim.Duration) sim.Duration { return 97 * ns }},
		{"behind a read", 990 * ns, func(rtt sim.Duration) sim.Duration { return rtt - 10*ns + 7*ns }},
		{"a read on the way to the edge", 1040 * ns, func(rtt sim.Duration) sim.Duration { return rtt + 40*ns + 7*ns }},
		{"a read behind it", 1060 * ns, func(sim.Duration) sim.Duration { return 97 * ns }},
	} {
		eng, bus, e := edge(t, nil)
		if tt.read >= 0 {
			eng.At(sim.Time(tt.read), eng.Register(moment(func(uint32) { e.Read(8, sim.Cause{}, sim.Kind{}, told(func(uint32) {}), 0) })), 0)
		}
		if got, want := after(eng, e, 1000*ns), tt.want(bus.RoundTrip(pcie.GPU, pcie.Host, 8)); got != want {
			t.Errorf("%s: %v, want %v", tt.name, got, want)
		}
	}
}

// Behind pollers of one line a fence waits for the turns of all of them; behind
// pollers of words of their own, for a read.
func TestFenceBehindPollers(t *testing.T) {
	const n, way = 16, 60 * ns
	for _, tt := range []struct {
		name string
		poll func(*gpu.Edge)
		want func(read sim.Duration) (low, high sim.Duration)
	}{
		{"own words", func(e *gpu.Edge) { e.PollWords(n) }, func(read sim.Duration) (_, _ sim.Duration) { return read, read + 57*ns }},
		{"one line", func(e *gpu.Edge) { e.PollLine(n, way) }, func(read sim.Duration) (_, _ sim.Duration) {
			return (n - 1) * (read - way), n*(read-way) + 57*ns
		}},
	} {
		eng, bus, e := edge(t, nil)
		tt.poll(e)
		low, high := tt.want(bus.RoundTrip(pcie.GPU, pcie.Host, 8))
		if got := after(eng, e, 50_000*ns); got < low || got > high {
			t.Errorf("%s: %v, want %v to %v", tt.name, got, low, high)
		}
	}
}

// Stores of many SMs to GPU memory stand before the fence, one burst of each.
func TestFenceBehindMemory(t *testing.T) {
	eng, _, e := edge(t, nil)
	e.StoreToMemory(100)
	// 16 KiB at 1 TB/s are 16.384 ns; of 100 bursts the first has begun.
	burst := sim.Duration(16384) * ns / 1000
	got := after(eng, e, 1000*burst) - 97*ns
	if got < 99*burst || got > 100*burst {
		t.Errorf("waited %v, want 99 to 100 bursts of %v", got, burst)
	}
}

// Behind saturating stores to the host the fence waits for what all SMs have
// queued and for the shared queue, at the rate of the edge.
func TestFenceBehindStores(t *testing.T) {
	for _, n := range []int{2, 8} {
		eng, _, e := edge(t, nil)
		e.StoreToHost(n)
		got := after(eng, e, 200*1000*ns)
		full := sim.Duration(n*65536+32768) * ns / 50 // 50 bytes a ns
		burst := sim.Duration(n*16384) * ns / 50
		if got > full+97*ns || got < full-burst {
			t.Errorf("%d SMs: %v, want %v to %v", n, got, full-burst, full+97*ns)
		}
	}
}

// Copies and loads run at the rate of the link; those of a small window at
// window / latency.
func TestStreamRates(t *testing.T) {
	run := func(change func(*gpu.EdgeConfig), start func(*gpu.Edge)) (up, down float64) {
		eng, bus, e := edge(t, change)
		start(e)
		eng.RunUntil(sim.Time(100 * 1000 * ns))
		for _, l := range bus.Traffic() {
			switch l.Name {
			case "n.pcie.gpu.up":
				up = float64(l.Bytes) / 100e3
			case "n.pcie.gpu.down":
				down = float64(l.Bytes) / 100e3
			}
		}
		return up, down
	}
	const link = 63.0 // GB/s
	if up, _ := run(nil, (*gpu.Edge).CopyToHost); up < 0.97*link {
		t.Errorf("copy to host: %.1f GB/s on a link of %.1f", up, link)
	}
	if _, down := run(nil, (*gpu.Edge).CopyToGPU); down < 0.97*link {
		t.Errorf("copy to GPU: %.1f GB/s on a link of %.1f", down, link)
	}
	// 4 KiB and the headers of 16 completions, each 230 ns and its own time on the link.
	_, down := run(func(c *gpu.EdgeConfig) { c.CopyReads = 4096 }, (*gpu.Edge).CopyToGPU)
	if want := 4416 / (230 + 4416/link); down < 0.96*want || down > 1.04*want {
		t.Errorf("one access at a time: %.2f GB/s, want %.2f", down, want)
	}
}

// Nothing is allocated per access once tables have their size.
func TestEdgeAllocates(t *testing.T) {
	eng, _, e := edge(t, nil)
	e.CopyToGPU()
	e.CopyToHost()
	e.StoreToHost(4)
	eng.RunUntil(sim.Time(200 * 1000 * ns))
	at := eng.Now()
	if n := testing.AllocsPerRun(10, func() { at = at.Add(1000 * ns); eng.RunUntil(at) }); n > 1 {
		t.Errorf("%.1f allocations a microsecond", n)
	}
}

package gpu_test

import (
	"math/rand/v2"
	"testing"

	"gdisim/model/gpu"
	"gdisim/sim"

	"pgregory.net/rapid"
)

const ns = sim.Nanosecond

func fixed(n int64) sim.Delay { return sim.Fixed(sim.Duration(n) * ns) }

func config() *gpu.Config {
	return &gpu.Config{
		L1Hit: fixed(29), L1Refill: fixed(131), Sector: 32, InlineWord: fixed(26), ReleaseGPU: fixed(225), ReleaseSystem: fixed(580), SystemStores: fixed(360),
		FullExtra: fixed(42), Acquire: fixed(18), PollPeriod: fixed(168),
	}
}

// TestL1 follows one thread's loads: a line is cold at first, and again after
// an acquire or a full fence, whatever other lines do.
func TestL1(t *testing.T) {
	s := gpu.NewSM(config(), nil)
	const cold, hit = 131 * ns, 29 * ns
	for i, x := range []struct {
		what string
		got  sim.Duration
		want sim.Duration
	}{
		{"first loads", s.Load(gpu.LineState, 2), cold + 2*hit},
		{"again", s.Load(gpu.LineState, 2), 2 * hit},
		{"another line", s.Load(gpu.LinePayload, 1), cold + hit},
		{"reload while warm", s.Reload(gpu.LineState, 1), 0},
		{"release", s.Fence(gpu.ScopeGPU, false, true, 0), 225 * ns},
		{"after a release", s.Load(gpu.LineState, 1), hit},
		{"full fence", s.Fence(gpu.ScopeGPU, true, true, 0), (225 + 42) * ns},
		{"reload after a full fence", s.Reload(gpu.LineState, 1), cold},
		{"then warm", s.Load(gpu.LineState, 1), hit},
		{"payload after a full fence", s.Reload(gpu.LinePayload, 1), cold},
		{"acquire", s.Acquire(), 18 * ns},
		{"after an acquire", s.Load(gpu.LineState, 1), cold + hit},
		{"copy of 9 bytes, cold", s.Copy(9), cold + 3*26*ns},
		{"copy of 8 bytes, warm", s.Copy(8), 2 * 26 * ns},
		{"copy of 92 bytes, warm", s.Copy(92), 23 * 26 * ns},
		{"copy of nothing", s.Copy(0), 0},
		{"acquire again", s.Acquire(), 18 * ns},
		{"copy of 92 bytes, cold: three sectors", s.Copy(92), 3*cold + 23*26*ns},
	} {
		if x.got != x.want {
			t.Errorf("%d, %s: %v, want %v", i, x.what, x.got, x.want)
		}
	}
}

func TestFence(t *testing.T) {
	s := gpu.NewSM(config(), nil)
	for _, tt := range []struct {
		scope        gpu.Scope
		full, stores bool
		backlog      sim.Duration
		want         int64
	}{
		{gpu.ScopeGPU, false, false, 0, 225},
		{gpu.ScopeGPU, false, true, 5000 * ns, 225}, // the PCIe edge is beyond the GPU's scope
		{gpu.ScopeGPU, true, true, 0, 225 + 42},
		{gpu.ScopeSystem, false, false, 0, 580},
		{gpu.ScopeSystem, false, true, 0, 580 + 360},
		{gpu.ScopeSystem, false, true, 700 * ns, 580 + 360 + 700},
		{gpu.ScopeSystem, true, false, 700 * ns, 580 + 700 + 42},
	} {
		if got := s.Fence(tt.scope, tt.full, tt.stores, tt.backlog); got != sim.Duration(tt.want)*ns {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestSeen: a poller never knows before a value is visible, and at most a
// period and a half after, counted from when it began to look.
func TestSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := config()
		period := sim.Duration(rapid.Int64Range(0, 1000).Draw(t, "period"))
		c.PollPeriod = sim.Fixed(period)
		random := rapid.Bool().Draw(t, "random")
		if random {
			c.PollPeriod = sim.Uniform(period/2, period)
		}
		c.FixedPhase = rapid.Bool().Draw(t, "fixed phase")
		s := gpu.NewSM(c, rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))))
		begin := sim.Time(rapid.Int64Range(0, 5000).Draw(t, "begin"))
		visible := sim.Time(rapid.Int64Range(0, 20_000).Draw(t, "visible"))
		seen := s.Seen(begin, visible)
		from := max(begin, visible)
		if seen < from || seen > from.Add(period+(period+1)/2) {
			t.Fatalf("polling since %v, visible at %v, seen at %v with a period of %v", begin, visible, seen, period)
		}
		known := !random && c.FixedPhase
		if known && period > 0 && seen.Sub(begin)%period != 0 {
			t.Fatalf("seen at %v, between two polls since %v every %v", seen, begin, period)
		}
		if later := s.Seen(begin, visible+1); known && later < seen {
			t.Fatalf("visible later, seen earlier: %v and %v", later, seen)
		}
	})
}

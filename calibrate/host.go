package calibrate

import (
	"math/rand/v2"
	"slices"

	"gdisim/result"
	"gdisim/sim"
)

// hostCosts are the parameters that a measured cost of the host says directly.
var hostCosts = []struct{ measured, key, why string }{
	{"line.cross-core", "hardware.cpu.miss", "a line that another core wrote stands in for one that a device wrote"},
	{"gap", "hardware.cpu.tick.length", "median gap above 1 us; with other work on the core it is not the tick's alone"},
}

// host takes what it can from measured costs and returns the keys taken.
func (f *Fit) host(m *model, rs []*result.Result, o Options) map[string]bool {
	taken := map[string]bool{}
	rng := rand.New(rand.NewPCG(o.Seed, 0x686f7374))
	for _, h := range hostCosts {
		p := m.params[h.key]
		if p == nil || len(o.Fit) > 0 && !slices.Contains(o.Fit, h.key) {
			continue
		}
		for _, r := range rs {
			i := slices.IndexFunc(r.Measured, func(x result.Measured) bool {
				return x.Name == h.measured && x.Err == "" && x.N > 1 && len(x.Quantiles) == len(result.Levels())
			})
			if i < 0 || taken[h.key] {
				continue
			}
			x := &r.Measured[i]
			lo, hi := bootMedian(rng, x, o.Bootstrap)
			// A time at a known clock is a time: it needs no cycles.
			q := Param{Key: h.key, Prior: p.text(1), Value: x.P50.String(), LowValue: lo.String(), HighValue: hi.String(), Scale: 1, Low: 1, High: 1, Fitted: true, Measured: x.Name, Why: h.why}
			f.Params = append(f.Params, q)
			taken[h.key] = true
		}
	}
	return taken
}

// bootMedian draws samples from the quantiles that a result keeps, and returns
// the interval of their medians.
func bootMedian(rng *rand.Rand, x *result.Measured, n int) (lo, hi sim.Duration) {
	levels := result.Levels()
	draw := func() sim.Duration {
		at := rng.IntN(1_000_000)
		i, _ := slices.BinarySearch(levels, at)
		return x.Quantiles[i]
	}
	size := min(x.N, 2000)
	medians := make([]sim.Duration, n)
	s := make([]sim.Duration, size)
	for k := range medians {
		for i := range s {
			s[i] = draw()
		}
		slices.Sort(s)
		medians[k] = s[result.Rank(size, 500)]
	}
	slices.Sort(medians)
	tail := int(float64(n) * (1 - Confidence) / 2)
	return medians[tail], medians[n-1-tail]
}

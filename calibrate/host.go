package calibrate

import (
	"math/rand/v2"
	"slices"
	"strings"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
)

// term is a measured cost with its factor in a sum.
type term struct {
	measured string
	k        float64
}

// hostCosts are the parameters that measured costs of the host say directly, or
// as a sum: what the simulator's own sequence of the same step has beside them.
var hostCosts = []struct {
	key, why string
	terms    []term
}{
	{"hardware.cpu.miss", "a line that another core wrote stands in for one that a device wrote", []term{{"line.cross-core", 1}}},
	{"hardware.cpu.line", "", []term{{"line.cross-core", 1}}},
	{"hardware.cpu.tick.length", "median gap above 1 us; with other work on the core it is not the tick's alone", []term{{"gap", 1}}},
	{"hardware.cpu.syscall", "", []term{{"syscall", 1}}},
	{"hardware.cpu.yield", "", []term{{"sched-yield", 1}}},
	// A yield to another thread and back: two calls and two switches.
	{"hardware.cpu.switch", "", []term{{"switch.yield", 0.5}, {"syscall", -1}}},
	// A wake-up on one core: two calls, the wake-up and a switch.
	{"hardware.cpu.wake_up", "", []term{{"wake.futex.same-core", 1}, {"syscall", -1}, {"switch.yield", -0.5}}},
	{"hardware.cpu.object", "", []term{{"wake.eventfd.same-core", 1}, {"wake.futex.same-core", -1}}},
	// What an event costs beyond polling, less wake-up and switch.
	{"hardware.cpu.interrupt", "the exit of an idle state is in it, where the core entered one", []term{{"difference.event-minus-poll", 1}, {"wake.futex.same-core", -1}, {"syscall", 2}}},
}

// host takes what it can from measured costs and returns the keys taken.
func (f *Fit) host(m *model, rs []*result.Result, o Options) map[string]bool {
	taken := map[string]bool{}
	rng := rand.New(rand.NewPCG(o.Seed, 0x686f7374))
	for _, h := range hostCosts {
		p := m.params[h.key]
		// Steps of the host are numbers of their own, to be fitted.
		if len(h.terms) > 1 && m.steps() {
			continue
		}
		if p == nil || p.why == whySwept || len(o.Fit) > 0 && !slices.Contains(o.Fit, h.key) {
			continue
		}
		for _, r := range rs {
			costs := costsOf(r, h.terms)
			if costs == nil || taken[h.key] {
				continue
			}
			sum := func(of func(*result.Measured) sim.Duration) sim.Duration {
				v := 0.0
				for i, c := range costs {
					v += h.terms[i].k * float64(of(c))
				}
				return sim.Duration(v)
			}
			value := sum(func(c *result.Measured) sim.Duration { return c.P50 })
			if value <= 0 {
				f.Notices = append(f.Notices, h.key+" stays at its prior: "+sumOf(h.terms)+" is not above 0")
				continue
			}
			draws := make([]sim.Duration, o.Bootstrap)
			for k := range draws {
				draws[k] = sum(func(c *result.Measured) sim.Duration { return drawMedian(rng, c) })
			}
			lo, hi := tails(draws)
			// A time at a known clock is a time: it needs no cycles.
			q := Param{Key: h.key, Prior: p.text(1), Value: value.String(), LowValue: max(lo, 0).String(), HighValue: hi.String(), Scale: 1, Low: 1, High: 1, Fitted: true, Measured: sumOf(h.terms), Why: h.why}
			f.Params = append(f.Params, q)
			m.taken = append(m.taken, h.key+"="+q.Value)
			taken[h.key] = true
		}
	}
	return taken
}

// steps reports whether a scenario repeats a step of the machine.
func (m *model) steps() bool {
	return slices.ContainsFunc(m.sets, func(s Set) bool { return scenarios.IsStep(s.Scenario.Config(0, 0).Enum("workload.kind")) })
}

// sumOf writes a sum, "switch.yield/2 - syscall".
func sumOf(ts []term) string {
	var b strings.Builder
	for i, t := range ts {
		k := t.k
		switch {
		case i > 0 && k < 0:
			b.WriteString(" - ")
			k = -k
		case i > 0:
			b.WriteString(" + ")
		}
		switch k {
		case 0.5:
			b.WriteString(t.measured + "/2")
		case 2:
			b.WriteString("2 " + t.measured)
		default:
			b.WriteString(t.measured)
		}
	}
	return b.String()
}

// costsOf finds the measured cost of each term, of the machine or else of the
// first path that has it; nil where one is not there.
func costsOf(r *result.Result, ts []term) []*result.Measured {
	var out []*result.Measured
	for _, t := range ts {
		var found *result.Measured
		look := func(ms []result.Measured) {
			for i := range ms {
				m := &ms[i]
				sampled := m.N > 1 && (len(m.Quantiles) == len(result.Levels()) || m.Max > m.Min)
				if found == nil && m.Name == t.measured && m.Err == "" && sampled {
					found = m
				}
			}
		}
		look(r.Measured)
		r.EachMeasured(func(_ *result.Point, p *result.Path, ms []result.Measured) {
			if p != nil {
				look(ms)
			}
		})
		if found == nil {
			return nil
		}
		out = append(out, found)
	}
	return out
}

// drawMedian draws samples from the quantiles that a result keeps, and returns
// their median. A difference keeps its 95 % interval instead.
func drawMedian(rng *rand.Rand, x *result.Measured) sim.Duration {
	levels := result.Levels()
	if len(x.Quantiles) != len(levels) {
		return x.P50 + sim.Duration(rng.NormFloat64()*float64(x.Max-x.Min)/2/1.96)
	}
	s := make([]sim.Duration, min(x.N, 2000))
	for i := range s {
		k, _ := slices.BinarySearch(levels, rng.IntN(1_000_000))
		s[i] = x.Quantiles[k]
	}
	slices.Sort(s)
	return s[result.Rank(len(s), 500)]
}

// tails are the ends of the interval that Confidence says of draws.
func tails(draws []sim.Duration) (lo, hi sim.Duration) {
	slices.Sort(draws)
	n := len(draws)
	tail := int(float64(n) * (1 - Confidence) / 2)
	return draws[tail], draws[n-1-tail]
}

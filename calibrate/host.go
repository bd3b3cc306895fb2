package calibrate

import (
	"fmt"
	"maps"
	"math"
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
		pool := pooled(rng, rs, h.terms, o.Bootstrap)
		if len(pool) == 0 {
			continue
		}
		value := mean(pool, func(r *run) float64 { return r.value })
		if value <= 0 {
			f.Notices = append(f.Notices, h.key+" stays at its prior: "+sumOf(h.terms)+" is not above 0")
			continue
		}
		f.contradictions(h.key, h.terms, pool)
		lo, hi := between(rng, pool, value, o.Bootstrap)
		// A time at a known clock is a time: it needs no cycles.
		q := Param{Key: h.key, Prior: p.text(1), Value: value.String(), LowValue: max(lo, 0).String(), HighValue: hi.String(), Scale: 1, Low: 1, High: 1, Fitted: true, Measured: sumOf(h.terms), Runs: len(pool), Why: h.why}
		f.Params = append(f.Params, q)
		m.taken = append(m.taken, h.key+"="+q.Value)
		taken[h.key] = true
	}
	f.virtual(rs)
	return taken
}

// run is what one result says of a sum of costs: its value, and draws of it that
// know the spread within that run.
type run struct {
	source int
	value  float64
	draws  []float64
	lo, hi sim.Duration // the interval of the draws
}

// pooled evaluates a sum in each result that has all of its terms.
func pooled(rng *rand.Rand, rs []*result.Result, ts []term, bootstrap int) []run {
	var out []run
	for i, r := range rs {
		costs := costsOf(r, ts)
		if costs == nil {
			continue
		}
		sum := func(of func(*result.Measured) sim.Duration) float64 {
			v := 0.0
			for i, c := range costs {
				v += ts[i].k * float64(of(c))
			}
			return v
		}
		x := run{source: i, value: sum(func(c *result.Measured) sim.Duration { return c.P50 })}
		times := make([]sim.Duration, bootstrap)
		for k := range times {
			v := sum(func(c *result.Measured) sim.Duration { return drawMedian(rng, c) })
			x.draws, times[k] = append(x.draws, v), sim.Duration(v)
		}
		x.lo, x.hi = tails(times)
		out = append(out, x)
	}
	return out
}

func mean(rs []run, of func(*run) float64) sim.Duration {
	v := 0.0
	for i := range rs {
		v += of(&rs[i])
	}
	return sim.Duration(v / float64(len(rs)))
}

// between is the interval of the mean of several runs, by a bootstrap over the runs
// and within each. Drawing K runs out of K understates their spread by (K-1)/K,
// which is undone. Of one run it is the interval within that run.
func between(rng *rand.Rand, rs []run, value sim.Duration, bootstrap int) (lo, hi sim.Duration) {
	if len(rs) == 1 {
		return rs[0].lo, rs[0].hi
	}
	k := float64(len(rs))
	widen := math.Sqrt(k / (k - 1))
	draws := make([]sim.Duration, bootstrap)
	for i := range draws {
		v := 0.0
		for range rs {
			r := &rs[rng.IntN(len(rs))]
			v += r.draws[rng.IntN(len(r.draws))]
		}
		draws[i] = value + sim.Duration(widen*(v/k-float64(value)))
	}
	return tails(draws)
}

// contradictions names results that differ by more than each of them says it may
// be off.
func (f *Fit) contradictions(key string, ts []term, rs []run) {
	if len(rs) < 2 {
		return
	}
	least, most := &rs[0], &rs[0]
	for i := range rs {
		if rs[i].value < least.value {
			least = &rs[i]
		}
		if rs[i].value > most.value {
			most = &rs[i]
		}
	}
	if least.hi < most.lo {
		say := func(r *run) string {
			return fmt.Sprintf("%s has %v (%v to %v within the run)", label(r.source), sim.Duration(r.value), r.lo, r.hi)
		}
		f.Notices = append(f.Notices, fmt.Sprintf("CONTRADICTION: %s of %s: %s, %s; the mean is used, and the interval has the spread between runs", sumOf(ts), key, say(least), say(most)))
	}
}

// virtual warns of costs taken from a virtual machine, and of different processors.
func (f *Fit) virtual(rs []*result.Result) {
	if !slices.ContainsFunc(f.Params, func(p Param) bool { return p.Measured != "" }) {
		return
	}
	models := map[string]string{}
	var virtual []string
	why := ""
	for i, r := range rs {
		for _, s := range r.Machine {
			switch {
			case s.Key == "cpu.virtual" && strings.HasPrefix(s.Value, "virtual"):
				virtual, why = append(virtual, label(i)), strings.TrimPrefix(s.Value, "virtual: ")
			case s.Key == "cpu.model" && len(r.Measured) > 0:
				models[s.Value] = label(i)
			}
		}
	}
	if f.Virtual = len(virtual) > 0; f.Virtual {
		f.Notices = append(f.Notices, "costs of the host are a virtual machine's ("+strings.Join(virtual, ", ")+"): "+why)
	}
	if len(models) > 1 {
		var names []string
		for _, m := range slices.Sorted(maps.Keys(models)) {
			names = append(names, models[m]+": "+m)
		}
		f.Notices = append(f.Notices, "costs of the host are of different processors, pooled as if of one: "+strings.Join(names, "; "))
	}
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

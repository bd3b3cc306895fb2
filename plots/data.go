package plots

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// Limits beyond which a figure would no longer be read; what they cut is said
// in the caption.
const (
	maxSeries = 8
	maxBars   = 16
	maxPoints = 300
	maxCells  = 24
	maxLanes  = 24
	maxBlocks = 3000
)

// run is one path at one point of one result.
type run struct {
	res   int
	point *result.Point
	path  *result.Path
}

// runs lists what finished, in order.
func runs(rs []*result.Result) []run {
	var out []run
	for i, r := range rs {
		for j := range r.Points {
			p := &r.Points[j]
			for k := range p.Paths {
				if p.Paths[k].Err == "" {
					out = append(out, run{i, p, &p.Paths[k]})
				}
			}
		}
	}
	return out
}

// label names results so that they are told apart: by their backends, their
// names, or their order.
func labels(rs []*result.Result) []string {
	if len(rs) == 1 {
		return []string{""}
	}
	distinct := func(f func(*result.Result) string) []string {
		var out []string
		for _, r := range rs {
			s := f(r)
			if s == "" || slices.Contains(out, s) {
				return nil
			}
			out = append(out, s)
		}
		return out
	}
	for _, f := range []func(*result.Result) string{
		func(r *result.Result) string {
			return map[string]string{"sim": "simulator", "hw": "hardware", "import": "imported"}[r.Backend]
		},
		func(r *result.Result) string { return r.Name },
		func(r *result.Result) string { return r.Backend + " " + r.Name },
	} {
		if out := distinct(f); out != nil {
			return out
		}
	}
	var out []string
	for i, r := range rs {
		out = append(out, fmt.Sprintf("%s #%d", r.Name, i+1))
	}
	return out
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// pathNames are the names of all paths, in order of first sight; their order
// decides the lines.
func pathNames(rs []*result.Result) []string {
	var out []string
	seen := map[string]bool{}
	for _, r := range rs {
		for i := range r.Points {
			for j := range r.Points[i].Paths {
				if n := r.Points[i].Paths[j].Name; !seen[n] {
					seen[n] = true
					out = append(out, n)
				}
			}
		}
	}
	return out
}

// key is a swept key with its values in order of first sight.
type key struct {
	name   string
	short  string // the last part, or more where that is not enough
	values []string
}

// sweptKeys are the keys with more than one value.
func sweptKeys(rs []*result.Result) []key {
	var out []key
	at := map[string]int{}
	seen := map[[2]string]bool{}
	for _, r := range rs {
		for i := range r.Points {
			for _, s := range r.Points[i].At {
				if _, ok := at[s.Key]; !ok {
					at[s.Key] = len(out)
					out = append(out, key{name: s.Key})
				}
				if id := [2]string{s.Key, s.Value}; !seen[id] {
					seen[id] = true
					k := &out[at[s.Key]]
					k.values = append(k.values, s.Value)
				}
			}
		}
	}
	out = slices.DeleteFunc(out, func(k key) bool { return len(k.values) < 2 })
	for i := range out {
		k := &out[i]
		k.short = shortKey(k.name, 1)
		for n := 2; slices.ContainsFunc(out, func(o key) bool { return o.name != k.name && strings.HasSuffix(shortKey(o.name, 1), k.short) }) && n < 5; n++ {
			k.short = shortKey(k.name, n)
		}
	}
	return out
}

// shortKey is a key's last n parts, as words.
func shortKey(s string, n int) string {
	parts := strings.Split(s, ".")
	return strings.ReplaceAll(strings.Join(parts[max(0, len(parts)-n):], " "), "_", " ")
}

func setting(p *result.Point, key string) string {
	for _, s := range p.At {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// others writes the point's settings apart from those keys.
func others(p *result.Point, swept []key, but ...string) string {
	var parts []string
	for _, s := range p.At {
		i := slices.IndexFunc(swept, func(k key) bool { return k.name == s.Key })
		if i < 0 || slices.Contains(but, s.Key) {
			continue
		}
		parts = append(parts, swept[i].short+" "+s.Value)
	}
	return strings.Join(parts, ", ")
}

// quantity reads a value with its unit: "64KiB" is 65536 and "B".
func quantity(s string) (v float64, unit string, ok bool) {
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '.' || n == 0 && s[n] == '-') {
		n++
	}
	v, err := strconv.ParseFloat(s[:n], 64)
	if err != nil {
		return 0, "", false
	}
	unit = strings.TrimSpace(s[n:])
	for _, p := range []struct {
		prefix string
		factor float64
	}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}, {"p", 1e-12}} {
		rest, has := strings.CutPrefix(unit, p.prefix)
		switch rest {
		case "B", "b", "s", "Hz", "b/s", "B/s", "T/s":
			if has {
				return v * p.factor, rest, true
			}
		}
	}
	return v, unit, true
}

// numeric reports whether all values are quantities of one unit.
func (k *key) numeric() (unit string, ok bool) {
	for i, s := range k.values {
		_, u, is := quantity(s)
		if !is || i > 0 && u != unit {
			return "", false
		}
		unit = u
	}
	return unit, len(k.values) > 1
}

// isBytes reports whether the key is the size of a message.
func (k *key) isBytes() bool {
	u, ok := k.numeric()
	return ok && u == "B"
}

// preferred picks a metric of time that the runs have: of whole messages first.
func preferred(all []run) (stage.Metric, bool) {
	for _, m := range []stage.Metric{stage.PutCompletion, stage.Get, stage.Latency, stage.OneWay, stage.RTT, stage.Issue} {
		if slices.ContainsFunc(all, func(r run) bool { return r.path.Metric(m) != nil }) {
			return m, true
		}
	}
	return stage.NoMetric, false
}

// value is a path's metric as a number: microseconds at p50, or the metric's
// own unit.
func value(p *result.Path, m stage.Metric) (float64, bool) {
	x := p.Metric(m)
	switch {
	case x == nil:
		return 0, false
	case m.IsTime():
		return micros(x.P50), true
	}
	return x.Value, true
}

// unitOf is the unit of value.
func unitOf(m stage.Metric) string {
	if m.IsTime() {
		return "µs"
	}
	return m.Unit()
}

// valueText writes a value with its unit.
func valueText(m stage.Metric, v float64) string {
	if m.IsTime() {
		return timeText(sim.Duration(v * float64(sim.Microsecond)))
	}
	return digits(v) + space + m.Unit()
}

// metricText says what the metric's numbers are, for an axis.
func metricText(m stage.Metric) string {
	if m.IsTime() {
		return m.String() + ", " + unitOf(m)
	}
	return strings.ReplaceAll(m.String(), "-", " ") + ", " + unitOf(m)
}

// thin keeps at most most of n things, the ends among them, evenly.
func thin[T any](in []T, most int) []T {
	if len(in) <= most {
		return in
	}
	out := make([]T, most)
	for i := range out {
		out[i] = in[i*(len(in)-1)/(most-1)]
	}
	return out
}

// thinned says what was left out, or nothing.
func thinned(shown, all int, what string) string {
	if shown >= all {
		return ""
	}
	return fmt.Sprintf("Shown: %d of %d %s.", shown, all, what)
}

// sentences joins what there is to say.
func sentences(s ...string) string {
	return strings.Join(slices.DeleteFunc(s, func(s string) bool { return s == "" }), " ")
}

// bestFirst orders runs by a metric: short times, high rates.
func bestFirst(in []run, m stage.Metric) []run {
	var out []run
	for _, r := range in {
		if _, ok := value(r.path, m); ok {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b run) int {
		x, _ := value(a.path, m)
		y, _ := value(b.path, m)
		if m.IsTime() {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(y, x)
	})
	return out
}

// ratio is how many times the smaller of two the larger one is.
func ratio(a, b float64) float64 {
	lo, hi := min(a, b), max(a, b)
	if lo <= 0 {
		return 1
	}
	return hi / lo
}

package plots

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdisim/result"
	"gdisim/stage"
)

// track is a series over a swept key, before it is drawn.
type track struct {
	name string
	path int    // index of the path's name
	rest string // the other settings
	x    []float64
	runs []run
	note []string // the settings as written, per x
}

// tracks groups the runs that have m by path and by all other settings, each
// ordered by key.
func tracks(rs []*result.Result, m stage.Metric, by string) []track {
	swept := sweptKeys(rs)
	names := labels(rs)
	paths := pathNames(rs)
	var out []track
	index := map[string]int{}
	for _, r := range runs(rs) {
		if _, ok := value(r.path, m); !ok {
			continue
		}
		text := setting(r.point, by)
		v, _, ok := quantity(text)
		if !ok {
			continue
		}
		rest := others(r.point, swept, by)
		name := join(r.path.Name, names[r.res], rest)
		i, ok := index[name]
		if !ok {
			i = len(out)
			index[name] = i
			out = append(out, track{name: name, path: slices.Index(paths, r.path.Name), rest: rest})
		}
		t := &out[i]
		t.x, t.runs, t.note = append(t.x, v), append(t.runs, r), append(t.note, text)
	}
	for i := range out {
		t := &out[i]
		order := make([]int, len(t.x))
		for j := range order {
			order[j] = j
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(t.x[a], t.x[b]) })
		order = thin(order, maxPoints)
		t.x, t.runs, t.note = pick(t.x, order), pick(t.runs, order), pick(t.note, order)
	}
	return out
}

// shown keeps the tracks that a figure can show. Where other settings make too
// many, those of the first point are kept; where says which.
func shown(ts []track) (out []track, where string) {
	if len(ts) <= maxSeries {
		return ts, ""
	}
	rest := ts[0].rest
	for _, t := range ts {
		if t.rest == rest {
			t.name = strings.TrimSuffix(t.name, ", "+rest)
			out = append(out, t)
		}
	}
	if rest != "" {
		where = "At " + rest + "."
	}
	return out[:min(len(out), maxSeries)], where
}

func pick[T any](in []T, order []int) []T {
	out := make([]T, len(order))
	for i, j := range order {
		out[i] = in[j]
	}
	return out
}

// crossing is where a stops being the better one and b begins.
type crossing struct {
	x, y float64
	a, b *track
}

// even is the difference below which two paths are called even.
const even = 0.01

// crossings finds where two tracks change places. Where they are even, it
// looks on until one leads.
func crossings(a, b *track, m stage.Metric) []crossing {
	var out []crossing
	lead, leadX, leadD := 0, 0.0, 0.0
	for i, x := range a.x {
		j := slices.Index(b.x, x)
		if j < 0 {
			continue
		}
		va, _ := value(a.runs[i].path, m)
		vb, _ := value(b.runs[j].path, m)
		if va <= 0 || vb <= 0 {
			continue
		}
		d := math.Log(va / vb)
		if !m.IsTime() {
			d = -d
		}
		if math.Abs(d) < even {
			continue
		}
		now := 1
		if d < 0 {
			now = -1
		}
		if lead != 0 && now != lead && leadX > 0 {
			f := leadD / (leadD - d)
			c := crossing{x: math.Exp(math.Log(leadX) + f*(math.Log(x)-math.Log(leadX))), y: math.Sqrt(va * vb), a: a, b: b}
			if lead > 0 {
				c.a, c.b = b, a
			}
			out = append(out, c)
		}
		lead, leadX, leadD = now, x, d
	}
	return out
}

func allCrossings(ts []track, m stage.Metric) []crossing {
	var out []crossing
	for i := range ts {
		for j := i + 1; j < len(ts); j++ {
			if ts[i].path == ts[j].path || ts[i].rest != ts[j].rest {
				continue // no choice between two paths
			}
			out = append(out, crossings(&ts[i], &ts[j], m)...)
		}
	}
	slices.SortStableFunc(out, func(a, b crossing) int { return cmp.Compare(a.x, b.x) })
	return out
}

// leaders says who is best where: the finding of a chart over a swept key.
func leaders(ts []track, m stage.Metric, text func(float64) string, what string) string {
	if len(ts) == 0 {
		return ""
	}
	if len(ts) == 1 {
		t := &ts[0]
		first, _ := value(t.runs[0].path, m)
		last, _ := value(t.runs[len(t.runs)-1].path, m)
		if len(t.x) == 1 {
			return fmt.Sprintf("%s: %s is %s at %s", t.name, m, valueText(m, first), text(t.x[0]))
		}
		return fmt.Sprintf("%s: %s goes from %s at %s to %s at %s", t.name, m, valueText(m, first), text(t.x[0]), valueText(m, last), text(t.x[len(t.x)-1]))
	}
	wins := make([]int, len(ts))
	points := 0
	for _, x := range ts[0].x {
		best, at := 0.0, -1
		for i := range ts {
			j := slices.Index(ts[i].x, x)
			if j < 0 {
				continue
			}
			v, _ := value(ts[i].runs[j].path, m)
			if at < 0 || m.IsTime() && v < best*(1-even) || !m.IsTime() && v > best*(1+even) {
				best, at = v, i
			}
		}
		wins[at]++
		points++
	}
	word := "the lowest " + m.String()
	if !m.IsTime() {
		word = "the highest " + strings.ReplaceAll(m.String(), "-", " ")
	}
	top := slices.Index(wins, slices.Max(wins))
	if wins[top] == points {
		near := ""
		for i := range ts {
			if n := evenWith(&ts[i], &ts[top], m); i != top && n > 0 {
				near = fmt.Sprintf("; %s is even with it at %d of %d", ts[i].name, n, points)
				break
			}
		}
		return fmt.Sprintf("%s has %s at every %s from %s to %s", ts[top].name, word, what, text(ts[0].x[0]), text(ts[0].x[len(ts[0].x)-1])) + near
	}
	// Two that share all points and change places once: say where.
	for i := range ts {
		for j := range ts {
			if i == j || wins[i]+wins[j] != points {
				continue
			}
			if cs := crossings(&ts[i], &ts[j], m); len(cs) == 1 && cs[0].a == &ts[i] {
				return fmt.Sprintf("%s has %s below %s, %s above", ts[i].name, word, text(cs[0].x), ts[j].name)
			}
		}
	}
	return fmt.Sprintf("%s has %s at %d of %d points", ts[top].name, word, wins[top], points)
}

// evenWith counts the points at which a and b are even.
func evenWith(a, b *track, m stage.Metric) int {
	n := 0
	for i, x := range a.x {
		if j := slices.Index(b.x, x); j >= 0 {
			va, _ := value(a.runs[i].path, m)
			vb, _ := value(b.runs[j].path, m)
			if vb > 0 && math.Abs(va/vb-1) < even {
				n++
			}
		}
	}
	return n
}

// bounds are the least and the largest of the values.
func bounds(lo, hi float64, vs ...float64) (float64, float64) {
	for _, v := range vs {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

func drawLatency(rs []*result.Result, o Options) (*Figure, error) {
	m, err := metricOf(runs(rs), o, true)
	if err != nil {
		return nil, err
	}
	keys := sweptKeys(rs)
	i := slices.IndexFunc(keys, func(k key) bool { return k.isBytes() })
	if i < 0 {
		return nil, notFit("no size is swept (want several values of workload.bytes)")
	}
	ts := tracks(rs, m, keys[i].name)
	n := len(ts)
	ts, where := shown(ts)
	xlo, xhi := math.Inf(1), 0.0
	ylo, yhi := math.Inf(1), 0.0
	ch := &chart{}
	for i := range ts {
		t := &ts[i]
		s := series{name: t.name, line: lineOf(lineIndex(ts, i))}
		for j, r := range t.runs {
			x := r.path.Metric(m)
			s.pts = append(s.pts, point{t.x[j], micros(x.P50)})
			s.lo, s.hi = append(s.lo, micros(x.P50)), append(s.hi, micros(x.P99))
			xlo, xhi = bounds(xlo, xhi, t.x[j])
			ylo, yhi = bounds(ylo, yhi, micros(x.P50), micros(x.P99))
		}
		ch.series = append(ch.series, s)
	}
	ch.x = byteAxis(xlo, xhi)
	cs := allCrossings(ts, m)
	if len(cs) > 0 {
		// Room above the data for the names of the crossovers.
		yhi *= math.Pow(yhi/ylo, 0.08)
	}
	ch.y = logAxis(metricText(m), ylo, yhi, count)
	var told []string
	for i, c := range cs {
		if i < 3 {
			ch.callouts = append(ch.callouts, callout{c.x, c.y, fmt.Sprintf("%s | %s: %s", c.a.name, c.b.name, byteText(math.Round(c.x)))})
		}
		told = append(told, fmt.Sprintf("%s to %s at %s", c.a.name, c.b.name, byteText(math.Round(c.x))))
	}
	cross := ""
	if len(told) > 0 {
		cross = "Crossovers: " + strings.Join(thin(told, 6), "; ") + "."
	}
	f := ch.figure("latency", leaders(ts, m, func(v float64) string { return byteText(math.Round(v)) }, "size"), sentences(
		"Lines: p50. Bands: p50 to p99.", where, cross, "Below 1"+space+"% apart counts as even.", thinned(len(ts), n, "series")))
	f.data = ch.interactive("latency", false)
	return f, nil
}

// lineIndex keeps a path's line where each path is one series.
func lineIndex(ts []track, i int) int {
	seen := map[int]bool{}
	for j := range ts {
		if seen[ts[j].path] {
			return i
		}
		seen[ts[j].path] = true
	}
	return ts[i].path
}

func drawRate(rs []*result.Result, o Options) (*Figure, error) {
	all := runs(rs)
	m := o.Metric
	if m == stage.NoMetric {
		m = stage.MessageRate
		if !slices.ContainsFunc(all, func(r run) bool { return r.path.Metric(m) != nil }) {
			m = stage.Goodput
		}
	}
	if m.IsTime() {
		return nil, fmt.Errorf("%s is no rate (want message-rate, goodput or background-rate)", m)
	}
	if !slices.ContainsFunc(all, func(r run) bool { return r.path.Metric(m) != nil }) {
		return nil, notFit("no path has %s (a workload of kind stream has)", m)
	}
	k := rateKey(sweptKeys(rs))
	if k == nil {
		return nil, notFit("no number is swept (want threads, QPs, a window or a size)")
	}
	ts := tracks(rs, m, k.name)
	n := len(ts)
	ts, where := shown(ts)
	xlo, xhi, yhi := math.Inf(1), 0.0, 0.0
	ch := &chart{}
	for i := range ts {
		t := &ts[i]
		s := series{name: t.name, line: lineOf(lineIndex(ts, i))}
		for j, r := range t.runs {
			v, _ := value(r.path, m)
			s.pts = append(s.pts, point{t.x[j], v})
			xlo, xhi = bounds(xlo, xhi, t.x[j])
			yhi = max(yhi, v)
		}
		ch.series = append(ch.series, s)
	}
	unit, _ := k.numeric()
	text := func(v float64) string { return k.short + " " + strings.TrimSpace(count(v)+" "+unit) }
	switch {
	case unit == "B":
		ch.x = byteAxis(xlo, xhi)
		text = byteText
	case xlo > 0 && xhi/xlo > 20:
		ch.x = valueAxis(ts, k.short, unit)
	default:
		ch.x = linearAxis(join(k.short, unit), xlo-(xhi-xlo)*0.03, xhi+(xhi-xlo)*0.03, 7)
	}
	ch.y = linearAxis(metricText(m), 0, yhi*1.08, 5)
	return ch.figure("rate", leaders(ts, m, text, "point"), sentences(m.String()+": "+m.Text()+".", where, thinned(len(ts), n, "series"))), nil
}

// valueAxis is logarithmic with its ticks at the values that were swept.
func valueAxis(ts []track, title, unit string) axis {
	var xs []float64
	for i := range ts {
		xs = append(xs, ts[i].x...)
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	a := axis{title: join(title, unit), form: logarithmic, lo: xs[0] * 0.85, hi: xs[len(xs)-1] * 1.18}
	for _, x := range xs {
		a.ticks = append(a.ticks, tick{x, count(x)})
	}
	return a
}

// rateKey prefers what makes load over what makes messages larger.
func rateKey(keys []key) *key {
	rank := func(k *key) int {
		for i, w := range []string{"threads", "ctas", "qps", "outstanding", "rings", "wqes", "bytes"} {
			if strings.Contains(k.name, w) {
				return i
			}
		}
		return 99
	}
	var best *key
	for i := range keys {
		if _, ok := keys[i].numeric(); ok && (best == nil || rank(&keys[i]) < rank(best)) {
			best = &keys[i]
		}
	}
	return best
}

func drawCDF(rs []*result.Result, o Options) (*Figure, error) {
	all := runs(rs)
	m, err := metricOf(all, o, true)
	if err != nil {
		return nil, err
	}
	swept := sweptKeys(rs)
	names := labels(rs)
	paths := pathNames(rs)
	onePath := len(paths) == 1
	levels := result.Levels()
	ch := &chart{}
	first := map[int]*result.Point{}
	n, samples := 0, 0
	lo, hi := math.Inf(1), 0.0
	coarse := false
	type spread struct {
		name     string
		p50, far float64
	}
	var spreads []spread
	where, farName := "", "p99"
	for _, r := range all {
		x := r.path.Metric(m)
		if x == nil || x.N < 2 {
			continue
		}
		if p := first[r.res]; p == nil {
			first[r.res] = r.point
			where = others(r.point, swept)
		} else if p != r.point && !onePath {
			continue
		}
		n++
		if n > maxSeries {
			continue
		}
		s := series{name: join(r.path.Name, names[r.res]), line: lineOf(n - 1), plain: true}
		if onePath && len(swept) > 0 {
			s.name = join(others(r.point, swept), names[r.res])
		} else if len(rs) == 1 {
			s.line = lineOf(slices.Index(paths, r.path.Name))
		}
		if len(x.Quantiles) == len(levels) {
			s.pts = staircase(x, levels)
		} else {
			coarse, s.plain = true, false
			s.pts = []point{{micros(x.Min), 0}, {micros(x.P50), 0.5}, {micros(x.P99), 0.99}, {micros(x.P999), 0.999}}
		}
		samples = max(samples, x.N)
		lo, hi = bounds(lo, hi, micros(x.Min), micros(x.Max))
		far := x.P99
		if x.N >= 1000 {
			far, farName = x.P999, "p99.9"
		}
		spreads = append(spreads, spread{s.name, micros(x.P50), micros(far)})
		ch.series = append(ch.series, s)
	}
	if len(ch.series) == 0 {
		return nil, notFit("no path has two samples of %s", m)
	}
	ch.y = tailAxis(samples)
	if hi/lo > 5 {
		ch.x = logAxis(metricText(m), lo, hi, count)
	} else {
		pad := (hi - lo) * 0.04
		if pad == 0 {
			pad = hi*0.05 + 0.01
		}
		ch.x = linearAxis(metricText(m), max(0, lo-pad), hi+pad, 7)
	}
	for i := range ch.series {
		s := &ch.series[i]
		s.pts = slices.DeleteFunc(s.pts, func(p point) bool { return p.y > ch.y.hi })
	}
	most := slices.MaxFunc(spreads, func(a, b spread) int { return cmp.Compare(a.far/max(a.p50, 1e-6), b.far/max(b.p50, 1e-6)) })
	title := fmt.Sprintf("%s: the %s of %s is %.2f× its p50, the widest spread", m, farName, most.name, ratio(most.far, most.p50))
	if len(spreads) == 1 {
		title = fmt.Sprintf("%s of %s: the %s is %.2f× the p50", m, most.name, farName, ratio(most.far, most.p50))
	}
	if most.far <= most.p50*1.005 {
		title = fmt.Sprintf("%s does not spread: %s and p50 are less than 0.5%s%% apart", m, farName, space)
	}
	if where != "" && !onePath {
		title += " (" + where + ")"
	}
	note := fmt.Sprintf("By nearest rank, %d samples a curve at most; the axis is stretched towards the tail.", samples)
	if coarse {
		note += " Where a result has no quantiles, its min, p50, p99 and p99.9 are joined by lines."
	}
	f := ch.figure("cdf", title, sentences(note, thinned(len(ch.series), n, "curves")))
	f.data = ch.interactive("cdf", true)
	return f, nil
}

// staircase turns quantiles into the steps of a distribution function.
func staircase(x *result.Metric, levels []int) []point {
	var out []point
	for i, q := range x.Quantiles {
		p := float64(levels[i]) / 1e6
		v := micros(q)
		if n := len(out); n > 0 {
			if out[n-1].x == v {
				out[n-1].y = p
				continue
			}
			out = append(out, point{v, out[n-1].y})
		}
		out = append(out, point{v, p})
	}
	return out
}

// article makes a sentence's subject of the names that labels gives backends.
func article(s string, first bool) string {
	switch {
	case s != "simulator" && s != "hardware":
		return s
	case first:
		return "The " + s
	}
	return "the " + s
}

func drawCompare(rs []*result.Result, o Options) (*Figure, error) {
	if len(rs) != 2 {
		return nil, notFit("want two results, got %d", len(rs))
	}
	a, b := 0, 1 // the reference first: the hardware, where there is one
	if rs[1].Backend == "hw" && rs[0].Backend != "hw" {
		a, b = 1, 0
	}
	names := labels(rs)
	type pair struct {
		path, where string
		m           stage.Metric
		x, y        float64
	}
	id := func(r run, m stage.Metric) string { return fmt.Sprint(r.path.Name, "\x00", r.point.At, "\x00", m) }
	known := map[string]float64{}
	metrics := func(r run) []stage.Metric {
		var out []stage.Metric
		for i := range r.path.Metrics {
			m := r.path.Metrics[i].Metric
			if m == o.Metric || o.Metric == stage.NoMetric && m.IsTime() {
				out = append(out, m)
			}
		}
		return out
	}
	for _, r := range runs(rs) {
		if r.res != a {
			continue
		}
		for _, m := range metrics(r) {
			known[id(r, m)], _ = value(r.path, m)
		}
	}
	var pairs []pair
	for _, r := range runs(rs) {
		if r.res != b {
			continue
		}
		for _, m := range metrics(r) {
			if x, ok := known[id(r, m)]; ok {
				y, _ := value(r.path, m)
				if x > 0 && y > 0 {
					pairs = append(pairs, pair{r.path.Name, others(r.point, sweptKeys(rs)), m, x, y})
				}
			}
		}
	}
	if len(pairs) == 0 {
		return nil, notFit("the two have no path, point and metric in common")
	}
	ch := &chart{identity: 0.10}
	lo, hi := math.Inf(1), 0.0
	index := map[string]int{}
	within := 0
	off := func(p pair) float64 { return math.Abs(p.y/p.x - 1) }
	dropped := map[string]bool{}
	// A group a path and metric, or a path alone where those are too many.
	groups := map[string]bool{}
	for _, p := range pairs {
		groups[p.path+" "+p.m.String()] = true
	}
	for _, p := range pairs {
		name := p.path + " " + p.m.String()
		if len(groups) > maxSeries {
			name = p.path
		}
		i, ok := index[name]
		if !ok && len(ch.series) == maxSeries {
			dropped[name] = true
			continue
		}
		if !ok {
			i = len(ch.series)
			index[name] = i
			ch.series = append(ch.series, series{name: name, line: lineOf(i), lone: true})
		}
		ch.series[i].pts = append(ch.series[i].pts, point{p.x, p.y})
		lo, hi = bounds(lo, hi, p.x, p.y)
	}
	for _, p := range pairs {
		if off(p) <= 0.10 {
			within++
		}
	}
	worst := slices.MaxFunc(pairs, func(x, y pair) int { return cmp.Compare(off(x), off(y)) })
	for i := range ch.series {
		ch.series[i].pts = thin(ch.series[i].pts, maxPoints)
	}
	ch.notes = []label{{worst.x, worst.y, join(fmt.Sprintf("%+.0f%s%%", 100*(worst.y/worst.x-1), space), worst.where)}}
	what := "p50, µs"
	if o.Metric != stage.NoMetric {
		what = metricText(o.Metric)
	}
	ch.x = logAxis(names[a]+": "+what, lo, hi, count)
	ch.y = logAxis(names[b]+": "+what, lo, hi, count)
	title := fmt.Sprintf("%s is within 10%s%% of %s at %d of %d points; furthest off: %s of %s, %+.1f%s%%",
		article(names[b], true), space, article(names[a], false), within, len(pairs), worst.m, worst.path, 100*(worst.y/worst.x-1), space)
	return ch.figure("compare", title, sentences("Dashed: equal. Band: 10"+space+"% either way.", thinned(len(ch.series), len(ch.series)+len(dropped), "groups"))), nil
}

package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// metricsOf returns the metrics that any path of the points has, in the
// vocabulary's order, costs left out: those are printed apart.
func metricsOf(points []result.Point) []stage.Metric {
	var has [stage.MetricCount]bool
	for _, p := range points {
		for i := range p.Paths {
			for _, m := range p.Paths[i].Metrics {
				has[m.Metric] = true
			}
		}
	}
	has[stage.CPUCores], has[stage.SMCount] = false, false
	var out []stage.Metric
	for m := stage.Metric(1); m < stage.MetricCount; m++ {
		if has[m] {
			out = append(out, m)
		}
	}
	return out
}

// telling picks the metrics whose breakdowns say most: of the round trips and
// completions what is there, else everything.
func telling(ms []stage.Metric) []stage.Metric {
	var out []stage.Metric
	for _, m := range ms {
		switch m {
		case stage.PutCompletion, stage.RTT, stage.Get, stage.Latency:
			out = append(out, m)
		}
	}
	if out == nil {
		return ms
	}
	return out
}

// rank orders the point's paths by metric m, best first; paths without it and
// those that did not finish are left out.
func rank(p *result.Point, m stage.Metric) []*result.Path {
	var out []*result.Path
	for i := range p.Paths {
		if x := &p.Paths[i]; x.Err == "" && x.Metric(m) != nil {
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b *result.Path) int {
		x, y := a.Metric(m), b.Metric(m)
		if m.IsTime() {
			return cmp.Compare(x.P50, y.P50)
		}
		return cmp.Compare(y.Value, x.Value)
	})
	return out
}

// same reports whether a and b are as good as equal in metric m: within 1 %, far
// below what any model or measurement tells apart.
func same(a, b *result.Path, m stage.Metric) bool {
	x, y := a.Metric(m), b.Metric(m)
	const even = 0.01
	near := func(x, y float64) bool { return math.Abs(x-y) <= even*math.Max(math.Abs(x), math.Abs(y)) }
	return near(float64(x.P50), float64(y.P50)) && near(x.Value, y.Value)
}

// contested are the metrics that a path can win.
func contested(ms []stage.Metric) []stage.Metric {
	return slices.DeleteFunc(slices.Clone(ms), func(m stage.Metric) bool { return m == stage.BackgroundRate })
}

// winners says in a line per metric which path is best at p, and by how much.
func winners(p *result.Point, ms []stage.Metric) []string {
	var out []string
	for _, m := range contested(ms) {
		if r := rank(p, m); len(r) > 1 {
			out = append(out, winner(r, m))
		}
	}
	return out
}

func winner(r []*result.Path, m stage.Metric) string {
	amount := func(p *result.Path) string {
		if m.IsTime() {
			return micro(p.Metric(m).P50) + " us"
		}
		return number(p.Metric(m).Value) + " " + m.Unit()
	}
	if tied := tie(r, m); tied > 1 {
		return fmt.Sprintf("%s tie in %s: %s", names(r[:tied]), m, amount(r[0]))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s wins %s: %s", r[0].Name, m, amount(r[0]))
	for i, p := range r[1:] {
		sep := ", "
		if i == 0 {
			sep = "; "
		}
		fmt.Fprintf(&b, "%s%s than %s (%s)", sep, better(r[0].Metric(m), p.Metric(m), m), p.Name, amount(p))
	}
	return b.String()
}

// better says how much better x is than y.
func better(x, y *result.Metric, m stage.Metric) string {
	word, a, b := "faster", float64(y.P50), float64(x.P50)
	if !m.IsTime() {
		word, a, b = "more", x.Value, y.Value
	}
	if b == 0 {
		return word
	}
	return fmt.Sprintf("%.2fx %s", a/b, word)
}

// tie returns how many paths share the first place.
func tie(r []*result.Path, m stage.Metric) int {
	n := 1
	for n < len(r) && same(r[0], r[n], m) {
		n++
	}
	return n
}

func names(ps []*result.Path) string {
	var s []string
	for _, p := range ps {
		s = append(s, p.Name)
	}
	return strings.Join(s, " and ")
}

// tally counts the wins over a sweep, a line per metric.
func tally(points []result.Point, ms []stage.Metric) []string {
	var out []string
	for _, m := range contested(ms) {
		wins := map[string]int{}
		var order []string
		n := 0
		for i := range points {
			r := rank(&points[i], m)
			if len(r) < 2 {
				continue
			}
			n++
			who := names(r[:tie(r, m)])
			if strings.Contains(who, " and ") {
				who = "a tie of " + who
			}
			if wins[who]++; wins[who] == 1 {
				order = append(order, who)
			}
		}
		if n == 0 {
			continue
		}
		slices.SortStableFunc(order, func(a, b string) int { return wins[b] - wins[a] })
		for i, who := range order {
			order[i] = fmt.Sprintf("%s at %d", who, wins[who])
			if wins[who] == n && n > 1 {
				order[i] = who + " at all"
			}
		}
		out = append(out, fmt.Sprintf("best %s at %s: %s", m, plural(n, "point", "points"), strings.Join(order, ", ")))
	}
	return out
}

// longTails says where the messages beyond the 99th percentile took much longer
// than it, or pull the mean away from the median: no p99 shows that.
func longTails(points []result.Point) []string {
	var out []string
	more := 0
	for _, p := range points {
		for _, x := range p.Paths {
			for _, m := range x.Metrics {
				if !m.Metric.IsTime() || m.N < 2 || m.Max < 3*m.P99 && m.Mean < m.P50+m.P50/4 {
					continue
				}
				if len(out) == maxTails {
					more++
					continue
				}
				at := ""
				if len(p.At) > 0 && len(points) > 1 {
					at = " (" + settings(p.At) + ")"
				}
				out = append(out, fmt.Sprintf("%s %s%s: p99 %s us, but p99.9 %s us, max %s us and mean %s us of %d", x.Name, m.Metric, at, micro(m.P99), micro(m.P999), micro(m.Max), micro(m.Mean), m.N))
			}
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more like these", more))
	}
	return out
}

// maxTails bounds what longTails lists.
const maxTails = 8

// noTails names the paths whose metrics of time do not vary in any point. Faults
// are a source of tails, even where none of them moved a p99.
func noTails(points []result.Point) []string {
	var out []string
	varies := map[string]bool{}
	for _, p := range points {
		for _, x := range p.Paths {
			if _, seen := varies[x.Name]; !seen {
				varies[x.Name] = false
				out = append(out, x.Name)
			}
			if slices.ContainsFunc(x.Params, func(a result.Param) bool { return strings.HasPrefix(a.Key, "faults.") }) {
				varies[x.Name] = true
			}
			timed := false
			for _, m := range x.Metrics {
				if m.Metric.IsTime() && m.N > 1 {
					timed = true
					if m.P50 != m.P99 {
						varies[x.Name] = true
					}
				}
			}
			if !timed {
				varies[x.Name] = true // nothing to say
			}
		}
	}
	return slices.DeleteFunc(out, func(n string) bool { return varies[n] })
}

func costLine(p *result.Path) string {
	c := &p.Cost
	if c.Unknown {
		return "not known"
	}
	s := number(c.CPUCores) + " CPU cores"
	if c.CPUCores == 1 {
		s = "1 CPU core"
	}
	if c.Window > 0 && c.CPUBusy > 0 {
		s += fmt.Sprintf(" (%s at work)", number(ratio(c.CPUBusy, c.Window)))
	}
	s += ", " + plural(c.SMs, "SM", "SMs")
	if c.Window > 0 && c.SMBusy > 0 {
		s += fmt.Sprintf(" (%s busy posting or waiting)", number(ratio(c.SMBusy, c.Window)))
	}
	if c.Messages > 0 {
		per := func(n int) string { return number(float64(n) / float64(c.Messages)) }
		s += fmt.Sprintf("; doorbells %s and WQE fetches %s per message", per(c.Doorbells), per(c.WQEFetches))
	}
	return s
}

func linkLine(c *result.Cost, l *result.Link) string {
	per := float64(max(1, c.Messages))
	return fmt.Sprintf("%s: per message %s packets, %s B; %s %% busy", l.Name, number(float64(l.TLPs)/per), number(float64(l.Bytes)/per), number(100*l.Busy))
}

func ratio(a, b sim.Duration) float64 { return float64(a) / float64(b) }

func findingLine(f *result.Finding) string {
	s := fmt.Sprintf("%s, %s", f.Finding, f.Grade)
	if f.Count > 0 {
		s += fmt.Sprintf(" (%s)", plural(f.Count, "time", "times"))
	}
	if f.Grade == stage.Occurred {
		s += ", first at " + micro(sim.Duration(f.First)) + " us"
	}
	if f.Where != "" {
		s += ", " + f.Where
	}
	if f.Cause != "" {
		s += ": " + f.Cause
	}
	if f.Avoid != "" {
		s += "; avoid: " + f.Avoid
	}
	return s
}

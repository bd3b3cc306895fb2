package cli

import (
	"strconv"

	"gdisim/internal/table"
	"gdisim/result"
	"gdisim/sim"
)

// measuredTable is the costs that a run on hardware measured under their own
// names; nil where there is none.
func measuredTable(ms []result.Measured) *table.Table {
	if len(ms) == 0 {
		return nil
	}
	t := &table.Table{Columns: []table.Column{
		{Head: "measured"},
		{Head: "n", Right: true},
		{Group: "us", Head: "p50", Right: true},
		{Group: "us", Head: "p99", Right: true},
		{Group: "us", Head: "max", Right: true},
		{Group: "clock", Head: "ns", Right: true, Drop: 1},
		{Head: "how"},
	}}
	for i := range ms {
		m := &ms[i]
		if m.Err != "" {
			t.Rows = append(t.Rows, []string{m.Name, "-", "-", "-", "-", "-", "not measured: " + m.Err})
			continue
		}
		t.Rows = append(t.Rows, []string{m.Name, strconv.Itoa(m.N), signed(m.P50), signed(m.P99), signed(m.Max), fixed(int64(m.Overhead), int64(sim.Nanosecond), 1), m.Method})
	}
	return t
}

// signed is micro for what may be negative, with the decimals of a fence.
func signed(d sim.Duration) string {
	s := ""
	if d < 0 {
		s, d = "-", -d
	}
	if d < 100*sim.Nanosecond {
		return s + fixed(int64(d), int64(sim.Microsecond), 5)
	}
	return s + micro(d)
}

// measured lists a path's, then the machine's.
func (t *textWriter) measured(r *result.Result) {
	one := func(heading string, ms []result.Measured) {
		if tab := measuredTable(ms); tab != nil {
			t.line("")
			t.line(heading)
			t.dropNote(t.table(tab))
		}
	}
	r.EachMeasured(func(pt *result.Point, p *result.Path, ms []result.Measured) {
		one(measuredHeading(pt, p), ms)
	})
}

func measuredHeading(pt *result.Point, p *result.Path) string {
	switch {
	case p == nil:
		return "Costs of the machine (clock: what was subtracted of each sample)"
	case len(pt.At) == 0:
		return "Beside " + p.Name
	}
	return "Beside " + p.Name + " at " + settings(pt.At)
}

// methods says how each stage of a measured breakdown was come by, once.
func methods(r *result.Result) []string {
	var out []string
	seen := map[string]bool{}
	for i := range r.Points {
		for j := range r.Points[i].Paths {
			for _, b := range r.Points[i].Paths[j].Breakdowns {
				for _, s := range b.Stages {
					line := b.Metric.String() + "/" + stageName(s.Stage, s.Node) + ": " + s.Method
					if s.Method != "" && !seen[line] {
						seen[line] = true
						out = append(out, line+" (here +- "+fixed(int64(s.Spread), int64(sim.Nanosecond), 1)+" ns)")
					}
				}
			}
		}
	}
	return out
}

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdisim/internal/table"
	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// abreast is how many paths stand side by side in textWidth columns.
const abreast = 3

// place is a row of a comparison: a stage on a node. A round trip is shown with
// both directions in one row, since a symmetric pair would say everything twice.
type place struct {
	stage stage.Stage
	node  int
}

// compare writes the breakdowns of one metric side by side, up to abreast paths
// at a time, with bars of one scale.
func (t *textWriter) compare(pt *result.Point, m stage.Metric) {
	var paths []*result.Path
	for i := range pt.Paths {
		if p := &pt.Paths[i]; p.Err == "" && p.Breakdown(m) != nil {
			paths = append(paths, p)
		}
	}
	var most sim.Duration
	for _, p := range paths {
		for _, d := range folded(p.Breakdown(m)) {
			most = max(most, d)
		}
	}
	for group := range slices.Chunk(paths, abreast) {
		t.line("")
		t.abreast(group, m, most)
	}
}

// folded sums a breakdown by place.
func folded(b *result.Breakdown) map[place]sim.Duration {
	out := map[place]sim.Duration{}
	for _, s := range b.Stages {
		k := place{s.Stage, s.Node}
		if b.Metric == stage.RTT {
			k.node = 0
		}
		out[k] += s.Time
	}
	return out
}

func (t *textWriter) abreast(paths []*result.Path, m stage.Metric, most sim.Duration) {
	var rows []place
	var longest sim.Duration
	for _, p := range paths {
		b := p.Breakdown(m)
		longest = max(longest, b.Total)
		for k, d := range folded(b) {
			if d > 0 && !slices.Contains(rows, k) {
				rows = append(rows, k)
			}
		}
	}
	slices.SortFunc(rows, func(a, b place) int { return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.node, b.node)) })
	sc := scaleOf(longest)

	const first, number = 20, 8
	width := (textWidth - first) / len(paths)
	barWidth := min(width-number-3, 30)
	heading := m.String() + ", " + sc.unit
	if m == stage.RTT {
		heading = "rtt, both ways, " + sc.unit
	}
	line := pad(table.Cut(heading, first), first)
	for _, p := range paths {
		line += pad("  "+table.Cut(p.Name, width-2), width)
	}
	t.line(strings.TrimRight(line, " "))

	type column struct {
		times []sim.Duration
		text  []string
	}
	cols := make([]column, len(paths))
	for i, p := range paths {
		b := p.Breakdown(m)
		f := folded(b)
		for _, k := range rows {
			cols[i].times = append(cols[i].times, f[k])
		}
		cols[i].text = sc.column(cols[i].times, b.Total)
	}
	for r, k := range rows {
		line := pad("  "+stageName(k.stage, k.node), first)
		for i := range cols {
			cell := fmt.Sprintf("%*s", number, "-")
			if d := cols[i].times[r]; d > 0 {
				cell = fmt.Sprintf("%*s %s", number, cols[i].text[r], bar(d, most, barWidth, t.view.ascii))
			}
			line += pad(cell, width)
		}
		t.line(strings.TrimRight(line, " "))
	}
	line = pad("  total", first)
	for i := range cols {
		line += pad(fmt.Sprintf("%*s", number, cols[i].text[len(rows)]), width)
	}
	t.line(strings.TrimRight(line, " "))
}

// pad fills s with blanks to n columns.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-table.Width(s))) }

// beside tells which work of an operation a metric did not wait for.
func beside(p *result.Path, m stage.Metric) string {
	b := p.Breakdown(m)
	if b == nil {
		return ""
	}
	var parts []string
	for _, o := range b.Overlaps {
		parts = append(parts, overlapText(scaleOf(b.Total), o))
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "; ")
}

// details writes what is not a number of a stage: overlaps, findings, use.
func (t *textWriter) details(p *result.Path, show []stage.Metric) {
	t.pathName(p)
	for _, m := range show {
		if s := beside(p, m); s != "" && m != stage.RTT {
			t.para(fmt.Sprintf("  beside %s: ", m), s)
		}
	}
	t.findings(p)
	t.para("  uses: ", costLine(p))
}

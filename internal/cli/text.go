package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gdisim/internal/table"
	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// textWidth is the width that no line of text output exceeds.
const textWidth = 100

// view is how much of a result is shown, and with which characters.
type view struct {
	all   bool // every metric's breakdown, every point in full, links
	ascii bool
}

// writeText writes r for people.
func writeText(w io.Writer, r *result.Result, v view) error {
	t := &textWriter{w: w, view: v}
	t.head(r)
	ms := metricsOf(r.Points)
	switch {
	case len(r.Points) == 0 && len(r.Measured) > 0: // only the host was measured
	case len(r.Points) == 1:
		t.point(&r.Points[0], ms)
	case v.all:
		for i := range r.Points {
			t.para("", fmt.Sprintf("point %d: %s", r.Points[i].Index, settings(r.Points[i].At)))
			t.point(&r.Points[i], ms)
			t.line("")
		}
		t.list("Verdict", tally(r.Points, ms))
	default:
		t.sweep(r.Points, ms)
	}
	t.measured(r)
	t.notes(r, ms)
	return t.err
}

// textWriter keeps the first error of its writer, so that the layout reads
// without a check on each line.
type textWriter struct {
	w    io.Writer
	view view
	err  error
}

func (t *textWriter) put(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, s)
	}
}

func (t *textWriter) line(s string) { t.put(table.Cut(s, textWidth) + "\n") }

// para writes s after label, wrapped, further lines indented below the text.
func (t *textWriter) para(label, s string) {
	t.put(table.Wrap(s, textWidth, label, strings.Repeat(" ", table.Width(label))))
}

// list writes a heading and its lines; nothing if there are none.
func (t *textWriter) list(heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.line("")
	t.line(heading)
	for _, l := range lines {
		t.put(table.Wrap(l, textWidth, "  ", "      "))
	}
}

func (t *textWriter) table(tab *table.Table) (dropped []string) {
	if t.err == nil {
		dropped, t.err = tab.Text(t.w, textWidth, "")
	}
	return dropped
}

func (t *textWriter) head(r *result.Result) {
	title := r.Name
	if r.Title != "" {
		title += ": " + r.Title
	}
	t.para("", title)
	for _, l := range headLines(r) {
		t.para(l[0], l[1])
	}
	t.line("")
}

// headLines are label and text of what holds for the whole result.
func headLines(r *result.Result) [][2]string {
	var lines [][2]string
	one := func(label string, f func(p *result.Path) string) {
		var vals []string
		for i := range r.Points {
			for j := range r.Points[i].Paths {
				if v := f(&r.Points[i].Paths[j]); v != "" && !slices.Contains(vals, v) {
					vals = append(vals, v)
				}
			}
		}
		switch {
		case len(vals) == 1:
			lines = append(lines, [2]string{label, vals[0]})
		case len(vals) > 1:
			lines = append(lines, [2]string{label, fmt.Sprintf("%s (and %d more, by point or path)", vals[0], len(vals)-1)})
		}
	}
	one("hardware  ", func(p *result.Path) string { return p.Hardware })
	one("workload  ", func(p *result.Path) string { return p.Workload })
	if len(r.Points) == 1 && len(r.Points[0].At) > 0 {
		lines = append(lines, [2]string{"point     ", settings(r.Points[0].At)})
	}
	seed := fmt.Sprintf("seed %d, ", r.Seed)
	if r.Backend == "import" {
		seed = ""
	}
	lines = append(lines, [2]string{"run       ", fmt.Sprintf("%s, %s%s", r.How(), seed, plural(len(r.Points), "point", "points"))})
	if r.Partial {
		lines = append(lines, [2]string{"PARTIAL   ", "interrupted: only the points that had finished are here"})
	}
	return lines
}

// summary is the table of a point: a row per path, two columns per metric of
// time, one per rate, and what the path costs.
func summary(p *result.Point, ms []stage.Metric) *table.Table {
	tab := &table.Table{Columns: append([]table.Column{{Head: "path"}}, metricColumns(ms)...)}
	for i := range p.Paths {
		tab.Rows = append(tab.Rows, append([]string{p.Paths[i].Name}, metricCells(&p.Paths[i], ms)...))
	}
	return tab
}

func metricColumns(ms []stage.Metric) []table.Column {
	var cols []table.Column
	for _, m := range ms {
		if m.IsTime() {
			cols = append(cols, table.Column{Group: m.String(), Head: "p50 us", Right: true}, table.Column{Group: m.String(), Head: "p99 us", Right: true, Drop: 1})
		} else {
			cols = append(cols, table.Column{Group: m.String(), Head: m.Unit(), Right: true})
		}
	}
	// What the numbers above cost, the first to go.
	return append(cols, table.Column{Group: "CPU", Head: "cores", Right: true, Drop: 2}, table.Column{Head: "SMs", Right: true, Drop: 3})
}

func metricCells(p *result.Path, ms []stage.Metric) []string {
	var cells []string
	for _, m := range ms {
		x := p.Metric(m)
		switch {
		case x == nil || p.Err != "":
			cells = append(cells, "-")
			if m.IsTime() {
				cells = append(cells, "-")
			}
		case m.IsTime():
			cells = append(cells, micro(x.P50), micro(x.P99))
		default:
			cells = append(cells, number(x.Value))
		}
	}
	if p.Err != "" || p.Cost.Unknown {
		return append(cells, "-", "-")
	}
	return append(cells, number(p.Cost.CPUCores), number(float64(p.Cost.SMs)))
}

// point writes one point in full.
func (t *textWriter) point(p *result.Point, ms []stage.Metric) {
	t.dropNote(t.table(summary(p, ms)))
	show := ms
	if !t.view.all {
		show = telling(ms)
	}
	if len(p.Paths) > 1 && !t.view.all {
		for _, m := range show {
			t.compare(p, m)
		}
		for i := range p.Paths {
			t.line("")
			t.details(&p.Paths[i], show)
		}
	} else {
		for i := range p.Paths {
			t.line("")
			t.path(p, &p.Paths[i], show)
		}
	}
	t.list("Verdict", winners(p, ms))
}

func (t *textWriter) dropNote(dropped []string) {
	if len(dropped) > 0 {
		t.para("", "left out for width: "+strings.Join(dropped, ", ")+"; --format csv has them")
	}
}

func (t *textWriter) path(pt *result.Point, p *result.Path, show []stage.Metric) {
	t.pathName(p)
	for _, m := range show {
		if b := p.Breakdown(m); b != nil {
			t.breakdown(b, longest(pt, m))
		}
	}
	t.findings(p)
	t.para("  uses: ", costLine(p))
	if t.view.all {
		for i := range p.Cost.Links {
			t.para("  link ", linkLine(&p.Cost, &p.Cost.Links[i]))
		}
	}
}

func (t *textWriter) pathName(p *result.Path) {
	name := p.Name
	if p.Stack != "" && p.Stack != p.Name {
		name += " (stack " + p.Stack + ")"
	}
	t.line(name)
	if p.Err != "" {
		t.para("  did not finish: ", p.Err)
	}
}

func (t *textWriter) findings(p *result.Path) {
	switch {
	case len(p.Findings) > 0:
	case p.Cost.Unknown:
		t.line("  findings: not looked for")
	default:
		t.line("  findings: none")
	}
	for i := range p.Findings {
		t.put(table.Wrap("finding: "+findingLine(&p.Findings[i]), textWidth, "  ", "      "))
	}
}

// longest is the longest stage of a metric at a point, which sets the scale of
// the bars: bars of different paths can be compared.
func longest(pt *result.Point, m stage.Metric) sim.Duration {
	var most sim.Duration
	for i := range pt.Paths {
		if b := pt.Paths[i].Breakdown(m); b != nil {
			for _, s := range b.Stages {
				most = max(most, s.Time)
			}
		}
	}
	return most
}

// cells of a breakdown, the total last; the mean column is left out where every
// message took the same way.
type cells struct {
	scale             scale
	stage, lane       []string
	time, mean, share []string
	times             []sim.Duration
	varies            bool
	beside            []string
	heading           string
}

func breakdownCells(b *result.Breakdown) *cells {
	c := &cells{scale: scaleOf(max(b.Total, b.MeanTotal)), varies: b.Total != b.MeanTotal}
	var means []sim.Duration
	for _, s := range b.Stages {
		if s.Time == 0 && s.Mean == 0 {
			continue
		}
		c.stage = append(c.stage, stageName(s.Stage, s.Node))
		c.lane = append(c.lane, s.Lane.String())
		c.times = append(c.times, s.Time)
		means = append(means, s.Mean)
		c.varies = c.varies || s.Time != s.Mean
	}
	c.time = c.scale.column(c.times, b.Total)
	c.mean = c.scale.column(means, b.MeanTotal)
	c.share = shares(c.times, b.Total)
	for _, o := range b.Overlaps {
		if s := overlapText(c.scale, o); s != "" {
			c.beside = append(c.beside, s)
		}
	}
	c.heading = fmt.Sprintf("%s at p50", b.Metric)
	return c
}

// overlapText writes an overlap, "" for an empty one.
func overlapText(sc scale, o result.Overlap) string {
	s := stageName(o.Stage, o.Node)
	switch {
	case o.Time > 0 && o.After > 0:
		return s + fmt.Sprintf(" %s %s, and %s after the end", sc.time(o.Time), sc.unit, sc.time(o.After))
	case o.After > 0:
		return s + fmt.Sprintf(" %s %s after the end", sc.time(o.After), sc.unit)
	case o.Time > 0:
		return s + fmt.Sprintf(" %s %s", sc.time(o.Time), sc.unit)
	}
	return ""
}

func (t *textWriter) breakdown(b *result.Breakdown, most sim.Duration) {
	c := breakdownCells(b)
	const barWidth = 36
	mean := func(s string) string {
		if !c.varies {
			return ""
		}
		return fmt.Sprintf("  %10s", s)
	}
	width := barWidth
	if c.varies {
		width -= 12
	}
	t.line(fmt.Sprintf("  %-32s  %10s%s  %7s", table.Cut(c.heading, 32), c.scale.unit, mean("mean"), "share"))
	for i := range c.stage {
		t.line(strings.TrimRight(fmt.Sprintf("    %-19s %-10s  %10s%s  %7s  %s", c.stage[i], c.lane[i], c.time[i], mean(c.mean[i]), c.share[i],
			bar(c.times[i], most, width, t.view.ascii)), " "))
	}
	n := len(c.stage)
	t.line(fmt.Sprintf("    %-30s  %10s%s", "total", c.time[n], mean(c.mean[n])))
	if len(c.beside) > 0 {
		t.para("    beside it: ", strings.Join(c.beside, "; "))
	}
}

// sweep writes a line per point and path.
func (t *textWriter) sweep(points []result.Point, ms []stage.Metric) {
	t.dropNote(t.table(sweepTable(points, ms)))
	t.list("Findings and failures", sweepFindings(points))
	t.list("Verdict", tally(points, ms))
}

func sweepTable(points []result.Point, ms []stage.Metric) *table.Table {
	tab := &table.Table{}
	if len(points) == 0 {
		return &table.Table{Columns: []table.Column{{Head: "no point finished"}}}
	}
	var keys []string
	for _, s := range points[0].At {
		keys = append(keys, s.Key)
	}
	for _, k := range shortKeys(keys) {
		tab.Columns = append(tab.Columns, table.Column{Head: k})
	}
	tab.Columns = append(append(tab.Columns, table.Column{Head: "path"}), metricColumns(ms)...)
	for i := range points {
		for j := range points[i].Paths {
			var row []string
			for _, s := range points[i].At {
				row = append(row, s.Value)
			}
			p := &points[i].Paths[j]
			tab.Rows = append(tab.Rows, append(append(row, p.Name), metricCells(p, ms)...))
		}
	}
	return tab
}

// sweepFindings says each distinct finding and failure of a path once, with the
// number of points that have it.
func sweepFindings(points []result.Point) []string {
	count := map[string]int{}
	where := map[string]string{}
	var order []string
	add := func(at []result.Setting, s string) {
		if count[s]++; count[s] == 1 {
			order = append(order, s)
			where[s] = settings(at)
		}
	}
	for i := range points {
		for j := range points[i].Paths {
			p := &points[i].Paths[j]
			if p.Err != "" {
				add(points[i].At, p.Name+" did not finish: "+p.Err)
			}
			for _, f := range p.Findings {
				f.Count, f.First = 0, 0 // these differ from point to point
				s := p.Name + ": " + fmt.Sprintf("%s, %s", f.Finding, f.Grade)
				if f.Cause != "" {
					s += ": " + f.Cause
				}
				if f.Avoid != "" {
					s += "; avoid: " + f.Avoid
				}
				add(points[i].At, s)
			}
		}
	}
	for i, s := range order {
		order[i] = fmt.Sprintf("%s (at %d of %s, first at %s)", s, count[s], plural(len(points), "point", "points"), where[s])
	}
	return order
}

// notes ends the text: what was measured how, and what no number shows.
func (t *textWriter) notes(r *result.Result, ms []stage.Metric) {
	t.list("Definitions", definitions(ms))
	tails := longTails(r.Points)
	if names := noTails(r.Points); len(names) > 0 {
		tails = append(tails, noTailsText(names))
	}
	t.list("Tails", tails)
	t.list("How the stages were measured", methods(r))
	t.list("Notices", r.Notices)
}

func definitions(ms []stage.Metric) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.String()+": "+m.Text())
	}
	if slices.ContainsFunc(ms, stage.Metric.IsTime) {
		out = append(out, "p50 and p99 are by nearest rank; NAME@1 is a stage on node 1, all others are on the node that initiates")
	}
	return out
}

func noTailsText(names []string) string {
	return "p99 = p50 in every metric of " + strings.Join(names, ", ") + ": this profile and scenario have no source of tails for it"
}

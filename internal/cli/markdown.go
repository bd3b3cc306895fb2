package cli

import (
	"fmt"
	"io"
	"strings"

	"gdisim/internal/table"
	"gdisim/result"
	"gdisim/stage"
)

// writeMarkdown writes what writeText does, as Markdown.
func writeMarkdown(w io.Writer, r *result.Result, v view) error {
	m := &mdWriter{textWriter{w: w, view: v}}
	m.put("# " + r.Name + "\n\n")
	if r.Title != "" {
		m.put(r.Title + "\n\n")
	}
	for _, l := range headLines(r) {
		m.put("- " + strings.TrimSpace(l[0]) + ": " + l[1] + "\n")
	}
	ms := metricsOf(r.Points)
	switch {
	case len(r.Points) == 0 && len(r.Measured) > 0: // only the host was measured
	case len(r.Points) == 1:
		m.put("\n")
		m.point(&r.Points[0], ms)
		m.list("Verdict", winners(&r.Points[0], ms))
	case v.all:
		for i := range r.Points {
			m.put(fmt.Sprintf("\n## Point %d: %s\n\n", r.Points[i].Index, settings(r.Points[i].At)))
			m.point(&r.Points[i], ms)
			m.list("Verdict of the point", winners(&r.Points[i], ms))
		}
		m.list("Verdict", tally(r.Points, ms))
	default:
		m.put("\n")
		m.table(sweepTable(r.Points, ms))
		m.list("Findings and failures", sweepFindings(r.Points))
		m.list("Verdict", tally(r.Points, ms))
	}
	m.list("Definitions", definitions(ms))
	if names := noTails(r.Points); len(names) > 0 {
		m.list("Tails", []string{noTailsText(names)})
	}
	m.list("How the stages were measured", methods(r))
	r.EachMeasured(func(pt *result.Point, p *result.Path, ms []result.Measured) {
		m.put("\n## " + measuredHeading(pt, p) + "\n\n")
		m.table(measuredTable(ms))
	})
	m.list("Notices", r.Notices)
	return m.err
}

type mdWriter struct{ textWriter }

func (m *mdWriter) table(tab *table.Table) {
	if m.err == nil {
		m.err = tab.Markdown(m.w)
	}
}

func (m *mdWriter) list(heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	m.put("\n## " + heading + "\n\n")
	for _, l := range lines {
		m.put("- " + l + "\n")
	}
}

func (m *mdWriter) point(p *result.Point, ms []stage.Metric) {
	m.table(summary(p, ms))
	show := ms
	if !m.view.all {
		show = telling(ms)
	}
	for i := range p.Paths {
		x := &p.Paths[i]
		m.put("\n## " + x.Name + "\n\n")
		if x.Err != "" {
			m.put("did not finish: " + x.Err + "\n\n")
		}
		for _, metric := range show {
			if b := x.Breakdown(metric); b != nil {
				m.breakdown(b)
			}
		}
		if len(x.Findings) == 0 {
			m.put("- findings: none\n")
		}
		for k := range x.Findings {
			m.put("- finding: " + findingLine(&x.Findings[k]) + "\n")
		}
		m.put("- uses: " + costLine(x) + "\n")
		if m.view.all {
			for k := range x.Cost.Links {
				m.put("- link " + linkLine(&x.Cost, &x.Cost.Links[k]) + "\n")
			}
		}
	}
}

func (m *mdWriter) breakdown(b *result.Breakdown) {
	c := breakdownCells(b)
	tab := &table.Table{Columns: []table.Column{{Head: c.heading}, {Head: "lane"}, {Head: c.scale.unit, Right: true}, {Head: "mean " + c.scale.unit, Right: true}, {Head: "share", Right: true}}}
	for i := range c.stage {
		tab.Rows = append(tab.Rows, []string{c.stage[i], c.lane[i], c.time[i], c.mean[i], c.share[i]})
	}
	n := len(c.stage)
	tab.Rows = append(tab.Rows, []string{"total", "", c.time[n], c.mean[n]})
	m.table(tab)
	if len(c.beside) > 0 {
		m.put("\nBeside it: " + strings.Join(c.beside, "; ") + "\n")
	}
	m.put("\n")
}

package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gdisim/internal/table"
	"gdisim/sim"
)

const width = 100

// Text writes c for people, no line wider than 100 columns.
func Text(w io.Writer, c *Comparison) error {
	var b strings.Builder
	for _, n := range c.Notices {
		b.WriteString(table.Wrap(n, width, "", "  "))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	for _, g := range c.groups() {
		if _, err := fmt.Fprintf(w, "\n%s\n", g.title); err != nil {
			return err
		}
		if _, err := c.table(g.rows).Text(w, width, "  "); err != nil {
			return err
		}
	}
	end := "\n" + table.Wrap(legend, width, "", "")
	if h := c.hidden(); h != "" {
		end += table.Wrap(h, width, "", "")
	}
	_, err := io.WriteString(w, end)
	return err
}

const legend = "Times are medians in us, or those of the stage in the median message. +- is the half width of the difference's 95 % interval; - means that a side has no samples for one."

// Markdown writes c as Markdown.
func Markdown(w io.Writer, c *Comparison) error {
	var b strings.Builder
	b.WriteString("# Comparison\n\n")
	for _, n := range c.Notices {
		b.WriteString("- " + n + "\n")
	}
	for _, g := range c.groups() {
		fmt.Fprintf(&b, "\n## %s\n\n", g.title)
		if err := c.table(g.rows).Markdown(&b); err != nil {
			return err
		}
	}
	b.WriteString("\n" + legend + "\n")
	if h := c.hidden(); h != "" {
		b.WriteString("\n" + h + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// JSON writes c as JSON: times in picoseconds.
func JSON(w io.Writer, c *Comparison) error {
	type row struct {
		Point   string   `json:"point,omitempty"`
		Path    string   `json:"path,omitempty"`
		What    string   `json:"what"`
		Unit    string   `json:"unit"`
		A       *float64 `json:"a"`
		B       *float64 `json:"b"`
		Diff    *float64 `json:"difference"`
		Half    *float64 `json:"half_interval"`
		Verdict string   `json:"verdict"`
	}
	out := struct {
		Schema  string   `json:"schema"`
		A       string   `json:"a"`
		B       string   `json:"b"`
		Notices []string `json:"notices"`
		Rows    []row    `json:"rows"`
	}{"gdisim-comparison/1", c.A, c.B, c.Notices, []row{}}
	for i := range c.Rows {
		r := &c.Rows[i]
		x := row{Point: r.Point, Path: r.Path, What: r.What, Unit: r.Unit, Verdict: r.Verdict.String()}
		if x.Unit == "time" {
			x.Unit = "ps"
		}
		if r.hasA() {
			x.A = &r.A
		}
		if r.hasB() {
			x.B = &r.B
		}
		if r.hasA() && r.hasB() {
			d := r.Diff()
			x.Diff = &d
			if r.Known {
				x.Half = &r.Half
			}
		}
		out.Rows = append(out.Rows, x)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(out)
}

type group struct {
	title string
	rows  []*Row
}

// groups are the rows of a path at a point, in order.
func (c *Comparison) groups() []group {
	var gs []group
	at := map[string]int{}
	for i := range c.Rows {
		r := &c.Rows[i]
		if c.Brief && (r.Verdict == OnlyA || r.Verdict == OnlyB) {
			continue
		}
		title := r.Path
		if title == "" {
			title = "costs of the machine"
		}
		if r.Point != "" {
			title += " at " + r.Point
		}
		k, ok := at[title]
		if !ok {
			k = len(gs)
			at[title] = k
			gs = append(gs, group{title: title})
		}
		gs[k].rows = append(gs[k].rows, r)
	}
	return gs
}

func (r *Row) hasA() bool { return r.Verdict != OnlyB }
func (r *Row) hasB() bool { return r.Verdict != OnlyA && r.Verdict != Unmeasured }

func (c *Comparison) table(rows []*Row) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Head: "what"}, {Head: "A", Right: true}, {Head: "B", Right: true}, {Head: "B - A", Right: true}, {Head: "+-", Right: true}, {Head: "B / A", Right: true, Drop: 1}, {Head: "verdict"},
	}}
	for _, r := range rows {
		a, b, d, half, ratio := "-", "-", "-", "-", "-"
		if r.hasA() {
			a = r.number(r.A)
		}
		if r.hasB() {
			b = r.number(r.B)
		}
		if r.hasA() && r.hasB() {
			d = r.number(r.Diff())
			if r.Diff() > 0 {
				d = "+" + d
			}
			if r.Known {
				half = r.number(r.Half)
			}
			if r.A > 0 && r.B > 0 {
				ratio = strconv.FormatFloat(r.B/r.A, 'f', 2, 64)
			}
		}
		what := r.What
		if r.Unit != "time" {
			what += " " + r.Unit
		}
		t.Rows = append(t.Rows, []string{what, a, b, d, half, ratio, r.Verdict.String()})
	}
	return t
}

func (r *Row) number(v float64) string {
	if r.Unit == "time" {
		v /= float64(sim.Microsecond)
	}
	decimals := 3
	if math.Abs(v) >= 1000 {
		decimals = 1
	} else if v != 0 && math.Abs(v) < 0.1 {
		decimals = 4
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

package sensitivity

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gdisim/internal/table"
)

// width is what no line of the text exceeds.
const width = 100

// shown bounds the inputs of a metric in text and Markdown, and least is the
// elasticity below which they are counted only.
const (
	shown = 12
	least = 0.005
)

// JSON writes the whole report.
func JSON(w io.Writer, r *Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// CSV writes a line for each row, and one for each input without effect.
func CSV(w io.Writer, r *Report) error {
	c := csv.NewWriter(w)
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	lines := [][]string{{"path", "metric", "unit", "key", "value", "elasticity", "base", "low", "high"}}
	for _, x := range r.Rows {
		lines = append(lines, []string{x.Path, x.Metric, x.Unit, x.Key, x.Value, number(x.Elasticity), number(x.Base), number(x.Low), number(x.High)})
	}
	for _, in := range r.Idle {
		lines = append(lines, []string{"", "", "", in.Key, in.Value, "0", "", "", ""})
	}
	return c.WriteAll(lines)
}

// group is the rows of one metric of a path.
type group struct {
	title string
	table table.Table
	more  int
}

func (r *Report) groups() []group {
	var out []group
	for i := 0; i < len(r.Rows); {
		first := r.Rows[i]
		g := group{
			title: fmt.Sprintf("%s %s: %s %s", first.Path, first.Metric, short(first.Base), first.Unit),
			table: table.Table{Columns: []table.Column{{Head: "input"}, {Head: "value"}, {Head: "elasticity", Right: true}, {Head: "less", Right: true}, {Head: "more", Right: true}}},
		}
		for ; i < len(r.Rows) && r.Rows[i].Path == first.Path && r.Rows[i].Metric == first.Metric; i++ {
			x := &r.Rows[i]
			if len(g.table.Rows) == shown || math.Abs(x.Elasticity) < least {
				g.more++
				continue
			}
			g.table.Rows = append(g.table.Rows, []string{x.Key, x.Value, fmt.Sprintf("%+.3f", x.Elasticity), short(x.Low), short(x.High)})
		}
		if tail := strings.HasSuffix(first.Metric, ".p99") || strings.HasSuffix(first.Metric, ".max") || strings.HasSuffix(first.Metric, ".mean"); tail { // in CSV and JSON only
			continue
		}
		out = append(out, g)
	}
	return out
}

func short(x float64) string { return strconv.FormatFloat(x, 'g', 5, 64) }

// idle returns the inputs without effect: those that the scenario sets, which is
// worth a warning, and the others.
func (r *Report) idle() (set, other []string) {
	for _, in := range r.Idle {
		if in.Set {
			set = append(set, in.Key)
		} else {
			other = append(other, in.Key)
		}
	}
	return set, other
}

func keys(ins []Input) string {
	var out []string
	for _, in := range ins {
		out = append(out, in.Key)
	}
	return strings.Join(out, ", ")
}

func (r *Report) head() string {
	s := fmt.Sprintf("what follows a change of %d %% of each input, the same random numbers in all runs", r.Percent)
	for _, a := range r.At {
		s += ", " + a.Key + " = " + a.Value
	}
	return s
}

// Text writes the strongest inputs of each metric, and the inputs without any
// effect.
func Text(w io.Writer, r *Report) error {
	var b strings.Builder
	para := func(s string) { b.WriteString(table.Wrap(s, width, "", "    ")) }
	para("sensitivity of " + r.Name + " on " + r.Hardware)
	para(r.head())
	for _, g := range r.groups() {
		b.WriteString("\n")
		para(g.title)
		if _, err := g.table.Text(&b, width, "  "); err != nil {
			return err
		}
		if g.more > 0 {
			fmt.Fprintf(&b, "  and %d weaker ones\n", g.more)
		}
	}
	b.WriteString("\n")
	set, other := r.idle()
	if len(set) > 0 {
		para("warning: set by the scenario, without effect on any metric: " + strings.Join(set, ", "))
	}
	if len(other) > 0 {
		para("without effect on any metric: " + strings.Join(other, ", "))
	}
	if len(r.Fixed) > 0 {
		para("not varied, being zero or at a bound: " + keys(r.Fixed))
	}
	for _, n := range r.Notes {
		para(n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown writes the same as tables.
func Markdown(w io.Writer, r *Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Sensitivity of %s on %s\n\n%s\n", r.Name, r.Hardware, r.head())
	for _, g := range r.groups() {
		fmt.Fprintf(&b, "\n## %s\n\n", g.title)
		if err := g.table.Markdown(&b); err != nil {
			return err
		}
		if g.more > 0 {
			fmt.Fprintf(&b, "\nand %d weaker ones\n", g.more)
		}
	}
	set, other := r.idle()
	b.WriteString("\n## Without effect\n\n")
	list := func(what, keys string) {
		if keys != "" {
			fmt.Fprintf(&b, "- %s: %s\n", what, keys)
		}
	}
	list("set by the scenario, without effect on any metric", strings.Join(set, ", "))
	list("without effect on any metric", strings.Join(other, ", "))
	list("not varied, being zero or at a bound", keys(r.Fixed))
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

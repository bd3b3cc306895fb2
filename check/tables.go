package check

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gdisim/internal/table"
)

// TableSummary is the verdicts on the figures of one published table.
type TableSummary struct {
	Source          string // as the expectations give it; the file where they do not
	Fitted, Checked int
	Other           int     // findings, orders and figures that do not say
	Valued          int     // checked figures with an error; the quantiles are of these
	Median, P95     float64 // of |error|, by nearest rank
	Worst           float64
	WorstOf         string // subject and point of the worst checked figure
	Orders          int    // expectations of an order
	Wrong           int    // of them, not as published
	Missed, Failed  int    // known misses and failures, fitted ones included
}

// Tables returns a summary for each source that occurs, in order of sources.
func Tables(vs []Verdict) []TableSummary {
	var out []TableSummary
	errs := map[string][]float64{}
	index := map[string]int{}
	for i := range vs {
		v := &vs[i]
		source := v.Source
		if source == "" {
			source = v.File
		}
		k, ok := index[source]
		if !ok {
			k = len(out)
			index[source] = k
			out = append(out, TableSummary{Source: source})
		}
		t := &out[k]
		if v.Order {
			t.Orders++
			if !v.Holds {
				t.Wrong++
			}
		}
		switch {
		case v.Failed():
			t.Failed++
		case !v.Holds:
			t.Missed++
		}
		switch {
		case v.Order || v.Use == "":
			t.Other++
		case v.Use == "fitted":
			t.Fitted++
		default:
			t.Checked++
			if math.IsNaN(v.Err) {
				break
			}
			e := math.Abs(v.Err)
			if errs[source] = append(errs[source], e); e > t.Worst || t.WorstOf == "" {
				t.Worst, t.WorstOf = e, v.what()
			}
		}
	}
	for i := range out {
		t := &out[i]
		es := errs[t.Source]
		if t.Valued = len(es); t.Valued > 0 {
			slices.Sort(es)
			t.Median, t.P95 = nearest(es, 50), nearest(es, 95)
		}
	}
	slices.SortStableFunc(out, func(a, b TableSummary) int { return natural(a.Source, b.Source) })
	return out
}

// natural compares strings with runs of digits by their number: Table 9 before
// Table 10.
func natural(a, b string) int {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na > 0 && nb > 0 {
			x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// byReference cuts the summaries where the part of the source before the first
// comma changes, and leaves those of no figure out.
func byReference(vs []Verdict) (refs []string, groups [][]TableSummary) {
	for _, s := range Tables(vs) {
		if s.Fitted+s.Checked+s.Orders == 0 {
			continue
		}
		ref, _, _ := strings.Cut(s.Source, ", ")
		if n := len(refs); n == 0 || refs[n-1] != ref {
			refs, groups = append(refs, ref), append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], s)
	}
	return refs, groups
}

func summaryTable(ss []TableSummary) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Head: "figures"},
		{Head: "fitted", Right: true},
		{Head: "checked", Right: true},
		{Head: "median %", Right: true},
		{Head: "p95 %", Right: true},
		{Head: "worst %", Right: true},
		{Head: "worst row"},
		{Head: "orders"},
		{Head: "missed", Right: true},
	}}
	for _, s := range ss {
		_, where, ok := strings.Cut(s.Source, ", ")
		if !ok {
			where = "all"
		}
		row := []string{where, fmt.Sprint(s.Fitted), fmt.Sprint(s.Checked), "", "", "", "", "", ""}
		if s.Valued > 0 {
			row[3], row[4], row[5], row[6] = percent(s.Median), percent(s.P95), percent(s.Worst), s.WorstOf
		}
		switch {
		case s.Orders > 0 && s.Wrong == 0:
			row[7] = "right"
		case s.Orders > 0:
			row[7] = fmt.Sprintf("%d of %d wrong", s.Wrong, s.Orders)
		}
		if n := s.Missed + s.Failed; n > 0 {
			row[8] = fmt.Sprint(n)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func percent(e float64) string { return fmt.Sprintf("%.1f", 100*e) }

// SummaryText writes a line per source of the figures, what failed, and the
// errors over all.
func SummaryText(w io.Writer, vs []Verdict) error {
	var b strings.Builder
	refs, groups := byReference(vs)
	for i, ref := range refs {
		b.WriteString(table.Cut(ref, textWidth) + "\n")
		if _, err := summaryTable(groups[i]).Text(&b, textWidth, "  "); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	for i := range vs {
		if v := &vs[i]; v.Failed() {
			b.WriteString(table.Wrap(v.failure(), textWidth, "", "  "))
		}
	}
	for _, s := range Summarise(vs) {
		b.WriteString(table.Wrap(s.String(), textWidth, "", "  "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// SummaryMarkdown writes the same as Markdown.
func SummaryMarkdown(w io.Writer, vs []Verdict) error {
	var b strings.Builder
	refs, groups := byReference(vs)
	for i, ref := range refs {
		b.WriteString("**" + ref + "**\n\n")
		if err := summaryTable(groups[i]).Markdown(&b); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	for _, s := range Summarise(vs) {
		b.WriteString("- " + s.String() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

package check

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gdisim/internal/table"
	"gdisim/result"
)

// textWidth is the width that no line of the text exceeds.
const textWidth = 100

// Summary is the errors of one group of verdicts.
type Summary struct {
	Use       string // "fitted", "checked", or "" for verdicts that do not say
	N, Failed int
	Missed    int     // known misses
	Valued    int     // verdicts with an error; the quantiles are of these
	Median    float64 // of |error|, by nearest rank
	P95       float64
	Worst     float64
	WorstOf   string // file:line and subject of the worst
}

// Summarise returns a summary of each group that occurs: fitted, checked, other.
func Summarise(vs []Verdict) []Summary {
	var out []Summary
	for _, use := range []string{"fitted", "checked", ""} {
		s := Summary{Use: use}
		var errs []float64
		for i := range vs {
			v := &vs[i]
			if v.Use != use {
				continue
			}
			s.N++
			switch {
			case v.Failed():
				s.Failed++
			case !v.Holds:
				s.Missed++
			}
			if math.IsNaN(v.Err) {
				continue
			}
			e := math.Abs(v.Err)
			if errs = append(errs, e); e > s.Worst || s.WorstOf == "" {
				s.Worst, s.WorstOf = e, v.place()+" "+v.what()
			}
		}
		if s.N == 0 {
			continue
		}
		if s.Valued = len(errs); s.Valued > 0 {
			slices.SortFunc(errs, cmp.Compare[float64])
			s.Median, s.P95 = nearest(errs, 50), nearest(errs, 95)
		}
		out = append(out, s)
	}
	return out
}

// nearest is a percentile by nearest rank.
//
// Preconditions: sorted is not empty.
func nearest(sorted []float64, percent int) float64 {
	return sorted[result.Rank(len(sorted), 10*percent)]
}

// Text writes the verdicts, a table per file, and their summary in at most 100
// columns. Failures are told again with their source and note.
func Text(w io.Writer, vs []Verdict) error {
	files := byFile(vs)
	for _, group := range files {
		if len(files) > 1 {
			if _, err := fmt.Fprintln(w, table.Cut(group[0].File, textWidth)); err != nil {
				return err
			}
		}
		t := verdictTable(group)
		t.Columns = t.Columns[:len(t.Columns)-1] // no room for the source
		for i := range group {
			t.Rows[i][0] = fmt.Sprint(group[i].Line)
			t.Rows[i][3] = group[i].brief()
		}
		t.Columns[0] = table.Column{Head: "line", Right: true}
		if _, err := t.Text(w, textWidth, ""); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	var b strings.Builder
	for i := range vs {
		if v := &vs[i]; !v.Holds {
			b.WriteString(table.Wrap(v.failure(), textWidth, "", "  "))
		}
	}
	for _, s := range Summarise(vs) {
		b.WriteString(table.Wrap(s.String(), textWidth, "", "  "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// brief is what came out, in a column's width: a failure's sentence tells all.
func (v *Verdict) brief() string {
	const width = 24
	switch {
	case table.Width(v.Got) <= width:
		return v.Got
	case v.Order && v.Holds:
		return "in order"
	case v.Order:
		return "not in order"
	}
	return table.Cut(v.Got, width)
}

// byFile cuts the verdicts where the file changes.
func byFile(vs []Verdict) [][]Verdict {
	var out [][]Verdict
	for from := 0; from < len(vs); {
		to := from + 1
		for to < len(vs) && vs[to].File == vs[from].File {
			to++
		}
		out = append(out, vs[from:to])
		from = to
	}
	return out
}

// failure tells a verdict that does not hold in a sentence.
func (v *Verdict) failure() string {
	word := "FAIL"
	if !v.Failed() {
		word = "known miss"
	}
	s := fmt.Sprintf("%s %s: %s: expected %s, got %s", word, v.place(), v.what(), v.Want, v.Got)
	if v.Source != "" {
		s += "; source: " + v.Source
	}
	if v.KnownMiss != "" {
		s += "; " + v.KnownMiss
	}
	if v.Note != "" {
		s += "; " + v.Note
	}
	return s
}

// Markdown writes the verdicts and their summary.
func Markdown(w io.Writer, vs []Verdict) error {
	if err := verdictTable(vs).Markdown(w); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteByte('\n')
	for _, s := range Summarise(vs) {
		b.WriteString("- " + s.String() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func verdictTable(vs []Verdict) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Head: "where"},
		{Head: "expectation"},
		{Head: "expected"},
		{Head: "got", Right: true},
		{Head: "error %", Right: true},
		{Head: "verdict"},
		{Head: "use"},
		{Head: "source"},
	}}
	for i := range vs {
		v := &vs[i]
		verdict, off := "ok", ""
		switch {
		case v.Failed():
			verdict = "FAIL"
		case !v.Holds:
			verdict = "miss"
		}
		if !math.IsNaN(v.Err) {
			off = fmt.Sprintf("%+.1f", 100*v.Err)
		}
		t.Rows = append(t.Rows, []string{v.place(), v.what(), v.Want, v.Got, off, verdict, v.Use, v.Source})
	}
	return t
}

func (v *Verdict) place() string { return fmt.Sprintf("%s:%d", v.File, v.Line) }

// what is the subject and its point.
func (v *Verdict) what() string {
	s := v.Subject
	for _, at := range v.At {
		s += " " + at.Key[strings.LastIndex(at.Key, ".")+1:] + "=" + at.Value
	}
	return s
}

// String is one line: how many, how many failed, and how far off.
func (s *Summary) String() string {
	use := s.Use
	if use == "" {
		use = "other"
	}
	line := fmt.Sprintf("%s: %d, of which %d failed", use, s.N, s.Failed)
	if s.Missed > 0 {
		line += fmt.Sprintf(" and %d missed as known", s.Missed)
	}
	if s.Valued == 0 {
		return line
	}
	return line + fmt.Sprintf("; |error| of %d values: median %.1f %%, 95th percentile %.1f %%, worst %.1f %% (%s)",
		s.Valued, 100*s.Median, 100*s.P95, 100*s.Worst, s.WorstOf)
}

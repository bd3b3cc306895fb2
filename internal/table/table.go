// Package table lays out small tables as plain text of a bounded width and as
// Markdown. It knows nothing of what the cells mean.
package table

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Column is the head of a column and how its cells stand.
type Column struct {
	// Group is a head above the heads of neighbours with the same Group.
	Group string
	Head  string
	Right bool // numbers
	// Drop is the order in which columns go when the text is too wide: higher
	// first, 0 never.
	Drop int
	// Wrap lets cells that are too long go on in further lines. Of a table at
	// most one column, left-aligned; it shrinks before all others.
	Wrap bool
}

// Table is rows of cells. A row may be shorter than Columns.
type Table struct {
	Columns []Column
	Rows    [][]string
}

// minWidth is what a left-aligned column keeps when the text is too wide.
const minWidth = 8

// Text writes the table in at most width columns, each line after indent.
// Where it does not fit, the column with Wrap is broken into lines, columns with
// Drop go, then the longest left-aligned cells are cut with an ellipsis. It returns
// the heads of the dropped columns.
func (t *Table) Text(w io.Writer, width int, indent string) (dropped []string, err error) {
	cols := make([]int, len(t.Columns))
	for i := range cols {
		cols[i] = i
	}
	widths := make([]int, len(cols))
	for i, c := range t.Columns {
		widths[i] = Width(c.Head)
		for _, r := range t.Rows {
			if i < len(r) {
				widths[i] = max(widths[i], Width(r[i]))
			}
		}
	}
	total := func() int {
		n := Width(indent) - 2
		t.spans(cols, widths, func(_, _, w int) { n += 2 + w })
		return n
	}
	// Names shrink a little before a column goes, and without mercy after.
	shrink := func(least int) {
		for total() > width {
			widest := -1
			for _, i := range cols {
				if !t.Columns[i].Right && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				return
			}
			widths[widest]--
		}
	}
	for i, c := range t.Columns {
		if c.Wrap {
			widths[i] = max(min(widths[i], 3*minWidth), widths[i]-max(0, total()-width))
		}
	}
	shrink(3 * minWidth)
	for total() > width {
		last := -1
		for k, i := range cols {
			if d := t.Columns[i].Drop; d > 0 && (last < 0 || d >= t.Columns[cols[last]].Drop) {
				last = k
			}
		}
		if last < 0 {
			break
		}
		dropped = append(dropped, t.Columns[cols[last]].name())
		cols = append(cols[:last], cols[last+1:]...)
	}
	shrink(minWidth)
	shrink(1)

	var b strings.Builder
	line := func(cell func(i int) string) {
		var l strings.Builder
		l.WriteString(indent)
		for k, i := range cols {
			if k > 0 {
				l.WriteString("  ")
			}
			s := Cut(cell(i), widths[i])
			pad := strings.Repeat(" ", widths[i]-Width(s))
			if t.Columns[i].Right {
				l.WriteString(pad + s)
			} else {
				l.WriteString(s + pad)
			}
		}
		// Right-aligned columns alone can still be too wide.
		b.WriteString(Cut(strings.TrimRight(l.String(), " "), width))
		b.WriteByte('\n')
	}
	if g := t.groups(cols, widths, indent); g != "" {
		b.WriteString(Cut(g, width) + "\n")
	}
	line(func(i int) string { return t.Columns[i].Head })
	for _, r := range t.Rows {
		for rest := r; rest != nil; {
			var now []string
			now, rest = t.broken(rest, widths)
			line(func(i int) string { return cell(now, i) })
		}
	}
	_, err = io.WriteString(w, b.String())
	return dropped, err
}

// broken splits a row into what its first line shows and a row of what goes on in
// the next, nil where nothing does.
func (t *Table) broken(r []string, widths []int) (now, rest []string) {
	for i, c := range t.Columns {
		if !c.Wrap || i >= len(r) || Width(r[i]) <= widths[i] {
			continue
		}
		head, tail, more := strings.Cut(strings.TrimSuffix(Wrap(r[i], widths[i], "", ""), "\n"), "\n")
		if !more {
			break
		}
		now, rest = append([]string(nil), r...), make([]string, len(r))
		now[i], rest[i] = head, strings.ReplaceAll(tail, "\n", " ")
		return now, rest
	}
	return r, nil
}

// name is the head with its group.
func (c Column) name() string { return strings.TrimSpace(c.Group + " " + c.Head) }

// spans calls f for each run of columns, cols[from:to], that share a Group, with
// the width that the run needs.
func (t *Table) spans(cols, widths []int, f func(from, to, width int)) {
	for from := 0; from < len(cols); {
		g := t.Columns[cols[from]].Group
		to, w := from, -2
		for to < len(cols) && (to == from || g != "" && t.Columns[cols[to]].Group == g) {
			w += 2 + widths[cols[to]]
			to++
		}
		f(from, to, max(w, Width(g)))
		from = to
	}
}

// groups makes room for the groups in the first column of each and returns their
// line, "" if there are none.
func (t *Table) groups(cols, widths []int, indent string) string {
	var l strings.Builder
	l.WriteString(indent)
	t.spans(cols, widths, func(from, to, width int) {
		have := -2
		for _, i := range cols[from:to] {
			have += 2 + widths[i]
		}
		widths[cols[from]] += width - have
		g := t.Columns[cols[from]].Group
		l.WriteString(strings.Repeat(" ", width-Width(g)) + g + "  ")
	})
	return strings.TrimRight(l.String(), " ")
}

// Markdown writes the table whole.
func (t *Table) Markdown(w io.Writer) error {
	var b strings.Builder
	line := func(f func(i int) string) {
		b.WriteByte('|')
		for i := range t.Columns {
			b.WriteString(" " + strings.NewReplacer("|", `\|`, "\n", " ").Replace(f(i)) + " |")
		}
		b.WriteByte('\n')
	}
	line(func(i int) string { return t.Columns[i].name() })
	line(func(i int) string {
		if t.Columns[i].Right {
			return "---:"
		}
		return "---"
	})
	for _, r := range t.Rows {
		line(func(i int) string { return cell(r, i) })
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func cell(r []string, i int) string {
	if i < len(r) {
		return r[i]
	}
	return ""
}

// Width is the number of columns that s takes on a terminal; wide East Asian
// letters are counted as one.
func Width(s string) int { return utf8.RuneCountInString(s) }

// Cut shortens s to n columns, the last of them an ellipsis where it was longer.
func Cut(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Wrap breaks s at spaces into lines of at most width columns; the first begins
// with first, the others with rest. A word that is longer than a line is cut.
func Wrap(s string, width int, first, rest string) string {
	var b strings.Builder
	line, empty := first, true
	for word := range strings.FieldsSeq(s) {
		if !empty && Width(line)+1+Width(word) > width {
			b.WriteString(line + "\n")
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line += Cut(word, width-Width(line))
		empty = false
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}

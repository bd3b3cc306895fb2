package crossval

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"gdisim/internal/table"
)

const textWidth = 100

// JSON writes the report so that Read reads it.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// Read reads what JSON wrote.
func Read(src io.Reader) (*Report, error) {
	var r Report
	d := json.NewDecoder(src)
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("cross-validation: %w", err)
	}
	return &r, nil
}

func percent(e float64) string { return fmt.Sprintf("%.1f", 100*e) }

func (r *Report) table() *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Head: "left out"},
		{Head: "n", Right: true},
		{Head: "median %", Right: true},
		{Head: "refit", Right: true},
		{Head: "p95 %", Right: true},
		{Head: "refit", Right: true},
		{Head: "fitted again", Right: true},
		{Head: "alone", Right: true},
	}}
	line := func(name string, a, b Errors, fitted, alone string) {
		t.Rows = append(t.Rows, []string{name, fmt.Sprint(a.N), percent(a.Median), percent(b.Median), percent(a.P95), percent(b.P95), fitted, alone})
	}
	for i := range r.Tables {
		x := &r.Tables[i]
		alone := 0
		for _, m := range x.Moves {
			if m.Alone {
				alone++
			}
		}
		line(x.Source, x.Shipped, x.Refit, fmt.Sprint(len(x.Moves)), fmt.Sprint(alone))
	}
	line("all of them", r.Shipped, r.Refit, "", "")
	return t
}

// moves tells what a table's parameters became without it.
func (x *Table) moves() string {
	var parts []string
	for _, m := range x.Moves {
		s := fmt.Sprintf("%s of %s %s -> %s", strings.TrimPrefix(m.Key, "hardware."), plain(m.Owner), m.From, m.To)
		if m.Alone {
			s += " (alone)"
		}
		parts = append(parts, s)
	}
	s := strings.Join(parts, "; ")
	if len(x.Choices) > 0 {
		s += "; stays: " + strings.Join(x.Choices, ", ")
	}
	return s
}

// plain is the owner's name without the kind of its file.
func plain(owner string) string {
	if _, name, ok := strings.Cut(owner, ":"); ok {
		return name
	}
	return owner
}

// Text writes the tables' errors and what moved, in at most 100 columns.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	if _, err := r.table().Text(&b, textWidth, ""); err != nil {
		return err
	}
	b.WriteByte('\n')
	for i := range r.Tables {
		x := &r.Tables[i]
		b.WriteString(table.Wrap(x.Source+": "+x.moves(), textWidth, "", "  "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown writes the same as Markdown.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	if err := r.table().Markdown(&b); err != nil {
		return err
	}
	b.WriteByte('\n')
	for i := range r.Tables {
		x := &r.Tables[i]
		fmt.Fprintf(&b, "- %s: %s\n", x.Source, x.moves())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

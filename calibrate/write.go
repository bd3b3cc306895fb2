package calibrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdisim/internal/table"
	"gdisim/sim"
)

const width = 100

// Text writes the fit for people. All names every parameter left at its prior.
func (f *Fit) Text(w io.Writer, all bool) error {
	var b bytes.Buffer
	para := func(label, s string) {
		b.WriteString(table.Wrap(s, width, label, strings.Repeat(" ", len(label))))
	}
	para("", "Calibration of "+f.Hardware+" by "+f.Scenario)
	if f.Emulated != "" {
		para("EMULATED  ", f.Emulated+": this profile describes that software, no NIC")
	}
	for i, s := range f.Sources {
		if len(f.Sources) > 1 {
			s = label(i) + " " + s
		}
		para("from      ", s)
	}
	// What the intervals know of stands in their heading, where it is one thing.
	var spreads []string
	for i := range f.Params {
		if p := &f.Params[i]; p.Fitted && !slices.Contains(spreads, p.spread()) {
			spreads = append(spreads, p.spread())
		}
	}
	heading := "99 % interval"
	if len(spreads) == 1 {
		heading = "99 %, " + spreads[0]
	}
	fitted := &table.Table{Columns: []table.Column{
		{Head: "parameter"}, {Head: "prior", Right: true}, {Head: "value", Right: true}, {Head: heading, Right: true}, {Head: "by"},
	}}
	if len(spreads) > 1 {
		fitted.Columns = slices.Insert(fitted.Columns, 4, table.Column{Head: "interval"})
	}
	left := &table.Table{Columns: []table.Column{{Head: "left at its prior"}, {Head: "prior", Right: true}, {Head: "why"}}}
	for _, p := range f.Params {
		key := strings.TrimPrefix(p.Key, "hardware.")
		if !p.Fitted {
			left.Rows = append(left.Rows, []string{key, short(p.Prior), p.Why})
			continue
		}
		by := "fit"
		if p.Measured != "" {
			by = p.Measured
		}
		if p.Why != "" {
			by += ": " + p.Why
		}
		row := []string{key, short(p.Prior), short(p.Value), short(p.LowValue) + " to " + short(p.HighValue), by}
		if len(spreads) > 1 {
			row = slices.Insert(row, 4, p.spread())
		}
		fitted.Rows = append(fitted.Rows, row)
	}
	rows := &table.Table{Columns: []table.Column{
		{Head: "number"}, {Group: "us", Head: "measured", Right: true}, {Group: "us", Head: "prior", Right: true}, {Group: "us", Head: "fit", Right: true}, {Head: "residual", Right: true}, {Head: "use"},
	}}
	us := func(d sim.Duration) string {
		return strconv.FormatFloat(float64(d)/float64(sim.Microsecond), 'f', 3, 64)
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		use := "fitted"
		if r.HeldOut {
			use = "held out"
		}
		rows.Rows = append(rows.Rows, []string{r.What, us(r.Measured), us(r.Before), us(r.After), fmt.Sprintf("%+.1f %%", 100*float64(r.After-r.Measured)/float64(r.Measured)), use})
	}
	for _, t := range []*table.Table{fitted, rows} {
		if len(t.Rows) == 0 {
			continue
		}
		b.WriteByte('\n')
		if _, err := t.Text(&b, width, ""); err != nil {
			return err
		}
	}
	if len(f.Rows) > 0 {
		b.WriteByte('\n')
		para("", fmt.Sprintf("error (root mean square) of the numbers fitted: %s before, %s after; of those held out: %s before, %s after", percent(f.Before), percent(f.After), percent(f.HeldBefore), percent(f.HeldAfter)))
	}
	for _, n := range f.Notices {
		para("note: ", n)
	}
	if len(left.Rows) > 0 && !all {
		para("", fmt.Sprintf("parameters left at their prior: %d (--all names them, with the reason; so does --format json)", len(left.Rows)))
	}
	if len(left.Rows) > 0 && all {
		b.WriteByte('\n')
		if _, err := left.Text(&b, width, ""); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// spread says what the interval knows of.
func (p *Param) spread() string {
	switch {
	case p.Measured == "":
		return "of the fit"
	case p.Runs == 1:
		return "within one run"
	}
	return "of " + strconv.Itoa(p.Runs) + " runs"
}

// short is a value for a table: of a distribution its first duration, its median
// or mean, marked as one.
func short(text string) string {
	if strings.HasPrefix(text, "{dist:") {
		return "~" + durations.FindString(text)
	}
	return text
}

func percent(v float64) string {
	if math.IsNaN(v) {
		return "none"
	}
	return strconv.FormatFloat(100*v, 'f', 2, 64) + " %"
}

// JSON writes the fit as JSON; times in picoseconds.
func (f *Fit) JSON(w io.Writer) error {
	type row struct {
		What     string       `json:"number"`
		Measured sim.Duration `json:"measured_ps"`
		Sigma    sim.Duration `json:"sigma_ps"`
		Before   sim.Duration `json:"prior_ps"`
		After    sim.Duration `json:"fit_ps"`
		HeldOut  bool         `json:"held_out"`
	}
	type par struct {
		Key      string `json:"key"`
		Prior    string `json:"prior"`
		Value    string `json:"value"`
		Low      string `json:"low,omitempty"`
		High     string `json:"high,omitempty"`
		Fitted   bool   `json:"fitted"`
		Measured string `json:"measured_as,omitempty"`
		Runs     int    `json:"runs,omitempty"`
		Why      string `json:"why,omitempty"`
	}
	out := struct {
		Schema     string   `json:"schema"`
		Scenario   string   `json:"scenario"`
		Hardware   string   `json:"hardware"`
		Emulated   string   `json:"emulated,omitempty"`
		Confidence float64  `json:"confidence"`
		Sources    []string `json:"sources"`
		Notices    []string `json:"notices,omitempty"`
		Params     []par    `json:"parameters"`
		Rows       []row    `json:"rows"`
	}{"gdisim-calibration/1", f.Scenario, f.Hardware, f.Emulated, Confidence, f.Sources, f.Notices, []par{}, []row{}}
	for _, p := range f.Params {
		out.Params = append(out.Params, par{p.Key, p.Prior, p.Value, p.LowValue, p.HighValue, p.Fitted, p.Measured, p.Runs, p.Why})
	}
	for _, r := range f.Rows {
		out.Rows = append(out.Rows, row{r.What, r.Measured, r.Sigma, r.Before, r.After, r.HeldOut})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(out)
}

// Profile writes what was found (f.Found must hold) as a profile of that name, on top of the profile
// that base names as seen from the new file's folder.
func (f *Fit) Profile(w io.Writer, name, base string) error {
	var b strings.Builder
	b.WriteString("# Made by gdisim calibrate. What is not here is as in the profile it includes.\n")
	title := "calibrated from " + f.Hardware + " by " + f.Scenario
	if f.Emulated != "" {
		b.WriteString("# EMULATED: these times are a software device's. They describe no NIC.\n")
		title = "EMULATED, no NIC: " + title + "; " + f.Emulated
	}
	fmt.Fprintf(&b, "gdisim-profile: v1\nname: %s\ntitle: %q\ninclude: [%s]\nsources:\n", name, title, base)
	for i, s := range f.Sources {
		fmt.Fprintf(&b, "  r%d: %q\n", i+1, s)
	}
	all := "r1"
	if len(f.Sources) > 1 {
		all = "all"
		fmt.Fprintf(&b, "  all: %q\n", "the results r1 to r"+strconv.Itoa(len(f.Sources))+" together")
	}
	b.WriteString("parameters:\n")
	for _, p := range f.Params {
		if !p.Fitted {
			continue
		}
		kind, where := "derived", fmt.Sprintf("fit of %d numbers, error %s, held out %s; prior %s", len(f.fitted()), percent(f.After), percent(f.HeldAfter), p.Prior)
		if p.Measured != "" {
			kind, where = "measured", p.Measured+"; prior "+p.Prior
			if f.Virtual {
				where += "; of a virtual machine: the hypervisor's part is in it"
			}
		}
		note := "99 %, " + p.spread() + ": " + p.LowValue + " to " + p.HighValue
		if p.Why != "" {
			note += "; " + p.Why
		}
		if f.Emulated != "" {
			note += "; emulated"
		}
		fmt.Fprintf(&b, "  %s: {value: %s, kind: %s, source: %s, where: %q, note: %q}\n", strings.TrimPrefix(p.Key, "hardware."), p.Value, kind, all, where, note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

package check

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// Verdict is one expectation at one point.
type Verdict struct {
	File string
	Line int
	At   []scenarios.Setting // the point; empty where nothing is swept

	Subject string  // "mini-gda put+completion.p50"
	Want    string  // "4.03us within 5%"
	Got     string  // "4.101 us"
	Err     float64 // (got - value) / value; NaN where there is no single value
	Holds   bool
	Order   bool // an order of paths, not a figure

	Source, Use string // as in the expectation; Use may be empty
	Note        string // what the figure fitted, then the expectation's note
	KnownMiss   string // why a miss was to be expected; it does not fail the file
}

// Failed reports whether the expectation neither holds nor misses as known.
func (v *Verdict) Failed() bool { return !v.Holds && v.KnownMiss == "" }

// Run returns a verdict for each expectation of s and each point that it is
// about, in the order of the file. A point or path that the result does not
// have, or that did not finish, does not hold.
func Run(s *scenarios.Scenario, r *result.Result) []Verdict {
	var vs []Verdict
	for i := range s.Expect {
		e := &s.Expect[i]
		base := Verdict{File: s.File, Line: e.Line, Subject: subject(e), Want: want(e), Err: math.NaN(), Source: e.Source, Use: e.Use, Note: note(e), KnownMiss: e.KnownMiss, Order: e.Order != nil}
		found := false
		for k := range r.Points {
			p := &r.Points[k]
			if !matches(p, e.At) {
				continue
			}
			found = true
			v := base
			for _, s := range p.At {
				v.At = append(v.At, scenarios.Setting(s))
			}
			v.judge(e, p, r)
			vs = append(vs, v)
		}
		if !found {
			base.At, base.Got = e.At, "no such point in the result"
			vs = append(vs, base)
		}
	}
	return vs
}

// NeedsBreakdown reports whether an expectation of s is about a stage.
func NeedsBreakdown(s *scenarios.Scenario) bool {
	return slices.ContainsFunc(s.Expect, func(e scenarios.Expect) bool {
		return strings.Contains(e.Metric+e.MinusMetric, "/") || e.Over != nil && strings.Contains(e.Over.Metric, "/")
	})
}

// Hold reports whether all verdicts hold, known misses aside.
func Hold(vs []Verdict) bool {
	return !slices.ContainsFunc(vs, func(v Verdict) bool { return v.Failed() })
}

func matches(p *result.Point, at []scenarios.Setting) bool {
	for _, s := range at {
		if !slices.Contains(p.At, result.Setting(s)) {
			return false
		}
	}
	return true
}

func subject(e *scenarios.Expect) string {
	switch {
	case e.Finding != "":
		return e.Path + " " + e.Finding
	case e.Order != nil:
		return e.Metric
	}
	s := e.Path + " " + e.Metric
	switch {
	case e.MinusMetric != "" && e.MinusPath != e.Path:
		s += " - " + e.MinusPath
		if e.MinusMetric != e.Metric {
			s += " " + e.MinusMetric
		}
	case e.MinusMetric != "":
		s += " - " + e.MinusMetric
	case e.Over != nil:
		s += " /"
		if e.Over.Path != e.Path {
			s += " " + e.Over.Path
		}
		if e.Over.Metric != e.Metric {
			s += " " + e.Over.Metric
		}
		for _, x := range e.Over.At {
			s += " " + x.Value
		}
	}
	return s
}

// note names what the figure fitted before what is written of it.
func note(e *scenarios.Expect) string {
	var parts []string
	for _, key := range e.Fits {
		parts = append(parts, strings.TrimPrefix(key, "hardware."))
	}
	s := strings.Join(parts, ", ")
	if s != "" && e.Note != "" {
		s += "; "
	}
	return s + e.Note
}

func want(e *scenarios.Expect) string {
	switch {
	case e.Finding != "":
		return e.Is
	case e.Order != nil:
		return strings.Join(e.Order, sign(e.Metric))
	case e.Value != nil:
		return e.Value.String() + " within " + e.Within.String()
	case e.Max == nil:
		return "at least " + e.Min.String()
	case e.Min == nil:
		return "at most " + e.Max.String()
	}
	return e.Min.String() + " to " + e.Max.String()
}

// sign stands between the paths of an order, best first: times go up, rates
// down.
func sign(metric string) string {
	if n, err := result.ParseName(metric); err == nil && moreIsBetter(n.Metric) {
		return " > "
	}
	return " < "
}

func moreIsBetter(m stage.Metric) bool {
	return m == stage.MessageRate || m == stage.Goodput || m == stage.BackgroundRate
}

func (v *Verdict) judge(e *scenarios.Expect, p *result.Point, r *result.Result) {
	switch {
	case e.Finding != "":
		v.finding(e, p)
	case e.Order != nil:
		v.order(e, p)
	default:
		v.value(e, p, r)
	}
}

// lookup returns the number in the units of scenarios.Quantity, and as text; the
// text says why where ok is false.
func lookup(p *result.Point, path, metric string) (n float64, text string, ok bool) {
	x, why := finished(p, path)
	if x == nil {
		return 0, why, false
	}
	val, err := x.Lookup(metric)
	switch {
	case err != nil:
		return 0, err.Error(), false
	case val.Unit == "time":
		return float64(val.Time), micro(val.Time), true
	case val.Unit == "share":
		return val.Number, decimal(100*val.Number) + " %", true
	}
	return val.Number, decimal(val.Number) + " " + val.Unit, true
}

// difference writes a difference in the unit of its metric.
func difference(d float64, e *scenarios.Expect) string {
	unit := ""
	for _, q := range []*scenarios.Quantity{e.Value, e.Min, e.Max} {
		if q != nil {
			unit = q.Unit
		}
	}
	switch unit {
	case "ps":
		return micro(sim.Duration(d))
	case "ratio":
		return decimal(100*d) + " %"
	}
	return decimal(d) + " " + unit
}

// ratio writes a ratio as the expectation writes its own: 1.211x, or 121.1 %.
func ratio(x float64, e *scenarios.Expect) string {
	for _, q := range []*scenarios.Quantity{e.Value, e.Min, e.Max} {
		if q != nil && strings.HasSuffix(q.Text, "x") {
			return decimal(x) + "x"
		}
	}
	return decimal(100*x) + " %"
}

// finished returns the path if it ran to its end, else why not.
func finished(p *result.Point, path string) (*result.Path, string) {
	x := p.Path(path)
	switch {
	case x == nil:
		return nil, "no path " + path + " in the result"
	case x.Err != "":
		return nil, "did not finish: " + x.Err
	}
	return x, ""
}

func (v *Verdict) value(e *scenarios.Expect, p *result.Point, r *result.Result) {
	got, text, ok := lookup(p, e.Path, e.Metric)
	if ok && e.MinusMetric != "" {
		var less float64
		less, text, ok = lookup(p, e.MinusPath, e.MinusMetric)
		if ok {
			got -= less
			text = difference(got, e)
		}
	}
	if ok && e.Over != nil {
		var base float64
		if base, text, ok = lookupBase(p, e.Over, r); ok {
			got /= base
			text = ratio(got, e)
		}
	}
	v.Got = text
	if !ok {
		return
	}
	if e.Value == nil {
		v.Holds = (e.Min == nil || got >= e.Min.Value) && (e.Max == nil || got <= e.Max.Value)
		return
	}
	off := math.Abs(got - e.Value.Value)
	if e.Value.Value != 0 {
		v.Err = (got - e.Value.Value) / math.Abs(e.Value.Value)
	}
	// A share may be off by an absolute number of points only when it says so;
	// a percentage is always relative.
	allowed := e.Within.Value
	if e.Within.Unit == "ratio" {
		allowed *= math.Abs(e.Value.Value)
	}
	// 1e-9: what is written in decimal is not always what a float64 holds.
	v.Holds = off <= allowed+1e-9*math.Abs(e.Value.Value)
}

// lookupBase returns what a ratio at p is taken through.
func lookupBase(p *result.Point, b *scenarios.Base, r *result.Result) (n float64, text string, ok bool) {
	at := slices.Clone(b.At)
	for _, s := range p.At {
		if !slices.ContainsFunc(b.At, func(x scenarios.Setting) bool { return x.Key == s.Key }) {
			at = append(at, scenarios.Setting(s))
		}
	}
	i := slices.IndexFunc(r.Points, func(q result.Point) bool { return matches(&q, at) })
	if i < 0 {
		return 0, "no point for what it is over", false
	}
	n, text, ok = lookup(&r.Points[i], b.Path, b.Metric)
	if ok && n == 0 {
		return 0, "no ratio: " + b.Path + " " + b.Metric + " is " + text, false
	}
	return n, text, ok
}

func (v *Verdict) order(e *scenarios.Expect, p *result.Point) {
	v.Holds = true
	up := sign(e.Metric) == " < "
	var texts []string
	var last float64
	for i, name := range e.Order {
		got, text, ok := lookup(p, name, e.Metric)
		if !ok || i > 0 && (up && got <= last || !up && got >= last) {
			v.Holds = false
		}
		last = got
		texts = append(texts, text)
	}
	v.Got = strings.Join(texts, ", ")
}

// finding holds the stronger grade against what is expected: present is either.
// A path that did not finish may well have the
// finding that stopped it.
func (v *Verdict) finding(e *scenarios.Expect, p *result.Point) {
	x := p.Path(e.Path)
	if x == nil {
		v.Got = "no path " + e.Path + " in the result"
		return
	}
	v.Got = "absent"
	for _, f := range x.Findings {
		if f.Finding.String() == e.Finding && (v.Got == "absent" || f.Grade == stage.Occurred) {
			v.Got = f.Grade.String()
		}
	}
	v.Holds = v.Got == e.Is || e.Is == "present" && v.Got != "absent"
	if x.Err != "" && v.Got == "absent" {
		v.Got, v.Holds = "did not finish: "+x.Err, false
	}
}

// micro writes d in microseconds, rounded to the nanosecond.
func micro(d sim.Duration) string {
	if d < 0 {
		return "-" + micro(-d)
	}
	ns := (d + sim.Nanosecond/2) / sim.Nanosecond
	return fmt.Sprintf("%d.%03d us", ns/1000, ns%1000)
}

// decimal writes v with four significant digits and no exponent.
func decimal(v float64) string {
	digits := 3
	for x := math.Abs(v); x >= 10 && digits > 0; x /= 10 {
		digits--
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

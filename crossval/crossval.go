package crossval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gdisim/check"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/testbed"
)

// Options say how to run.
type Options struct {
	Workers int // points that run at the same time, 0 for a core each
	// Simulate runs the model; nil for testbed.Run.
	Simulate func(context.Context, *scenarios.Scenario, testbed.Options) (*result.Result, error)
	Progress func(line string) // may be nil
}

// Errors sums up the |error| of figures, as shares of what was published, by
// nearest rank.
type Errors struct {
	N                  int
	Median, P95, Worst float64
}

// Move is a parameter that was fitted again.
type Move struct {
	Key, Owner string
	From, To   string // as a profile writes them
	// Alone: no other figure tells of it, so that it went to the middle of its
	// bounds.
	Alone bool `json:",omitempty"`
}

// Table is what came out without the figures of one published table.
type Table struct {
	Source         string
	Shipped, Refit Errors // of the table's figures
	Moves          []Move
	Choices        []string `json:",omitempty"` // fitted words and set-ups, which stay
}

// Report is the tables that fitted a parameter, each left out in turn.
type Report struct {
	Digest         string // of the scenarios that it is about
	Shipped, Refit Errors // of all the figures left out
	Tables         []Table
}

// param is a number that a figure fitted. Two platforms that take it from the
// same part share it.
type param struct {
	key, owner, from string
	low, high        float64 // bounds, over from
	whole            bool    // a count:
	count            float64
}

func (p *param) name() string { return p.owner + " " + p.key }

// row is a verdict of a scenario: a figure at a point.
type row struct {
	scenario, verdict int
	source            string
	fits              []*param
	choices           []string
}

// study is one cross-validation: its scenarios, figures and the runs done so far.
type study struct {
	ctx       context.Context
	o         Options
	scenarios []*scenarios.Scenario
	params    map[string]*param
	rows      []row
	runs      map[string][]check.Verdict // by file and settings
}

// fitting returns the scenarios with figures of tables that fitted a parameter; the
// others are predictions already.
func fitting(ss []*scenarios.Scenario) (out []*scenarios.Scenario) {
	fitted := map[string]bool{}
	for _, sc := range ss {
		for _, e := range sc.Expect {
			fitted[e.Source] = fitted[e.Source] || len(e.Fits) > 0
		}
	}
	for _, sc := range ss {
		if slices.ContainsFunc(sc.Expect, func(e scenarios.Expect) bool { return fitted[e.Source] }) {
			out = append(out, sc)
		}
	}
	return out
}

// Digest is a SHA-256, hex, of what a cross-validation of the scenarios is about:
// their text, and what profiles and stacks give each path.
func Digest(ss []*scenarios.Scenario) string {
	sum := sha256.New()
	for _, sc := range fitting(ss) {
		fmt.Fprintln(sum, sc.Name, sc.Digest)
		for k := range sc.Paths {
			c := sc.Config(0, k)
			for _, f := range scenarios.Fields() {
				if p, ok := c.Param(f.Key); ok && p.Owner != "" {
					fmt.Fprintln(sum, f.Key, p.Value, p.Min, p.Max)
				}
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Run leaves each table out that fitted a parameter. It runs the scenarios many
// times.
func Run(ctx context.Context, ss []*scenarios.Scenario, o Options) (*Report, error) {
	if o.Simulate == nil {
		o.Simulate = testbed.Run
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	s := &study{ctx: ctx, o: o, scenarios: fitting(ss), params: map[string]*param{}, runs: map[string][]check.Verdict{}}
	for i := range s.scenarios {
		if err := s.read(i); err != nil {
			return nil, err
		}
	}
	r := &Report{Digest: Digest(ss)}
	var shipped, refit []float64
	for _, source := range s.sources() {
		t, before, after, err := s.leave(source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		shipped, refit = append(shipped, before...), append(refit, after...)
		r.Tables = append(r.Tables, t)
	}
	r.Shipped, r.Refit = errorsOf(shipped), errorsOf(refit)
	return r, nil
}

// read runs scenario i as it is, and finds its figures and what they fitted.
func (s *study) read(i int) error {
	sc := s.scenarios[i]
	vs, err := s.simulate(i, nil)
	if err != nil {
		return err
	}
	for j := range vs {
		v := &vs[j]
		if v.Use == "" || math.IsNaN(v.Err) {
			continue
		}
		r := row{scenario: i, verdict: j, source: v.Source}
		e := &sc.Expect[slices.IndexFunc(sc.Expect, func(e scenarios.Expect) bool { return e.Line == v.Line })]
		for _, key := range e.Fits {
			p, err := s.param(sc, e.Path, key)
			switch {
			case err != nil:
				return fmt.Errorf("%s:%d: %w", sc.File, e.Line, err)
			case p == nil:
				r.choices = append(r.choices, key)
			default:
				r.fits = append(r.fits, p)
			}
		}
		s.rows = append(s.rows, r)
	}
	return nil
}

// param returns the number behind a key of a figure; nil for a word, or where
// the scenario gives the value itself.
func (s *study) param(sc *scenarios.Scenario, path, key string) (*param, error) {
	k := slices.IndexFunc(sc.Paths, func(p scenarios.PathRef) bool { return p.Name == path })
	v, ok := sc.Config(0, k).Param(key)
	if !ok || v.Owner == "" || v.Min == "" {
		return nil, nil
	}
	p := &param{key: key, owner: v.Owner, from: v.Value}
	if old := s.params[p.name()]; old != nil {
		return old, nil
	}
	var err error
	if p.low, err = scenarios.Over(key, v.Min, v.Value); err != nil {
		return nil, err
	}
	if p.high, err = scenarios.Over(key, v.Max, v.Value); err != nil {
		return nil, err
	}
	f, _ := scenarios.FieldOf(key)
	if p.whole = f.Kind == scenarios.Count; p.whole {
		p.count, err = scenarios.Over(key, v.Value, "1")
	}
	s.params[p.name()] = p
	return p, err
}

// sources returns the tables with a figure that fitted a number, in their order.
func (s *study) sources() []string {
	var vs []check.Verdict
	for _, r := range s.rows {
		if len(r.fits) > 0 {
			vs = append(vs, check.Verdict{Source: r.source})
		}
	}
	var out []string
	for _, t := range check.Tables(vs) {
		out = append(out, t.Source)
	}
	return out
}

// leave fits without the figures of a source and predicts them.
func (s *study) leave(source string) (t Table, before, after []float64, err error) {
	t.Source = source
	free, rest := s.linked(source)
	x, err := s.fit(free, rest)
	if err != nil {
		return t, nil, nil, err
	}
	for _, p := range free {
		to, err := scenarios.Times(p.key, p.from, x[p])
		if err != nil {
			return t, nil, nil, err
		}
		alone := !slices.ContainsFunc(rest, func(r *row) bool { return slices.Contains(r.fits, p) })
		t.Moves = append(t.Moves, Move{Key: p.key, Owner: p.owner, From: p.from, To: to, Alone: alone})
	}
	for i := range s.rows {
		r := &s.rows[i]
		if r.source != source {
			continue
		}
		for _, c := range r.choices {
			if !slices.Contains(t.Choices, c) {
				t.Choices = append(t.Choices, c)
			}
		}
		was, err := s.off(r, nil)
		if err != nil {
			return t, nil, nil, err
		}
		is, err := s.off(r, x)
		if err != nil {
			return t, nil, nil, err
		}
		before, after = append(before, math.Abs(was)), append(after, math.Abs(is))
	}
	t.Shipped, t.Refit = errorsOf(before), errorsOf(after)
	s.o.Progress(fmt.Sprintf("%s: %d figures, %d parameters: median %.1f %% -> %.1f %%", source, t.Shipped.N, len(free), 100*t.Shipped.Median, 100*t.Refit.Median))
	return t, before, after, nil
}

// linked returns the parameters that the source's figures fitted, with those that
// other figures fitted together with them, and the figures that are left.
func (s *study) linked(source string) (free []*param, rest []*row) {
	in := map[*param]bool{}
	for i := range s.rows {
		if r := &s.rows[i]; r.source == source {
			for _, p := range r.fits {
				in[p] = true
			}
		}
	}
	for grown := true; grown; {
		grown = false
		for i := range s.rows {
			r := &s.rows[i]
			if r.source == source || !slices.ContainsFunc(r.fits, func(p *param) bool { return in[p] }) {
				continue
			}
			for _, p := range r.fits {
				grown = grown || !in[p]
				in[p] = true
			}
		}
	}
	for i := range s.rows {
		if r := &s.rows[i]; r.source != source && slices.ContainsFunc(r.fits, func(p *param) bool { return in[p] }) {
			rest = append(rest, r)
		}
	}
	free = slices.SortedFunc(maps.Keys(in), func(a, b *param) int { return cmp.Compare(a.name(), b.name()) })
	return free, rest
}

// off returns the error of a figure with the parameters at x times their shipped
// values.
func (s *study) off(r *row, x map[*param]float64) (float64, error) {
	vs, err := s.simulate(r.scenario, x)
	if err != nil {
		return 0, err
	}
	e := vs[r.verdict].Err
	if math.IsNaN(e) {
		return 0, fmt.Errorf("%s:%d: %s", vs[r.verdict].File, vs[r.verdict].Line, vs[r.verdict].Got)
	}
	return e, nil
}

// simulate runs scenario i with the parameters at x, once for each setting.
func (s *study) simulate(i int, x map[*param]float64) ([]check.Verdict, error) {
	sc := *s.scenarios[i]
	sets, err := settings(&sc, x)
	if err != nil {
		return nil, err
	}
	id := sc.File + " " + strings.Join(sets, " ")
	if vs, ok := s.runs[id]; ok {
		return vs, nil
	}
	if err := sc.Apply(sets); err != nil {
		return nil, err
	}
	r, err := s.o.Simulate(s.ctx, &sc, testbed.Options{Breakdown: check.NeedsBreakdown(&sc), Workers: s.o.Workers})
	if err != nil {
		return nil, err
	}
	vs := check.Run(&sc, r)
	s.runs[id] = vs
	return vs, nil
}

// settings are what --set would say, for the parameters that the scenario takes
// from the same file.
func settings(sc *scenarios.Scenario, x map[*param]float64) ([]string, error) {
	var sets []string
	for p, by := range x {
		value, err := scenarios.Times(p.key, p.from, by)
		if err != nil {
			return nil, err
		}
		if value == p.from {
			continue
		}
		for k := range sc.Paths {
			if v, ok := sc.Config(0, k).Param(p.key); !ok || v.Owner != p.owner {
				continue
			}
			key := p.key
			if rest, ok := strings.CutPrefix(key, "path."); ok {
				key = "paths." + sc.Paths[k].Name + "." + rest
			}
			if set := key + "=" + value; !slices.Contains(sets, set) {
				sets = append(sets, set)
			}
		}
	}
	slices.Sort(sets)
	return sets, nil
}

// ErrorsOf sums up the figures of a source.
func ErrorsOf(vs []check.Verdict, source string) Errors {
	var es []float64
	for i := range vs {
		if v := &vs[i]; v.Source == source && v.Use != "" && !math.IsNaN(v.Err) {
			es = append(es, math.Abs(v.Err))
		}
	}
	return errorsOf(es)
}

func errorsOf(es []float64) Errors {
	if len(es) == 0 {
		return Errors{}
	}
	es = slices.Sorted(slices.Values(es))
	at := func(rank int) float64 { return math.Round(es[rank]*1e4) / 1e4 }
	return Errors{N: len(es), Median: at(result.Rank(len(es), 500)), P95: at(result.Rank(len(es), 950)), Worst: at(len(es) - 1)}
}

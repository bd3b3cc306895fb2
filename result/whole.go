package result

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdisim/sim"
	"gdisim/stage"
)

// check says what a decoded document lacks: JSON lets null stand for anything,
// and a null in a list would be a point without paths or a stage without a name.
func (r *Result) check() error {
	for i, pt := range r.Points {
		if len(pt.Paths) == 0 {
			return fmt.Errorf("points[%d]: no paths", i)
		}
		for j := range pt.Paths {
			if err := pt.Paths[j].check(); err != nil {
				return fmt.Errorf("points[%d].paths[%d]: %w", i, j, err)
			}
		}
		for _, s := range pt.At {
			if s.Key == "" {
				return fmt.Errorf("points[%d].at: a setting without a key", i)
			}
		}
	}
	if p := r.Part; p != nil && (p.Notices < 0 || p.Notices > len(r.Notices) || p.Points <= len(r.Points) || !r.Partial) {
		return errors.New("part: of fewer points or notices than there are")
	} else if p != nil {
		before := -1
		for i := range r.Points {
			if x := r.Points[i].Index; x <= before || x >= p.Points {
				return fmt.Errorf("points[%d]: index %d, want ascending ones below %d", i, x, p.Points)
			}
			before = r.Points[i].Index
		}
	}
	return named(r.Measured)
}

func (p *Path) check() error {
	if p.Name == "" {
		return errors.New("no name")
	}
	for i, m := range p.Metrics {
		if m.Metric == stage.NoMetric {
			return fmt.Errorf("metrics[%d]: no metric", i)
		}
		if err := (&times{P50: m.P50, P99: m.P99, P999: m.P999, Max: m.Max, Min: m.Min, Mean: m.Mean, Quantiles: m.Quantiles}).check(); err != nil {
			return fmt.Errorf("metrics[%d], %v: %w", i, m.Metric, err)
		}
		if m.Value < 0 {
			return fmt.Errorf("metrics[%d], %v: %g, want a number of 0 or more", i, m.Metric, m.Value)
		}
	}
	for i, b := range p.Breakdowns {
		if b.Metric == stage.NoMetric {
			return fmt.Errorf("breakdowns[%d]: no metric", i)
		}
		for j, s := range b.Stages {
			if s.Stage == stage.None {
				return fmt.Errorf("breakdowns[%d].stages[%d]: no stage", i, j)
			}
			if s.Time < 0 || s.Mean < 0 || s.Spread < 0 {
				return fmt.Errorf("breakdowns[%d].stages[%d]: a time below 0", i, j)
			}
		}
	}
	for i, f := range p.Findings {
		if f.Finding == stage.NoFinding {
			return fmt.Errorf("findings[%d]: no finding", i)
		}
	}
	for i, g := range p.Graphs {
		if g.Metric == stage.NoMetric {
			return fmt.Errorf("graphs[%d]: no metric", i)
		}
		for j, s := range g.Spans {
			if s.Stage == stage.None {
				return fmt.Errorf("graphs[%d].spans[%d]: no stage", i, j)
			}
		}
	}
	return named(p.Measured)
}

func named(ms []Measured) error {
	for i, m := range ms {
		if m.Name == "" {
			return fmt.Errorf("measured[%d]: no name", i)
		}
		t := times{P50: m.P50, P99: m.P99, P999: m.P999, Max: m.Max, Min: m.Min, Mean: m.Mean, Quantiles: m.Quantiles, signed: m.difference()}
		if err := t.check(); err != nil {
			return fmt.Errorf("measured[%d], %s: %w", i, m.Name, err)
		}
	}
	return nil
}

// difference reports whether m is a difference of two medians: it has an interval
// in place of samples, and may be below 0.
func (m *Measured) difference() bool { return strings.HasPrefix(m.Name, "difference.") }

// times are the summary of a distribution.
type times struct {
	P50, P99, P999, Max, Min, Mean sim.Duration
	Quantiles                      []sim.Duration
	signed                         bool
}

// check says which times cannot be: some below 0, or quantiles in no order. What is
// 0 was not told, as where a benchmark prints no percentiles.
func (t *times) check() error {
	named := []struct {
		name string
		v    sim.Duration
	}{{"min", t.Min}, {"p50", t.P50}, {"p99", t.P99}, {"p99.9", t.P999}, {"max", t.Max}}
	if t.Mean < 0 && !t.signed {
		return fmt.Errorf("mean %v, want 0 or more", t.Mean)
	}
	before := -1
	for i, x := range named {
		if x.v < 0 && !t.signed {
			return fmt.Errorf("%s %v, want 0 or more", x.name, x.v)
		}
		if x.v == 0 {
			continue
		}
		if before >= 0 && x.v < named[before].v {
			return fmt.Errorf("%s %v is below %s %v", x.name, x.v, named[before].name, named[before].v)
		}
		before = i
	}
	if len(t.Quantiles) > 0 && (t.Quantiles[0] < 0 && !t.signed || !slices.IsSorted(t.Quantiles)) {
		return errors.New("quantiles below 0 or in no order")
	}
	return nil
}

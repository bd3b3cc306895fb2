package result

import (
	"errors"
	"fmt"

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
	}
	for i, b := range p.Breakdowns {
		if b.Metric == stage.NoMetric {
			return fmt.Errorf("breakdowns[%d]: no metric", i)
		}
		for j, s := range b.Stages {
			if s.Stage == stage.None {
				return fmt.Errorf("breakdowns[%d].stages[%d]: no stage", i, j)
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
	}
	return nil
}

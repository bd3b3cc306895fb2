package cli

import (
	"encoding/csv"
	"io"
	"strconv"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// writeCSV writes r in long form, a row per number: point, the swept keys,
// path, metric (METRIC/STAGE for a stage), stat, value, unit. Times are exact.
func writeCSV(w io.Writer, r *result.Result, _ view) error {
	c := csv.NewWriter(w)
	head := []string{"point"}
	if len(r.Points) > 0 {
		for _, s := range r.Points[0].At {
			head = append(head, s.Key)
		}
	}
	write := func(row []string) { _ = c.Write(row) } // kept by c, see Error below
	write(append(append([]string(nil), head...), "path", "metric", "stat", "value", "unit"))
	for i := range r.Points {
		p := &r.Points[i]
		lead := []string{strconv.Itoa(p.Index)}
		for _, s := range p.At {
			lead = append(lead, s.Value)
		}
		for j := range p.Paths {
			csvPath(&p.Paths[j], func(metric, stat, value, unit string) {
				write(append(append([]string(nil), lead...), p.Paths[j].Name, metric, stat, value, unit))
			})
		}
	}
	for _, m := range r.Measured {
		lead := []string{""}
		for range len(head) - 1 {
			lead = append(lead, "")
		}
		csvMeasured(&m, func(metric, stat, value, unit string) {
			write(append(append([]string(nil), lead...), "", metric, stat, value, unit))
		})
	}
	c.Flush()
	return c.Error()
}

func csvPath(p *result.Path, row func(metric, stat, value, unit string)) {
	if p.Err != "" {
		row("error", "cause", p.Err, "")
	}
	for k := range p.Metrics {
		m := &p.Metrics[k]
		if !m.Metric.IsTime() {
			row(m.Metric.String(), "value", float(m.Value), m.Metric.Unit())
			continue
		}
		row(m.Metric.String(), "n", strconv.Itoa(m.N), "messages")
		for _, s := range []result.Stat{result.Min, result.P50, result.P99, result.P999, result.Max, result.Mean} {
			row(m.Metric.String(), s.String(), nanos(s.Of(m)), "ns")
		}
	}
	for _, b := range p.Breakdowns {
		for _, s := range b.Stages {
			name := b.Metric.String() + "/" + stageName(s.Stage, s.Node)
			row(name, "p50", nanos(s.Time), "ns")
			row(name, "mean", nanos(s.Mean), "ns")
		}
		for _, o := range b.Overlaps {
			name := b.Metric.String() + "/" + stageName(o.Stage, o.Node)
			row(name, "beside", nanos(o.Time), "ns")
			row(name, "after", nanos(o.After), "ns")
		}
	}
	for i := range p.Measured {
		csvMeasured(&p.Measured[i], row)
	}
	for _, f := range p.Findings {
		row("finding/"+f.Finding.String(), f.Grade.String(), strconv.Itoa(f.Count), "times")
	}
	for _, m := range []stage.Metric{stage.CPUCores, stage.SMCount} {
		if v, err := p.Get(result.Name{Metric: m}); err == nil && p.Metric(m) == nil {
			row(m.String(), "value", float(v.Number), v.Unit)
		}
	}
}

func csvMeasured(m *result.Measured, row func(metric, stat, value, unit string)) {
	if m.Err != "" {
		row(m.Name, "error", m.Err, "")
		return
	}
	row(m.Name, "n", strconv.Itoa(m.N), "samples")
	for _, s := range []struct {
		name string
		d    sim.Duration
	}{{"min", m.Min}, {"p50", m.P50}, {"p99", m.P99}, {"p99.9", m.P999}, {"max", m.Max}, {"mean", m.Mean}} {
		row(m.Name, s.name, float(float64(s.d)/float64(sim.Nanosecond)), "ns")
	}
}

// nanos writes d in nanoseconds, to the picosecond.
func nanos(d sim.Duration) string { return fixed(int64(d), int64(sim.Nanosecond), 3) }

func float(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

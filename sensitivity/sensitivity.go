package sensitivity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gdisim/result"
	"gdisim/scenarios"
)

// Percent is by how much an input is changed, up and down.
const Percent = 10

// Options say what is varied and how.
type Options struct {
	// Only is a part of the keys to vary, or a pattern with * and ? for the whole
	// key; "": all.
	Only    string
	Workers int // runs at the same time; 0: all cores
	// Run runs a scenario; it is called from several goroutines.
	Run      func(ctx context.Context, s *scenarios.Scenario) (*result.Result, error)
	Progress func(done, total int) // called from one goroutine at a time; may be nil
}

// Report is what came out.
type Report struct {
	Name     string              `json:"name"`
	Hardware string              `json:"hardware"`
	At       []scenarios.Setting `json:"at,omitempty"` // the point that was varied
	Percent  int                 `json:"percent"`
	Rows     []Row               `json:"rows"` // by path and metric as the result has them, the strongest input first
	// Idle are inputs that change no metric of any path at all, those that the
	// scenario itself sets first; Fixed are numbers that could not be changed: zero,
	// or at their bounds.
	Idle  []Input  `json:"idle"`
	Fixed []Input  `json:"fixed"`
	Notes []string `json:"notes,omitempty"`
}

// Input is a number that the run has read.
type Input struct {
	Key   string `json:"key"` // as --set spells it
	Value string `json:"value"`
	Set   bool   `json:"set"` // by the scenario, not by profile, stack or default
}

// Row is an input's effect on one metric of a path.
type Row struct {
	Path   string `json:"path"`
	Metric string `json:"metric"` // "put+completion.p50", "message-rate"
	Unit   string `json:"unit"`   // ns for times
	Key    string `json:"key"`
	Value  string `json:"value"`
	// Elasticity is the percent that the metric follows a percent of the input,
	// between the two changes; one-sided where only one of them could be made.
	Elasticity float64 `json:"elasticity"`
	// Of the metric: Low and High with the input changed, Base where that could
	// not be.
	Base float64 `json:"base"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// metric is one number of a path.
type metric struct {
	path, name, unit string
	value            float64
}

// numbers returns the metrics of a result's only point: median, 99th percentile,
// maximum and mean of times, and the others' values.
func numbers(r *result.Result) []metric {
	var out []metric
	for i := range r.Points[0].Paths {
		p := &r.Points[0].Paths[i]
		if p.Err != "" {
			continue
		}
		for _, m := range p.Metrics {
			if m.Metric.IsTime() {
				out = append(out, metric{p.Name, m.Metric.String() + ".p50", "ns", float64(m.P50) / 1e3}, metric{p.Name, m.Metric.String() + ".p99", "ns", float64(m.P99) / 1e3}, metric{p.Name, m.Metric.String() + ".max", "ns", float64(m.Max) / 1e3}, metric{p.Name, m.Metric.String() + ".mean", "ns", float64(m.Mean) / 1e3})
			} else {
				out = append(out, metric{p.Name, m.Metric.String(), m.Metric.Unit(), m.Value})
			}
		}
	}
	return out
}

// inputs returns the numbers that the paths have read, by the keys that set them.
func inputs(r *result.Result) []Input {
	var out []Input
	seen := map[string]bool{}
	for i := range r.Points[0].Paths {
		p := &r.Points[0].Paths[i]
		for _, x := range p.Params {
			key := x.Key
			if rest, is := strings.CutPrefix(key, "path."); is {
				key = "paths." + p.Name + "." + rest
			}
			if !seen[key] {
				seen[key] = true
				out = append(out, Input{Key: key, Value: x.Value, Set: x.Kind == "scenario"})
			}
		}
	}
	return out
}

// field returns the field that a key of --set means.
func field(key string) (scenarios.Field, bool) {
	switch parts := strings.SplitN(key, ".", 3); {
	case len(parts) == 3 && parts[0] == "paths":
		key = "path." + parts[2]
	case len(parts) == 3 && parts[0] == "faults":
		key = "fault." + parts[2]
	}
	return scenarios.FieldOf(key)
}

func (o *Options) wants(key string) bool {
	if strings.ContainsAny(o.Only, "*?[") {
		ok, err := path.Match(o.Only, key)
		return ok && err == nil
	}
	return strings.Contains(key, o.Only)
}

// variant is one run with one input changed.
type variant struct {
	input  int
	set    string
	factor float64
	out    []metric
}

// Of varies the scenario at its first point. The error is the scenario's, that
// of a pattern that fits no number, or ctx's.
func Of(ctx context.Context, s *scenarios.Scenario, o Options) (*Report, error) {
	rep := &Report{Name: s.Name, Hardware: s.Hardware, Percent: Percent, Rows: []Row{}, Idle: []Input{}, Fixed: []Input{}}
	base := *s
	if points := s.Points(); len(points) > 1 {
		rep.At = points[0].At
		rep.Notes = append(rep.Notes, fmt.Sprintf("of the first of %d points; --set gives another", len(points)))
	}
	if at := s.Points()[0].At; len(at) > 0 {
		var sets []string
		for _, a := range at {
			sets = append(sets, a.Key+"="+a.Value)
		}
		if err := base.Apply(sets); err != nil {
			return nil, err
		}
	}
	r, err := o.Run(ctx, &base)
	if err != nil {
		return nil, err
	}
	for i := range r.Points[0].Paths {
		if p := &r.Points[0].Paths[i]; p.Err != "" {
			rep.Notes = append(rep.Notes, p.Name+" did not finish and is left out: "+p.Err)
		}
	}
	before := numbers(r)
	if len(before) == 0 {
		return nil, errors.New("no path has finished: nothing to vary")
	}
	all := inputs(r)
	jobs := make([]variant, 0, 2*len(all))
	var ins []Input
	for _, in := range all {
		f, ok := field(in.Key)
		if !ok || !o.wants(in.Key) {
			continue
		}
		n := len(jobs)
		for _, p := range []int64{-Percent, Percent} {
			if v, factor, ok := f.Vary(in.Value, p); ok {
				jobs = append(jobs, variant{input: len(ins), set: in.Key + "=" + v, factor: factor})
			}
		}
		switch {
		case len(jobs) > n:
			ins = append(ins, in)
		case f.Kind != scenarios.Enum && f.Kind != scenarios.Bool && f.Kind != scenarios.Text && f.Kind != scenarios.Link:
			rep.Fixed = append(rep.Fixed, in)
		}
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("--only %q fits no number that the run reads", o.Only)
	}
	if err := o.runAll(ctx, &base, jobs); err != nil {
		return nil, err
	}
	rep.rows(before, ins, jobs)
	return rep, nil
}

// runAll runs the variants on all cores; a run that fails, as at a bound of the
// machine, has no metrics.
func (o *Options) runAll(ctx context.Context, base *scenarios.Scenario, jobs []variant) error {
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(workers, len(jobs)) {
		wg.Go(func() {
			for i := range next {
				s := *base
				if s.Apply([]string{jobs[i].set}) == nil {
					if r, err := o.Run(ctx, &s); err == nil {
						jobs[i].out = numbers(r)
					}
				}
				mu.Lock()
				if done++; o.Progress != nil {
					o.Progress(done, len(jobs))
				}
				mu.Unlock()
			}
		})
	}
	for i := range jobs {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return ctx.Err()
}

// rows compares the variants with the run as it is.
func (rep *Report) rows(before []metric, ins []Input, jobs []variant) {
	moves := make([]bool, len(ins))
	tried := make([]bool, len(ins))
	for _, b := range before {
		var rows []Row
		for i := 0; i < len(jobs); {
			k := jobs[i].input
			row := Row{Path: b.path, Metric: b.name, Unit: b.unit, Key: ins[k].Key, Value: ins[k].Value, Base: b.value, Low: b.value, High: b.value}
			low, high := 1.0, 1.0
			for ; i < len(jobs) && jobs[i].input == k; i++ {
				j := &jobs[i]
				x := slices.IndexFunc(j.out, func(m metric) bool { return m.path == b.path && m.name == b.name })
				if x < 0 {
					continue
				}
				tried[k] = true
				if j.factor < 1 {
					row.Low, low = j.out[x].value, j.factor
				} else {
					row.High, high = j.out[x].value, j.factor
				}
			}
			if row.Low == b.value && row.High == b.value {
				continue
			}
			moves[k] = true
			if b.value != 0 && high > low {
				row.Elasticity = (row.High - row.Low) / b.value / (high - low)
			}
			rows = append(rows, row)
		}
		slices.SortStableFunc(rows, func(x, y Row) int { return cmp.Compare(math.Abs(y.Elasticity), math.Abs(x.Elasticity)) })
		rep.Rows = append(rep.Rows, rows...)
	}
	for i, in := range ins {
		switch {
		case !tried[i]:
			rep.Fixed = append(rep.Fixed, in)
		case !moves[i]:
			rep.Idle = append(rep.Idle, in)
		}
	}
	slices.SortStableFunc(rep.Idle, func(x, y Input) int { return cmp.Compare(b2i(y.Set), b2i(x.Set)) })
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

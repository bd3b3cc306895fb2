package plots

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdisim/result"
	"gdisim/stage"
)

// Options choose what a figure shows. The zero value lets the kind decide.
type Options struct {
	Metric stage.Metric // NoMetric: the one that tells most
	Path   string       // "": all paths, or the first
	Point  int          // index of a point, from 1; 0: the first
	Which  string       // operation of a timeline: p50 (default), p99 or max
}

// Kind is a sort of figure.
type Kind struct {
	Name string
	Text string // what it shows, in a line
	Need string // what the results must have
	draw func(rs []*result.Result, o Options) (*Figure, error)
}

// Kinds lists the kinds of figures.
func Kinds() []Kind {
	return []Kind{
		{"breakdown", "stacked latency of each path by stage, overlapped work hatched", "a breakdown", drawBreakdown},
		{"latency", "latency against message size, p50 to p99, with the crossover", "a sweep of a size and a metric of time", drawLatency},
		{"rate", "message rate or goodput against threads, QPs, window or size", "a sweep of a number and a rate", drawRate},
		{"cdf", "distribution of a latency, with the tail stretched", "samples of a metric of time", drawCDF},
		{"timeline", "one operation span by span, a row for each unit", "recorded operations", drawTimeline},
		{"heatmap", "a metric, or two paths' ratio, over two swept keys", "a sweep of two keys", drawHeatmap},
		{"tornado", "how far each parameter moves a metric", "points that differ in one key, for two keys", drawTornado},
		{"compare", "one result against another, point by point (simulator, hardware)", "two results of the same paths and points", drawCompare},
	}
}

// ErrNotFit says that the results do not have what a kind of figure needs.
var ErrNotFit = errors.New("the results do not fit")

func notFit(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotFit, fmt.Sprintf(format, args...))
}

// Draw makes a figure of that kind. The error is ErrNotFit where the results
// lack what it needs, and says what; other errors are of the options.
func Draw(kind string, rs []*result.Result, o Options) (*Figure, error) {
	i := slices.IndexFunc(Kinds(), func(k Kind) bool { return k.Name == kind })
	if i < 0 {
		var names []string
		for _, k := range Kinds() {
			names = append(names, k.Name)
		}
		return nil, fmt.Errorf("unknown kind %q (want %s)", kind, strings.Join(names, ", "))
	}
	rs, err := choose(rs, o)
	if err != nil {
		return nil, err
	}
	f, err := Kinds()[i].draw(rs, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return f, nil
}

// Fitting draws every kind that the results have what it needs for.
func Fitting(rs []*result.Result) []*Figure {
	var out []*Figure
	for _, k := range Kinds() {
		if f, err := Draw(k.Name, rs, Options{}); err == nil {
			out = append(out, f)
		}
	}
	return out
}

// choose keeps the path and the point of the options.
func choose(rs []*result.Result, o Options) ([]*result.Result, error) {
	if len(runs(rs)) == 0 {
		return nil, notFit("no path finished at any point")
	}
	if o.Path == "" && o.Point == 0 {
		return rs, nil
	}
	var out []*result.Result
	for _, r := range rs {
		c := *r
		c.Points = nil
		for i := range r.Points {
			if o.Point != 0 && i+1 != o.Point {
				continue
			}
			p := r.Points[i]
			if o.Path != "" {
				p.Paths = slices.DeleteFunc(slices.Clone(p.Paths), func(x result.Path) bool { return x.Name != o.Path })
			}
			c.Points = append(c.Points, p)
		}
		out = append(out, &c)
	}
	if len(runs(out)) > 0 {
		return out, nil
	}
	if o.Path != "" && !slices.Contains(pathNames(rs), o.Path) {
		return nil, fmt.Errorf("no path %q (have %s)", o.Path, strings.Join(thin(pathNames(rs), 12), ", "))
	}
	return nil, fmt.Errorf("no finished path at point %d (have 1 to %d)", o.Point, len(rs[0].Points))
}

// metricOf is the metric that the options name, or the preferred one.
func metricOf(all []run, o Options, time bool) (stage.Metric, error) {
	if o.Metric == stage.NoMetric {
		m, ok := preferred(all)
		if !ok {
			return m, notFit("no metric of time")
		}
		return m, nil
	}
	if time && !o.Metric.IsTime() {
		return o.Metric, fmt.Errorf("%s is no time", o.Metric)
	}
	if !slices.ContainsFunc(all, func(r run) bool { return r.path.Metric(o.Metric) != nil }) {
		return o.Metric, notFit("no path has %s", o.Metric)
	}
	return o.Metric, nil
}

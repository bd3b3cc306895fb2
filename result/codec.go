package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"gdisim/sim"
	"gdisim/stage"
)

// Encode writes r as JSON: keys in a fixed order, every duration an integer of
// picoseconds under a key that ends in _ps. The same result gives the same
// bytes. Errors are those of w.
func Encode(w io.Writer, r *Result) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	x := toWire(r)
	x.share()
	return e.Encode(x)
}

// Decode reads what Encode wrote. It is strict: another schema, unknown keys,
// unknown names of stages and metrics, and anything after the document are
// errors.
func Decode(rd io.Reader) (*Result, error) {
	src, err := io.ReadAll(rd)
	if err != nil {
		return nil, err
	}
	// The schema comes first: a newer layout must not end as "unknown key".
	schema, err := schemaOf(src)
	if err != nil {
		return nil, fmt.Errorf("not a gdisim result: %s", place(src, err))
	}
	switch schema {
	case Schema, schemaShared:
	case "":
		return nil, fmt.Errorf("not a gdisim result: no key \"schema\" (want %q)", Schema)
	default:
		return nil, fmt.Errorf("schema %q is not known to this version (want %q)", schema, Schema)
	}
	var w wireResult
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return nil, fmt.Errorf("bad gdisim result: %s", place(src, err))
	}
	if off := d.InputOffset(); len(bytes.TrimSpace(src[off:])) > 0 {
		return nil, fmt.Errorf("bad gdisim result: line %d: something after top-level value", 1+bytes.Count(src[:off], []byte("\n")))
	}
	w.unshare()
	r := w.result()
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("bad gdisim result: %w", err)
	}
	return r, nil
}

// schemaOf reads the key schema. Where it comes first, as Encode has it, the
// rest of a long document is not looked at.
func schemaOf(src []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(src))
	var first [3]json.Token
	for i := range first {
		first[i], _ = d.Token() // what is wrong is said below
	}
	if s, ok := first[2].(string); ok && first[0] == json.Delim('{') && first[1] == "schema" {
		return s, nil
	}
	var head struct {
		Schema string `json:"schema"`
	}
	err := json.Unmarshal(src, &head)
	return head.Schema, err
}

// place adds the line to the errors that know their offset.
func place(src []byte, err error) string {
	var off int64
	var syn *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syn):
		off = syn.Offset
	case errors.As(err, &typ):
		off = typ.Offset
		if typ.Field != "" {
			err = fmt.Errorf("%s: %s does not fit", typ.Field, typ.Value)
		}
	default:
		return err.Error()
	}
	line := 1
	for _, c := range src[:min(off, int64(len(src)))] {
		if c == '\n' {
			line++
		}
	}
	return fmt.Sprintf("line %d: %v", line, err)
}

// The wire types fix the layout of the JSON form apart from the Go types, so
// that a renamed field cannot change a file. Names stand for numbers here.

type wireResult struct {
	Schema   string         `json:"schema"`
	Tool     string         `json:"tool"`
	Backend  string         `json:"backend"`
	Name     string         `json:"name"`
	Title    string         `json:"title,omitempty"`
	Source   string         `json:"source"`
	Digest   string         `json:"digest"`
	Seed     uint64         `json:"seed"`
	Partial  bool           `json:"partial,omitempty"`
	Messages uint64         `json:"messages"`
	Events   uint64         `json:"events"`
	Notices  []string       `json:"notices,omitempty"`
	Part     *wirePart      `json:"part,omitempty"`
	Emulated string         `json:"emulated,omitempty"`
	Machine  []wireSetting  `json:"machine,omitempty"`
	Measured []wireMeasured `json:"measured,omitempty"`
	Shared   []wireShared   `json:"params,omitempty"`
	Points   []wirePoint    `json:"points"`
}

// wireMeasured has quantiles where it has samples.
type wireMeasured struct {
	Name      string         `json:"name"`
	Method    string         `json:"method,omitempty"`
	Err       string         `json:"error,omitempty"`
	Overhead  sim.Duration   `json:"overhead_ps,omitempty"`
	N         int            `json:"n,omitempty"`
	Min       sim.Duration   `json:"min_ps"`
	P50       sim.Duration   `json:"p50_ps"`
	P99       sim.Duration   `json:"p99_ps"`
	P999      sim.Duration   `json:"p99_9_ps"`
	Max       sim.Duration   `json:"max_ps"`
	Mean      sim.Duration   `json:"mean_ps"`
	Quantiles []sim.Duration `json:"quantiles_ps,omitempty"`
}

type wireSetting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type wirePoint struct {
	Index int           `json:"index"`
	At    []wireSetting `json:"at,omitempty"`
	Paths []wirePath    `json:"paths"`

	// Of a part of a sweep.
	Messages uint64       `json:"messages,omitempty"`
	Events   uint64       `json:"events,omitempty"`
	Notices  []string     `json:"notices,omitempty"`
	Unread   []wireUnread `json:"unread,omitempty"`
}

type wireUnread struct {
	Path string   `json:"path"`
	Keys []string `json:"keys"`
}

type wirePart struct {
	Of      string `json:"of"`
	Points  int    `json:"points"`
	Notices int    `json:"notices"`
}

type wirePath struct {
	Name       string          `json:"name"`
	Stack      string          `json:"stack"`
	Hardware   string          `json:"hardware"`
	Workload   string          `json:"workload"`
	Err        string          `json:"error,omitempty"`
	Metrics    []wireMetric    `json:"metrics"`
	Breakdowns []wireBreakdown `json:"breakdowns,omitempty"`
	Findings   []wireFinding   `json:"findings,omitempty"`
	Cost       wireCost        `json:"cost"`
	Params     []wireParam     `json:"params,omitempty"`
	Graphs     []wireGraph     `json:"graphs,omitempty"`
	Measured   []wireMeasured  `json:"measured,omitempty"`
}

// wireMetric has either the quantiles or the value, by the metric's unit.
type wireMetric struct {
	Metric metricName    `json:"metric"`
	Unit   string        `json:"unit"`
	N      int           `json:"n,omitempty"`
	Min    *sim.Duration `json:"min_ps,omitempty"`
	P50    *sim.Duration `json:"p50_ps,omitempty"`
	P99    *sim.Duration `json:"p99_ps,omitempty"`
	P999   *sim.Duration `json:"p99_9_ps,omitempty"`
	Max    *sim.Duration `json:"max_ps,omitempty"`
	Mean   *sim.Duration `json:"mean_ps,omitempty"`
	Value  *float64      `json:"value,omitempty"`

	Quantiles []sim.Duration `json:"quantiles_ps,omitempty"`
}

type wireBreakdown struct {
	Metric    metricName      `json:"metric"`
	Total     sim.Duration    `json:"total_ps"`
	MeanTotal sim.Duration    `json:"mean_total_ps"`
	Stages    []wireStageTime `json:"stages"`
	Overlaps  []wireOverlap   `json:"overlaps,omitempty"`
}

type wireStageTime struct {
	Stage stageName    `json:"stage"`
	Lane  laneName     `json:"lane"`
	Node  int          `json:"node"`
	Time  sim.Duration `json:"time_ps"`
	Mean  sim.Duration `json:"mean_ps"`
	N     int          `json:"n"`

	Method string       `json:"method,omitempty"`
	Spread sim.Duration `json:"spread_ps,omitempty"`
}

type wireOverlap struct {
	Stage stageName    `json:"stage"`
	Node  int          `json:"node"`
	Time  sim.Duration `json:"time_ps"`
	After sim.Duration `json:"after_ps"`
}

type wireFinding struct {
	Finding findingName `json:"finding"`
	Grade   gradeName   `json:"grade"`
	Count   int         `json:"count"`
	First   sim.Time    `json:"first_ps"`
	Where   string      `json:"where,omitempty"`
	Cause   string      `json:"cause"`
	Avoid   string      `json:"avoid"`
}

type wireCost struct {
	Unknown    bool         `json:"unknown,omitempty"`
	Window     sim.Duration `json:"window_ps"`
	Messages   int          `json:"messages"`
	CPUBusy    sim.Duration `json:"cpu_busy_ps"`
	CPUCores   float64      `json:"cpu_cores"`
	SMBusy     sim.Duration `json:"sm_busy_ps"`
	SMs        int          `json:"sms"`
	Doorbells  int          `json:"doorbells"`
	WQEFetches int          `json:"wqe_fetches"`
	Links      []wireLink   `json:"links,omitempty"`
}

type wireLink struct {
	Name  string  `json:"name"`
	TLPs  int     `json:"tlps"`
	Bytes int64   `json:"bytes"`
	Busy  float64 `json:"busy"`
}

type wireParam struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Unit   string `json:"unit"`
	Source string `json:"source"`
	Kind   string `json:"kind"`
}

type wireGraph struct {
	Metric metricName   `json:"metric"`
	Which  string       `json:"which"`
	Total  sim.Duration `json:"total_ps"`
	Spans  []wireSpan   `json:"spans"`
}

type wireSpan struct {
	Stage   stageName    `json:"stage"`
	Wait    stageName    `json:"wait,omitempty"`
	Lane    laneName     `json:"lane"`
	Node    int          `json:"node"`
	Arrival sim.Duration `json:"arrival_ps"`
	Start   sim.Duration `json:"start_ps"`
	End     sim.Duration `json:"end_ps"`
	Pred    int          `json:"pred"`
	Blocker string       `json:"blocker,omitempty"`
	OnWalk  bool         `json:"on_walk"`
}

type (
	stageName   stage.Stage
	laneName    stage.Lane
	metricName  stage.Metric
	findingName stage.Finding
	gradeName   stage.Grade
)

func (n stageName) MarshalText() ([]byte, error)   { return []byte(stage.Stage(n).String()), nil }
func (n laneName) MarshalText() ([]byte, error)    { return []byte(stage.Lane(n).String()), nil }
func (n metricName) MarshalText() ([]byte, error)  { return []byte(stage.Metric(n).String()), nil }
func (n findingName) MarshalText() ([]byte, error) { return []byte(stage.Finding(n).String()), nil }
func (n gradeName) MarshalText() ([]byte, error)   { return []byte(stage.Grade(n).String()), nil }

func (n *stageName) UnmarshalText(b []byte) error {
	s, ok := stage.Parse(string(b))
	if !ok && len(b) > 0 {
		return fmt.Errorf("unknown stage %q", b)
	}
	*n = stageName(s)
	return nil
}

func (n *laneName) UnmarshalText(b []byte) error {
	for l := stage.NoLane; l <= stage.LaneGPUDst; l++ {
		if l.String() == string(b) {
			*n = laneName(l)
			return nil
		}
	}
	return fmt.Errorf("unknown lane %q", b)
}

func (n *metricName) UnmarshalText(b []byte) error {
	m, ok := stage.ParseMetric(string(b))
	if !ok {
		return fmt.Errorf("unknown metric %q", b)
	}
	*n = metricName(m)
	return nil
}

func (n *findingName) UnmarshalText(b []byte) error {
	f, ok := stage.ParseFinding(string(b))
	if !ok {
		return fmt.Errorf("unknown finding %q", b)
	}
	*n = findingName(f)
	return nil
}

func (n *gradeName) UnmarshalText(b []byte) error {
	for _, g := range []stage.Grade{stage.Possible, stage.Occurred} {
		if g.String() == string(b) {
			*n = gradeName(g)
			return nil
		}
	}
	return fmt.Errorf("unknown grade %q", b)
}

// each converts a slice; nil stays nil.
func each[A, B any](in []A, f func(A) B) []B {
	if in == nil {
		return nil
	}
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}

func toWire(r *Result) *wireResult {
	return &wireResult{
		Schema: Schema, Tool: r.Tool, Backend: r.Backend, Name: r.Name, Title: r.Title, Source: r.Source, Digest: r.Digest, Seed: r.Seed,
		Partial: r.Partial, Messages: r.Messages, Events: r.Events, Notices: r.Notices,
		Emulated: r.Emulated, Machine: each(r.Machine, func(s Setting) wireSetting { return wireSetting(s) }), Measured: each(r.Measured, measuredToWire),
		Part: (*wirePart)(r.Part),
		Points: each(r.Points, func(p Point) wirePoint {
			w := wirePoint{Index: p.Index, At: each(p.At, func(s Setting) wireSetting { return wireSetting(s) }), Paths: each(p.Paths, pathToWire)}
			if r.Part != nil {
				w.Messages, w.Events, w.Notices = p.Messages, p.Events, p.Notices
				w.Unread = each(p.Unread, func(u Unread) wireUnread { return wireUnread(u) })
			}
			return w
		}),
	}
}

func (w *wireResult) result() *Result {
	return &Result{
		Schema: Schema, Tool: w.Tool, Backend: w.Backend, Name: w.Name, Title: w.Title, Source: w.Source, Digest: w.Digest, Seed: w.Seed,
		Partial: w.Partial, Messages: w.Messages, Events: w.Events, Notices: w.Notices,
		Emulated: w.Emulated, Machine: each(w.Machine, func(s wireSetting) Setting { return Setting(s) }), Measured: each(w.Measured, measuredFromWire),
		Part: (*Part)(w.Part),
		Points: each(w.Points, func(p wirePoint) Point {
			return Point{
				Index: p.Index, At: each(p.At, func(s wireSetting) Setting { return Setting(s) }), Paths: each(p.Paths, pathFromWire),
				Account: Account{Messages: p.Messages, Events: p.Events, Notices: p.Notices, Unread: each(p.Unread, func(u wireUnread) Unread { return Unread(u) })},
			}
		}),
	}
}

func pathToWire(p Path) wirePath {
	return wirePath{
		Name: p.Name, Stack: p.Stack, Hardware: p.Hardware, Workload: p.Workload, Err: p.Err,
		Metrics: each(p.Metrics, func(m Metric) wireMetric {
			w := wireMetric{Metric: metricName(m.Metric), Unit: m.Metric.Unit(), N: m.N}
			if !m.Metric.IsTime() {
				w.Value = &m.Value
				return w
			}
			w.Unit = "ps"
			w.Min, w.P50, w.P99, w.P999, w.Max, w.Mean = &m.Min, &m.P50, &m.P99, &m.P999, &m.Max, &m.Mean
			w.Quantiles = m.Quantiles
			return w
		}),
		Breakdowns: each(p.Breakdowns, func(b Breakdown) wireBreakdown {
			return wireBreakdown{
				Metric: metricName(b.Metric), Total: b.Total, MeanTotal: b.MeanTotal,
				Stages: each(b.Stages, func(s StageTime) wireStageTime {
					return wireStageTime{Stage: stageName(s.Stage), Lane: laneName(s.Lane), Node: s.Node, Time: s.Time, Mean: s.Mean, N: s.N, Method: s.Method, Spread: s.Spread}
				}),
				Overlaps: each(b.Overlaps, func(o Overlap) wireOverlap {
					return wireOverlap{Stage: stageName(o.Stage), Node: o.Node, Time: o.Time, After: o.After}
				}),
			}
		}),
		Findings: each(p.Findings, func(f Finding) wireFinding {
			return wireFinding{Finding: findingName(f.Finding), Grade: gradeName(f.Grade), Count: f.Count, First: f.First, Where: f.Where, Cause: f.Cause, Avoid: f.Avoid}
		}),
		Cost: wireCost{
			Unknown: p.Cost.Unknown, Window: p.Cost.Window, Messages: p.Cost.Messages, CPUBusy: p.Cost.CPUBusy, CPUCores: p.Cost.CPUCores, SMBusy: p.Cost.SMBusy, SMs: p.Cost.SMs,
			Doorbells: p.Cost.Doorbells, WQEFetches: p.Cost.WQEFetches, Links: each(p.Cost.Links, func(l Link) wireLink { return wireLink(l) }),
		},
		Params:   each(p.Params, func(p Param) wireParam { return wireParam(p) }),
		Measured: each(p.Measured, measuredToWire),
		Graphs: each(p.Graphs, func(g Graph) wireGraph {
			return wireGraph{
				Metric: metricName(g.Metric), Which: g.Which, Total: g.Total,
				Spans: each(g.Spans, func(s Span) wireSpan {
					return wireSpan{
						Stage: stageName(s.Stage), Wait: stageName(s.Wait), Lane: laneName(s.Lane), Node: s.Node,
						Arrival: s.Arrival, Start: s.Start, End: s.End, Pred: s.Pred, Blocker: s.Blocker, OnWalk: s.OnWalk,
					}
				}),
			}
		}),
	}
}

func pathFromWire(p wirePath) Path {
	return Path{
		Name: p.Name, Stack: p.Stack, Hardware: p.Hardware, Workload: p.Workload, Err: p.Err,
		Metrics: each(p.Metrics, func(w wireMetric) Metric {
			return Metric{
				Metric: stage.Metric(w.Metric), N: w.N, Value: deref(w.Value),
				Min: deref(w.Min), P50: deref(w.P50), P99: deref(w.P99), P999: deref(w.P999), Max: deref(w.Max), Mean: deref(w.Mean),
				Quantiles: w.Quantiles,
			}
		}),
		Breakdowns: each(p.Breakdowns, func(b wireBreakdown) Breakdown {
			return Breakdown{
				Metric: stage.Metric(b.Metric), Total: b.Total, MeanTotal: b.MeanTotal,
				Stages: each(b.Stages, func(s wireStageTime) StageTime {
					return StageTime{Stage: stage.Stage(s.Stage), Lane: stage.Lane(s.Lane), Node: s.Node, Time: s.Time, Mean: s.Mean, N: s.N, Method: s.Method, Spread: s.Spread}
				}),
				Overlaps: each(b.Overlaps, func(o wireOverlap) Overlap {
					return Overlap{Stage: stage.Stage(o.Stage), Node: o.Node, Time: o.Time, After: o.After}
				}),
			}
		}),
		Findings: each(p.Findings, func(f wireFinding) Finding {
			return Finding{Finding: stage.Finding(f.Finding), Grade: stage.Grade(f.Grade), Count: f.Count, First: f.First, Where: f.Where, Cause: f.Cause, Avoid: f.Avoid}
		}),
		Cost: Cost{
			Unknown: p.Cost.Unknown, Window: p.Cost.Window, Messages: p.Cost.Messages, CPUBusy: p.Cost.CPUBusy, CPUCores: p.Cost.CPUCores, SMBusy: p.Cost.SMBusy, SMs: p.Cost.SMs,
			Doorbells: p.Cost.Doorbells, WQEFetches: p.Cost.WQEFetches, Links: each(p.Cost.Links, func(l wireLink) Link { return Link(l) }),
		},
		Params:   each(p.Params, func(p wireParam) Param { return Param(p) }),
		Measured: each(p.Measured, measuredFromWire),
		Graphs: each(p.Graphs, func(g wireGraph) Graph {
			return Graph{
				Metric: stage.Metric(g.Metric), Which: g.Which, Total: g.Total,
				Spans: each(g.Spans, func(s wireSpan) Span {
					return Span{
						Stage: stage.Stage(s.Stage), Wait: stage.Stage(s.Wait), Lane: stage.Lane(s.Lane), Node: s.Node,
						Arrival: s.Arrival, Start: s.Start, End: s.End, Pred: s.Pred, Blocker: s.Blocker, OnWalk: s.OnWalk,
					}
				}),
			}
		}),
	}
}

func measuredToWire(m Measured) wireMeasured {
	return wireMeasured{Name: m.Name, Method: m.Method, Err: m.Err, Overhead: m.Overhead, N: m.N, Min: m.Min, P50: m.P50, P99: m.P99, P999: m.P999, Max: m.Max, Mean: m.Mean, Quantiles: m.Quantiles}
}

func measuredFromWire(w wireMeasured) Measured {
	return Measured{Name: w.Name, Method: w.Method, Err: w.Err, Overhead: w.Overhead, N: w.N, Min: w.Min, P50: w.P50, P99: w.P99, P999: w.P999, Max: w.Max, Mean: w.Mean, Quantiles: w.Quantiles}
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

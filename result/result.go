package result

import (
	"gdisim/sim"
	"gdisim/stage"
)

// Schema names the layout of the JSON form; it changes when a reader must.
const Schema = "gdisim-result/1"

// Result is one run of a scenario on one backend.
type Result struct {
	Schema   string
	Tool     string // "gdisim 0.1.0"
	Backend  string // "sim", "hw" or "import"
	Name     string // scenario's name
	Title    string
	Source   string // scenario file or embedded name
	Digest   string // SHA-256 of the scenario text, hex
	Seed     uint64
	Notices  []string // what the reader must know and no number shows
	Partial  bool     // not all points are here: interrupted, or a shard
	Part     *Part    // of a simulated sweep that is Partial
	Points   []Point
	Messages uint64 // simulated messages in all points, for the speed line
	Events   uint64 // simulated events in all points

	// What only a run on hardware has.
	Emulated string     // why the times are not those of a NIC; "" where they are
	Machine  []Setting  // facts of the machine during the run
	Measured []Measured // costs of the machine, whatever the scenario
}

// How says in words how the result's numbers were come by.
func (r *Result) How() string {
	switch r.Backend {
	case "hw":
		if r.Emulated != "" {
			return "measured on a software device"
		}
		return "measured on hardware"
	case "import":
		return "imported from what a benchmark printed"
	}
	return "simulated"
}

// Measured is a cost under a name of its own: what hardware shows beside, or
// instead of, the stages of a metric.
type Measured struct {
	Name     string       // "wake.futex.cross-core"
	Method   string       // how, in a line
	Overhead sim.Duration // of the clock, already subtracted from each sample
	Err      string       // why there is no number; "" where there is
	N        int          // samples
	// As those of a Metric.
	P50, P99, P999, Max, Min, Mean sim.Duration
	Quantiles                      []sim.Duration
}

// Measure returns the Measured of these samples, in the way of Summarise.
func Measure(name, method string, overhead sim.Duration, samples []sim.Duration) Measured {
	d := Summarise(samples)
	return Measured{Name: name, Method: method, Overhead: overhead, N: d.N, P50: d.P50, P99: d.P99, P999: d.P999, Max: d.Max, Min: d.Min, Mean: d.Mean, Quantiles: d.Quantiles}
}

// Setting is one key of a point and its value, as written in the scenario.
type Setting struct{ Key, Value string }

// Point is one combination of the sweep.
type Point struct {
	Index int
	At    []Setting // empty where nothing is swept
	Paths []Path
	Account
}

// Account is what a point adds to those of its result; it is kept while points
// are missing, for who completes them.
type Account struct {
	Messages, Events uint64
	Notices          []string
	Unread           []Unread
}

// Unread are keys that the scenario sets and that a path did not read.
type Unread struct {
	Path string
	Keys []string
}

// Add adds another's.
func (a *Account) Add(b Account) {
	a.Messages += b.Messages
	a.Events += b.Events
	a.Notices = append(a.Notices, b.Notices...)
	a.Unread = append(a.Unread, b.Unread...)
}

// EachMeasured calls f for the measured costs of every path, and last for those
// of the machine, with no point and path.
func (r *Result) EachMeasured(f func(pt *Point, p *Path, ms []Measured)) {
	for i := range r.Points {
		for j := range r.Points[i].Paths {
			if p := &r.Points[i].Paths[j]; len(p.Measured) > 0 {
				f(&r.Points[i], p, p.Measured)
			}
		}
	}
	if len(r.Measured) > 0 {
		f(nil, nil, r.Measured)
	}
}

// Path is what one path did at one point.
type Path struct {
	Name       string
	Stack      string
	Hardware   string
	Workload   string // one line: "put 8 B, 1 CTA x 1 thread, 1 outstanding"
	Metrics    []Metric
	Breakdowns []Breakdown
	Findings   []Finding
	Cost       Cost
	Params     []Param // what this path read, in key order
	Graphs     []Graph
	Measured   []Measured // on hardware: single operations at this point
	Err        string     // named cause when the run could not finish; "" otherwise
}

// Metric is a distribution of durations or one value.
type Metric struct {
	Metric stage.Metric
	N      int // samples; 0 for a plain value
	// Quantiles by nearest rank; set for metrics of time.
	P50, P99, P999, Max, Min, Mean sim.Duration
	// Quantiles are the distribution's shape, at the levels of Levels; empty
	// for fewer than two samples, or where the backend kept none.
	Quantiles []sim.Duration
	// Value in the metric's unit; set for the others.
	Value float64
}

// Breakdown splits one metric of time into stages. The shares of one operation
// sum to its total exactly, and so do the means (to a rounding of 1 ps a stage).
type Breakdown struct {
	Metric stage.Metric
	// Total of the operation at the nearest-rank p50, and the mean of all.
	Total     sim.Duration
	MeanTotal sim.Duration
	Stages    []StageTime
	Overlaps  []Overlap
}

// StageTime is one stage's part of a metric's walk, in causal order. Node 0
// initiates. Occurrences are merged: a stage appears once per node.
type StageTime struct {
	Stage stage.Stage
	Lane  stage.Lane
	Node  int
	Time  sim.Duration // in the p50 operation
	Mean  sim.Duration
	N     int // occurrences on the walk of the p50 operation
	// On hardware: how the time was come by, and the half width of its 95 %
	// interval. A simulated stage has neither.
	Method string
	Spread sim.Duration
}

// Overlap is work of the same operation that the metric did not wait for.
type Overlap struct {
	Stage stage.Stage
	Node  int
	Time  sim.Duration // inside the metric's interval, beside the walk
	After sim.Duration // beyond the metric's end
}

// Finding is a verdict of the run.
type Finding struct {
	Finding stage.Finding
	Grade   stage.Grade
	Count   int
	First   sim.Time // of the first occurrence; 0 for a possible one
	Where   string   // of the first: "WQE 3 of queue 0, node 0"; "" for the whole run
	Cause   string   // what is missing or went wrong
	Avoid   string   // what would avoid it
}

// Cost is what the path used during the measured part of the run.
type Cost struct {
	Unknown    bool         // nobody kept account, nor looked for findings: an imported result
	Window     sim.Duration // length of the measured part
	Messages   int          // completed in it
	CPUBusy    sim.Duration // proxy core time used per all cores, polling included
	CPUCores   float64      // cores kept by the path on the initiating node
	SMBusy     sim.Duration // SM time spent posting and waiting
	SMs        int
	Doorbells  int
	WQEFetches int
	Links      []Link
}

// Link is the traffic of one link and direction.
type Link struct {
	Name  string // "node0.pcie.nic.up"
	TLPs  int    // TLPs, or packets on the fabric
	Bytes int64  // headers included
	Busy  float64
}

// Param is one parameter that the path read.
type Param struct {
	Key, Value, Unit, Source, Kind string
}

// Graph is one operation as spans: the operation at p50, p99 or max.
type Graph struct {
	Metric stage.Metric
	Which  string // "p50", "p99", "max"
	Total  sim.Duration
	Spans  []Span
}

// Span is one interval of an operation. Times are from the operation's call.
type Span struct {
	Stage      stage.Stage
	Wait       stage.Stage // stage of [Arrival, Start) when something held it
	Lane       stage.Lane
	Node       int
	Arrival    sim.Duration
	Start, End sim.Duration
	Pred       int    // index of the last-arriving predecessor, -1 for the call
	Blocker    string // who held it, "" if nobody
	OnWalk     bool
}

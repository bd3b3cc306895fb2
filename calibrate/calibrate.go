package calibrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

// ErrEmulated means that a result's times are a software device's.
var ErrEmulated = errors.New("its times are not a NIC's, so they calibrate nothing")

// Confidence of every interval that this package states.
const Confidence = 0.99

// Options say what to fit and how hard to try.
type Options struct {
	Fit           []string // keys hardware.KEY; empty: whatever the rows identify
	AllowEmulated bool
	Bootstrap     int    // resamples of each interval, 0 for 400
	Iterations    int    // messages of each simulated trial, 0 for 200
	Seed          uint64 // of the bootstrap
	// Simulate runs the model; nil for testbed.Run.
	Simulate func(context.Context, *scenarios.Scenario, testbed.Options) (*result.Result, error)
	Progress func(line string) // may be nil
}

// Param is one parameter after the fit.
type Param struct {
	Key          string
	Prior, Value string // as a profile writes them
	// Scale is Value over Prior, with its interval; all 1 where nothing was fitted.
	Scale, Low, High    float64
	LowValue, HighValue string // the interval as a profile writes it
	Fitted              bool
	Measured            string // the measured cost that it was taken from, "" for a fit
	Runs                int    // results that Measured is from: the interval of one knows no spread between runs
	Why                 string // why it was left at its prior, or what to know about it
	AtBound             bool
}

// Row is one number that the fit was held against.
type Row struct {
	What          string // "bytes=8B x put+completion"
	Measured      sim.Duration
	Sigma         sim.Duration // what it may be off by, one standard deviation
	Before, After sim.Duration // the model with the prior, and with the fit
	HeldOut       bool         // not fitted
	point, path   int
	name          result.Name
	with          stage.Stage // measured together with it
	source        int         // index of the result
}

// Fit is what a calibration found.
type Fit struct {
	Params  []Param // fitted first, then those left, in key order
	Rows    []Row
	Notices []string
	// RMS of the relative errors, of the rows fitted and of those held out; before
	// with the prior, after with the fit. NaN where there is no row.
	Before, After, HeldBefore, HeldAfter float64
	Emulated                             string
	Virtual                              bool     // costs of the host are a virtual machine's
	Sources                              []string // one for each result
	Scenario, Hardware                   string
}

// Set is a scenario with results of it.
type Set struct {
	Scenario *scenarios.Scenario
	Results  []*result.Result
}

// Run calibrates the hardware that all scenarios name against results of each.
func Run(ctx context.Context, sets []Set, o Options) (*Fit, error) {
	if o.Bootstrap <= 0 {
		o.Bootstrap = 400
	}
	if o.Iterations <= 0 {
		o.Iterations = 200
	}
	if o.Simulate == nil {
		o.Simulate = testbed.Run
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	var names []string
	var rs []*result.Result
	for _, set := range sets {
		if first := sets[0].Scenario; set.Scenario.Hardware != first.Hardware {
			return nil, fmt.Errorf("%s is of hardware %s, %s of %s: one profile is fitted at a time", first.Name, first.Hardware, set.Scenario.Name, set.Scenario.Hardware)
		}
		names, rs = append(names, set.Scenario.Name), append(rs, set.Results...)
	}
	f := &Fit{Scenario: strings.Join(names, ", "), Hardware: sets[0].Scenario.Hardware}
	for i, r := range rs {
		if r.Emulated != "" {
			if !o.AllowEmulated {
				return nil, fmt.Errorf("result %d: %s: %w", i+1, r.Emulated, ErrEmulated)
			}
			f.Emulated = r.Emulated
		}
		f.Sources = append(f.Sources, source(r))
		if r.Backend == "import" { // what the benchmark had otherwise than the scenario
			for _, n := range r.Notices {
				f.Notices = append(f.Notices, label(i)+": "+n)
			}
		}
		if r.Partial {
			f.Notices = append(f.Notices, fmt.Sprintf("%s is incomplete: its run was cut short, and what it has is used", label(i)))
		}
	}
	for _, key := range o.Fit {
		if fd, ok := scenarios.FieldOf(key); !ok || fd.Section() != "hardware" {
			return nil, fmt.Errorf("%q is no parameter of the hardware (hardware.KEY, see gdisim explain)", key)
		}
	}
	m, err := newModel(ctx, sets, o)
	if err != nil {
		return nil, err
	}
	taken := f.host(m, rs, o)
	if err := f.fit(m, taken); err != nil {
		return nil, err
	}
	slices.SortStableFunc(f.Params, func(a, b Param) int {
		if a.Fitted != b.Fitted {
			if a.Fitted {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Key, b.Key)
	})
	if !f.Found() {
		f.Notices = append(f.Notices, "these results identify no parameter: everything stays at its prior")
	}
	return f, nil
}

// Found says whether any parameter was fitted or taken.
func (f *Fit) Found() bool {
	return slices.ContainsFunc(f.Params, func(p Param) bool { return p.Fitted })
}

// label names a result in reports, by its place in Sources.
func label(i int) string { return "r" + strconv.Itoa(i+1) }

// source says in a line where a result's numbers come from.
func source(r *result.Result) string {
	s := "gdisim " + r.Backend + " run of " + r.Name
	if r.Backend == "import" {
		s = r.Name + ", " + r.Source
	}
	for _, f := range r.Machine {
		if f.Key == "cpu.model" || f.Key == "device" || f.Key == "kernel" || f.Key == "cpu.virtual" && strings.HasPrefix(f.Value, "virtual") {
			s += ", " + f.Value
		}
	}
	if r.Partial {
		s += ", INCOMPLETE"
	}
	if r.Emulated != "" {
		s += ", EMULATED: " + r.Emulated
	}
	return s
}

// param is a parameter on its way: a scale of its prior.
type param struct {
	key   string
	field scenarios.Field
	prior scenarios.CostSpec // a duration is a cost without cycles
	dist  string             // the prior as written, where it is a distribution
	why   string             // why it cannot be fitted
}

var durations = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?(?:ps|ns|us|ms|s)\b`)

// text writes the parameter at a scale, as a scenario does. A distribution keeps
// its shape.
func (p *param) text(scale float64) string {
	if p.dist != "" {
		return durations.ReplaceAllStringFunc(p.dist, func(text string) string {
			unit := strings.TrimLeft(text, "0123456789.")
			v, err := strconv.ParseFloat(strings.TrimSuffix(text, unit), 64)
			if err != nil {
				return text
			}
			return sim.Duration(math.Round(v * float64(units[unit]) * scale)).String()
		})
	}
	fixed := sim.Duration(math.Round(float64(p.prior.Fixed.Mean()) * scale))
	if p.prior.MilliCycles == 0 {
		return fixed.String()
	}
	s := strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", float64(p.prior.MilliCycles)*scale/1000), "0"), ".") + "cy"
	if fixed > 0 {
		s += "+" + fixed.String()
	}
	return s
}

var units = map[string]sim.Duration{"ps": sim.Picosecond, "ns": sim.Nanosecond, "us": sim.Microsecond, "ms": sim.Millisecond, "s": sim.Second}

// model is the simulator as a function of parameters.
type model struct {
	ctx     context.Context
	sets    []Set
	o       Options
	params  map[string]*param
	runs    int
	shorten [][]string // --set of every trial, of each scenario
	taken   []string   // of every trial too: what measured costs said
	plain   bool       // no row is a stage: trials need not record them
}

const whySwept = "the scenario sweeps it"

func newModel(ctx context.Context, sets []Set, o Options) (*model, error) {
	m := &model{ctx: ctx, sets: sets, o: o, params: map[string]*param{}}
	c := sets[0].Scenario.Config(0, 0)
	swept := map[string]bool{}
	for _, set := range sets {
		var shorten []string
		c := set.Scenario.Config(0, 0)
		if n := c.Count("workload.iterations"); n > o.Iterations {
			shorten = append(shorten, fmt.Sprintf("workload.iterations=%d", o.Iterations))
		}
		if n := c.Count("workload.warmup"); n > o.Iterations/4 {
			shorten = append(shorten, fmt.Sprintf("workload.warmup=%d", o.Iterations/4))
		}
		m.shorten = append(m.shorten, shorten)
		for _, pt := range set.Scenario.Points() {
			for _, at := range pt.At {
				swept[at.Key] = true
			}
		}
	}
	for _, fd := range scenarios.Fields() {
		if fd.Section() != "hardware" || fd.Kind != scenarios.Duration && fd.Kind != scenarios.Cost {
			continue
		}
		p := &param{key: fd.Key, field: fd}
		switch {
		case swept[fd.Key]:
			p.why = whySwept
		case !c.Has(fd.Key):
			p.why = "the profile has no value to start from"
		case fd.Kind == scenarios.Cost:
			p.prior = c.Cost(fd.Key)
		case fd.Dist:
			p.prior.Fixed = c.Delay(fd.Key)
		default:
			p.prior.Fixed = sim.Fixed(c.Duration(fd.Key))
		}
		m.params[fd.Key] = p
	}
	for _, q := range c.Used() {
		p := m.params[q.Key]
		if p == nil || p.prior.Fixed.IsFixed() {
			continue
		}
		if p.dist = q.Value; strings.Contains(q.Value, "file:") {
			p.why = "its prior is a distribution of measured durations"
		}
	}
	return m, nil
}

// simulate runs the scenarios with parameters scaled; the result has the points
// of each behind those of the one before.
func (m *model) simulate(scales map[string]float64) (*result.Result, error) {
	var all result.Result
	for i, set := range m.sets {
		t := *set.Scenario
		sets := slices.Concat(m.shorten[i], m.taken)
		for _, key := range slices.Sorted(maps.Keys(scales)) {
			sets = append(sets, key+"="+m.params[key].text(scales[key]))
		}
		if err := t.Apply(sets); err != nil {
			return nil, err
		}
		r, err := m.o.Simulate(m.ctx, &t, testbed.Options{Breakdown: !m.plain})
		if err != nil {
			return nil, err
		}
		all.Points = append(all.Points, r.Points...)
	}
	m.runs++
	return &all, nil
}

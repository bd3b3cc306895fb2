package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"gdisim/stage"
)

// Expect is one line of `expect`: a metric with a value or bounds, a finding, or
// an order of paths.
type Expect struct {
	Line   int
	Path   string    // the path it is about; empty with Order
	Metric string    // "put+completion.p50", "rtt", "message-rate", "one-way/nic.tx.share"
	At     []Setting // the points it is about, values spelled as in Point.At; empty: all

	// Minus makes the figure a difference: less this path's metric at the same
	// point. Both are empty for a plain figure, and set for a difference.
	MinusPath, MinusMetric string
	// Over makes the figure a ratio: through this one. nil for a plain figure.
	Over *Base

	Value, Min, Max *Quantity
	Within          *Quantity // of Value; Unit "ratio": relative to it

	Finding string // with Is
	Is      string // present (either grade), absent, possible (and not occurred) or occurred
	Order   []string

	Source, Use, Note string // Use: fitted, checked or empty
	// Fits names the fields that a fitted figure determined: hardware.KEY, path.KEY
	// of its path, or workload.KEY.
	Fits []string
	// KnownMiss says why the figure is not reached; a miss is then reported and
	// does not fail the file.
	KnownMiss string
}

// Base is what a ratio is taken through: a metric of a path, at the figure's own
// point but for the settings in At.
type Base struct {
	Path, Metric string
	At           []Setting
}

// Quantity is an expected value in the metric's own unit.
type Quantity struct {
	Text  string // as written
	Value float64
	Unit  string // ps, Mmsg/s, GB/s, cores, SMs or ratio
}

// stats are the endings of a metric of time, longest first.
var stats = []string{".p99.9", ".p99", ".p50", ".max", ".min", ".mean"}

// laterMetrics are metrics of workloads that the simulator cannot do yet.
var laterMetrics = []string{"busbw", "algbw", "step"}

// MetricKinds returns the workload kinds that are measured by a metric.
func MetricKinds(m stage.Metric) []string {
	switch m {
	case stage.Issue:
		return []string{"put", "put-signal", "post"}
	case stage.PutCompletion, stage.OneWay:
		return []string{"put", "put-signal"}
	case stage.RTT:
		return []string{"put", "put-signal", "ping-pong", "proxy-echo", "flag-echo"}
	case stage.Get:
		return []string{"get"}
	case stage.Latency:
		return slices.DeleteFunc(slices.Concat([]string{"stream"}, stepKinds), func(kind string) bool {
			return slices.Contains(MetricKinds(stage.Issue), kind) || slices.Contains(MetricKinds(stage.RTT), kind)
		})
	case stage.MessageRate:
		return []string{"stream", "dma", "mmio", "proxy-echo", "post"}
	case stage.Goodput:
		return []string{"stream", "dma", "mmio", "store", "copy"}
	case stage.BackgroundRate:
		return []string{"put", "put-signal", "get", "ping-pong"}
	}
	return anyKind
}

// measured reports a metric that no kind of the scenario has, and returns the unit
// of its value. here is false where a --set took the kind that had it away.
func (r *reader) measured(n *yaml.Node, path, name string) (unit string, here bool) {
	m, unit, err := parseMetric(name)
	if err != nil {
		r.problem(n, path, "", "%v", err)
		return "", true
	}
	has, kinds := MetricKinds(m), r.kinds()
	if kinds == nil || slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(has, k) }) {
		return unit, true
	}
	if len(r.s.sets) > 0 {
		if _, set := r.s.sets[0]["workload.kind"]; set {
			return unit, false
		}
	}
	r.problem(n, path, "kind "+strings.Join(has, ", "), "kind %s has no %s", strings.Join(kinds, ", "), m)
	return unit, true
}

// parseMetric checks the spelling METRIC[.STAT] or METRIC/STAGE[.share] and
// returns the unit of the value.
func parseMetric(name string) (m stage.Metric, unit string, err error) {
	base, stageName, walk := strings.Cut(name, "/")
	stat := ""
	if !walk {
		for _, s := range stats {
			if b, ok := strings.CutSuffix(name, s); ok {
				base, stat = b, s
				break
			}
		}
	}
	if slices.Contains(laterMetrics, base) {
		return m, "", fmt.Errorf("metric %q is known, but not available yet", base)
	}
	m, ok := stage.ParseMetric(base)
	if !ok {
		var known []string
		for i := stage.Metric(1); i < stage.MetricCount; i++ {
			known = append(known, i.String())
		}
		return m, "", fmt.Errorf("metric %q is unknown%s", base, hint(base, known))
	}
	if !m.IsTime() {
		if walk || stat != "" {
			return m, "", fmt.Errorf("metric %s has neither quantiles nor stages", base)
		}
		return m, m.Unit(), nil
	}
	if !walk {
		return m, "ps", nil
	}
	unit = "ps"
	if s, ok := strings.CutSuffix(stageName, ".share"); ok {
		stageName, unit = s, "ratio"
	}
	if _, ok := stage.Parse(stageName); !ok {
		var known []string
		for i := stage.Stage(1); i < stage.Count; i++ {
			known = append(known, i.String())
		}
		return m, "", fmt.Errorf("stage %q is unknown%s", stageName, didYouMean(stageName, known))
	}
	return m, unit, nil
}

// wants says how a value of each unit of metrics is written.
var wants = map[string]string{
	"ps": kinds[Duration].want, "Mmsg/s": kinds[messageRate].want, "GB/s": kinds[Rate].want, "ratio": "a share such as 30%",
}

func parseQuantity(unit, text string) (Quantity, error) {
	q := Quantity{Text: text, Unit: unit}
	var n int64
	var err error
	switch unit {
	case "ps":
		n, err = parseUnits(Duration, text)
		q.Value = float64(n)
	case "Mmsg/s":
		n, err = parseUnits(messageRate, text)
		q.Value = float64(n) / 1e9
	case "GB/s":
		n, err = parseUnits(Rate, text)
		q.Value = float64(n) / 8e9
	case "ratio":
		n, err = parseUnits(Ratio, text)
		q.Value = float64(n) / 1e9
	default: // a number of cores or SMs
		if n, err = scale(text, 1e6); err != nil {
			err = fmt.Errorf("%q %w", text, err)
		}
		q.Value = float64(n) / 1e6
	}
	return q, err
}

func (r *reader) expectations(n *yaml.Node, path string) {
	for i, item := range r.list(n, path, "a list of expectations") {
		if item.Kind != yaml.MappingNode {
			r.entries(item, fmt.Sprintf("%s[%d]", path, i))
			continue
		}
		if e, ok := r.expectation(item, fmt.Sprintf("%s[%d]", path, i)); ok {
			r.s.Expect = append(r.s.Expect, e)
		}
	}
}

// expectation reads one; ok is false after a problem, or where a --set took away
// the point that it is about.
func (r *reader) expectation(n *yaml.Node, path string) (e Expect, ok bool) {
	before := r.count()
	e.Line = n.Line
	unit, want, here := "", "", true
	oneOf := func(into *string, words ...string) func(*yaml.Node, string) {
		return func(n *yaml.Node, path string) {
			w, ok := r.word(n, path, strings.Join(words, " or "))
			if ok && !slices.Contains(words, w) {
				r.problem(n, path, strings.Join(words, " or "), "%q is unknown%s", w, didYouMean(w, words))
			}
			*into = w
		}
	}
	knownPath := func(n *yaml.Node, path string) string {
		w, ok := r.word(n, path, "a path's name")
		if ok && r.pathIndex(w) < 0 && !r.broken {
			r.problem(n, path, "", "no path is named %q%s", w, hint(w, r.pathNames()))
		}
		return w
	}
	quantity := func(into **Quantity) func(*yaml.Node, string) {
		return func(n *yaml.Node, path string) {
			text, ok := r.word(n, path, want)
			if !ok || unit == "" {
				return
			}
			size, negative := text, false
			if e.MinusMetric != "" && into != &e.Within {
				size, negative = strings.CutPrefix(text, "-")
			}
			q, err := parseQuantity(unit, size)
			if into == &e.Within && strings.HasSuffix(text, "%") {
				q, err = parseQuantity("ratio", text)
			}
			if err != nil {
				r.problem(n, path, want, "%v", err)
			}
			if negative {
				q.Text, q.Value = text, -q.Value
			}
			*into = &q
		}
	}
	r.object(n, path, []objectKey{
		{"path", false, func(n *yaml.Node, path string) { e.Path = knownPath(n, path) }},
		{"metric", false, func(n *yaml.Node, path string) {
			var ok bool
			if e.Metric, ok = r.word(n, path, "a metric"); !ok {
				return
			}
			var there bool
			unit, there = r.measured(n, path, e.Metric)
			here, want = here && there, wants[unit]
		}},
		{"minus", false, func(n *yaml.Node, path string) {
			e.MinusPath, e.MinusMetric = e.Path, e.Metric
			r.object(n, path, []objectKey{
				{"path", false, func(n *yaml.Node, path string) { e.MinusPath = knownPath(n, path) }},
				{"metric", false, func(n *yaml.Node, path string) {
					var ok bool
					if e.MinusMetric, ok = r.word(n, path, "a metric"); !ok {
						return
					}
					u, there := r.measured(n, path, e.MinusMetric)
					if here = here && there; u != unit && u != "" && unit != "" {
						r.problem(n, path, "a metric in the same unit", "%s cannot be taken from %s", e.MinusMetric, e.Metric)
					}
				}},
			})
		}},
		{"over", false, func(n *yaml.Node, path string) {
			b := Base{Path: e.Path, Metric: e.Metric}
			r.object(n, path, []objectKey{
				{"path", false, func(n *yaml.Node, path string) { b.Path = knownPath(n, path) }},
				{"metric", false, func(n *yaml.Node, path string) {
					var ok bool
					if b.Metric, ok = r.word(n, path, "a metric"); !ok {
						return
					}
					u, there := r.measured(n, path, b.Metric)
					if here = here && there; u != unit && u != "" && unit != "" {
						r.problem(n, path, "a metric in the same unit", "%s cannot be divided by %s", e.Metric, b.Metric)
					}
				}},
				{"at", false, func(n *yaml.Node, path string) {
					var there bool
					b.At, there = r.where(n, path)
					here = here && there
				}},
			})
			if len(r.s.setArgs) > 0 && len(b.At) == 0 && b.Path == e.Path && b.Metric == e.Metric {
				here = false // its other point is gone
			}
			e.Over, unit, want = &b, "ratio", "a ratio such as 1.1x or 110%"
		}},
		{"at", false, func(n *yaml.Node, path string) {
			var there bool
			e.At, there = r.where(n, path)
			here = here && there
		}},
		{"value", false, quantity(&e.Value)},
		{"within", false, quantity(&e.Within)},
		{"min", false, quantity(&e.Min)},
		{"max", false, quantity(&e.Max)},
		{"finding", false, func(n *yaml.Node, path string) {
			var known []string
			for i := stage.Finding(1); i < stage.FindingCount; i++ {
				known = append(known, i.String())
			}
			oneOf(&e.Finding, known...)(n, path)
		}},
		{"is", false, oneOf(&e.Is, "present", "absent", "possible", "occurred")},
		{"order", false, func(n *yaml.Node, path string) {
			for i, item := range r.list(n, path, "a list of paths") {
				at := fmt.Sprintf("%s[%d]", path, i)
				w := knownPath(item, at)
				if w != "" && slices.Contains(e.Order, w) {
					r.problem(item, at, "each path once", "path %s is there twice", w)
				}
				e.Order = append(e.Order, w)
			}
		}},
		{"source", false, r.text(&e.Source)},
		{"use", false, oneOf(&e.Use, "fitted", "checked")},
		{"fits", false, func(n *yaml.Node, path string) { e.Fits = r.fits(n, path) }},
		{"note", false, r.text(&e.Note)},
		{"known_miss", false, r.text(&e.KnownMiss)},
	})
	if r.count() > before {
		return e, false
	}
	if !here {
		return e, false
	}
	if what := e.malformed(); what != "" {
		r.problem(n, path, "", "%s", what)
		return e, false
	}
	return e, true
}

// fits reads the fields that a figure determined.
func (r *reader) fits(n *yaml.Node, path string) (keys []string) {
	for i, item := range r.list(n, path, "a list of keys") {
		at := fmt.Sprintf("%s[%d]", path, i)
		key, ok := r.word(item, at, "hardware.KEY, path.KEY or workload.KEY")
		if !ok {
			continue
		}
		if fieldTable().byKey[key] == nil {
			section, name, _ := strings.Cut(key, ".")
			r.problem(item, at, "hardware.KEY, path.KEY or workload.KEY", "key %q is unknown%s", key, didYouMean(name, fieldTable().below(section)))
			continue
		}
		keys = append(keys, key)
	}
	return keys
}

// malformed says what is wrong with the combination of keys.
func (e *Expect) malformed() string {
	bounded := e.Min != nil || e.Max != nil
	valued := e.Value != nil || bounded || e.Within != nil
	switch {
	case e.Fits != nil && e.Use != "fitted":
		return "fits needs use: fitted"
	case e.Finding != "" && (e.Metric != "" || valued || e.Order != nil):
		return "a finding stands alone: path, finding, is"
	case e.Finding != "" && (e.Is == "" || e.Path == ""):
		return "a finding needs path and is"
	case e.Finding != "":
		return ""
	case e.Is != "":
		return "\"is\" needs a finding"
	case e.Metric == "":
		return "neither metric nor finding is given"
	case e.MinusPath != "" && (e.Order != nil || e.MinusPath == e.Path && e.MinusMetric == e.Metric):
		return "minus needs another path or another metric than the figure's own"
	case e.Over != nil && (e.Order != nil || e.MinusPath != ""):
		return "over stands with neither order nor minus"
	case e.Over != nil && e.Over.Path == e.Path && e.Over.Metric == e.Metric && e.Over.At == nil:
		return "over needs another path, metric or point than the figure's own"
	case e.Order != nil && (e.Path != "" || valued):
		return "an order stands alone: metric, order"
	case e.Order != nil && len(e.Order) < 2:
		return "an order needs two paths"
	case e.Order != nil:
		return ""
	case e.Path == "":
		return "key \"path\" is missing"
	case (e.Value != nil) == bounded:
		return "give either value and within, or min and max"
	case (e.Value != nil) != (e.Within != nil):
		return "value and within belong together"
	case e.Min != nil && e.Max != nil && e.Min.Value > e.Max.Value:
		return "min is above max"
	}
	return ""
}

// where reads `at` into settings spelled as the sweep spells them. here is false
// where a --set took the point away.
func (r *reader) where(n *yaml.Node, path string) (at []Setting, here bool) {
	here = true
	for _, e := range r.entries(n, path) {
		p := join(path, e.key)
		f, scope, ok := r.target(e.k, e.key, p)
		if !ok {
			continue
		}
		v, ok := r.value(f, e.v, p)
		if !ok {
			continue
		}
		same := func(o value) bool { return o.identity() == v.identity() }
		if i := slices.IndexFunc(r.s.axes, func(a axis) bool { return a.key == e.key }); i >= 0 {
			if j := slices.IndexFunc(r.s.axes[i].values, same); j >= 0 {
				at = append(at, Setting{e.key, r.s.axes[i].values[j].text})
				continue
			}
		} else if r.fixed(f, scope, same) {
			continue // every point has it
		}
		if len(r.s.setArgs) > 0 {
			here = false
		} else {
			r.problem(e.v, p, "a value of its sweep", "no point has %s = %s", e.key, v.text)
		}
	}
	return at, here
}

// fixed reports whether a field that is not swept has a value for all paths in
// scope.
func (r *reader) fixed(f *Field, scope string, is func(value) bool) bool {
	if r.hasAxis(f.Key) {
		return false
	}
	if x := r.s.fault(scope); x != nil {
		v, ok := (&Config{layers: []map[string]value{x.sets, x.values}}).find(f.Key)
		return ok && is(v)
	}
	for i, p := range r.s.Paths {
		if scope == "" || scope == "*" || scope == p.Name {
			if v, ok := r.s.Config(0, i).find(f.Key); !ok || !is(v) {
				return false
			}
		}
	}
	return true
}

// String returns the quantity as written.
func (q *Quantity) String() string {
	if q == nil {
		return ""
	}
	return q.Text
}

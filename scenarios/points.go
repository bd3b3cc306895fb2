package scenarios

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxPoints bounds a sweep: more would be a mistake, or a month.
const maxPoints = 1_000_000

// Setting is one key of a point and its value as written.
type Setting struct{ Key, Value string }

// Point is one combination of the sweep.
type Point struct {
	Index int
	At    []Setting // empty where nothing is swept
}

// axis is a swept field.
type axis struct {
	key       string // as written: hardware.KEY, paths.NAME.KEY, paths.*.KEY, ...
	scope     string // path's name, "*", or "" for what all paths share
	field     *Field
	values    []value
	line, col int
}

func (a *axis) overlaps(f *Field, scope string) bool {
	return a.field == f && (a.scope == scope || a.scope == "*" || scope == "*")
}

// Points returns the combinations of everything swept, in the order of the file,
// the first key slowest. A scenario without a sweep has one point.
func (s *Scenario) Points() []Point {
	n := s.size()
	points := make([]Point, n)
	for i := range points {
		points[i] = Point{Index: i}
		for k, v := range s.at(i) {
			points[i].At = append(points[i].At, Setting{s.axes[k].key, v.text})
		}
	}
	return points
}

func (s *Scenario) size() int {
	n := 1
	for _, a := range s.axes {
		n *= len(a.values)
	}
	return n
}

// at returns the value of each axis at a point.
func (s *Scenario) at(point int) []value {
	vs := make([]value, len(s.axes))
	for k := len(s.axes) - 1; k >= 0; k-- {
		n := len(s.axes[k].values)
		vs[k] = s.axes[k].values[point%n]
		point /= n
	}
	return vs
}

// Config returns the values of all fields for a point and a path, by index.
func (s *Scenario) Config(point, path int) *Config {
	swept, at := map[string]value{}, s.at(point)
	for k, v := range at {
		if a := &s.axes[k]; a.scope == "" || a.scope == "*" || a.scope == s.Paths[path].Name {
			swept[a.field.Key] = v
		}
	}
	return &Config{layers: []map[string]value{s.sets[path], swept, s.ofPath[path], s.base}, used: map[string]bool{}, faults: s.faultsOf(s.Paths[path].Name, at)}
}

// target finds the field that a key of a sweep, a --set or an `at` means.
func (r *reader) target(n *yaml.Node, key, path string) (f *Field, scope string, ok bool) {
	t := fieldTable()
	if rest, is := strings.CutPrefix(key, "paths."); is {
		name, sub, _ := strings.Cut(rest, ".")
		if name != "*" && r.pathIndex(name) < 0 {
			r.problem(n, path, "", "no path is named %q%s", name, hint(name, r.pathNames()))
			return nil, "", false
		}
		if f = t.byKey["path."+sub]; f == nil {
			r.problem(n, path, "", "unknown key %q%s", key, didYouMean(sub, t.below("path")))
			return nil, "", false
		}
		return f, name, true
	}
	if rest, is := strings.CutPrefix(key, faultScope); is {
		return r.faultTarget(n, rest, path)
	}
	f = t.byKey[key]
	switch {
	case f != nil && f.Section() != "path" && f.Section() != "fault":
		return f, "", true
	case f != nil && f.Section() == "fault":
		r.problem(n, path, "faults.NAME"+strings.TrimPrefix(key, "fault"), "unknown key %q", key)
	case f != nil:
		r.problem(n, path, "paths.*"+strings.TrimPrefix(key, "path"), "unknown key %q", key)
	case t.byKey["path."+key] != nil: // as it stands in a path's set
		r.problem(n, path, "paths.*."+key, "unknown key %q", key)
	case t.byKey["hardware."+key] != nil:
		r.problem(n, path, "hardware."+key, "unknown key %q", key)
	default:
		var known []string
		for _, f := range t.fields {
			if f.Section() != "path" && f.Section() != "fault" {
				known = append(known, f.Key)
			}
		}
		r.problem(n, path, "", "unknown key %q%s", key, didYouMean(key, known))
	}
	return nil, "", false
}

func (r *reader) sweep(n *yaml.Node, path string) {
	r.sweepNode = n
	for _, e := range r.entries(n, path) {
		at := join(path, e.key)
		f, scope, ok := r.target(e.k, e.key, at)
		if !ok {
			continue
		}
		if slices.ContainsFunc(r.s.axes, func(a axis) bool { return a.overlaps(f, scope) }) {
			r.problem(e.k, at, "one sweep of a key", "%s is swept twice", f.Key)
			continue
		}
		r.axis(e.key, scope, f, e.v, at)
	}
}

// axis reads a list of values, or {from, to, factor}.
func (r *reader) axis(key, scope string, f *Field, n *yaml.Node, path string) {
	a := axis{key: key, scope: scope, field: f, line: n.Line, col: n.Column}
	if n.Kind == yaml.MappingNode {
		a.values = r.span(f, n, path)
	} else {
		items := r.list(n, path, "a list of values")
		if n.Kind == yaml.SequenceNode && len(items) == 0 {
			r.problem(n, path, "at least one value", "is an empty list: an impossible sweep")
		}
		seen := map[identity]bool{}
		for i, item := range items {
			at := fmt.Sprintf("%s[%d]", path, i)
			v, ok := r.scenarioValue(f, item, at)
			if !ok {
				continue
			}
			if seen[v.identity()] {
				r.problem(item, at, "", "%s is in the list twice", v.text)
				continue
			}
			seen[v.identity()] = true
			a.values = append(a.values, v)
		}
	}
	if len(a.values) > 0 { // else it was reported
		r.s.axes = append(r.s.axes, a)
	}
}

// span reads {from, to, factor}: from, from x factor, ... up to and including to.
func (r *reader) span(f *Field, n *yaml.Node, path string) []value {
	if !f.hasRange() {
		r.problem(n, path, "a list of values", "%s has no ranges", f.Key)
		return nil
	}
	var from, to, factor value
	var okFrom, okTo, okFactor bool
	r.object(n, path, []objectKey{
		{"from", true, func(n *yaml.Node, path string) { from, okFrom = r.scenarioValue(f, n, path) }},
		{"to", true, func(n *yaml.Node, path string) { to, okTo = r.scenarioValue(f, n, path) }},
		{"factor", true, func(n *yaml.Node, path string) {
			factor, okFactor = r.value(&Field{Kind: Count}, n, path)
			if okFactor && factor.n < 2 {
				okFactor = false
				r.problem(n, path, "a whole number from 2", "factor %s makes no range: an impossible sweep", factor.text)
			}
		}},
	})
	if !okFrom || !okTo || !okFactor {
		return nil
	}
	if from.kind != f.Kind || to.kind != f.Kind || from.dist != nil || to.dist != nil || from.n <= 0 || from.n > to.n {
		r.problem(n, path, "0 < from <= to", "%s to %s is no range: an impossible sweep", from.text, to.text)
		return nil
	}
	vs := []value{from}
	for x := from; x.n <= to.n/factor.n; {
		x.n *= factor.n
		x.text = format(f.Kind, x.n)
		vs = append(vs, x)
	}
	return vs
}

func (r *reader) hasAxis(key string) bool {
	return slices.ContainsFunc(r.s.axes, func(a axis) bool { return a.field.Key == key })
}

// set applies one --set.
func (r *reader) set(arg string) {
	d := *r.document
	d.file, d.at, d.read = "--set", false, r.readFile // files are where the caller is
	key, text, ok := strings.Cut(arg, "=")
	if !ok || key == "" {
		d.problem(nil, "", "KEY=VALUE", "%q sets nothing", arg)
		return
	}
	sub := &reader{loader: r.loader, document: &d, s: r.s, broken: r.broken}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) != 1 {
		d.problem(nil, key, "KEY=VALUE", "%q is no value", text)
		return
	}
	n := doc.Content[0]
	d.inspect(n)
	r.s.Notices = append(r.s.Notices, "--set "+arg)
	if key == "seed" {
		sub.seed(n, key)
		return
	}
	f, scope, ok := sub.target(n, key, key)
	if !ok {
		return
	}
	fixes := func(a axis) bool { return a.field == f && (a.scope == scope || scope == "*") }
	dropAxes := func() {
		for _, a := range r.s.axes {
			if fixes(a) {
				r.s.Notices = append(r.s.Notices, "the sweep of "+a.key+" is dropped: --set gives its value")
			}
		}
		r.s.axes = slices.DeleteFunc(r.s.axes, fixes)
	}
	if f.List && n.Kind != yaml.ScalarNode {
		dropAxes()
		n.Line = math.MaxInt
		sub.axis(key, scope, f, n, key)
		return
	}
	v, ok := sub.value(f, n, key)
	if !ok {
		return
	}
	v.source, v.origin, v.place = "--set", "scenario", d.place(n, key)
	dropAxes()
	if x := r.s.fault(scope); x != nil {
		x.sets[f.Key] = v
	}
	for i, p := range r.s.Paths {
		if scope == "" || scope == "*" || scope == p.Name {
			r.s.sets[i][f.Key] = v
		}
	}
}

// checkSize reports a sweep with too many points.
func (r *reader) checkSize() {
	n := 1
	for _, a := range r.s.axes {
		if n *= len(a.values); n > maxPoints {
			r.problem(r.sweepNode, "sweep", fmt.Sprintf("at most %d", maxPoints), "has too many points: an impossible sweep")
			return
		}
	}
}

package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"gdisim/sim"
)

// Fault is an entry of `faults` as it applies to a path at a point.
type Fault struct {
	Name, Kind string
	At         sim.Duration // from the begin of each run
	For        sim.Duration // 0: to the end
	Rate       float64      // share of the chances; 1: all
	Count      int          // strikes at most; 0: any number
}

// faultRef is an entry of `faults` with its values by field.
type faultRef struct {
	name, path   string // path "": all paths
	kind         *faultKind
	values, sets map[string]value
}

// faultScope is the scope of an axis that belongs to a fault; no path has such a
// name.
const faultScope = "faults."

func (s *Scenario) fault(scope string) *faultRef {
	name, is := strings.CutPrefix(scope, faultScope)
	if i := slices.IndexFunc(s.faults, func(f faultRef) bool { return f.name == name }); is && i >= 0 {
		return &s.faults[i]
	}
	return nil
}

func (s *Scenario) faultNames() []string {
	var out []string
	for _, f := range s.faults {
		out = append(out, f.name)
	}
	return out
}

// faults reads the list of faults; the paths have been read.
func (r *reader) faults(n *yaml.Node, path string) {
	for i, item := range r.list(n, path, "a list of faults such as {kind: loss, rate: 1%}") {
		at := fmt.Sprintf("%s[%d]", path, i)
		f := faultRef{values: map[string]value{}, sets: map[string]value{}}
		before := r.count()
		keys := []objectKey{
			{"name", false, r.text(&f.name)},
			{"path", false, func(n *yaml.Node, path string) {
				w, ok := r.word(n, path, "a path's name")
				if ok && r.pathIndex(w) < 0 && !r.broken {
					r.problem(n, path, "", "no path is named %q%s", w, hint(w, r.pathNames()))
				}
				f.path = w
			}},
		}
		for _, fd := range faultFields {
			name := strings.TrimPrefix(fd.Key, "fault.")
			keys = append(keys, objectKey{name, fd.Default == "" && !fd.Optional, func(n *yaml.Node, path string) {
				v, ok := r.scenarioValue(fieldTable().byKey[fd.Key], n, path)
				if !ok {
					return
				}
				f.values[fd.Key] = v
				if name == "kind" {
					f.kind = faultKindOf(v.text)
				} else if f.kind != nil && !f.kind.takes(name) {
					r.problem(n, path, f.kind.want(), "a fault of kind %s has none", f.kind.name)
				}
			}})
		}
		r.object(item, at, keys)
		if r.count() > before || f.kind == nil {
			continue
		}
		if f.name == "" {
			f.name = f.kind.name
		}
		_, rate := f.values["fault.rate"]
		_, count := f.values["fault.count"]
		switch {
		case !pathName.MatchString(f.name):
			r.problem(item, at, "letters, digits, -, _ and +", "%q cannot be a fault's name", f.name)
		case r.s.fault(faultScope+f.name) != nil:
			r.problem(item, at, "a name of its own: {name: ..., kind: ...}", "fault %q is there twice", f.name)
		case f.kind.some && !rate && !count:
			r.problem(item, at, "rate: 0.1%, or count: 1", "every chance of %s would strike", f.kind.name)
		default:
			r.s.faults = append(r.s.faults, f)
		}
	}
}

func faultKindOf(name string) *faultKind {
	if i := slices.IndexFunc(faultKinds, func(k faultKind) bool { return k.name == name }); i >= 0 {
		return &faultKinds[i]
	}
	return nil
}

// takes reports whether the kind has that key.
func (k *faultKind) takes(key string) bool {
	return slices.Contains(strings.Fields(k.all()), key)
}

func (k *faultKind) all() string {
	if k.name == "two-producers" {
		return "kind"
	}
	return strings.TrimSpace("kind at " + k.keys)
}

func (k *faultKind) want() string { return "of " + strings.Join(strings.Fields(k.all()), ", ") }

// faultTarget finds the field that faults.NAME.KEY means.
func (r *reader) faultTarget(n *yaml.Node, rest, path string) (f *Field, scope string, ok bool) {
	name, sub, _ := strings.Cut(rest, ".")
	x := r.s.fault(faultScope + name)
	if x == nil {
		r.problem(n, path, "", "no fault is named %q%s", name, hint(name, r.s.faultNames()))
		return nil, "", false
	}
	if sub == "kind" || !x.kind.takes(sub) {
		r.problem(n, path, x.kind.want(), "a fault of kind %s has no %q that varies", x.kind.name, sub)
		return nil, "", false
	}
	return fieldTable().byKey["fault."+sub], faultScope + name, true
}

// Faults returns the faults of the path at the point, in the order of the file.
func (c *Config) Faults() []Fault {
	var out []Fault
	for i := range c.faults {
		x := &c.faults[i]
		f := Fault{Name: x.name, Kind: x.kind.name, At: x.cfg.Duration("fault.at"), Rate: 1}
		if x.cfg.Has("fault.for") {
			f.For = x.cfg.Duration("fault.for")
		}
		if x.cfg.Has("fault.rate") {
			f.Rate = x.cfg.Ratio("fault.rate")
		} else if x.kind.once {
			f.Count = 1
		}
		if x.cfg.Has("fault.count") {
			f.Count = x.cfg.Count("fault.count")
		}
		out = append(out, f)
	}
	return out
}

// faultConfig holds a fault's values at a point.
type faultConfig struct {
	name string
	kind *faultKind
	cfg  *Config
}

// faultsOf returns the faults of a path, with what is swept.
func (s *Scenario) faultsOf(path string, at []value) []faultConfig {
	var out []faultConfig
	for i := range s.faults {
		f := &s.faults[i]
		if f.path != "" && f.path != path {
			continue
		}
		swept := map[string]value{}
		for k, v := range at {
			if a := &s.axes[k]; a.scope == faultScope+f.name {
				swept[a.field.Key] = v
			}
		}
		out = append(out, faultConfig{f.name, f.kind, &Config{layers: []map[string]value{f.sets, swept, f.values}, used: map[string]bool{}}})
	}
	return out
}

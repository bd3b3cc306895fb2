package scenarios

import (
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// kinds returns the workload kinds of the scenario's points; none where the kind
// is missing or was refused.
func (r *reader) kinds() []string {
	const key = "workload.kind"
	for _, sets := range r.s.sets {
		if v, ok := sets[key]; ok {
			return []string{v.text}
		}
	}
	var words []string
	for _, a := range r.s.axes {
		if a.field.Key == key {
			for _, v := range a.values {
				words = append(words, v.text)
			}
		}
	}
	if v, ok := r.s.base[key]; ok && words == nil {
		words = append(words, v.text)
	}
	return words
}

// stepPath gives a scenario of steps that no stack takes part in its one path,
// named after the kind or, of several, "step", and reports paths that are too many
// or too few.
func (r *reader) stepPath(root, paths *yaml.Node) {
	kinds := r.kinds()
	stackless := func(k string) bool { return IsStep(k) && !slices.Contains(stackKinds, k) }
	switch {
	case kinds == nil && paths == nil: // the kind is reported; the paths may not be missing
	case paths == nil && slices.ContainsFunc(kinds, func(k string) bool { return !stackless(k) }):
		r.problem(root, "", "", "key \"paths\" is missing")
	case paths == nil:
		name := kinds[0]
		if slices.ContainsFunc(kinds, func(k string) bool { return k != name }) {
			name = "step" // a point says which
		}
		r.s.Paths = append(r.s.Paths, PathRef{Name: name})
		r.s.ofPath = append(r.s.ofPath, map[string]value{})
		r.s.sets = append(r.s.sets, map[string]value{})
	case slices.ContainsFunc(kinds, stackless):
		r.problem(paths, "paths", "no paths", "kind %s is a step that no stack takes part in", kinds[slices.IndexFunc(kinds, stackless)])
	}
}

// unused reports keys of the workload that none of its kinds reads.
func (r *reader) unused() {
	kinds := r.kinds()
	if kinds == nil {
		return
	}
	report := func(d *document, n *yaml.Node, key string) {
		f := fieldTable().byKey[key]
		if f.Section() == "workload" && !slices.ContainsFunc(kinds, f.usedBy) {
			d.problem(n, key, "kind "+strings.Join(f.users(), ", "), "is not a key of kind %s", strings.Join(kinds, ", "))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.workload)) {
		report(r.document, r.workload[key], key)
	}
	r.backgrounds(kinds)
	r.ofKind("workload.by", "way", ways, kinds)
	r.ofKind("workload.op", "operation", ops, kinds)
	for _, a := range r.s.axes {
		report(r.document, &yaml.Node{Line: a.line, Column: a.col}, a.field.Key)
	}
	if len(r.s.sets) > 0 {
		d := *r.document
		d.file, d.at = "--set", false
		for _, key := range slices.Sorted(maps.Keys(r.s.sets[0])) {
			report(&d, nil, key)
		}
	}
}

// users are the kinds that read a workload's field.
func (f *Field) users() []string {
	if f.Kinds == nil {
		return messageKinds
	}
	return f.Kinds
}

// backgroundOf are the loads beside any of the kinds.
func backgroundOf(kinds []string) string {
	var out []string
	if slices.ContainsFunc(kinds, func(k string) bool { return !IsStep(k) }) {
		out = append(out, "stream")
	}
	if slices.ContainsFunc(kinds, IsStep) {
		out = append(out, backgroundKinds...)
	}
	return strings.Join(out, ", ")
}

// backgrounds reports loads that none of the kinds can be measured beside:
// messages have streams, steps have the others.
func (r *reader) backgrounds(kinds []string) {
	const key = "workload.background.kind"
	check := func(d *document, n *yaml.Node, v value) {
		fits := func(kind string) bool { return (v.text == "stream") != IsStep(kind) }
		if f := fieldTable().byKey[key]; slices.ContainsFunc(kinds, f.usedBy) && !slices.ContainsFunc(kinds, fits) {
			d.problem(n, key, "kind: "+backgroundOf(kinds), "%s is no load beside kind %s", v.text, strings.Join(kinds, ", "))
		}
	}
	if v, ok := r.s.base[key]; ok {
		check(r.document, r.workload[key], v)
	}
	for _, a := range r.s.axes {
		if a.field.Key != key {
			continue
		}
		for _, v := range a.values {
			check(r.document, &yaml.Node{Line: a.line, Column: a.col}, v)
		}
	}
	if len(r.s.sets) > 0 {
		if v, ok := r.s.sets[0][key]; ok {
			d := *r.document
			d.file, d.at = "--set", false
			check(&d, nil, v)
		}
	}
}

// ofKind reports a word that other kinds of step know, and not this one.
func (r *reader) ofKind(key, what string, of map[string][]string, kinds []string) {
	n := r.workload[key]
	if n == nil {
		return
	}
	for _, k := range kinds {
		if w := of[k]; w != nil && !slices.Contains(w, n.Value) && slices.Contains(words(of), n.Value) {
			r.problem(n, key, strings.Join(w, ", "), "%q is no %s of kind %s", n.Value, what, k)
		}
	}
}

package scenarios

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"gdisim/sim"
)

// parse reads a scalar of field f and holds it against the field's range.
func (t *table) parse(f *Field, text string) (value, error) {
	v, err := parse(f.Kind, text)
	if err == nil && f.Kind == Enum && !slices.Contains(f.Enum, text) {
		if slices.Contains(f.Later, text) {
			return v, fmt.Errorf("%q is known, but not available yet", text)
		}
		err = fmt.Errorf("%q is unknown%s", text, didYouMean(text, f.Enum))
	}
	if err != nil && f.Alt != 0 {
		a, altErr := parse(f.Alt, text)
		if altErr == nil {
			return a, nil
		}
		if text != "" && strings.ContainsAny(text[:1], "-0123456789") { // a quantity was meant
			err = altErr
		}
	}
	if err != nil {
		return v, err
	}
	if lo, ok := t.min[f.Key]; ok && below(v, lo) {
		return v, fmt.Errorf("%q is below the least, %s", text, lo.text)
	}
	if hi, ok := t.max[f.Key]; ok && above(v, hi) {
		return v, fmt.Errorf("%q is above the most, %s", text, hi.text)
	}
	if f.Pow2 && v.n&(v.n-1) != 0 {
		return v, fmt.Errorf("%q is no power of two", text)
	}
	return v, nil
}

// below and above compare values of one kind with a bound. A Cost is held
// against each part that its bound has.
func below(v, bound value) bool { return v.n < bound.n || v.fixed < bound.fixed }

func above(v, bound value) bool {
	if v.kind != Cost {
		return v.n > bound.n
	}
	return bound.n > 0 && v.n > bound.n || bound.fixed > 0 && v.fixed > bound.fixed
}

// value reads a node as a value of field f; ok is false after a problem.
func (d *document) value(f *Field, n *yaml.Node, path string) (v value, ok bool) {
	switch {
	case n.Tag == poison:
		return v, false
	case n.Kind == yaml.MappingNode && f.Dist:
		return d.distribution(f, n, path)
	case n.Kind != yaml.ScalarNode:
		d.problem(n, path, f.want(), "is %s", nodeKind(n))
		return v, false
	case n.Tag == "!!null" || n.Value == "":
		d.problem(n, path, f.want(), "is empty")
		return v, false
	case (f.Kind == Count || f.Kind == Integer || f.Kind == Bool) && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		d.problem(n, path, f.want(), "%q is in quotes", n.Value)
		return v, false
	}
	v, err := fieldTable().parse(f, n.Value)
	if err != nil {
		d.problem(n, path, f.want(), "%v", err)
		return v, false
	}
	return v, true
}

// distributions are the shapes and the durations that describe each.
var distributions = []struct {
	name string
	keys []string
}{
	{"uniform", []string{"low", "high"}},
	{"exponential", []string{"mean"}},
	{"lognormal", []string{"median", "p99"}},
	{"normal", []string{"mean", "sd"}},
	{"empirical", []string{"file"}},
}

// distribution reads {dist: NAME, ...}.
func (d *document) distribution(f *Field, n *yaml.Node, path string) (v value, ok bool) {
	var names []string
	for _, dist := range distributions {
		names = append(names, dist.name)
	}
	es := d.entries(n, path)
	i := slices.IndexFunc(es, func(e entry) bool { return e.key == "dist" })
	if i < 0 {
		d.problem(n, path, f.want()+", or {dist: "+strings.Join(names, "|")+", ...}", "is a mapping without dist")
		return v, false
	}
	distNode := es[i].v
	shape, ok := d.word(distNode, join(path, "dist"), strings.Join(names, ", "))
	if !ok {
		return v, false
	}
	i = slices.Index(names, shape)
	if i < 0 {
		d.problem(distNode, join(path, "dist"), strings.Join(names, ", "), "distribution %q is unknown%s", shape, didYouMean(shape, names))
		return v, false
	}
	keys := distributions[i].keys
	ps := map[string]sim.Duration{}
	texts := map[string]string{}
	file := ""
	spec := []objectKey{{"dist", true, func(*yaml.Node, string) {}}}
	for _, key := range keys {
		read := func(n *yaml.Node, path string) {
			if t, is := d.value(&Field{Kind: Duration}, n, path); is {
				ps[key], texts[key] = sim.Duration(t.n), t.text
			}
		}
		if key == "file" {
			read = d.text(&file)
		}
		spec = append(spec, objectKey{key, true, read})
	}
	before := len(*d.problems)
	d.object(n, path, spec)
	if len(*d.problems) > before || len(ps) < len(keys) && file == "" {
		return v, false
	}
	var delay sim.Delay
	var err error
	switch shape {
	case "uniform":
		if ps["low"] > ps["high"] {
			err = fmt.Errorf("low is above high")
		} else {
			delay = sim.Uniform(ps["low"], ps["high"])
		}
	case "exponential":
		delay = sim.Exponential(ps["mean"])
	case "lognormal":
		delay, err = sim.Lognormal(ps["median"], ps["p99"])
	case "normal":
		delay = sim.Normal(ps["mean"], ps["sd"])
	case "empirical":
		texts["file"] = file
		delay, err = d.empirical(file)
	}
	if err != nil {
		d.problem(n, path, "", "%v", err)
		return v, false
	}
	v = value{kind: f.Kind, dist: &delay, text: "{dist: " + shape}
	for _, key := range keys {
		v.text += ", " + key + ": " + texts[key]
	}
	v.text += "}"
	return v, true
}

// empirical reads a file of measured durations, one a line.
func (d *document) empirical(file string) (sim.Delay, error) {
	src, err := d.read(file)
	if err != nil {
		return sim.Delay{}, err
	}
	var samples []sim.Duration
	line := 0
	for l := range bytes.Lines(src) {
		line++
		s := string(bytes.TrimSpace(l))
		if s == "" || s[0] == '#' {
			continue
		}
		n, err := parseUnits(Duration, s)
		if err != nil {
			return sim.Delay{}, fmt.Errorf("%s:%d: %w (want %s)", file, line, err, kinds[Duration].want)
		}
		samples = append(samples, sim.Duration(n))
	}
	if len(samples) == 0 {
		return sim.Delay{}, fmt.Errorf("%s holds no durations", file)
	}
	return sim.Empirical(samples)
}

package scenarios

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// origins say how a number of a profile or a stack came to be known.
var origins = []string{"published", "measured", "derived", "assumed"}

// params are the values of a profile or of a stack, by full key.
type params struct {
	name, title string
	values      map[string]value
}

// profileForm and stackForm tell the two kinds of file apart.
type paramForm struct {
	what    string // "profile"
	dir     string // embedded folder
	magic   string // first key of the file
	body    string // key of the parameters
	section string // of the field table
}

var (
	profileForm = paramForm{"profile", "profiles", "gdisim-profile", "parameters", "hardware"}
	stackForm   = paramForm{"stack", "stacks", "gdisim-stack", "keys", "path"}
)

// isFile reports whether a reference is a file rather than an embedded name.
func isFile(ref string) bool { return strings.Contains(ref, "/") || strings.HasSuffix(ref, ".yaml") }

// params reads the profile or stack that node n of document d names. It returns
// nil after a problem that leaves nothing to use. chain holds the files that
// include this one.
func (l *loader) params(form paramForm, d *document, n *yaml.Node, path, ref string, chain []string) *params {
	var src []byte
	var err error
	var child *document
	if isFile(ref) {
		child = l.document(resolve(d.dir, ref))
		src, err = l.readFile(child.file)
	} else {
		child = l.document(form.what + ":" + ref)
		src, err = readEmbedded(form.dir, ref)
	}
	if err != nil {
		want := ""
		if file := ref + ".yaml"; !isFile(ref) && filepath.IsLocal(file) {
			if _, e := l.readFile(resolve(d.dir, file)); e == nil {
				want = "./" + file + ", for the file of that name"
			}
		}
		d.problem(n, path, want, "%v", err)
		return nil
	}
	if i := slices.Index(chain, child.file); i >= 0 {
		d.problem(n, path, "", "%s includes itself: %s", form.what, strings.Join(append(chain[i:], child.file), " -> "))
		return nil
	}
	root := child.root(src)
	if root == nil {
		return nil
	}
	chain = append(slices.Clone(chain), child.file)
	p := &params{values: map[string]value{}}
	sources := map[string]string{}
	own := map[string]value{}
	leaf := func(f *Field, n *yaml.Node, path string) { child.leaf(f, n, path, sources, own) }
	keys := []objectKey{
		{form.magic, true, child.version},
		{"name", true, child.text(&p.name)},
		{"title", true, child.text(&p.title)},
		{"sources", false, func(n *yaml.Node, path string) {
			for _, e := range child.entries(n, path) {
				if s, ok := child.word(e.v, join(path, e.key), "a citation"); ok {
					sources[e.key] = s
				}
			}
		}},
		{form.body, false, func(n *yaml.Node, path string) { child.fields(n, path, form.section, leaf) }},
	}
	if form.what == "profile" {
		keys = append(keys, objectKey{"include", false, func(n *yaml.Node, path string) {
			for i, item := range child.list(n, path, "a list of profiles") {
				at := fmt.Sprintf("%s[%d]", path, i)
				if ref, ok := child.word(item, at, "a profile's name or file"); ok {
					if inc := l.params(form, child, item, at, ref, chain); inc != nil {
						maps.Copy(p.values, inc.values)
					}
				}
			}
		}})
	}
	child.object(root, "", keys)
	maps.Copy(p.values, own) // over what it includes
	return p
}

func (d *document) version(n *yaml.Node, path string) {
	if v, ok := d.word(n, path, "v1"); ok && v != "v1" {
		d.problem(n, path, "v1", "version %q is unknown", v)
	}
}

// leaf reads {value: ..., min: ..., max: ..., kind: ..., source: ..., where: ...,
// note: ...}.
func (d *document) leaf(f *Field, n *yaml.Node, path string, sources map[string]string, into map[string]value) {
	var v value
	var ok bool
	var where, note string
	var low, high *value
	bound := func(into **value) func(*yaml.Node, string) {
		return func(n *yaml.Node, path string) {
			if b, ok := d.value(f, n, path); ok {
				*into = &b
			}
		}
	}
	d.object(n, path, []objectKey{
		{"value", true, func(n *yaml.Node, path string) { v, ok = d.value(f, n, path) }},
		{"min", false, bound(&low)},
		{"max", false, bound(&high)},
		{"kind", true, func(n *yaml.Node, path string) {
			if s, is := d.word(n, path, strings.Join(origins, ", ")); is && !slices.Contains(origins, s) {
				d.problem(n, path, strings.Join(origins, ", "), "%q is unknown%s", s, didYouMean(s, origins))
			} else {
				v.origin = s
			}
		}},
		{"source", true, func(n *yaml.Node, path string) {
			s, is := d.word(n, path, "a key of sources")
			if !is {
				return
			}
			if sources[s] == "" {
				d.problem(n, path, "a key of sources", "source %q is not declared%s", s, hint(s, slices.Sorted(maps.Keys(sources))))
			}
			v.source = sources[s]
		}},
		{"where", false, d.text(&where)},
		{"note", false, d.text(&note)},
	})
	v.owner = d.file
	switch {
	case low == nil && high == nil:
	case low == nil || high == nil:
		d.problem(n, path, "min and max", "one bound without the other")
	case ok && !(size(*low) > 0 && size(*low) <= size(v) && size(v) <= size(*high)):
		d.problem(n, path, "min above 0, up to value, up to max", "%s to %s does not hold %s", low.text, high.text, v.text)
	default:
		v.low, v.high = low, high
	}
	if where != "" {
		v.source += ", " + where
	}
	if note != "" {
		v.source += " (" + note + ")"
	}
	if _, dup := into[f.Key]; dup {
		d.problem(n, path, "", "duplicate key")
	}
	if ok {
		into[f.Key] = v
	}
}

// fields walks a mapping whose keys are, nested or dotted, fields below prefix,
// and calls leaf for each field.
func (d *document) fields(n *yaml.Node, path, prefix string, leaf func(f *Field, n *yaml.Node, path string)) {
	t := fieldTable()
	for _, e := range d.entries(n, path) {
		key, at := prefix+"."+e.key, join(path, e.key)
		if f := t.byKey[key]; f != nil {
			leaf(f, e.v, at)
		} else if group := t.below(key); len(group) > 0 {
			d.fields(e.v, at, key, leaf)
		} else {
			d.problem(e.k, at, "", "unknown key%s", didYouMean(e.key, t.below(prefix)))
		}
	}
}

// below returns the keys that begin with prefix and a dot, without these; and the
// names of the groups among them.
func (t *table) below(prefix string) []string {
	var keys []string
	for _, f := range t.fields {
		rest, ok := strings.CutPrefix(f.Key, prefix+".")
		if !ok {
			continue
		}
		keys = append(keys, rest)
		if group, _, nested := strings.Cut(rest, "."); nested && !slices.Contains(keys, group) {
			keys = append(keys, group)
		}
	}
	return keys
}

// missing returns the fields of a section that must have a value and have none.
func missing(section string, has func(key string) bool) []string {
	var keys []string
	for _, f := range fieldTable().fields {
		if f.Section() == section && f.Default == "" && !f.Optional && !has(f.Key) {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// ProfileParams returns the parameters of an embedded profile or of a profile
// file, in key order.
func ProfileParams(name string) ([]Param, error) { return paramsOf(profileForm, name) }

// StackParams returns the keys of an embedded stack or of a stack file, in key
// order.
func StackParams(name string) ([]Param, error) { return paramsOf(stackForm, name) }

func paramsOf(form paramForm, name string) ([]Param, error) {
	l := newLoader()
	p := l.params(form, l.document(""), nil, "", name, nil)
	if err := joinProblems("", l.problems); err != nil {
		return nil, err
	}
	var ps []Param
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		ps = append(ps, p.values[key].param(key))
	}
	return ps, nil
}

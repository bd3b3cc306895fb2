package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// document is one YAML text on its way to values. Problems of all documents of
// a load go into one list.
type document struct {
	file     string
	at       bool                              // positions mean something: not in a --set
	read     func(path string) ([]byte, error) // path as written in the document
	dir      string                            // files named in the document are relative to it
	problems *[]*Problem
}

func (d *document) problem(n *yaml.Node, path, want, format string, args ...any) {
	p := &Problem{File: d.file, Path: path, What: fmt.Sprintf(format, args...), Want: want}
	if d.at && n != nil {
		p.Line, p.Col = n.Line, n.Column
	}
	*d.problems = append(*d.problems, p)
}

var (
	yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	// Errors of yaml.v3's parser, unlike those of its scanner, count lines from 0.
	yamlParserError = regexp.MustCompile(`^did not find expected (',' or|'-' indicator|key|node content|<)`)
)

// root reads src as exactly one YAML document whose content is a mapping, and
// refuses what the notation leaves out: duplicate keys, anchors, aliases, tags.
// It returns nil after a problem that leaves nothing to look at.
func (d *document) root(src []byte) *yaml.Node {
	fail := func(line, col int, want, what string) *yaml.Node {
		*d.problems = append(*d.problems, &Problem{File: d.file, Line: line, Col: col, What: what, Want: want})
		return nil
	}
	if len(src) > maxYAML {
		return fail(0, 0, "", "is larger than 1 MiB")
	}
	if bytes.IndexByte(src, 0) >= 0 || !utf8.Valid(src) {
		return fail(0, 0, "YAML in UTF-8", "is not a text file")
	}
	line, tabs := 0, false
	for l := range strings.Lines(string(src)) {
		line++
		indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if i := strings.IndexByte(indent, '\t'); i >= 0 && strings.TrimSpace(l) != "" {
			fail(line, i+1, "spaces", "tab in the indentation")
			tabs = true
		}
	}
	if tabs {
		return nil
	}
	syntax := func(err error) *yaml.Node {
		at, what := 1, err.Error() // no line is the first
		if m := yamlError.FindStringSubmatch(what); m != nil {
			what = m[2]
			if n, err := strconv.Atoi(m[1]); err == nil {
				at = n + b2i(yamlParserError.MatchString(what))
			}
		}
		return fail(at, 0, "", "YAML syntax: "+what)
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return fail(0, 0, "a YAML mapping", "is empty")
	} else if err != nil {
		return syntax(err)
	}
	if err := dec.Decode(&second); err == nil {
		d.problem(&second, "", "one document a file", "a second document begins here")
	} else if !errors.Is(err, io.EOF) {
		return syntax(err)
	}
	if len(doc.Content) != 1 {
		return fail(0, 0, "a YAML mapping", "is empty")
	}
	n := doc.Content[0]
	d.inspect(n)
	if n.Kind != yaml.MappingNode {
		d.problem(n, "", "a mapping such as \"gdisim: v1\"", "is %s", nodeKind(n))
		return nil
	}
	return n
}

// poison is the tag of a node that was reported already; readers pass over it.
const poison = "!refused"

// inspect reports what no part of the notation allows. It turns refused values
// into poison so that nothing is reported twice.
func (d *document) inspect(n *yaml.Node) {
	if n.Anchor != "" {
		d.problem(n, "", "the value itself", "anchor &%s is not allowed", n.Anchor)
	}
	if n.Kind == yaml.AliasNode {
		d.problem(n, "", "the value itself", "alias *%s is not allowed", n.Value)
		*n = yaml.Node{Kind: yaml.ScalarNode, Tag: poison, Line: n.Line, Column: n.Column}
		return
	}
	if n.Style&yaml.TaggedStyle != 0 {
		d.problem(n, "", "the plain value", "tag %s is not allowed", n.Tag)
		*n = yaml.Node{Kind: yaml.ScalarNode, Tag: poison, Line: n.Line, Column: n.Column}
		return
	}
	if n.Kind == yaml.MappingNode {
		first := map[string]int{}
		for i := 0; i < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode {
				continue
			}
			if line, dup := first[k.Value]; dup {
				d.problem(k, k.Value, "", "duplicate key, first on line %d", line)
				n.Content[i+1].Tag = poison
				continue
			}
			first[k.Value] = k.Line
		}
	}
	for _, c := range n.Content {
		d.inspect(c)
	}
}

func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "empty"
	case "!!int", "!!float":
		return "a bare number"
	case "!!bool":
		return "a switch"
	}
	return "a word"
}

// entry is a key of a mapping with its value.
type entry struct {
	key  string
	k, v *yaml.Node
}

// entries returns the entries of a mapping in file order, and reports where n is
// none.
func (d *document) entries(n *yaml.Node, path string) []entry {
	if n.Tag == poison {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.problem(n, path, "a mapping of keys and values", "is %s", nodeKind(n))
		return nil
	}
	var es []entry
	for i := 0; i < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			d.problem(k, path, "a word", "key is %s", nodeKind(k))
			continue
		}
		if k.Tag != poison && v.Tag != poison {
			es = append(es, entry{k.Value, k, v})
		}
	}
	return es
}

// object hands each entry of a mapping to the function of that name, and reports
// unknown keys and missing required ones. Functions run in the order given, not
// in the file's, so that later ones may use what earlier ones read.
func (d *document) object(n *yaml.Node, path string, keys []objectKey) {
	if n.Tag == poison {
		return
	}
	es := d.entries(n, path)
	if n.Kind != yaml.MappingNode {
		return
	}
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	for _, e := range es {
		if !slices.Contains(names, e.key) {
			d.problem(e.k, join(path, e.key), "", "unknown key%s", hint(e.key, names))
		}
	}
	for _, k := range keys {
		i := slices.IndexFunc(es, func(e entry) bool { return e.key == k.name })
		if i >= 0 {
			k.read(es[i].v, join(path, k.name))
		} else if k.required && !hasKey(n, k.name) {
			d.problem(n, path, "", "key %q is missing", k.name)
		}
	}
}

type objectKey struct {
	name     string
	required bool
	read     func(n *yaml.Node, path string)
}

func hasKey(n *yaml.Node, key string) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// hint suggests a known key, or lists them all when they are few.
func hint(key string, names []string) string {
	if s := didYouMean(key, names); s != "" {
		return s
	}
	if len(names) > 0 && len(names) <= 12 {
		return ", known are " + strings.Join(names, ", ")
	}
	return ""
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// word reads a scalar as text; ok is false (and a problem reported) when it is
// none or empty.
func (d *document) word(n *yaml.Node, path, want string) (string, bool) {
	if n.Tag == poison {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		what := nodeKind(n)
		if n.Kind == yaml.ScalarNode {
			what = "empty"
		}
		d.problem(n, path, want, "is %s", what)
		return "", false
	}
	return n.Value, true
}

// text reads a scalar into p.
func (d *document) text(p *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		s, ok := d.word(n, path, "a text")
		switch {
		case !ok:
		case strings.ContainsFunc(s, unicode.IsControl):
			d.problem(n, path, "printable characters", "has a control character")
		default:
			*p = s
		}
	}
}

// list returns the items of a sequence, and reports where n is none.
func (d *document) list(n *yaml.Node, path, want string) []*yaml.Node {
	if n.Tag == poison {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.problem(n, path, want, "is %s", nodeKind(n))
		return nil
	}
	return n.Content
}

package scenarios

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Scenario is a loaded and checked scenario file.
type Scenario struct {
	Name, Title string
	File        string // as given, or example:NAME or check:NAME
	Digest      string // SHA-256 of the text, hex
	Seed        uint64
	Hardware    string // profile's name or file
	Paths       []PathRef
	Expect      []Expect
	Notices     []string // what the reader of a result must know

	base    map[string]value   // profile, hardware.set and the sections
	ofPath  []map[string]value // stack and set of each path
	places  []place            // of each path; none for the one of a step
	work    place              // of the workload
	sets    []map[string]value // --set, for each path
	axes    []axis             // first slowest
	faults  []faultRef
	src     []byte
	opts    []Option
	setArgs []string
}

// PathRef is one path under test.
type PathRef struct{ Name, Stack string }

// Option changes how a scenario is read.
type Option func(*loader)

// WithReadFile makes the loader read the files that a scenario names (profiles,
// stacks, measured distributions) by read instead of from disk.
func WithReadFile(read func(path string) ([]byte, error)) Option {
	return func(l *loader) { l.readFile = read }
}

// Load reads a scenario file. The error joins every Problem found, in the order
// of their positions.
func Load(path string) (*Scenario, error) {
	src, err := readFile(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, &Problem{File: path, What: err.Error(), Want: "a scenario file"}
	}
	return Parse(path, src)
}

// LoadExample reads an embedded scenario.
func LoadExample(name string) (*Scenario, error) {
	src, err := ReadExample(name)
	if err != nil {
		return nil, err
	}
	return Parse("example:"+name, src)
}

// LoadCheck reads an embedded scenario that holds published figures.
func LoadCheck(name string) (*Scenario, error) {
	src, err := readEmbedded("checks", name)
	if err != nil {
		return nil, err
	}
	return Parse("check:"+name, src)
}

// Parse reads the text of a scenario. name stands for the file in messages, and
// files that the scenario names are looked for beside it.
func Parse(name string, src []byte, opts ...Option) (*Scenario, error) {
	return parseScenario(name, src, opts, nil)
}

// Apply sets fields as --set does: each set is KEY=VALUE with the keys of a
// sweep (hardware.KEY, cluster.KEY, host.KEY, paths.NAME.KEY, paths.*.KEY,
// workload.KEY) or seed. A later set wins over an earlier one, and every set wins
// over the file; a sweep of the same key is dropped, with a notice. On error the
// scenario is as before.
func (s *Scenario) Apply(sets []string) error {
	n, err := parseScenario(s.File, s.src, s.opts, slices.Concat(s.setArgs, sets))
	if err != nil {
		return err
	}
	*s = *n
	return nil
}

// No person writes a larger YAML file, and no file of measured durations need be
// larger. The limits keep a device or a wrong file from filling the memory.
const (
	maxYAML = 1 << 20
	maxFile = 16 << 20
)

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if fi, err := f.Stat(); err == nil && fi.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is a directory")}
	}
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(src) > maxFile {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("is larger than 16 MiB")}
	}
	return src, err
}

// loader is one load: its problems, and how it reads files.
type loader struct {
	readFile func(path string) ([]byte, error)
	problems []*Problem
}

func newLoader(opts ...Option) *loader {
	l := &loader{readFile: readFile}
	for _, o := range opts {
		o(l)
	}
	return l
}

func (l *loader) document(file string) *document {
	d := &document{file: file, at: true, problems: &l.problems, dir: filepath.Dir(file)}
	d.read = func(path string) ([]byte, error) { return l.readFile(resolve(d.dir, path)) }
	return d
}

func resolve(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// reader turns one scenario document into a Scenario.
type reader struct {
	*loader
	*document
	s         *Scenario
	broken    bool                  // a profile or stack is unusable: do not report what it lacks
	workload  map[string]*yaml.Node // where the scenario gives the workload's keys
	sweepNode *yaml.Node
}

func parseScenario(file string, src []byte, opts []Option, sets []string) (*Scenario, error) {
	l := newLoader(opts...)
	sum := sha256.Sum256(src)
	s := &Scenario{File: file, Digest: hex.EncodeToString(sum[:]), Seed: 1, src: src, opts: opts, setArgs: sets, base: map[string]value{}}
	base := strings.TrimPrefix(strings.TrimPrefix(filepath.Base(file), "example:"), "check:")
	s.Name = strings.TrimSuffix(base, ".yaml")
	r := &reader{loader: l, document: l.document(file), s: s, workload: map[string]*yaml.Node{}}
	if root := r.root(src); root != nil {
		r.scenario(root)
	}
	if err := joinProblems(file, l.problems); err != nil {
		return nil, err
	}
	return s, nil
}

func (r *reader) scenario(root *yaml.Node) {
	var hardware, paths, workload, expect *yaml.Node
	section := func(name string) objectKey {
		return objectKey{name, false, func(n *yaml.Node, path string) { r.fields(n, path, name, r.setBase) }}
	}
	r.object(root, "", []objectKey{
		{"gdisim", true, r.version},
		{"name", false, r.text(&r.s.Name)},
		{"title", false, r.text(&r.s.Title)},
		{"hardware", true, func(n *yaml.Node, path string) { hardware = n; r.hardware(n, path) }},
		section("cluster"),
		section("host"),
		{"workload", true, func(n *yaml.Node, path string) {
			workload, r.s.work = n, r.place(n, path)
			r.fields(n, path, "workload", r.setBase)
		}},
		{"paths", false, func(n *yaml.Node, path string) { paths = n; r.paths(n, path) }},
		{"faults", false, r.faults},
		{"sweep", false, r.sweep},
		{"seed", false, r.seed},
		{"expect", false, func(n *yaml.Node, _ string) { expect = n }},
	})
	r.sortAxes()
	r.stepPath(root, paths)
	for _, set := range r.s.setArgs {
		r.set(set)
	}
	r.checkSize()
	r.unused()
	r.complete(hardware, paths, workload)
	if expect != nil {
		r.expectations(expect, "expect")
	}
}

// setBase stores a field of hardware.set, cluster, host or workload.
func (r *reader) setBase(f *Field, n *yaml.Node, path string) {
	if old, dup := r.s.base[f.Key]; dup && old.origin == "scenario" || r.hasAxis(f.Key) {
		r.problem(n, path, "", "duplicate key")
		return
	}
	if f.Section() == "workload" {
		r.workload[f.Key] = n
	}
	if f.List && n.Kind != yaml.ScalarNode {
		r.axis(f.Key, "", f, n, path)
		return
	}
	if v, ok := r.scenarioValue(f, n, path); ok {
		r.s.base[f.Key] = v
	}
}

func (r *reader) scenarioValue(f *Field, n *yaml.Node, path string) (value, bool) {
	v, ok := r.value(f, n, path)
	v.source, v.origin, v.place = fmt.Sprintf("%s:%d", filepath.Base(r.file), n.Line), "scenario", r.place(n, path)
	return v, ok
}

// hardware reads NAME, FILE or {profile, set}.
func (r *reader) hardware(n *yaml.Node, path string) {
	profile := func(n *yaml.Node, path string) {
		ref, ok := r.word(n, path, "a profile's name or file")
		if !ok {
			r.broken = true
			return
		}
		r.s.Hardware = ref
		before := r.count()
		if p := r.params(profileForm, r.document, n, path, ref, nil); p != nil {
			r.s.base = p.values
		}
		r.broken = r.broken || r.count() > before
	}
	if n.Kind != yaml.MappingNode {
		profile(n, path)
		return
	}
	r.object(n, path, []objectKey{
		{"profile", true, profile},
		{"set", false, func(n *yaml.Node, path string) { r.fields(n, path, "hardware", r.setBase) }},
	})
	r.broken = r.broken || r.s.Hardware == ""
}

// pathName keeps dots and stars out of names, since keys are paths.NAME.KEY.
var pathName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_+-]*$`)

func (r *reader) paths(n *yaml.Node, path string) {
	items := r.list(n, path, "a list of paths")
	if n.Kind == yaml.SequenceNode && len(items) == 0 {
		r.problem(n, path, "at least one path", "is empty")
	}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		ref := PathRef{}
		values := map[string]value{}
		stack := func(n *yaml.Node, path string) {
			word, ok := r.word(n, path, "a stack's name or file")
			if !ok {
				r.broken = true
				return
			}
			ref.Stack = word
			before := r.count()
			if p := r.params(stackForm, r.document, n, path, word, nil); p != nil {
				values = p.values
				if ref.Name == "" {
					ref.Name = p.name
				}
			}
			r.broken = r.broken || r.count() > before
		}
		if item.Kind != yaml.MappingNode {
			stack(item, at)
		} else {
			r.object(item, at, []objectKey{
				{"name", false, r.text(&ref.Name)},
				{"stack", true, stack},
				{"set", false, func(n *yaml.Node, path string) {
					r.fields(n, path, "path", func(f *Field, n *yaml.Node, path string) {
						if old := values[f.Key]; old.origin == "scenario" {
							r.problem(n, path, "", "duplicate key")
						} else if v, ok := r.scenarioValue(f, n, path); ok {
							values[f.Key] = v
						}
					})
				}},
			})
		}
		r.broken = r.broken || ref.Stack == ""
		if ref.Name == "" { // reported: the stack would have one
			continue
		}
		if !pathName.MatchString(ref.Name) {
			r.problem(item, at, "letters, digits, -, _ and +", "%q cannot be a path's name", ref.Name)
		}
		if r.pathIndex(ref.Name) >= 0 {
			r.problem(item, at, "a name of its own: {name: ..., stack: ...}", "path %q is there twice", ref.Name)
			continue
		}
		r.s.Paths = append(r.s.Paths, ref)
		r.s.ofPath, r.s.places = append(r.s.ofPath, values), append(r.s.places, r.place(item, at))
		r.s.sets = append(r.s.sets, map[string]value{})
	}
}

func (r *reader) count() int { return len(r.loader.problems) }

func (r *reader) pathIndex(name string) int {
	return slices.IndexFunc(r.s.Paths, func(p PathRef) bool { return p.Name == name })
}

func (r *reader) pathNames() []string {
	names := make([]string, len(r.s.Paths))
	for i, p := range r.s.Paths {
		names[i] = p.Name
	}
	return names
}

func (r *reader) seed(n *yaml.Node, path string) {
	text, ok := r.word(n, path, kinds[Count].want)
	if !ok {
		return
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil || strconv.FormatUint(seed, 10) != text || n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		r.problem(n, path, "a whole number below 2^64", "%q is no seed", text)
		return
	}
	r.s.Seed = seed
}

// complete reports fields that must have a value and have none.
func (r *reader) complete(hardware, paths, workload *yaml.Node) {
	in := func(maps ...map[string]value) func(string) bool {
		return func(key string) bool {
			for _, m := range maps {
				if _, ok := m[key]; ok {
					return true
				}
			}
			return r.hasAxis(key)
		}
	}
	// A --set of a shared key is in the map of every path.
	var sets map[string]value
	if len(r.s.sets) > 0 {
		sets = r.s.sets[0]
	}
	if hardware != nil && !r.broken {
		for _, key := range missing("hardware", in(r.s.base, sets)) {
			r.problem(hardware, "hardware", fieldTable().byKey[key].want(), "profile %q has no %s", r.s.Hardware, strings.TrimPrefix(key, "hardware."))
		}
	}
	if paths != nil && !r.broken {
		for i, p := range r.s.Paths {
			for _, key := range missing("path", in(r.s.ofPath[i], r.s.sets[i])) {
				r.problem(paths, "paths", fieldTable().byKey[key].want(), "stack %q of path %q has no %s", p.Stack, p.Name, strings.TrimPrefix(key, "path."))
			}
		}
	}
	if workload == nil || workload.Kind != yaml.MappingNode {
		return
	}
	kinds := r.kinds()
	for _, key := range missing("workload", in(r.s.base, sets)) {
		if f := fieldTable().byKey[key]; kinds != nil && !slices.ContainsFunc(kinds, f.usedBy) {
			continue
		}
		if name := strings.TrimPrefix(key, "workload."); !hasKey(workload, name) { // a bad value was reported
			r.problem(workload, "workload", fieldTable().byKey[key].want(), "key %q is missing", name)
		}
	}
	const background = "workload.background."
	has := in(r.s.base, sets)
	for _, f := range fieldTable().fields {
		if strings.HasPrefix(f.Key, background) && has(f.Key) && !has(background+"kind") {
			r.problem(workload, "workload.background", "kind: "+backgroundOf(kinds), "key \"kind\" is missing")
			break
		}
	}
}

func (r *reader) sortAxes() {
	slices.SortStableFunc(r.s.axes, func(a, b axis) int { return cmp.Or(a.line-b.line, a.col-b.col) })
}

package importers

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// Backend is that of an imported result.
const Backend = "import"

// Skipped is a line that says nothing that a result holds.
type Skipped struct {
	File string
	Line int
	Why  string
}

// Options say what the output does not.
type Options struct {
	Tool  string // of this program
	Path  string // name of the path; "" for that of the benchmark
	Stack string // the stack that the benchmark ran on; "" for what the benchmark tells
}

// Read reads one or more outputs of one benchmark, names beside texts, into one
// result, and says what it left out. The error joins a scenarios.Problem for each
// line that is not understood.
func Read(files []string, texts [][]byte, o Options) (*result.Result, []Skipped, error) {
	r := &result.Result{Schema: result.Schema, Tool: o.Tool, Backend: Backend, Source: strings.Join(files, ", "), Points: []result.Point{}}
	var skipped []Skipped
	var errs []error
	for i, file := range files {
		d := &reader{file: file, o: o, r: r}
		d.read(texts[i])
		skipped = append(skipped, d.skipped...)
		for _, p := range d.problems {
			errs = append(errs, p)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, skipped, err
	}
	slices.SortStableFunc(r.Points, func(a, b result.Point) int { return int(bytesOf(&a) - bytesOf(&b)) })
	for i := range r.Points {
		r.Points[i].Index = i
	}
	if len(r.Points) == 0 && len(r.Measured) == 0 {
		return nil, skipped, &scenarios.Problem{File: files[0], What: "holds no number that a result could take" + reasons(skipped)}
	}
	return r, skipped, nil
}

// reasons are the last few of what was skipped, for a file of which nothing is left.
func reasons(skipped []Skipped) string {
	var whys []string
	for i := len(skipped) - 1; i >= 0 && len(whys) < 3; i-- {
		if s := skipped[i]; !dull[s.Why] && !slices.Contains(whys, s.Why) {
			whys = append(whys, s.Why)
		}
	}
	if len(whys) == 0 {
		return ""
	}
	return ": " + strings.Join(whys, "; ")
}

// Reasons why any output has lines without numbers.
const (
	whyTitle   = "title"
	whyHeading = "heading"
	whyComment = "comment"
	whyOutside = "outside of a table"
)

var dull = map[string]bool{whyTitle: true, whyHeading: true, whyComment: true, whyOutside: true}

// line is one line of a file, from 1, without what a launcher put before it.
type line struct {
	n    int
	text string
}

// reader reads one file into a result.
type reader struct {
	file     string
	o        Options
	r        *result.Result
	skipped  []Skipped
	problems []*scenarios.Problem

	path, stack, workload string
}

var (
	launcher = regexp.MustCompile(`^(?:\[\d+,\d+\]<std(?:out|err)>: ?|\d+: )`)
	escape   = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

// benchmarks tell by a line which benchmark wrote a file.
var benchmarks = []struct {
	name string
	is   *regexp.Regexp
	read func(d *reader, ls []line)
}{
	{"perftest", regexp.MustCompile(`^\s*#bytes\s+#iterations|^\s*(RDMA_Write|RDMA_Read|Send|Atomic)( .*)? (Latency|BW) Test\s*$`), (*reader).perftest},
	{"OSU micro-benchmarks", regexp.MustCompile(`^# OSU `), (*reader).osu},
	{"NVSHMEM perftest", regexp.MustCompile(`^#?shmem_\w+\s*$|^&&&& PERF shmem_`), (*reader).nvshmem},
	{"nccl-tests", regexp.MustCompile(`^# nccl-tests version|^# nThread \d+ |^#\s+size\s+count\s+type`), (*reader).nccl},
	{"DeepEP", regexp.MustCompile(`\[rank \d+\] (Dispatch|Combine)`), (*reader).deepEP},
	{"gdrcopy", regexp.MustCompile(`^gdr_copy_(to|from)_mapping|^Measuring the visibility latency|^Size\(B\)\s+pin\.Time`), (*reader).gdrcopy},
}

// limit on a file: these are outputs for people.
const maxBytes = 64 << 20

func (d *reader) read(text []byte) {
	if len(text) > maxBytes {
		d.problems = append(d.problems, &scenarios.Problem{File: d.file, What: fmt.Sprintf("has %d bytes", len(text)), Want: "an output of a benchmark, at most 64 MiB"})
		return
	}
	var ls []line
	for i, t := range strings.Split(strings.ToValidUTF8(string(text), "?"), "\n") {
		t = launcher.ReplaceAllString(escape.ReplaceAllString(strings.TrimRight(t, "\r \t"), ""), "")
		ls = append(ls, line{i + 1, t})
	}
	for _, b := range benchmarks {
		if slices.ContainsFunc(ls, func(l line) bool { return b.is.MatchString(l.text) }) {
			if d.r.Name != "" && d.r.Name != b.name {
				d.problems = append(d.problems, &scenarios.Problem{File: d.file, What: "is of " + b.name + ", beside one of " + d.r.Name, Want: "files of one benchmark"})
				return
			}
			d.r.Name = b.name
			b.read(d, ls)
			return
		}
	}
	var names []string
	for _, b := range benchmarks {
		names = append(names, b.name)
	}
	d.problems = append(d.problems, &scenarios.Problem{File: d.file, Line: 1, What: "is no output that is known", Want: strings.Join(names, ", ")})
}

func (d *reader) skip(l line, why string) {
	if l.text != "" {
		d.skipped = append(d.skipped, Skipped{d.file, l.n, why})
	}
}

func (d *reader) bad(l line, want, format string, args ...any) {
	d.problems = append(d.problems, &scenarios.Problem{File: d.file, Line: l.n, What: fmt.Sprintf(format, args...), Want: want})
}

// cut shortens a line for a message.
func cut(s string) string {
	if r := []rune(strings.TrimSpace(s)); len(r) > 60 {
		return string(r[:57]) + "..."
	}
	return strings.TrimSpace(s)
}

func (d *reader) notice(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(d.r.Notices, n) {
		d.r.Notices = append(d.r.Notices, n)
	}
}

func (d *reader) fact(key, value string) {
	if s := (result.Setting{Key: key, Value: value}); value != "" && !slices.Contains(d.r.Machine, s) {
		d.r.Machine = append(d.r.Machine, s)
	}
}

// at returns the path of a size, made where it is not there yet; 0 is for numbers
// of no size.
func (d *reader) at(bytes int64) *result.Path {
	var at []result.Setting
	if bytes > 0 {
		at = []result.Setting{{Key: sizeKey, Value: sizeText(bytes)}}
	}
	i := slices.IndexFunc(d.r.Points, func(p result.Point) bool { return slices.Equal(p.At, at) })
	if i < 0 {
		i = len(d.r.Points)
		d.r.Points = append(d.r.Points, result.Point{At: at})
	}
	pt := &d.r.Points[i]
	name, stack := d.path, d.stack
	if d.o.Path != "" {
		name = d.o.Path
	}
	if d.o.Stack != "" {
		stack = d.o.Stack
	}
	if p := pt.Path(name); p != nil {
		return p
	}
	pt.Paths = append(pt.Paths, result.Path{Name: name, Stack: stack, Workload: d.workload, Cost: result.Cost{Unknown: true}})
	return &pt.Paths[len(pt.Paths)-1]
}

const sizeKey = "workload.bytes"

var sizeUnits = []struct {
	n    int64
	name string
}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}}

// sizeText writes a size as scenarios do, in the largest unit that holds it.
func sizeText(n int64) string {
	for _, u := range sizeUnits {
		if n%u.n == 0 {
			return strconv.FormatInt(n/u.n, 10) + u.name
		}
	}
	return ""
}

// sizeBytes is the inverse of sizeText; 0 for other texts.
func sizeBytes(text string) int64 {
	for _, u := range sizeUnits {
		if num, ok := strings.CutSuffix(text, u.name); ok {
			n, _ := strconv.ParseInt(num, 10, 64)
			return n * u.n
		}
	}
	return 0
}

// bytesOf is the size of a point, 0 without one.
func bytesOf(p *result.Point) int64 {
	for _, s := range p.At {
		if s.Key == sizeKey {
			return sizeBytes(s.Value)
		}
	}
	return 0
}

// metric adds a metric to a path, once.
func (d *reader) metric(l line, p *result.Path, m result.Metric) {
	if p.Metric(m.Metric) != nil {
		d.bad(l, "one row a size, or --path to tell files apart", "%s of this size once more", m.Metric)
		return
	}
	p.Metrics = append(p.Metrics, m)
}

func (d *reader) value(l line, p *result.Path, m stage.Metric, v float64) {
	d.metric(l, p, result.Metric{Metric: m, Value: v})
}

// mean adds what is known by its mean alone: it stands as one sample.
func (d *reader) mean(l line, p *result.Path, m stage.Metric, t sim.Duration) {
	d.notice("only means are in the file: each stands as one sample, for the median too")
	x := result.Summarise([]sim.Duration{t})
	x.Metric = m
	d.metric(l, p, x)
}

// cost adds a time under a name of its own, to a path or, for nil, the machine.
func (d *reader) cost(l line, p *result.Path, name, method string, samples ...sim.Duration) *result.Measured {
	list := &d.r.Measured
	if p != nil {
		list = &p.Measured
	}
	if slices.ContainsFunc(*list, func(m result.Measured) bool { return m.Name == name }) {
		d.bad(l, "one row a size", "%s once more", name)
		return &result.Measured{}
	}
	*list = append(*list, result.Measure(name, method, 0, samples))
	return &(*list)[len(*list)-1]
}

var plain = regexp.MustCompile(`^[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$`)

// number reads a number of a row: not negative, finite, with a decimal point.
func (d *reader) number(l line, column, s string) (float64, bool) {
	if !plain.MatchString(s) {
		want := "a number"
		if strings.Contains(s, ",") {
			want = "a decimal point: set LC_ALL=C"
		}
		if len(s) > 1 && s[0] == '-' && plain.MatchString(s[1:]) {
			want = "a number above 0"
		}
		d.bad(l, want, "%s: %q", column, cut(s))
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v > 1e15 {
		d.bad(l, "a number below 1e15", "%s: %q", column, cut(s))
		return 0, false
	}
	return v, true
}

// micros reads a time in microseconds, up to an hour.
func (d *reader) micros(l line, column, s string) (sim.Duration, bool) {
	v, ok := d.number(l, column, s)
	if ok && v > 3.6e9 {
		d.bad(l, "at most an hour", "%s: %q", column, cut(s))
		return 0, false
	}
	return sim.Duration(math.Round(v * float64(sim.Microsecond))), ok
}

// size reads a message size. It is not ok for 0 B, which is skipped, or for what
// no message is.
func (d *reader) size(l line, s string) (int64, bool) {
	v, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || v < 0:
		d.bad(l, "a number of bytes", "size: %q", cut(s))
	case v == 0:
		d.skip(l, "0 B: no message of the model")
	case v > 1<<40:
		d.bad(l, "at most 1 TiB", "size: %d B", v)
	default:
		return v, true
	}
	return 0, false
}

// heading reads a heading of n columns; false: it has others.
func (d *reader) heading(l line, names *regexp.Regexp, n int, want string) ([]string, bool) {
	columns, rest := header(l.text, names)
	if rest != "" || len(columns) != n {
		d.bad(l, want, "columns that are not known: %s", cut(l.text))
		return nil, false
	}
	d.skip(l, whyHeading)
	return columns, true
}

// header finds the columns that names tell, and what stands between them.
func header(text string, names *regexp.Regexp) (columns []string, rest string) {
	for _, c := range names.FindAllString(text, -1) {
		columns = append(columns, strings.Join(strings.Fields(c), " "))
	}
	return columns, strings.TrimSpace(names.ReplaceAllString(text, ""))
}

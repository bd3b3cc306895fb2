package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// figures are one of each kind, and of the ways it can go.
func figures() map[string]struct {
	kind string
	rs   []*result.Result
	o    Options
} {
	type in = struct {
		kind string
		rs   []*result.Result
		o    Options
	}
	return map[string]in{
		"breakdown":        {"breakdown", []*result.Result{sample()}, Options{}},
		"breakdown-points": {"breakdown", []*result.Result{sizes(5)}, Options{Path: "gda"}},
		"latency":          {"latency", []*result.Result{sizes(12)}, Options{}},
		"latency-one":      {"latency", []*result.Result{sizes(12)}, Options{Path: "proxy"}},
		"rate":             {"rate", []*result.Result{gridSweep()}, Options{}},
		"cdf":              {"cdf", []*result.Result{sample()}, Options{}},
		"timeline":         {"timeline", []*result.Result{sample()}, Options{Path: "proxy"}},
		"heatmap":          {"heatmap", []*result.Result{gridSweep()}, Options{Metric: stage.PutCompletion}},
		"heatmap-one":      {"heatmap", []*result.Result{gridSweep()}, Options{Path: "gda"}},
		"tornado":          {"tornado", []*result.Result{gridSweep()}, Options{Metric: stage.MessageRate}},
		"compare":          {"compare", []*result.Result{sizes(6), hardware(sizes(6))}, Options{}},
	}
}

func draw(t *testing.T, kind string, rs []*result.Result, o Options) *Figure {
	t.Helper()
	f, err := Draw(kind, rs, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func encoded(t *testing.T, f func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestGolden compares the pictures with the ones that were looked at.
func TestGolden(t *testing.T) {
	for name, c := range figures() {
		t.Run(name, func(t *testing.T) {
			f := draw(t, c.kind, c.rs, c.o)
			got := encoded(t, f.SVG)
			if again := encoded(t, draw(t, c.kind, c.rs, c.o).SVG); !bytes.Equal(got, again) {
				t.Error("two runs differ")
			}
			if f.Kind != c.kind || f.Title == "" || f.Caption == "" {
				t.Errorf("kind %q, title %q, caption %q", f.Kind, f.Title, f.Caption)
			}
			file := filepath.Join("testdata", name+".svg")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(shape(t, want), shape(t, got), near); d != "" {
				t.Errorf("%s differs (-want +got), -update after looking at it:\n%s", file, d)
			}
			insideAndApart(t, got)
		})
	}
}

// near lets numbers differ in the last digit, as processors do.
var near = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 0.02+1e-4*math.Abs(a) })

var numbers = regexp.MustCompile(`-?\d+(\.\d+)?(e[+-]\d+)?`)

type drawing struct {
	Texts   []string
	Skip    string
	Numbers []float64
}

// shape splits a picture into its words and its numbers.
func shape(t *testing.T, svg []byte) drawing {
	t.Helper()
	var d drawing
	for _, n := range numbers.FindAllString(string(svg), -1) {
		v, err := strconv.ParseFloat(n, 64)
		if err != nil {
			t.Fatal(err)
		}
		d.Numbers = append(d.Numbers, v)
	}
	d.Skip = numbers.ReplaceAllString(string(svg), "#")
	for _, x := range texts(t, svg) {
		d.Texts = append(d.Texts, x.s)
	}
	return d
}

// placed is a text of a picture and the room it takes.
type placed struct {
	s string
	box
}

var fontSize = regexp.MustCompile(`font-weight:(\w+).*font-size:([\d.]+)px`)

func texts(t *testing.T, svg []byte) []placed {
	t.Helper()
	var out []placed
	dec := xml.NewDecoder(bytes.NewReader(svg))
	var last *placed
	var h, size float64
	var bold bool
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			attr := map[string]string{}
			for _, a := range e.Attr {
				attr[a.Name.Local] = a.Value
			}
			num := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
			switch e.Name.Local {
			case "svg":
				h = num(strings.Fields(attr["viewBox"])[3])
			case "text":
				m := fontSize.FindStringSubmatch(attr["style"])
				size, bold = num(m[2]), m[1] == "bold"
				last = &placed{box: box{num(attr["x"]), h + num(attr["y"]) - capHeight*size, 0, capHeight * size}}
			}
		case xml.CharData:
			if last != nil {
				last.s, last.w = string(e), textWidth(string(e), size, bold)
			}
		case xml.EndElement:
			if last != nil {
				out = append(out, *last)
				last = nil
			}
		}
	}
}

// insideAndApart demands that no word is cut by the edge or lies on another.
func insideAndApart(t *testing.T, svg []byte) {
	t.Helper()
	ts := texts(t, svg)
	m := regexp.MustCompile(`viewBox="0 0 ([\d.]+) ([\d.]+)"`).FindSubmatch(svg)
	w, _ := strconv.ParseFloat(string(m[1]), 64)
	h, _ := strconv.ParseFloat(string(m[2]), 64)
	if len(ts) < 5 {
		t.Fatalf("%d words", len(ts))
	}
	for i, a := range ts {
		if a.x < 1 || a.y < 1 || a.right() > w-1 || a.bottom() > h-1 {
			t.Errorf("%q is cut: %+v of %g x %g", a.s, a.box, w, h)
		}
		for _, b := range ts[i+1:] {
			if a.x < b.right()-0.5 && b.x < a.right()-0.5 && a.y < b.bottom()-0.5 && b.y < a.bottom()-0.5 {
				t.Errorf("%q lies on %q", a.s, b.s)
			}
		}
	}
}

// TestPNG compares one picture as pixels, by a tolerance.
func TestPNG(t *testing.T) {
	f := draw(t, "breakdown", []*result.Result{sample()}, Options{})
	got := encoded(t, f.PNG)
	if !bytes.Equal(got, encoded(t, f.PNG)) {
		t.Error("two runs differ")
	}
	file := filepath.Join("testdata", "breakdown.png")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a, b := decode(t, want), decode(t, got)
	if a.Bounds() != b.Bounds() || b.Bounds().Dx() != 1400 {
		t.Fatalf("size %v, want %v", b.Bounds(), a.Bounds())
	}
	off := 0
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			r, g, bl, _ := a.At(x, y).RGBA()
			r2, g2, b2, _ := b.At(x, y).RGBA()
			if max(diff(r, r2), diff(g, g2), diff(bl, b2)) > 0x1000 {
				off++
			}
		}
	}
	if off > 200 {
		t.Errorf("%d pixels differ", off)
	}
}

func diff(a, b uint32) uint32 { return max(a, b) - min(a, b) }

func decode(t *testing.T, b []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestTitles(t *testing.T) {
	for name, want := range map[string]string{
		"breakdown":   "put+completion: gda takes 4.09 µs, 1.38× less than proxy; its largest stage is nic.cqe, 16 %",
		"latency":     "gda has the lowest put+completion below 5.66 KiB, proxy above",
		"latency-one": "proxy: put+completion goes from 5.68 µs at 8 B to 6.33 µs at 16 KiB",
		"cdf":         "put+completion: the p99.9 of proxy is 1.74× its p50, the widest spread",
		"heatmap":     "proxy beats gda in put+completion at 8 of 12 combinations",
		"compare":     "The simulator is within 10 % of the hardware at 12 of 12 points; furthest off: put+completion of proxy, -5.7 %",
	} {
		c := figures()[name]
		got := strings.ReplaceAll(draw(t, c.kind, c.rs, c.o).Title, space, " ")
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestPalette demands that the stages can be told apart, neighbours in a bar
// even without colour.
func TestPalette(t *testing.T) {
	seen := map[look]stage.Stage{}
	theme := []string{hex(ink), hex(muted), hex(grid), hex(soft), hex(paper)}
	for s := stage.Stage(1); s < stage.Count; s++ {
		l := lookOf(s)
		if o, ok := seen[l]; ok {
			t.Errorf("%v looks like %v", s, o)
		}
		seen[l] = s
		if l.pattern == diagonal {
			t.Errorf("%v is hatched like overlapped work", s)
		}
		if slices.Contains(theme, hex(l.fill)) {
			t.Errorf("%v has a colour of the page", s)
		}
		if looks[s].base.A == 0 {
			t.Errorf("%v has no colour", s)
		}
	}
	for _, legs := range [][]leg{doorbell(8), proxy(8)} {
		for i := 1; i < len(legs); i++ {
			a, b := lookOf(legs[i-1].stage), lookOf(legs[i].stage)
			if a.pattern == b.pattern && math.Abs(luminance(a.fill)-luminance(b.fill)) < 0.03 {
				t.Errorf("%v beside %v is one grey", legs[i-1].stage, legs[i].stage)
			}
		}
	}
}

func TestBadInput(t *testing.T) {
	many := sample()
	for i := range 3000 {
		p := many.Points[0].Paths[0]
		p.Name = fmt.Sprintf("path-%d", i)
		many.Points[0].Paths = append(many.Points[0].Paths, p)
	}
	crowd := sample()
	for i := range 5000 {
		x := &crowd.Points[0].Paths[0]
		x.Graphs[0].Spans = append(x.Graphs[0].Spans, result.Span{Stage: stage.NICTx, Lane: stage.LaneNICTx, Start: sim.Duration(i) * ns / 4, End: sim.Duration(i)*ns/4 + 1, Pred: -1})
		x.Breakdowns[0].Stages = append(x.Breakdowns[0].Stages, result.StageTime{Stage: stage.NICTx, Time: 1})
	}
	zero := sample()
	for i := range zero.Points[0].Paths {
		x := &zero.Points[0].Paths[i]
		for j := range x.Graphs[0].Spans {
			s := &x.Graphs[0].Spans[j]
			s.Arrival, s.Start, s.End = 0, 0, 0
		}
		for j := range x.Breakdowns[0].Stages {
			x.Breakdowns[0].Stages[j].Time = 0
		}
		x.Graphs[0].Total, x.Breakdowns[0].Total = 0, 0
		x.Metrics = []result.Metric{{Metric: stage.PutCompletion, N: 5}, {Metric: stage.MessageRate}}
	}
	markup := sample()
	markup.Name, markup.Title = `<script>alert(1)</script>`, `"&<i>`
	markup.Points[0].Paths[0].Name = `</svg><b onclick="x">` + strings.Repeat("wide", 60)
	huge := sizes(2)
	for i := range 1000 {
		p := huge.Points[i%2]
		p.At = []result.Setting{{Key: "workload.bytes", Value: fmt.Sprintf("%dB", 8+i)}, {Key: "workload.threads", Value: fmt.Sprint(1 + i%40)}}
		p.Index = len(huge.Points)
		huge.Points = append(huge.Points, p)
	}
	failed := sample()
	for i := range failed.Points[0].Paths {
		failed.Points[0].Paths[i].Err = "deadlock"
	}
	for name, r := range map[string]*result.Result{
		"empty": {Schema: result.Schema, Name: "empty"}, "no paths": {Name: "x", Points: []result.Point{{}}}, "failed": failed,
		"many paths": many, "many spans": crowd, "zero": zero, "markup": markup, "huge": huge, "one size": sizes(1),
	} {
		for _, k := range Kinds() {
			for _, rs := range [][]*result.Result{{r}, {r, hardware(r)}} {
				f, err := Draw(k.Name, rs, Options{})
				if err != nil {
					if !errors.Is(err, ErrNotFit) {
						t.Errorf("%s, %s: %v", name, k.Name, err)
					}
					continue
				}
				svg := encoded(t, f.SVG)
				texts(t, svg) // well formed
				if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) || len(svg) > 2<<20 {
					t.Errorf("%s, %s: %d bytes, or a place that is none", name, k.Name, len(svg))
				}
				if bytes.Contains(svg, []byte("<b ")) {
					t.Errorf("%s, %s: markup went through", name, k.Name)
				}
			}
		}
	}
	for _, c := range []struct {
		name, kind string
		r          *result.Result
		want       string
	}{
		{"bars", "breakdown", many, "Shown: 16 of 3002 bars."},
		{"curves", "cdf", many, "Shown: 8 of 3002 curves."},
		{"series", "latency", huge, "Shown: 2 of 82 series."},
		{"cells", "heatmap", huge, "Shown: 24 of"},
	} {
		if got := draw(t, c.kind, []*result.Result{c.r}, Options{}).Caption; !strings.Contains(got, c.want) {
			t.Errorf("%s: the caption %q does not say %q", c.name, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	rs := []*result.Result{sizes(3)}
	for _, c := range []struct {
		kind string
		o    Options
		want string
	}{
		{"pie", Options{}, `unknown kind "pie" (want breakdown, `},
		{"cdf", Options{Path: "gdb"}, `no path "gdb" (have gda, proxy)`},
		{"cdf", Options{Point: 9}, "no finished path at point 9 (have 1 to 3)"},
		{"cdf", Options{Metric: stage.RTT}, "no path has rtt"},
		{"cdf", Options{Metric: stage.Goodput}, "goodput is no time"},
		{"rate", Options{Metric: stage.RTT}, "rtt is no rate"},
		{"timeline", Options{Which: "p98"}, `no operation "p98" is kept`},
		{"heatmap", Options{}, "1 swept keys (want two)"},
		{"compare", Options{}, "want two results, got 1"},
	} {
		if _, err := Draw(c.kind, rs, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.kind, c.o, err, c.want)
		}
	}
	var kinds []string
	for _, f := range Fitting([]*result.Result{sizes(3)}) {
		kinds = append(kinds, f.Kind)
	}
	if d := cmp.Diff([]string{"breakdown", "latency", "rate", "cdf", "timeline"}, kinds); d != "" {
		t.Error(d)
	}
}

func TestStaircase(t *testing.T) {
	m := result.Summarise([]sim.Duration{1 * sim.Microsecond, 1 * sim.Microsecond, 3 * sim.Microsecond, 4 * sim.Microsecond})
	got := staircase(&m, result.Levels())
	want := []point{{1, 0.5}, {3, 0.5}, {3, 0.75}, {4, 0.75}, {4, 1}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(point{})); d != "" {
		t.Error(d)
	}
}

func TestQuantity(t *testing.T) {
	for in, want := range map[string]struct {
		v    float64
		unit string
		ok   bool
	}{
		"8B": {8, "B", true}, "64KiB": {65536, "B", true}, "502MHz": {502e6, "Hz", true}, "1.5us": {1.5e-6, "s", true}, "16": {16, "", true},
		"400Gb/s": {4e11, "b/s", true}, "50cy": {50, "cy", true}, "5m": {5, "m", true}, "warm": {0, "", false}, "": {0, "", false}, "8B..": {8, "B..", true},
	} {
		v, unit, ok := quantity(in)
		if ok != want.ok || unit != want.unit || math.Abs(v-want.v) > 1e-9*want.v {
			t.Errorf("%q: %g %q %v", in, v, unit, ok)
		}
	}
}

func TestReport(t *testing.T) {
	r := sample()
	r.Name, r.Title = `<script>alert(1)</script>`, `a "title" & more`
	r.Points[0].Paths[0].Name = `gda</script><img src=x>`
	var a, b bytes.Buffer
	for _, w := range []*bytes.Buffer{&a, &b} {
		if err := Report(w, []*result.Result{r}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two runs differ")
	}
	s := a.String()
	for _, bad := range []string{"<script>alert", "<img", "<b>", "ZgotmplZ", "src=\"http", "href=\"http", "@import", "url(http", "#1B1B1C"} {
		if strings.Contains(s, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{
		"&lt;script&gt;alert(1)&lt;/script&gt;", "stale-descriptor", "set fence: gpu", "data sheet &lt;b&gt;", "the wire is shorter than the cable",
		"proxy keeps 1.00 CPU cores", "put&#43;completion of proxy is dominated by gpu.reserve", "digest of the scenario", `role="img"`, `<html lang="en">`, "1.38×", "Copyright (c) 2022 Leon Sorokin",
	} {
		if !strings.Contains(s, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if err := Report(io.Discard, []*result.Result{{Name: "empty"}}); !errors.Is(err, ErrNotFit) {
		t.Errorf("empty: %v", err)
	}
	dead := sample()
	for i := range dead.Points[0].Paths {
		dead.Points[0].Paths[i].Err = "deadlock: 3 operations wait"
	}
	a.Reset()
	if err := Report(&a, []*result.Result{dead}); err != nil || !strings.Contains(a.String(), "gda did not finish: deadlock: 3 operations wait.") {
		t.Errorf("failed paths: %v", err)
	}
}

// big is a sweep of n points without graphs, as a wide sweep keeps them.
func big(n int) *result.Result {
	r := sizes(2)
	base := r.Points
	r.Points = nil
	for i := range n {
		p := base[i%2]
		p.Index = i
		p.At = []result.Setting{{Key: "workload.bytes", Value: fmt.Sprintf("%dB", 8+i/4)}, {Key: "workload.threads", Value: fmt.Sprint(1 << (i % 4))}}
		r.Points = append(r.Points, p)
	}
	return r
}

func TestReportOfAWideSweep(t *testing.T) {
	var b bytes.Buffer
	if err := Report(&b, []*result.Result{big(1000)}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 5<<20 {
		t.Errorf("%d bytes", b.Len())
	}
	if !strings.Contains(b.String(), "Shown: 200 of 2000 rows.") {
		t.Error("the page does not say what it leaves out")
	}
}

func BenchmarkReport1000(b *testing.B) {
	r := big(1000)
	for b.Loop() {
		if err := Report(io.Discard, []*result.Result{r}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFigures(b *testing.B) {
	for name, c := range figures() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f, err := Draw(c.kind, c.rs, c.o)
				if err != nil {
					b.Fatal(err)
				}
				if err := f.PNG(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

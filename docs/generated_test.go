package docs_test

import (
	"bytes"
	"cmp"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"gdisim/check"
	"gdisim/crossval"
	"gdisim/internal/table"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

var section = regexp.MustCompile(`(?ms)^<!-- begin ([a-z]+) -->\n(.*?)^<!-- end ([a-z]+) -->$`)

// Generated parts of pages stand between markers with the name of their maker.
func TestGenerated(t *testing.T) {
	var c checks
	sections := map[string]func(t *testing.T) string{
		"stages": stages, "metrics": metrics, "findings": findings, "layout": layout, "arrows": arrows, "hand": hand,
		"summary": c.summary, "errors": c.errors, "misses": c.misses, "rows": c.rows, "crossval": c.crossval,
	}
	seen := map[string]bool{}
	for _, page := range pages(t) {
		rewrite(t, page, func(text string) string {
			return section.ReplaceAllStringFunc(text, func(block string) string {
				name := section.FindStringSubmatch(block)[1]
				if sections[name] == nil {
					t.Errorf("%s: no section %q", page, name)
					return block
				}
				seen[name] = true
				return fmt.Sprintf("<!-- begin %s -->\n%s<!-- end %s -->", name, sections[name](t), name)
			})
		})
	}
	for name := range sections {
		if !seen[name] {
			t.Errorf("no page has the section %q", name)
		}
	}
}

// markdown writes rows under heads; a head that ends in ">" is of numbers.
func markdown(t *testing.T, heads []string, rows [][]string) string {
	t.Helper()
	tab := &table.Table{Rows: rows}
	for _, h := range heads {
		name, right := strings.CutSuffix(h, ">")
		tab.Columns = append(tab.Columns, table.Column{Head: name, Right: right})
	}
	var b bytes.Buffer
	if err := tab.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func code(s string) string { return "`" + s + "`" }

func stages(t *testing.T) string {
	var rows [][]string
	for s := stage.None + 1; s < stage.Count; s++ {
		rows = append(rows, []string{code(s.String()), code(s.Lane().String()), s.Text()})
	}
	return markdown(t, []string{"stage", "lane", "what it covers"}, rows)
}

func metrics(t *testing.T) string {
	var rows [][]string
	for m := stage.NoMetric + 1; m < stage.MetricCount; m++ {
		rows = append(rows, []string{code(m.String()), m.Unit(), m.Text()})
	}
	return markdown(t, []string{"metric", "unit", "definition"}, rows)
}

func findings(t *testing.T) string {
	var rows [][]string
	for f := stage.NoFinding + 1; f < stage.FindingCount; f++ {
		rows = append(rows, []string{code(f.String()), f.Text()})
	}
	return markdown(t, []string{"finding", "what it means"}, rows)
}

// packages returns the folders with Go code, tests apart, and the beginning of
// their documentation.
func packages(t *testing.T) (dirs []string, holds map[string]string) {
	t.Helper()
	holds = map[string]string{}
	files, err := filepath.Glob(filepath.Join(root, "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob(filepath.Join(root, "*", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, deeper...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.ToSlash(dir)
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc != nil {
			s := new(doc.Package).Synopsis(f.Doc.Text())
			s, _, _ = strings.Cut(s, ":")
			s = strings.TrimPrefix(strings.TrimPrefix(s, "Package "+f.Name.Name+" "), "Command gdisim ")
			holds[dir] = strings.TrimSuffix(s, ".")
		}
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		if holds[dir] == "" {
			t.Errorf("%s has no package comment", dir)
		}
	}
	return dirs, holds
}

func layout(t *testing.T) string {
	dirs, holds := packages(t)
	var rows [][]string
	for _, dir := range dirs {
		rows = append(rows, []string{code(dir), holds[dir]})
	}
	return markdown(t, []string{"folder", "package"}, rows)
}

// arrows is the table that the linter's depguard rules hold.
func arrows(t *testing.T) string {
	src, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct {
						Mode         string `yaml:"list-mode"`
						Files, Allow []string
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(src, &config); err != nil {
		t.Fatal(err)
	}
	rules := config.Linters.Settings.Depguard.Rules
	dirs, _ := packages(t)
	var rows [][]string
	for _, dir := range dirs {
		r, ok := rules[dir]
		if !ok || r.Mode != "strict" || !slices.Equal(r.Files, []string{"!$test", "**/" + dir + "/*.go"}) {
			t.Errorf(".golangci.yml: depguard has no strict rule %q for **/%s/*.go", dir, dir)
		}
		var ours, libraries []string
		for _, a := range r.Allow {
			switch p, own := strings.CutPrefix(strings.TrimSuffix(a, "$"), "gdisim/"); {
			case own && p == "":
				ours = append(ours, "everything")
			case own && strings.HasSuffix(p, "/"):
				ours = append(ours, "all of "+code(strings.TrimSuffix(p, "/")))
			case own:
				ours = append(ours, code(p))
			case a != "$gostd":
				libraries = append(libraries, code(a))
			}
		}
		if ours == nil {
			ours = []string{"nothing"}
		}
		rows = append(rows, []string{code(dir), strings.Join(ours, ", "), strings.Join(libraries, ", ")})
	}
	return markdown(t, []string{"package", "may import of ours", "libraries"}, rows)
}

// hand recomputes stages of mini-gda's idle 8-byte put from the profile and
// holds them against the simulated ones.
func hand(t *testing.T) string {
	s, err := scenarios.LoadExample("gda-vs-proxy")
	if err != nil {
		t.Fatal(err)
	}
	r, err := testbed.Run(t.Context(), s, testbed.Options{Breakdown: true})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Config(0, 0)
	delay := func(key string) sim.Duration { return c.Delay("hardware." + key).Mean() }
	hz := c.Hz("hardware.gpu.sm_clock")
	cycles := func(key string) sim.Duration {
		k := c.Cost("hardware.gpu." + key)
		return sim.Duration((k.MilliCycles*1e9+hz/2)/hz) + k.Fixed.Mean()
	}
	// wire is the time of bytes on a link: x16 at 32 GT/s after 128b/130b and the
	// share of DLLPs, rounded up.
	l := c.Link("hardware.pcie.nic_link")
	rate := float64(l.MTps) * float64(l.Lanes) * 1e6 * 128 / 130 * (1 - c.Ratio("hardware.pcie.dllp"))
	wire := func(bytes int64) sim.Duration { return sim.Duration(float64(bytes)*8/rate*1e12) + 1 }
	request, completion := c.Bytes("hardware.pcie.header.request"), c.Bytes("hardware.pcie.header.completion")
	across := 2*delay("pcie.link_latency") + delay("pcie.switch_latency")
	place := c.Enum("hardware.gpu.placement")

	var rows [][]string
	for _, h := range []struct {
		stage stage.Stage
		how   string
		sum   sim.Duration
	}{
		{stage.GPUFence, "`gpu.fence.release_gpu." + place + "`, its cycles over `gpu.sm_clock`", cycles("fence.release_gpu." + place)},
		{stage.GPURing, "`gpu.ring`, likewise", cycles("ring")},
		{stage.PCIeDoorbell, fmt.Sprintf("`gpu.pcie.egress`, link, switch, link, `nic.pcie.write`; 8 + %d B on the link", request), delay("gpu.pcie.egress") + across + delay("nic.pcie.write") + wire(8+request)},
		{stage.NICSched, "`nic.sched`", delay("nic.sched")},
		{
			stage.NICWQEFetch, fmt.Sprintf("`nic.pcie.egress`, link, switch, link, `gpu.pcie.read`, the same way back, `nic.pcie.return`; %d B up, 64 + %d B down", request, completion),
			delay("nic.pcie.egress") + across + delay("gpu.pcie.read") + across + delay("nic.pcie.return") + wire(request) + wire(64+completion),
		},
		{stage.NICTx, "`nic.tx`", delay("nic.tx")},
	} {
		got, err := r.Points[0].Path("mini-gda").Lookup("put+completion/" + h.stage.String())
		if err != nil {
			t.Fatal(err)
		}
		if got.Time != h.sum {
			t.Errorf("%v: %v by hand, %v simulated", h.stage, h.sum, got.Time)
		}
		rows = append(rows, []string{code(h.stage.String()), h.how, nanos(h.sum), nanos(got.Time)})
	}
	return markdown(t, []string{"stage", "parameters", "by hand, ns>", "simulated, ns>"}, rows)
}

func nanos(d sim.Duration) string { return fmt.Sprintf("%.3f", float64(d)/float64(sim.Nanosecond)) }

// checks is the verdicts of the embedded check files, run once for all sections.
type checks struct {
	scenarios []*scenarios.Scenario
	verdicts  []check.Verdict
}

func (c *checks) run(t *testing.T) []check.Verdict {
	t.Helper()
	if c.verdicts != nil {
		return c.verdicts
	}
	for _, info := range scenarios.Checks() {
		file := filepath.Join(root, "scenarios", "checks", info.Name+".yaml")
		s, err := scenarios.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		c.scenarios = append(c.scenarios, s)
		r, err := testbed.Run(t.Context(), s, testbed.Options{Breakdown: check.NeedsBreakdown(s)})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		c.verdicts = append(c.verdicts, check.Run(s, r)...)
	}
	// By source, as published tables may be spread over files; Table 9 before 10.
	order := map[string]int{}
	for i, s := range check.Tables(c.verdicts) {
		order[s.Source] = i
	}
	slices.SortStableFunc(c.verdicts, func(a, b check.Verdict) int { return order[source(&a)] - order[source(&b)] })
	return c.verdicts
}

// source is the published table or figure that a verdict is about, or its file.
func source(v *check.Verdict) string { return cmp.Or(v.Source, v.File) }

func (c *checks) summary(t *testing.T) string {
	var rows [][]string
	for _, s := range check.Summarise(c.run(t)) {
		row := []string{cmp.Or(s.Use, "finding"), fmt.Sprint(s.N), fmt.Sprint(s.Failed + s.Missed)}
		if s.Valued > 0 {
			_, worst, _ := strings.Cut(s.WorstOf, " ") // file and line
			row = append(row, percent(s.Median), percent(s.P95), percent(s.Worst), worst)
		}
		rows = append(rows, row)
	}
	return markdown(t, []string{"use", "n>", "missed>", "median error>", "95th percentile>", "worst>", "worst row"}, rows)
}

func (c *checks) errors(t *testing.T) string {
	var b bytes.Buffer
	if err := check.SummaryMarkdown(&b, c.run(t)); err != nil {
		t.Fatal(err)
	}
	tables, _, _ := strings.Cut(b.String(), "\n- ") // the summary stands elsewhere
	return tables
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// what is the subject of a verdict and its point.
func what(v *check.Verdict) string {
	s := v.Subject
	for _, at := range v.At {
		s += ", " + at.Key + " " + at.Value
	}
	return s
}

func (c *checks) misses(t *testing.T) string {
	var b strings.Builder
	vs := c.run(t)
	for i := range vs {
		v := &vs[i]
		if v.Holds {
			continue
		}
		if v.Failed() {
			t.Errorf("%s:%d: %s is missed, and not as known", v.File, v.Line, what(v))
		}
		off := "" // a range has no error
		if !math.IsNaN(v.Err) {
			off = fmt.Sprintf(" (%+.1f %%)", 100*v.Err)
		}
		fmt.Fprintf(&b, "- %s, %s: %s published, %s simulated%s; %s\n", source(v), what(v), v.Want, v.Got, off, v.KnownMiss)
	}
	return cmp.Or(b.String(), "None.\n")
}

// crossval shows the stored cross-validation, which takes minutes to run, if it is
// about what is here: the same files, and a model with the same errors.
func (c *checks) crossval(t *testing.T) string {
	const stale = "docs/crossval.json is not about this %s: run make crossval"
	f, err := os.Open("crossval.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := crossval.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	vs := c.run(t)
	if r.Digest != crossval.Digest(c.scenarios) {
		t.Errorf(stale, "set of figures and parameters")
	}
	for _, x := range r.Tables {
		if now := crossval.ErrorsOf(vs, x.Source); now != x.Shipped {
			t.Errorf(stale+" (%s: %v, not %v)", "model", x.Source, now, x.Shipped)
		}
	}
	var b bytes.Buffer
	if err := r.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func (c *checks) rows(t *testing.T) string {
	var rows [][]string
	vs := c.run(t)
	for i := range vs {
		v := &vs[i]
		off, verdict := "", "holds"
		if !math.IsNaN(v.Err) {
			off = fmt.Sprintf("%+.1f %%", 100*v.Err)
		}
		if !v.Holds {
			verdict = "missed"
		}
		rows = append(rows, []string{source(v), what(v), v.Want, v.Got, off, v.Use, verdict, v.Note})
	}
	return markdown(t, []string{"source", "expectation", "published", "simulated", "error>", "use", "verdict", "fitted parameter, or note"}, rows)
}

package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gdisim/sim"
)

// Every testdata/*.good.yaml loads; every *.bad.yaml gives exactly the problems
// in its "# want:" comments, in order.
func TestTestdata(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("testdata: %d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse("f", src, testFiles(t, nil))
			if strings.HasSuffix(file, ".good.yaml") {
				if err != nil {
					t.Errorf("unexpected problems:\n%v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("loads")
			}
			text, comment, _ := strings.Cut(string(src), "# want: ")
			var want []string
			for line := range strings.SplitSeq(comment, "# want: ") {
				want = append(want, "f:"+strings.TrimSpace(line))
			}
			if *update {
				text += "# want: " + strings.ReplaceAll(strings.TrimPrefix(err.Error(), "f:"), "\nf:", "\n# want: ") + "\n"
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// Texts that a comment cannot describe.
func TestParseRefuses(t *testing.T) {
	const rest = "hardware: ./hw.yaml\npaths: [./gda.yaml]\nworkload: {kind: put, bytes: 8B}\n"
	tests := []struct{ name, text, want string }{
		{"empty", "", "f: is empty (want a YAML mapping)"},
		{"only a comment", "# nothing\n", "f: is empty (want a YAML mapping)"},
		{"a null", "---\n~\n", `f:2:1: is empty (want a mapping such as "gdisim: v1")`},
		{"a list", "- a\n", `f:1:1: is a list (want a mapping such as "gdisim: v1")`},
		{"a word", "put\n", `f:1:1: is a word (want a mapping such as "gdisim: v1")`},
		{"NUL", "gdisim: v1\x00", "f: is not a text file (want YAML in UTF-8)"},
		{"not UTF-8", "gdisim: v\xff", "f: is not a text file (want YAML in UTF-8)"},
		{"tabs", "gdisim: v1\nhost:\n\tclock: warm\n \tuncore: cold\n", "f:3:1: tab in the indentation (want spaces)\nf:4:2: tab in the indentation (want spaces)"},
		{"syntax", "gdisim: v1\nhost: {clock: warm\n", "f:2: YAML syntax: did not find expected ',' or '}'"},
		{"second document", "gdisim: v1\n" + rest + "---\ngdisim: v1\n", "f:5:1: a second document begins here (want one document a file)"},
		{"version", "gdisim: v2\n" + rest, `f:1:9: gdisim: version "v2" is unknown (want v1)`},
		{"no version", rest, `f:1:1: key "gdisim" is missing`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("f", []byte(tt.text), testFiles(t, nil))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got:\n%v\nwant:\n%s", err, tt.want)
			}
		})
	}
	// Marks that YAML allows around one document are no second one.
	if _, err := Parse("f", []byte("---\r\ngdisim: v1\r\n"+strings.ReplaceAll(rest, "\n", "\r\n")+"...\r\n"), testFiles(t, nil)); err != nil {
		t.Error(err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, src []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), src, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("hw.yaml", paramFile(t, profileForm, "hw"))
	write("gda.yaml", paramFile(t, stackForm, "gda"))
	write("s.yaml", []byte("gdisim: v1\nhardware: hw.yaml\npaths: [./gda.yaml]\nworkload: {kind: put, bytes: 8B}\n"))
	s, err := Load(filepath.Join(dir, "s.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "s" || s.Seed != 1 || !slices.Equal(s.Paths, []PathRef{{"gda", "./gda.yaml"}}) || s.Hardware != "hw.yaml" {
		t.Errorf("loaded %+v", s)
	}
	for name, want := range map[string]string{"": "is a directory", "none.yaml": "no such file or directory"} {
		file := filepath.Join(dir, name)
		if _, err := Load(file); err == nil || err.Error() != file+": "+want+" (want a scenario file)" {
			t.Errorf("%q: %v", name, err)
		}
	}
	for size, want := range map[int]string{maxYAML + 1: "larger than 1 MiB", maxFile + 1: "larger than 16 MiB"} {
		write("big.yaml", make([]byte, size))
		if _, err := Load(filepath.Join(dir, "big.yaml")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestProfiles(t *testing.T) {
	const form = "gdisim-profile: v1\nname: p\ntitle: t\n"
	tests := []struct{ name, profile, want string }{
		{"lacks everything", form, "hardware.gpu.sm_clock"}, // see below
		{"cycle", form + "include: [./b.yaml]\n", "b.yaml:4:11: include[0]: profile includes itself: p.yaml -> b.yaml -> p.yaml"},
		{
			"leaf without source, unit and kind", form + "parameters: {gpu: {sm_clock: {value: 5}}}\n",
			"p.yaml:4:30: parameters.gpu.sm_clock: key \"kind\" is missing\n" +
				"p.yaml:4:30: parameters.gpu.sm_clock: key \"source\" is missing\n" +
				"p.yaml:4:38: parameters.gpu.sm_clock.value: \"5\" has no unit (want a frequency such as 1980MHz or 2.5GHz)",
		},
		{
			"undeclared source", form + "sources: {bone: b}\nparameters: {gpu.sm_clock: {value: 5MHz, kind: guessed, source: bon}}\n",
			"p.yaml:5:48: parameters.gpu.sm_clock.kind: \"guessed\" is unknown (want published, measured, derived, assumed)\n" +
				"p.yaml:5:65: parameters.gpu.sm_clock.source: source \"bon\" is not declared, did you mean \"bone\"? (want a key of sources)",
		},
		{"unknown key", form + "parameters: {gpu: {sm_clok: {}}}\n", "p.yaml:4:20: parameters.gpu.sm_clok: unknown key, did you mean \"sm_clock\"?"},
		{"a plain number", form + "parameters: {gpu: {sm_clock: 5MHz}}\n", "p.yaml:4:30: parameters.gpu.sm_clock: is a word (want a mapping of keys and values)"},
		{"a stack", "gdisim-stack: v1\nname: p\ntitle: t\n", "p.yaml:1:1: gdisim-stack: unknown key, known are gdisim-profile, name, title, sources, parameters, include\np.yaml:1:1: key \"gdisim-profile\" is missing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"p.yaml": tt.profile, "b.yaml": form + "include: [./p.yaml]\n"}
			_, err := Parse("f", []byte("gdisim: v1\nhardware: ./p.yaml\npaths: [./gda.yaml]\nworkload: {kind: put, bytes: 8B}\n"), testFiles(t, files))
			if err == nil {
				t.Fatal("loads")
			}
			if tt.want == "hardware.gpu.sm_clock" {
				if n := len(missing("hardware", func(string) bool { return false })); strings.Count(err.Error(), "profile \"./p.yaml\" has no ") != n || n == 0 {
					t.Errorf("want one problem for each of %d fields, got:\n%v", n, err)
				}
				return
			}
			if err.Error() != tt.want {
				t.Errorf("got:\n%v\nwant:\n%s", err, tt.want)
			}
		})
	}
}

// A file beside the scenario that is named as an embedded profile or stack would be.
func TestNameOfAFile(t *testing.T) {
	files := map[string]string{"myhost.yaml": "x", "mystack.yaml": "x"}
	for _, c := range []struct{ hardware, path, want string }{
		{"myhost", "mini-gda", "unknown profile \"myhost\""},
		{"h200-cx7-ib200", "mystack", "(want ./mystack.yaml, for the file of that name)"},
		{"nohost", "mini-gda", "unknown profile \"nohost\""},
	} {
		_, err := Parse("f", []byte("gdisim: v1\nhardware: "+c.hardware+"\npaths: ["+c.path+"]\nworkload: {kind: put, bytes: 8B}\n"), testFiles(t, files))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "(want ./") != (c.hardware != "nohost") {
			t.Errorf("%s, %s: %v", c.hardware, c.path, err)
		}
	}
}

// Own values win over included ones, hardware.set over both; each keeps its source.
func TestLayers(t *testing.T) {
	hw := string(paramFile(t, profileForm, "hw"))
	files := map[string]string{"hw.yaml": hw, "own.yaml": "gdisim-profile: v1\nname: own\ntitle: t\ninclude: [./hw.yaml]\nsources: {mine: My notes}\n" +
		"parameters: {gpu: {sm_clock: {value: 700MHz, kind: measured, source: mine, where: page 3}}}\n"}
	const tail = "paths: [./gda.yaml]\nworkload: {kind: put, bytes: 8B}\n"
	s := mustParse(t, "gdisim: v1\nhardware: ./own.yaml\n"+tail, files)
	c := s.Config(0, 0)
	if got := c.Hz("hardware.gpu.sm_clock"); got != 700e6 {
		t.Errorf("own value: %d", got)
	}
	c.Enum("host.clock")
	want := []Param{
		{Key: "hardware.gpu.sm_clock", Value: "700MHz", Unit: "Hz", Source: "My notes, page 3", Kind: "measured", Owner: "own.yaml"},
		{Key: "host.clock", Value: "cold", Source: "default", Kind: "default"},
	}
	if got := c.Used(); !slices.Equal(got, want) {
		t.Errorf("used %v, want %v", got, want)
	}
	s = mustParse(t, "gdisim: v1\nhardware: {profile: ./own.yaml, set: {gpu: {sm_clock: 1410MHz}}}\n"+tail, files)
	c = s.Config(0, 0)
	if got := c.Hz("hardware.gpu.sm_clock"); got != 1410e6 {
		t.Errorf("set: %d", got)
	}
	if got, want := c.Used(), (Param{Key: "hardware.gpu.sm_clock", Value: "1410MHz", Unit: "Hz", Source: "s.yaml:2", Kind: "scenario"}); len(got) != 1 || got[0] != want {
		t.Errorf("used %v, want %v", got, want)
	}
	if got := c.Ignored(); !slices.Equal(got, []string{"workload.bytes", "workload.kind"}) {
		t.Errorf("ignored %v", got)
	}
}

func TestPoints(t *testing.T) {
	s := mustParse(t, `gdisim: v1
hardware: ./hw.yaml
paths: [{name: p1, stack: ./gda.yaml, set: {fence: none}}, {name: p2, stack: ./proxy.yaml}]
workload: {kind: put, bytes: {from: 8B, to: 100B, factor: 4}}
sweep:
  host.clock: [cold, 2GHz]
  paths.p2.fence: [gpu, system]
`, nil)
	points := s.Points()
	if len(points) != 2*2*2 {
		t.Fatalf("%d points", len(points))
	}
	want := Point{Index: 5, At: []Setting{{"workload.bytes", "32B"}, {"host.clock", "cold"}, {"paths.p2.fence", "system"}}}
	if !reflect.DeepEqual(points[5], want) {
		t.Errorf("point 5 is %v, want %v", points[5], want)
	}
	c := s.Config(5, 1)
	if c.Bytes("workload.bytes") != 32 || c.Enum("host.clock") != "cold" || c.Hz("host.clock") != 0 || c.Enum("path.fence") != "system" {
		t.Errorf("config of point 5: %v", c.Used())
	}
	if got := s.Config(7, 0); got.Hz("host.clock") != 2e9 || got.Enum("host.clock") != "" || got.Enum("path.fence") != "none" {
		t.Errorf("config of point 7 and another path: %v", got.Used())
	}
}

// A sweep with all points, each point once.
func TestPointsDiffer(t *testing.T) {
	s := mustParse(t, head+"workload: {kind: put, bytes: [8B, 64B, 1KiB]}\nsweep: {workload.outstanding: {from: 1, to: 64, factor: 2}, paths.*.fence: [none, gpu]}\n", nil)
	seen := map[string]bool{}
	for i, p := range s.Points() {
		if p.Index != i {
			t.Errorf("point %d has index %d", i, p.Index)
		}
		seen[fmt.Sprint(p.At)] = true
	}
	if len(seen) != 3*7*2 {
		t.Errorf("%d different points", len(seen))
	}
}

func TestApply(t *testing.T) {
	const text = head + "workload: {kind: put, bytes: [8B, 64B]}\nsweep: {host.clock: [cold, warm]}\nexpect:\n  - {path: gda, metric: rtt, at: {host.clock: cold}, value: 7us, within: 5%}\n  - {path: gda, metric: rtt, at: {workload.bytes: 64B}, max: 9us}\n"
	s := mustParse(t, text, nil)
	digest := s.Digest
	if err := s.Apply([]string{"host.clock=warm", "paths.*.fence=none", "paths.p2.fence=system", "seed=7", "hardware.gpu.sm_clock=1GHz"}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Points()); n != 2 || s.Seed != 7 || s.Digest != digest {
		t.Errorf("%d points, seed %d", n, s.Seed)
	}
	for i, fence := range []string{"none", "system"} {
		if c := s.Config(0, i); c.Enum("host.clock") != "warm" || c.Enum("path.fence") != fence || c.Hz("hardware.gpu.sm_clock") != 1e9 {
			t.Errorf("path %d: %v", i, c.Used())
		}
	}
	if !slices.Contains(s.Notices, "the sweep of host.clock is dropped: --set gives its value") {
		t.Errorf("notices: %q", s.Notices)
	}
	if len(s.Expect) != 1 || s.Expect[0].Max == nil {
		t.Errorf("an expectation of a point that is gone stays: %+v", s.Expect)
	}
	// A later Apply keeps the earlier one, and may make points.
	if err := s.Apply([]string{"workload.bytes=[8B, 1KiB, 64B]"}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Points()); n != 3 || s.Seed != 7 {
		t.Errorf("%d points, seed %d", n, s.Seed)
	}
	before := *s
	err := s.Apply([]string{"host.clock=wram", "nonsense", "path.fence=gpu", "fence=gpu", "nic.tx=3ns", "paths.p3.fence=gpu", "hardware.gpu.sm_clock=5", "seed=x", "workload.bytes="})
	want := `--set: host.clock: "wram" is unknown, did you mean "warm"? (want cold, warm, or a frequency such as 1980MHz or 2.5GHz)
--set: "nonsense" sets nothing (want KEY=VALUE)
--set: path.fence: unknown key "path.fence" (want paths.*.fence)
--set: fence: unknown key "fence" (want paths.*.fence)
--set: nic.tx: unknown key "nic.tx" (want hardware.nic.tx)
--set: paths.p3.fence: no path is named "p3", did you mean "p2"?
--set: hardware.gpu.sm_clock: "5" has no unit (want a frequency such as 1980MHz or 2.5GHz)
--set: seed: "x" is no seed (want a whole number below 2^64)
--set: workload.bytes: "" is no value (want KEY=VALUE)`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	if !reflect.DeepEqual(before.Points(), s.Points()) || before.Seed != s.Seed {
		t.Error("a failed Apply changed the scenario")
	}
}

func TestDistributions(t *testing.T) {
	var f *Field
	for _, g := range fieldTable().fields {
		if g.Section() == "hardware" && g.Dist && g.Kind == Duration {
			f = &g
			break
		}
	}
	if f == nil {
		t.Skip("no duration of the hardware may be a distribution")
	}
	key := strings.TrimPrefix(f.Key, "hardware.")
	load := func(value string) (*Scenario, error) {
		text := "gdisim: v1\nhardware: {profile: ./hw.yaml, set: {" + key + ": " + value + "}}\npaths: [./gda.yaml]\nworkload: {kind: put, bytes: 8B}\n"
		return Parse("s.yaml", []byte(text), testFiles(t, map[string]string{"wake.csv": "# measured\n1us\n3us\n", "bad.csv": "1us\n3\n", "none.csv": "\n"}))
	}
	lognormal, err := sim.Lognormal(1200*sim.Nanosecond, 4*sim.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	empirical, err := sim.Empirical([]sim.Duration{sim.Microsecond, 3 * sim.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]sim.Delay{
		"5ns": sim.Fixed(5000),
		"{dist: lognormal, median: 1.2us, p99: 4us}": lognormal,
		"{dist: uniform, low: 0, high: 2us}":         sim.Uniform(0, 2*sim.Microsecond),
		"{dist: exponential, mean: 1us}":             sim.Exponential(sim.Microsecond),
		"{dist: normal, mean: 1us, sd: 1ns}":         sim.Normal(sim.Microsecond, sim.Nanosecond),
		"{dist: empirical, file: wake.csv}":          empirical,
	}
	for text, want := range good {
		s, err := load(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		c := s.Config(0, 0)
		if got := c.Delay(f.Key); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
		if got := c.Used()[0].Value; got != text {
			t.Errorf("printed as %q, want %q", got, text)
		}
	}
	for text, want := range map[string]string{
		"{dist: lognormal, median: 5us, p99: 4us}":      "",
		"{dist: lognormal, median: 5us}":                `key "p99" is missing`,
		"{dist: lognorma, median: 5us, p99: 6us}":       `did you mean "lognormal"?`,
		"{dist: uniform, low: 3us, high: 2us}":          "low is above high",
		"{dist: uniform, low: 3, high: 4us}":            `"3" has no unit`,
		"{dist: uniform, low: 3us, high: 4us, sd: 1us}": "unknown key",
		"{median: 5us}":                                        "is a mapping without dist",
		"{dist: empirical, file: bad.csv}":                     `bad.csv:2: "3" has no unit`,
		"{dist: empirical, file: none.csv}":                    "holds no durations",
		"{dist: empirical, file: gone.csv}":                    "file does not exist",
		"{dist: exponential, mean: {dist: uniform, low: 1ns}}": "is a mapping",
		"{dist: exponential, mean: 1us, mean: 2us}":            "duplicate key",
		"[1us]": "is a list",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestConfigInvariants(t *testing.T) {
	c := mustParse(t, head+"workload: {kind: put, bytes: 8B}\n", nil).Config(0, 0)
	if c.Has("workload.background.kind") || !c.Has("workload.kind") {
		t.Error("Has is wrong about the background or the kind")
	}
	for name, f := range map[string]func(){
		"unknown key": func() { c.Count("host.nonsense") },
		"wrong kind":  func() { c.Count("host.clock") },
		"no value":    func() { c.Enum("workload.background.kind") },
		"Has unknown": func() { c.Has("nonsense") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func TestExpect(t *testing.T) {
	s := mustParse(t, head+`workload: {kind: put, bytes: [8B, 1024B]}
expect:
  - {path: p2, metric: put+completion.p99.9, at: {workload.bytes: 1KiB, host.clock: cold}, value: 4.03us, within: 5%, use: fitted, source: "Table 3"}
  - {path: gda, metric: one-way/nic.tx.share, min: 5%, max: 10%}
  - {path: gda, metric: message-rate, value: 1.79Mmsg/s, within: 0.1Mmsg/s}
  - {path: gda, metric: cpu.cores, max: 0.5}
  - {path: gda, metric: goodput, min: 80Gb/s}
  - {path: gda, finding: stale-descriptor, is: absent}
  - {metric: rtt, order: [gda, p2]}
  - {path: gda, metric: rtt, minus: {path: p2}, min: -1.5us, max: -1us}
sweep: {workload.kind: [put, stream]}
`, nil)
	e := s.Expect
	if len(e) != 8 {
		t.Fatalf("%d expectations", len(e))
	}
	// The point is named as the list spells it; what is not swept needs no naming.
	if !slices.Equal(e[0].At, []Setting{{"workload.bytes", "1024B"}}) || e[0].Value.Value != 4_030_000 || e[0].Value.Unit != "ps" || e[0].Within.Unit != "ratio" || e[0].Line != 6 {
		t.Errorf("first: %+v", e[0])
	}
	if e[1].Min.Value != 0.05 || e[1].Max.Unit != "ratio" || e[2].Value.Value != 1.79 || e[2].Within.Value != 0.1 || e[2].Within.Unit != "Mmsg/s" {
		t.Errorf("second and third: %+v %+v", e[1], e[2])
	}
	if e[3].Max.Value != 0.5 || e[3].Max.Unit != "cores" || e[4].Min.Value != 10 || e[4].Min.Unit != "GB/s" || e[5].Is != "absent" || !slices.Equal(e[6].Order, []string{"gda", "p2"}) {
		t.Errorf("rest: %+v", e[3:])
	}
	if e[7].Min.Value != -1_500_000 || e[7].Min.Text != "-1.5us" || e[7].Max.Value != -1_000_000 {
		t.Errorf("difference below zero: %+v", e[7])
	}
	// Where a --set takes the kind away that has a metric, it takes the expectation.
	if err := s.Apply([]string{"workload.kind=put"}); err != nil || len(s.Expect) != 6 {
		t.Errorf("%v, %d expectations left", err, len(s.Expect))
	}
}

func TestDigest(t *testing.T) {
	a, b := mustParse(t, head+"workload: {kind: put, bytes: 8B}\n", nil), mustParse(t, head+"workload: {kind: put, bytes: 8B}\n", nil)
	const want = "a9eb942fc3b62ad32cbbd28ef246823e572f69a49fff97a0c059a0226893f5d4"
	if a.Digest != want || a.Digest != b.Digest {
		t.Errorf("digest %s, want %s", a.Digest, want)
	}
	if c := mustParse(t, head+"workload: {kind: put, bytes: 9B}\n", nil); c.Digest == a.Digest {
		t.Error("different texts have one digest")
	}
}

// Every embedded example loads, and is named after its file.
func TestExamples(t *testing.T) {
	for _, in := range Examples() {
		t.Run(in.Name, func(t *testing.T) {
			s, err := LoadExample(in.Name)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != in.Name || s.Title == "" || s.Title != in.Title {
				t.Errorf("name %q, title %q", s.Name, s.Title)
			}
			src, err := ReadExample(in.Name)
			if err != nil || !strings.HasPrefix(string(src), "# yaml-language-server: $schema=") {
				t.Errorf("no modeline (%v)", err)
			}
		})
	}
	if _, err := LoadExample("gda-vs-prxy"); err == nil || err.Error() != `unknown example "gda-vs-prxy", did you mean "gda-vs-proxy"?` {
		t.Error(err)
	}
	if _, err := LoadExample("../profiles/x"); err == nil {
		t.Error("an example outside its folder")
	}
}

// Every embedded profile and stack loads, is named after its file, and each of
// its numbers has a source.
func TestLibrary(t *testing.T) {
	for _, list := range []struct {
		infos  []Info
		params func(string) ([]Param, error)
	}{{Profiles(), ProfileParams}, {Stacks(), StackParams}} {
		for _, in := range list.infos {
			ps, err := list.params(in.Name)
			if err != nil {
				t.Errorf("%s: %v", in.Name, err)
			}
			if in.Title == "" || len(ps) == 0 {
				t.Errorf("%s: title %q, %d parameters", in.Name, in.Title, len(ps))
			}
			for _, p := range ps {
				if p.Source == "" || !slices.Contains(origins, p.Kind) {
					t.Errorf("%s: %+v", in.Name, p)
				}
			}
		}
	}
	if _, err := ProfileParams("nonsense"); err == nil || !strings.Contains(err.Error(), `unknown profile "nonsense"`) {
		t.Error(err)
	}
}

// Whatever the text, Parse returns: a scenario that can be used, or problems with
// words.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, "host.clock=warm")
	}
	f.Add([]byte("a: &a [*a]\n"), "workload.bytes={from: 1B, to: 1GiB, factor: 2}")
	f.Add([]byte("? [a]\n: b\n? {c: d}\n: !x y\n<<: {a: b}\n"), "seed=-1")
	opt := testFiles(f, nil)
	f.Fuzz(func(t *testing.T, src []byte, set string) {
		s, err := Parse("f", src, opt)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without words")
			}
			return
		}
		if err := s.Apply([]string{set}); err != nil {
			return
		}
		n := s.size()
		for i := range s.Paths {
			c := s.Config(n-1, i)
			c.Faults()
			for _, fd := range fieldTable().fields {
				used := fd.Section() != "fault" && (fd.Section() != "workload" || fd.usedBy(c.Enum("workload.kind")))
				if fd.Section() == "path" && s.Paths[i].Stack == "" {
					used = false
				}
				if used && !c.Has(fd.Key) && !fd.Optional {
					t.Errorf("%s has no value", fd.Key)
				}
			}
		}
	})
}

// The one path of steps is named after the kind; where kinds are swept, after none
// of them.
func TestStepName(t *testing.T) {
	const head = "gdisim: v1\nname: t\nhardware: h200-cx7-ib200\n"
	for text, want := range map[string]string{
		"workload: {kind: load, memory: gpu}\n":                                                              "load",
		"workload: {kind: load, memory: gpu}\nsweep: {workload.kind: [load]}\n":                              "load",
		"workload: {kind: load, memory: gpu, bytes: 8B}\nsweep: {workload.kind: [load, store]}\n":            "step",
		"workload: {kind: load, memory: gpu, bytes: 8B}\nsweep: {workload.kind: [load, store, load-load]}\n": "",
	} {
		s, err := Parse("t.yaml", []byte(head+text))
		switch {
		case want == "":
			if err == nil {
				t.Errorf("%s: no error", text)
			}
		case err != nil:
			t.Errorf("%s: %v", text, err)
		case len(s.Paths) != 1 || s.Paths[0].Name != want:
			t.Errorf("%s: %+v, want %s", text, s.Paths, want)
		}
	}
}

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

// fixture goes to a new folder with fixtureFiles; extra is appended to a.yaml.
func fixture(t *testing.T, extra string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range fixtureFiles() {
		if name == "a.yaml" {
			text += extra
		}
		write(t, name, text)
	}
	if _, err := scenarios.Load("a.yaml"); err != nil {
		t.Fatalf("fixture: %v", err)
	}
}

// fixtureFiles are a profile and a stack that have a value for each field,
// whatever the field table is, and a scenario a.yaml that uses them.
func fixtureFiles() map[string]string {
	body := map[string]string{}
	for _, f := range scenarios.Fields() {
		section, key, _ := strings.Cut(f.Key, ".")
		if f.Default != "" {
			continue
		}
		value := f.Min
		if value == "" {
			value = map[scenarios.Kind]string{
				scenarios.Duration: "100ns", scenarios.Cost: "100cy", scenarios.Bytes: "64B", scenarios.Rate: "100Gb/s", scenarios.Frequency: "1GHz",
				scenarios.Ratio: "50%", scenarios.Count: "1", scenarios.Bool: "true", scenarios.Link: "16GT/s x16", scenarios.Text: "x",
			}[f.Kind]
		}
		if f.Kind == scenarios.Enum {
			value = f.Enum[0]
		}
		body[section] += fmt.Sprintf("  %s: {value: %s, kind: assumed, source: own}\n", key, value)
	}
	file := func(kind, name, section string) string {
		s := fmt.Sprintf("gdisim-%s: v1\nname: %s\ntitle: test\nsources: {own: \"a test\"}\n", kind, name)
		if b := body[map[string]string{"profile": "hardware", "stack": "path"}[kind]]; b != "" {
			s += section + ":\n" + b
		}
		return s
	}
	return map[string]string{
		"p.yaml": file("profile", "p", "parameters"),
		"s.yaml": file("stack", "s", "keys"),
		"a.yaml": "gdisim: v1\nname: a\nhardware: p.yaml\npaths:\n  - {name: x, stack: s.yaml}\n  - {name: y, stack: s.yaml}\nworkload: {kind: put, bytes: 8B}\n",
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fake is a backend whose path number i has a round trip of i+1 us.
func fake(_ context.Context, s *scenarios.Scenario, o testbed.Options) (*result.Result, error) {
	r := &result.Result{Schema: result.Schema, Backend: "sim", Name: s.Name, Seed: s.Seed, Messages: 3000, Events: 90000}
	for _, p := range s.Points() {
		q := result.Point{Index: p.Index}
		for _, at := range p.At {
			q.At = append(q.At, result.Setting(at))
		}
		for i, ref := range s.Paths {
			x := result.Path{Name: ref.Name, Stack: ref.Stack, Metrics: []result.Metric{timed(stage.RTT, sim.Duration(i+1)*sim.Microsecond, 0)}}
			if o.Breakdown {
				x.Breakdowns = []result.Breakdown{brokenDown(stage.RTT, 0, result.StageTime{Stage: stage.NICTx, Time: sim.Duration(i+1) * sim.Microsecond})}
			}
			q.Paths = append(q.Paths, x)
		}
		r.Points = append(r.Points, q)
		if o.Progress != nil {
			o.Progress(len(r.Points), len(s.Points()))
		}
	}
	return r, nil
}

// exec runs a command line on a backend.
func exec(b backend, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(context.Background(), b, args, &out, &err)
	return code, out.String(), err.String()
}

func mustContain(t *testing.T, what, s string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(s, w) {
			t.Errorf("%s lacks %q:\n%s", what, w, s)
		}
	}
}

func TestRoot(t *testing.T) {
	fixture(t, "")
	write(t, "empty.yaml", "")
	for _, c := range []struct {
		name   string
		args   string
		code   int
		stdout string // "" demands nothing on standard output
		stderr string
	}{
		{"no arguments", "", 0, "gdisim FILE", ""},
		{"help", "--help", 0, "Exit codes", ""},
		{"file", "a.yaml", 0, "x wins rtt", "simulated 3.0k messages, 90k events"},
		{"flags first", "--format csv -q a.yaml", 0, "0,x,rtt,p50,1000.000,ns", ""},
		{"file in a folder", "./a.yaml", 0, "x wins rtt", "simulated"},
		{"verb", "rnu", 2, "", `"rnu" is neither a command nor a file, did you mean "run"?`},
		{"verb with flags of its own", "explian --hardware x", 2, "", `did you mean "explain"?`},
		{"verb after flags", "-q rnu", 2, "", `did you mean "run"?`},
		{"nothing near", "zzzzzzzz", 2, "", `"zzzzzzzz" is neither a command nor a file`},
		{"missing file", "b.yaml", 2, "", "b.yaml: no such file"},
		{"missing file in a folder", "b/c", 2, "", "b/c: no such file"},
		{"folder", ".", 2, "", "directory"},
		{"empty file", "empty.yaml", 2, "", "empty.yaml"},
		{"example without its prefix", "gda-vs-proxy", 2, "", `did you mean "example:gda-vs-proxy"?`},
		{"unknown example", "example:gda-vs-prox", 2, "", `did you mean "gda-vs-proxy"?`},
		{"flag", "--colour", 2, "", "unknown flag: --colour"},
		{"two files", "a.yaml a.yaml", 2, "", "at most 1 arg"},
		{"verb of later", "advise a.yaml b.yaml", 2, "", `"advise" is neither a command nor a file`},
		{"completion", "completion bash", 0, "__start_gdisim", ""},
		{"completion of arguments", "__complete run exa", 0, "example:gda-vs-proxy", "ShellCompDirective"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := exec(fake, strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			mustContain(t, "stdout", stdout, c.stdout)
			mustContain(t, "stderr", stderr, c.stderr)
			if c.stdout == "" && stdout != "" || c.stderr == "" && stderr != "" {
				t.Errorf("unexpected output: stdout %q, stderr %q", stdout, stderr)
			}
		})
	}
}

// full is a standard output on which nothing fits.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// Whatever a verb writes, output that cannot be written is the run's failure.
func TestOutputFull(t *testing.T) {
	fixture(t, "")
	var r bytes.Buffer
	if code := run(t.Context(), fake, []string{"run", "a.yaml", "--format", "json"}, &r, io.Discard); code != 0 {
		t.Fatal(code)
	}
	if err := os.WriteFile("r.json", r.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"a.yaml", "run a.yaml", "run a.yaml --format csv", "sweep a.yaml -q", "compare r.json r.json", "compare r.json r.json --format md", "calibrate a.yaml r.json -q",
		"trace r.json", "trace r.json --dump", "plot --list", "report r.json -o -", "explain", "explain rtt", "explain mini-gda", "examples", "examples show sizes", "profiles", "stacks", "schema",
		"version", "--version", "--help", "help run", "completion bash", "hw probe", "hw probe --format json",
	} {
		t.Run(args, func(t *testing.T) {
			var stderr bytes.Buffer
			code := run(t.Context(), fake, strings.Fields(args), full{}, &stderr)
			if code != 1 || !strings.HasSuffix(stderr.String(), "gdisim: standard output: no space left on device\n") {
				t.Errorf("exit code %d, stderr %q", code, &stderr)
			}
		})
	}
}

func TestHelpOfNothing(t *testing.T) {
	for args, want := range map[string]string{"help zzz": `no help for "zzz"`, "help rnu": `did you mean "run"?`, "help hw zzz": `no help for "hw zzz"`} {
		code, stdout, stderr := exec(fake, strings.Fields(args)...)
		if mustContain(t, args, stderr, want); code != 2 || stdout != "" {
			t.Errorf("%s: exit code %d, stdout %q", args, code, stdout)
		}
	}
	if code, stdout, _ := exec(fake, "help", "hw", "probe"); code != 0 || !strings.Contains(stdout, "NUMA") {
		t.Errorf("help hw probe: exit code %d, %q", code, stdout)
	}
	if code, stdout, _ := exec(fake, "help"); code != 0 || !strings.Contains(stdout, "Exit codes") {
		t.Errorf("help: exit code %d, %q", code, stdout)
	}
}

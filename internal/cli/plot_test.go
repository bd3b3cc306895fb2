package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

// saved writes a result into the working folder.
func saved(t *testing.T, name string, r *result.Result) {
	t.Helper()
	var b bytes.Buffer
	if err := result.Encode(&b, r); err != nil {
		t.Fatal(err)
	}
	write(t, name, b.String())
}

// drawable is the sample with one recorded operation.
func drawable() *result.Result {
	r := sample()
	r.Points[0].Paths[0].Graphs = []result.Graph{{Metric: stage.PutCompletion, Which: "p50", Total: 3 * ns, Spans: []result.Span{
		{Stage: stage.GPUBuild, Wait: stage.GPUBuild, Lane: stage.LaneSM, End: ns, Pred: -1, OnWalk: true},
		{Stage: stage.PCIeDoorbell, Wait: stage.PCIeDoorbell, Lane: stage.LanePCIeSrc, Arrival: ns, Start: ns, End: 2 * ns, Pred: 0, OnWalk: true},
		{Stage: stage.NICTx, Wait: stage.NICSched, Lane: stage.LaneNICTx, Arrival: 2 * ns, Start: 2 * ns, End: 3 * ns, Pred: 1, OnWalk: true},
	}}}
	return r
}

func TestPlot(t *testing.T) {
	t.Chdir(t.TempDir())
	saved(t, "r.json", drawable())
	write(t, "new.json", `{"schema": "gdisim-result/9"}`)
	write(t, "text.json", `put 3.9 us`)
	saved(t, "empty.json", &result.Result{Schema: result.Schema, Name: "empty"})
	before := entries(t)
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"plot r.json --kind breakdown", "needs a RESULT, --kind and -o", 2},
		{"plot", "needs a RESULT, --kind and -o", 2},
		{"plot r.json --kind breakdwon -o x.png", `did you mean "breakdown"?`, 2},
		{"plot r.json --kind breakdown -o x.pdf", "ends in .png or .svg", 2},
		{"plot r.json --kind breakdown -o x.png --metric rtx", `did you mean "rtt"?`, 2},
		{"plot r.json --kind breakdown -o x.png --path gda", `no path "gda" (have mini-gda,`, 2},
		{"plot r.json --kind breakdown -o x.png --point -1", "negative", 2},
		{"plot r.json --kind heatmap -o x.png", "heatmap: the results do not fit: 0 swept keys (want two)", 2},
		{"plot no.json --kind cdf -o x.png", "no.json: no such file", 2},
		{"plot new.json --kind cdf -o x.png", `new.json: schema "gdisim-result/9" is not known to this version`, 2},
		{"plot text.json --kind cdf -o x.png", "text.json: not a gdisim result", 2},
		{"plot empty.json --kind cdf -o x.png", "no path finished at any point", 2},
		{"plot r.json --kind cdf -o no/x.png", "no such file or directory", 2},
		{"report", "report needs a RESULT", 2},
		{"report empty.json -o x.html", "nothing to report", 2},
		{"trace", "trace needs a RESULT", 2},
		{"trace r.json --at 1us", "belong to --dump", 2},
		{"trace r.json --dump --at soon", `--at "soon"`, 2},
		{"trace r.json --dump --format yaml", `unknown --format "yaml"`, 2},
		{"plot --list", "", 0},
	} {
		code, stdout, stderr := exec(fake, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stderr, c.want) || code != 0 && stdout != "" {
			t.Errorf("%s: code %d, stderr %q, want %q", c.args, code, stderr, c.want)
		}
		if entries(t) != before {
			t.Fatalf("%s left %s", c.args, entries(t))
		}
	}
	for name, magic := range map[string]string{"x.png": "\x89PNG", "x.svg": "<?xml", "x.SVG": "<?xml"} {
		if code, _, stderr := exec(fake, "plot", "r.json", "--kind", "breakdown", "-o", name); code != 0 || stderr != "" || !strings.HasPrefix(read(t, name), magic) {
			t.Errorf("%s: code %d, stderr %q", name, code, stderr)
		}
	}
	_, stdout, _ := exec(fake, "plot", "--list", "r.json")
	mustContain(t, "list", stdout, "breakdown", "fit", "0 swept keys (want two)", "want two results, got 1")
	if code, stdout, stderr := exec(fake, "report", "r.json"); code != 0 || stderr != "" || !strings.HasPrefix(stdout, "<!DOCTYPE html>") {
		t.Errorf("report: code %d, stderr %q", code, stderr)
	}
}

func TestTrace(t *testing.T) {
	t.Chdir(t.TempDir())
	saved(t, "r.json", drawable())
	code, stdout, stderr := exec(fake, "trace", "r.json")
	if code != 0 || stderr != "" || !json.Valid([]byte(stdout)) {
		t.Errorf("code %d, stderr %q, %s", code, stderr, stdout)
	}
	mustContain(t, "trace", stdout, `"name":"pcie.doorbell"`, "mini-gda, put+completion p50 node 0")
	_, stdout, _ = exec(fake, "trace", "r.json", "--dump", "--at", "1.5ns")
	mustContain(t, "dump", stdout, "pcie.doorbell@0", "SQ@0: producer 1, consumer 0")
	_, stdout, _ = exec(fake, "trace", "r.json", "--dump", "--format", "json", "-o", "d.jsonl")
	for _, l := range strings.Split(strings.TrimSpace(read(t, "d.jsonl")), "\n") {
		if !json.Valid([]byte(l)) || stdout != "" {
			t.Errorf("no JSON: %s", l)
		}
	}
}

// tracing is a backend that feeds what it is given.
func tracing(ctx context.Context, s *scenarios.Scenario, o testbed.Options) (*result.Result, error) {
	r, err := fake(ctx, s, o)
	if o.Trace == nil {
		return r, err
	}
	if o.Workers != 1 {
		return nil, errors.New("points run at the same time")
	}
	for i := range s.Points() {
		for _, p := range s.Paths {
			o.Trace(i, p.Name, "put").Span(result.TraceSpan{Op: 1, Pred: -1, Stage: stage.GPUBuild, Lane: stage.LaneSM, End: sim.Time(ns)})
		}
	}
	return r, err
}

func TestRunTraceAndPlot(t *testing.T) {
	fixture(t, "sweep: {host.clock: [cold, warm]}\n")
	code, stdout, stderr := exec(tracing, "run", "a.yaml", "-q", "--trace", "t.json", "--plot", "figures/all")
	if code != 0 || stdout == "" || stderr != "" {
		t.Fatalf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if !json.Valid([]byte(read(t, "t.json"))) {
		t.Error("the trace is no JSON")
	}
	mustContain(t, "trace", read(t, "t.json"), `clock=cold x put node 0`, `clock=warm y put node 0`)
	files, err := filepath.Glob("figures/all/*.png")
	if err != nil || len(files) == 0 {
		t.Errorf("figures %v, %v", files, err)
	}
	for _, f := range files {
		if !strings.HasPrefix(read(t, f), "\x89PNG") {
			t.Errorf("%s is no PNG", f)
		}
	}
	if code, _, _ := exec(tracing, "run", "a.yaml", "-q", "--trace", "t.txt"); code != 0 || strings.Count(read(t, "t.txt"), "gpu.build@0") != 4 {
		t.Errorf("code %d, %s", code, read(t, "t.txt"))
	}
	if err := os.WriteFile("file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before := entries(t)
	for args, want := range map[string]string{
		"--trace t.pb":                     "ends in .json",
		"--trace no/t.json":                "--trace no/t.json: no such file",
		"--trace x.json --no-breakdown":    "--trace needs what --no-breakdown leaves out",
		"--plot file":                      "--plot file: ",
		"--trace x.json --set host.clok=1": "host.clok",
	} {
		code, stdout, stderr := exec(tracing, append([]string{"run", "a.yaml"}, strings.Fields(args)...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) || entries(t) != before {
			t.Errorf("%s: code %d, stdout %q, stderr %q, folder %s", args, code, stdout, stderr, entries(t))
		}
	}
}

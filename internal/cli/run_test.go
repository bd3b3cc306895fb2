package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/testbed"
)

func TestRun(t *testing.T) {
	hung := func(ctx context.Context, s *scenarios.Scenario, o testbed.Options) (*result.Result, error) {
		r, err := fake(ctx, s, o)
		r.Points[0].Paths[1].Err = "deadlock: 3 operations wait"
		return r, err
	}
	broken := func(context.Context, *scenarios.Scenario, testbed.Options) (*result.Result, error) {
		return nil, errors.Join(&scenarios.Problem{File: "a.yaml", What: "no cheese"}, &scenarios.Problem{File: "a.yaml", What: "no wine"})
	}
	holds := "expect: [{path: x, metric: rtt, value: 1us, within: 5%}, {metric: rtt, order: [x, y]}]\n"
	fails := "expect: [{path: y, metric: rtt/nic.tx.share, max: 50%, note: it is all of it}]\n"
	for _, c := range []struct {
		name    string
		extra   string
		backend backend
		args    string
		code    int
		stdout  []string
		stderr  []string
	}{
		{"text", "", fake, "run a.yaml", 0, []string{"x wins rtt: 1.000 us; 2.00x faster than y (2.000 us)", "nic.tx"}, []string{"messages/CPU-s"}},
		{"no breakdown", "", fake, "run a.yaml --no-breakdown -q", 0, []string{"x wins rtt"}, nil},
		{"json", "", fake, "run a.yaml --format json -q", 0, []string{`"tool": "gdisim 0.1.0"`, `"p50_ps": 1000000`}, nil},
		{"md", "", fake, "run a.yaml --format md -q", 0, []string{"| x |"}, nil},
		{"seed", "", fake, "run a.yaml --seed 42 -q", 0, []string{"seed 42"}, nil},
		{"set", "", fake, "run a.yaml --set host.clock=warm --set seed=3 -q", 0, []string{"seed 3"}, nil},
		{"sweep", "sweep: {host.clock: [cold, warm]}\n", fake, "sweep a.yaml", 0, []string{"best rtt at 2 points: x at all"}, []string{"simulated"}},
		{"expectations hold", holds, fake, "run a.yaml -q", 0, []string{"Expectations", "x < y", "ok"}, nil},
		{"expectation fails", fails, fake, "run a.yaml -q", 1, []string{"FAIL a.yaml:", "it is all of it"}, nil},
		{"expectations beside data", fails, fake, "run a.yaml -q --format csv", 1, []string{"0,x,rtt,p50"}, []string{"FAIL"}},
		{"path fails", "", hung, "run a.yaml -q", 1, []string{"did not finish: deadlock"}, nil},
		{"path fails beside data", "", hung, "run a.yaml -q --format json", 1, []string{"deadlock"}, []string{"gdisim: path y: deadlock: 3 operations wait\n"}},
		{"path fails, output in a file", "sweep: {host.clock: [cold, warm]}\n", hung, "run a.yaml -q -o out.txt", 1, nil, []string{"gdisim: path y at 1 of 2 points: deadlock: 3 operations wait\n"}},
		{"impossible", "", broken, "run a.yaml -q", 2, nil, []string{"a.yaml: no cheese\na.yaml: no wine\n"}},
		{"format", "", fake, "run a.yaml --format jsn", 2, nil, []string{`unknown --format "jsn"`, `did you mean "json"?`}},
		{"set of nonsense", "", fake, "run a.yaml --set host.clok=warm", 2, nil, []string{`"host.clok"`, "host.clock"}},
		{"set of a wrong unit", "", fake, "run a.yaml --set workload.bytes=8", 2, nil, []string{"unit"}},
		{"set without a value", "", fake, "run a.yaml --set x", 2, nil, []string{"KEY=VALUE"}},
		{"workers", "", fake, "run a.yaml --workers -1", 2, nil, []string{"negative"}},
		{"no file", "", fake, "run", 2, nil, []string{"gdisim run needs one FILE"}},
		{"output into nowhere", "", broken, "run a.yaml -o no/where.txt", 2, nil, []string{"-o no/where.txt: no such file or directory"}},
		{"output is a folder", "", broken, "run a.yaml -o .", 2, nil, []string{"is a directory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fixture(t, c.extra)
			code, stdout, stderr := exec(c.backend, strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			mustContain(t, "stdout", stdout, c.stdout...)
			mustContain(t, "stderr", stderr, c.stderr...)
			if c.stdout == nil && stdout != "" || c.stderr == nil && stderr != "" {
				t.Errorf("unexpected output: stdout %q, stderr %q", stdout, stderr)
			}
			if strings.Contains(c.args, "no-breakdown") && strings.Contains(stdout, "nic.tx") {
				t.Error("there is a breakdown")
			}
		})
	}
}

// entries lists the folder, so that a temporary file left behind is seen.
func entries(t *testing.T) string {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	return strings.Join(names, " ")
}

func TestRunOutputFile(t *testing.T) {
	fixture(t, "")
	before := entries(t)
	fails := func(context.Context, *scenarios.Scenario, testbed.Options) (*result.Result, error) {
		return nil, errors.New("no")
	}
	if code, _, _ := exec(fails, "run", "a.yaml", "-o", "out.csv"); code != 2 || entries(t) != before {
		t.Errorf("code %d, folder %s", code, entries(t))
	}
	write(t, "out.csv", "old")
	if err := os.Chmod("out.csv", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("out.csv", "link"); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := exec(fails, "run", "a.yaml", "-o", "link"); code != 2 || read(t, "out.csv") != "old" {
		t.Error("a failed run changed the file")
	}
	code, stdout, stderr := exec(fake, "run", "a.yaml", "-q", "-o", "link", "--format", "csv")
	if code != 0 || stdout != "" || stderr != "" {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	mustContain(t, "out.csv", read(t, "out.csv"), "point,path,metric", "2000.000")
	if l, err := os.Readlink("link"); err != nil || l != "out.csv" {
		t.Errorf("the link is %q, %v", l, err)
	}
	if info, _ := os.Stat("out.csv"); info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v", info.Mode())
	}
	if want := "a.yaml link out.csv p.yaml s.yaml"; entries(t) != want {
		t.Errorf("folder %s, want %s", entries(t), want)
	}
	if code, stdout, _ := exec(fake, "run", "a.yaml", "-q", "-o", os.DevNull); code != 0 || stdout != "" {
		t.Errorf("code %d, stdout %q", code, stdout)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Fatal("the device was replaced")
	}
	if err := os.Chmod("out.csv", 0o400); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := exec(fails, "run", "a.yaml", "-o", "out.csv"); code != 2 || !strings.Contains(stderr, "write-protected") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRunInterrupted(t *testing.T) {
	fixture(t, "sweep: {host.clock: [cold, warm]}\nexpect: [{path: x, metric: rtt, max: 1ns}]\n")
	for _, c := range []struct {
		finished int
		stderr   string
	}{
		{1, "interrupted: the result is partial, 1 of 2 points"},
		{0, "interrupted before a point had finished; nothing is written"},
	} {
		t.Run(fmt.Sprint(c.finished), func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			b := func(ctx context.Context, s *scenarios.Scenario, o testbed.Options) (*result.Result, error) {
				r, _ := fake(ctx, s, o)
				cancel()
				r.Points, r.Partial = r.Points[:c.finished], true
				return r, ctx.Err()
			}
			out := filepath.Join(t.TempDir(), "out.txt")
			var stdout, stderr bytes.Buffer
			if code := run(ctx, b, []string{"run", "a.yaml", "-q", "-o", out}, &stdout, &stderr); code != 1 {
				t.Errorf("exit code %d", code)
			}
			mustContain(t, "stderr", stderr.String(), c.stderr)
			got, err := os.ReadFile(out)
			if c.finished == 0 {
				if !errors.Is(err, os.ErrNotExist) {
					t.Errorf("there is a file: %s", got)
				}
				return
			}
			// What did not run is no failed expectation.
			if mustContain(t, "file", string(got), "PARTIAL"); strings.Contains(string(got), "FAIL") {
				t.Errorf("verdicts of a partial run:\n%s", got)
			}
		})
	}
}

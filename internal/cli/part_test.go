package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/testbed"
)

// sweepText has notices of points (a key of nobody), dead axes, random latencies,
// a fault and an expectation.
const sweepText = `gdisim: v1
name: s
hardware: h200-cx7-ib200
host: {idle: {deepest: C6}}
paths: [mini-gda, mini-proxy]
workload: {kind: put, bytes: [8B, 64B, 4KiB], iterations: 8, warmup: 2}
sweep: {host.clock: [cold, warm], hardware.gpu.sm_clock: [1GHz, 1.9GHz]}
faults: [{kind: drop-fence, path: mini-gda, at: 20us, count: 1}]
expect:
  - {path: mini-gda, metric: issue, at: {workload.bytes: 8B, host.clock: cold, hardware.gpu.sm_clock: 1GHz}, max: 5us}
`

func sweepFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("s.yaml", []byte(sweepText), 0o644); err != nil {
		t.Fatal(err)
	}
}

// command runs one command line and returns standard error.
func command(t *testing.T, code int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := run(context.Background(), testbed.Run, args, &stdout, &stderr); got != code {
		t.Fatalf("%q: exit code %d, want %d: %s%s", args, got, code, stdout.String(), stderr.String())
	}
	return stderr.String()
}

// TestShards: any number of shards, put together, are the run of the whole in
// every format, byte for byte.
func TestShards(t *testing.T) {
	sweepFolder(t)
	formats := []string{"json", "text", "csv", "md"}
	for _, f := range formats {
		command(t, 0, "sweep", "s.yaml", "-q", "--format", f, "-o", "whole."+f)
	}
	if !strings.Contains(read(t, "whole.text"), "without effect here: host.idle.deepest") {
		t.Error("the whole has no notice of a point to be merged")
	}
	// A notice that only the whole can give.
	const dead = "gdisim: v1\nname: d\nhardware: h200-cx7-ib200\nworkload: {kind: load, memory: gpu, iterations: 5}\nsweep: {host.clock: [cold, warm], hardware.gpu.sm_clock: [1GHz, 1.9GHz]}\n"
	if err := os.WriteFile("d.yaml", []byte(dead), 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, 0, "sweep", "d.yaml", "-q", "-o", "d.text")
	command(t, 0, "sweep", "d.yaml", "-q", "--format", "json", "--shard", "0/2", "-o", "d0.json")
	command(t, 0, "sweep", "d.yaml", "-q", "--format", "json", "--shard", "1/2", "-o", "d1.json")
	command(t, 0, "merge", "d1.json", "d0.json", "-o", "d.merged")
	if text := read(t, "d.text"); !strings.Contains(text, "load: sweeping host.clock changes nothing here") || read(t, "d.merged") != text {
		t.Errorf("whole:\n%s\nmerged:\n%s", text, read(t, "d.merged"))
	}
	for _, n := range []int{1, 3, 5, 12} {
		dir := fmt.Sprint("parts", n)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for k := range n {
			command(t, 0, "sweep", "s.yaml", "-q", "--format", "json", "--shard", fmt.Sprintf("%d/%d", k, n), "-o", filepath.Join(dir, fmt.Sprint(k, ".json")))
		}
		if n == 1 { // a shard that is all is the whole
			if read(t, "parts1/0.json") != read(t, "whole.json") {
				t.Error("shard 0/1 differs from the whole")
			}
			continue
		}
		for _, f := range formats {
			command(t, 0, "merge", dir, "s.yaml", "--format", f, "-o", "merged."+f)
			if read(t, "merged."+f) != read(t, "whole."+f) {
				t.Errorf("%d shards, %s: differs from the whole", n, f)
			}
		}
	}
}

// TestResume: what an interrupted sweep lacks is run, and the rest is not.
func TestResume(t *testing.T) {
	sweepFolder(t)
	command(t, 0, "sweep", "s.yaml", "-q", "--format", "json", "-o", "whole.json")
	for _, shard := range []string{"", "1/2"} {
		args := []string{"sweep", "s.yaml", "-q", "--format", "json", "--resume", "-o", "part.json"}
		want := "whole.json"
		if shard != "" {
			args, want = append(args, "--shard", shard), "shard.json"
			command(t, 0, "sweep", "s.yaml", "-q", "--format", "json", "--shard", shard, "-o", want)
		}
		if err := os.RemoveAll("part.json"); err != nil {
			t.Fatal(err)
		}
		ran := 0
		var stdout, stderr bytes.Buffer
		// As a signal would: the context is the command's.
		ctx, cancel := context.WithCancel(context.Background())
		count := func(ctx context.Context, s *scenarios.Scenario, o testbed.Options) (*result.Result, error) {
			o.Workers = 1
			o.Progress = func(done, _ int) {
				if ran++; ran == 3 {
					cancel()
				}
			}
			return testbed.Run(ctx, s, o)
		}
		if code := run(ctx, count, args, &stdout, &stderr); code != 1 {
			t.Fatalf("exit code %d: %s", code, stderr.String())
		}
		before := ran
		if code := run(context.Background(), count, args, &stdout, &stderr); code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr.String())
		}
		points := 12
		if shard != "" {
			points = 6
		}
		if before >= points || ran != points {
			t.Errorf("shard %q: %d points ran, then %d of %d", shard, before, ran-before, points)
		}
		if read(t, "part.json") != read(t, want) {
			t.Errorf("shard %q: the resumed result differs", shard)
		}
		ran = 0
		stderr.Reset()
		again := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "-q" })
		if code := run(context.Background(), count, again, &stdout, &stderr); code != 0 || ran > 0 || !strings.Contains(stderr.String(), "part.json: is complete, nothing was left to do") {
			t.Errorf("shard %q: complete, then exit code %d, %d points ran: %s", shard, code, ran, stderr.String())
		}
		if read(t, "part.json") != read(t, want) {
			t.Errorf("shard %q: the complete result has changed", shard)
		}
	}
}

// A part of another shard is none to go on from.
func TestResumeOtherShard(t *testing.T) {
	sweepFolder(t)
	command(t, 0, "sweep", "s.yaml", "-q", "--format", "json", "--shard", "0/3", "-o", "p.json")
	stderr := command(t, 2, "sweep", "s.yaml", "-q", "--format", "json", "--shard", "1/3", "--resume", "-o", "p.json")
	if !strings.Contains(stderr, "--resume: p.json: holds point 0, which is none of shard 1/3") {
		t.Errorf("got %q", stderr)
	}
}

func TestPartErrors(t *testing.T) {
	sweepFolder(t)
	for k := range 3 {
		command(t, 0, "sweep", "s.yaml", "-q", "--format", "json", "--shard", fmt.Sprintf("%d/3", k), "-o", fmt.Sprint(k, ".json"))
	}
	command(t, 0, "sweep", "s.yaml", "-q", "--format", "json", "--shard", "2/3", "--set", "seed=3", "-o", "other.json")
	command(t, 0, "sweep", "s.yaml", "-q", "--format", "json", "--no-breakdown", "--shard", "2/3", "-o", "bare.json")
	command(t, 0, "sweep", "s.yaml", "-q", "--format", "json", "-o", "whole.json")
	if err := os.WriteFile("b.yaml", []byte(sweepText+"# changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// A whole by hardware, and one whose profile has changed since.
	if err := os.WriteFile("hw.json", []byte(strings.Replace(read(t, "whole.json"), `"backend": "sim"`, `"backend": "hw"`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	profile := func(tx string) {
		text := "gdisim-profile: v1\nname: h\ntitle: t\ninclude: [h200-cx7-ib200]\nsources: {own: a test}\nparameters:\n  nic.tx: {value: " + tx + ", kind: assumed, source: own}\n"
		if err := os.WriteFile("h.yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("p.yaml", []byte(strings.Replace(sweepText, "h200-cx7-ib200", "./h.yaml", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	profile("100ns")
	command(t, 0, "sweep", "p.yaml", "-q", "--format", "json", "-o", "p.json")
	profile("200ns")
	for _, tt := range []struct{ args, want string }{
		{"sweep s.yaml --shard 3/3", "shards count from 0 (want 0/3 to 2/3)"},
		{"sweep s.yaml --shard -1/3", "shards count from 0"},
		{"sweep s.yaml --shard 2", "want K/N, such as 0/4"},
		{"sweep s.yaml --shard 0/3", "want json with --shard and --resume"},
		{"sweep s.yaml --resume --format json", "--resume: without -o"},
		{"sweep s.yaml --resume --format json -o hw.json", "is no sweep's"},
		{"sweep s.yaml --resume --format json --shard 0/3 -o whole.json", "is the whole, and no part 0/3 of it"},
		{"sweep s.yaml --resume --format json --set seed=3 -o whole.json", "of another sweep"},
		{"sweep s.yaml --resume --format json --set host.proxy.threads=2 -o whole.json", "of another sweep"},
		{"sweep s.yaml --resume --format json --no-breakdown -o whole.json", "of another sweep"},
		{"sweep b.yaml --resume --format json -o whole.json", "of another sweep"},
		{"sweep p.yaml --resume --format json -o p.json", "of another sweep"},
		{"sweep s.yaml --resume --format json -o s.yaml", "is the scenario itself"},
		{"sweep s.yaml --resume --format json -o other.json", "of another sweep"},
		{"sweep s.yaml --resume --format json -o bare.json", "of another sweep"},
		{"sweep b.yaml --resume --format json -o 0.json", "of another sweep"},
		{"sweep s.yaml --sensitivity --shard 0/3", "has no parts"},
		{"merge", "merge needs the parts of a sweep"},
		{"merge 0.json 2.json", "points 1, 4, 7, 10 of the 12 from 0 are missing"},
		{"merge 0.json 1.json 2.json 1.json", "1.json: point 1 is in 1.json too"},
		{"merge 0.json 1.json other.json", "other.json: part of another sweep than 0.json"},
		{"merge 0.json 1.json bare.json", "bare.json: part of another sweep than 0.json"},
		{"merge 0.json whole.json", "whole.json: no part of a sweep"},
		{"merge 0.json 1.json 2.json b.yaml", "b.yaml: is not the scenario of these parts"},
		{"merge 0.json 1.json 2.json -o 1.json", "-o 1.json: is an input"},
		{"merge .", "not a gdisim result"},
	} {
		if strings.HasSuffix(tt.args, " .") {
			if err := os.WriteFile("broken.json", []byte("{}"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if stderr := command(t, 2, strings.Fields(tt.args)...); !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: %q, want %q", tt.args, stderr, tt.want)
		}
	}
}

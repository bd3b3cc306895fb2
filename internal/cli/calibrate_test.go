package cli

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"gdisim/hw/host"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/testbed"
)

// The whole way: a result with another value, a profile from it, a scenario that
// uses the profile.
func TestCalibrateCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = "gdisim: v1\nname: c\nhardware: h200-cx7-ib200\npaths: [mini-proxy]\nworkload: {kind: put, bytes: [8B, 4KiB], iterations: 50, warmup: 5}\n"
	write(t, "c.yaml", text)
	if code, _, stderr := exec(testbed.Run, "run", "-q", "c.yaml", "--set", "hardware.nic.ack=800ns", "--format", "json", "-o", "r.json"); code != 0 {
		t.Fatal(stderr)
	}
	code, stdout, stderr := exec(testbed.Run, "calibrate", "c.yaml", "r.json", "--fit", "hardware.nic.ack", "-q", "-o", "mine.yaml")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	mustContain(t, "stdout", stdout, "nic.ack", "404ns", "error (root mean square)", "held out")
	write(t, "d.yaml", strings.Replace(text, "h200-cx7-ib200", "mine.yaml", 1))
	if _, err := scenarios.Load("d.yaml"); err != nil {
		t.Error(err)
	}
	// Calibrating again starts from the file, which the new profile includes.
	if code, _, stderr := exec(testbed.Run, "calibrate", "d.yaml", "r.json", "--fit", "hardware.nic.ack", "-q", "-o", "again.yaml"); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if b, err := os.ReadFile("again.yaml"); err != nil || !strings.Contains(string(b), "include: [./mine.yaml]") {
		t.Errorf("%v\n%s", err, b)
	}
	if _, err := scenarios.ProfileParams("again.yaml"); err != nil {
		t.Error(err)
	}

	b, err := os.ReadFile("r.json")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "soft.json", strings.Replace(string(b), `"points":`, `"emulated": "soft-RoCE (rxe0)", "points":`, 1))
	write(t, "lat.txt", "# OSU MPI Latency Test v7.4\n")
	for _, c := range []struct {
		name, args string
		code       int
		stderr     string
	}{
		{"one argument", "calibrate c.yaml", 2, "needs a scenario and at least one result"},
		{"a scenario as a result", "calibrate c.yaml d.yaml", 2, "c.yaml: a scenario needs at least one result behind it"},
		{"a result first", "calibrate r.json c.yaml", 2, "r.json is a result, want a scenario first"},
		{"a benchmark's output", "calibrate c.yaml lat.txt", 2, "run gdisim import lat.txt"},
		{"unknown parameter", "calibrate c.yaml r.json --fit hardware.nic.x", 2, "no parameter of the hardware"},
		{"emulated", "calibrate c.yaml soft.json", 1, "--allow-emulated"},
		{"format", "calibrate c.yaml r.json --format csv", 2, "unknown --format"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := exec(testbed.Run, strings.Fields(c.args)...)
			if code != c.code || stdout != "" {
				t.Errorf("exit code %d, stdout %q", code, stdout)
			}
			mustContain(t, "stderr", stderr, c.stderr)
		})
	}
	// What identifies nothing writes no profile. The list of what is left is short.
	write(t, "empty.json", `{"schema": "gdisim-result/1", "backend": "hw", "points": []}`)
	code, _, stderr = exec(testbed.Run, "calibrate", "c.yaml", "empty.json", "-q", "-o", "none.yaml")
	if _, err := os.Stat("none.yaml"); code != 1 || err == nil {
		t.Errorf("nothing identified: exit code %d, %v", code, err)
	}
	mustContain(t, "stderr", stderr, "identify no parameter: no profile is written")
	code, stdout, _ = exec(testbed.Run, "calibrate", "c.yaml", "soft.json", "--fit", "hardware.nic.ack", "-q", "--allow-emulated", "-o", "soft.yaml", "--format", "json")
	if code != 0 || !strings.Contains(stdout, `"emulated"`) {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	if b, err := os.ReadFile("soft.yaml"); err != nil || !strings.Contains(string(b), "EMULATED") {
		t.Errorf("%v\n%s", err, b)
	}
}

// What this machine's cores and kernel cost, measured and taken into a profile.
func TestCalibrateHostCosts(t *testing.T) {
	if err := host.Available(); err != nil {
		t.Skip(err)
	}
	t.Chdir(t.TempDir())
	write(t, "c.yaml", "gdisim: v1\nname: c\nhardware: h200-cx7-ib200\npaths: [mini-proxy]\nworkload: {kind: put, bytes: 8B, iterations: 20, warmup: 2}\n")
	if code, _, stderr := exec(testbed.Run, "hw", "c.yaml", "--backend", "host", "--samples", "200", "-q", "--format", "json", "-o", "host.json"); code != 0 {
		t.Fatal(stderr)
	}
	f, err := os.Open("host.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := result.Decode(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	line := slices.IndexFunc(r.Measured, func(m result.Measured) bool { return m.Name == "line.cross-core" })
	if line < 0 || r.Measured[line].Err != "" {
		t.Skipf("no line between two cores on this machine: %+v", r.Measured)
	}
	code, stdout, stderr := exec(testbed.Run, "calibrate", "c.yaml", "host.json", "-q", "-o", "mine.yaml")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	mustContain(t, "stdout", stdout, "cpu.miss", "line.cross-core", "every parameter that is not")
	ps, err := scenarios.ProfileParams("mine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ps, func(p scenarios.Param) bool { return p.Key == "hardware.cpu.miss" })
	if i < 0 || ps[i].Value != r.Measured[line].P50.String() || ps[i].Kind != "measured" {
		t.Errorf("%+v, measured %v", ps, r.Measured[line].P50)
	}
	if code, _, stderr := exec(testbed.Run, "run", "-q", "c.yaml", "--set", "hardware.cpu.miss="+ps[i].Value); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

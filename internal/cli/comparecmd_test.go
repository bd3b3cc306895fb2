package cli

import (
	"os"
	"testing"
)

func TestCompareCommand(t *testing.T) {
	fixture(t, "")
	if code, _, stderr := exec(fake, "run", "-q", "a.yaml", "--format", "json", "-o", "a.json"); code != 0 {
		t.Fatal(stderr)
	}
	write(t, "bad.json", "{}")
	write(t, "none.json", `{"schema": "gdisim-result/1", "points": []}`)
	for _, c := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"results", []string{"compare", "a.json", "a.json"}, 0, "same", ""},
		{"a scenario is simulated", []string{"compare", "a.yaml", "a.json"}, 0, "rtt/nic.tx", ""},
		{"json", []string{"compare", "a.json", "a.json", "--format", "json"}, 0, `"schema": "gdisim-comparison/1"`, ""},
		{"markdown", []string{"compare", "a.json", "a.json", "--format", "md"}, 0, "| rtt", ""},
		{"nothing in common", []string{"compare", "a.json", "none.json"}, 1, "that only A has", "have no number in common"},
		{"all", []string{"compare", "a.json", "none.json", "--all"}, 1, "only A", "have no number in common"},
		{"one", []string{"compare", "a.json"}, 2, "", "needs two results or scenarios, got 1"},
		{"no result", []string{"compare", "a.json", "bad.json"}, 2, "", "bad.json: not a gdisim result"},
		{"no file", []string{"compare", "a.json", "b.json"}, 2, "", "b.json: no such file"},
		{"format", []string{"compare", "a.json", "a.json", "--format", "csv"}, 2, "", `unknown --format "csv"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := exec(fake, c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, stderr)
			}
			mustContain(t, "stdout", stdout, c.stdout)
			mustContain(t, "stderr", stderr, c.stderr)
		})
	}
	if code, stdout, _ := exec(fake, "compare", "a.json", "a.json", "-o", "c.txt"); code != 0 || stdout != "" {
		t.Errorf("-o: %d, %q", code, stdout)
	}
	if b, err := os.ReadFile("c.txt"); err != nil || len(b) == 0 {
		t.Errorf("-o: %v", err)
	}
}

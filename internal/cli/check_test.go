package cli

import (
	"os"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	fixture(t, "expect: [{path: x, metric: rtt, value: 1us, within: 5%, use: fitted}]\n")
	if err := os.Mkdir("d", 0o755); err != nil {
		t.Fatal(err)
	}
	two := strings.Replace(read(t, "a.yaml"), "value: 1us", "value: 2us", 1)
	write(t, "d/two.yaml", strings.ReplaceAll(strings.Replace(two, "use: fitted", "use: checked", 1), "p.yaml", "../p.yaml"))
	write(t, "d/two.yaml", strings.ReplaceAll(read(t, "d/two.yaml"), "s.yaml", "../s.yaml"))
	write(t, "none.yaml", strings.Split(read(t, "a.yaml"), "expect")[0])
	write(t, "bad.yaml", "gdisim: v1\nnmae: x\n")
	for _, c := range []struct {
		name   string
		args   string
		code   int
		stdout []string
		stderr string
	}{
		{"holds", "check a.yaml", 0, []string{"x rtt", "1us within 5%", "1.000 us", "+0.0", "ok", "fitted: 1, of which 0 failed"}, ""},
		{"fails", "check d", 1, []string{"-50.0", "FAIL", "checked: 1, of which 1 failed; |error| of 1 values: median 50.0 %"}, ""},
		{"both", "check a.yaml d", 1, []string{"a.yaml\n", "d/two.yaml\n", "fitted: 1", "checked: 1"}, ""},
		{"markdown", "check --format md a.yaml", 0, []string{"| a.yaml:8 | x rtt |"}, ""},
		{"some expect nothing", "check none.yaml a.yaml", 0, []string{"fitted: 1"}, "none.yaml expects nothing"},
		{"all expect nothing", "check none.yaml", 2, nil, "nothing to check"},
		{"embedded, by the fake", "check", 1, []string{"arXiv:2610.01380\n  figures", "  Table 3 ", "FAIL check:bone-table3-p-ib:"}, ""},
		{"one embedded", "check --summary check:bone-table3-p-ib", 1, []string{"  Table 3 "}, ""},
		{"unknown embedded", "check check:bone-table3-p-bi", 2, nil, `unknown check "bone-table3-p-bi", did you mean "bone-table3-p-ib"?`},
		{"summary", "check --summary a.yaml", 0, []string{"a.yaml\n", "all "}, ""},
		{"missing file", "check a.yaml nope.yaml", 2, nil, "nope.yaml"},
		{"bad file beside a good one", "check a.yaml bad.yaml", 2, nil, "nmae: unknown key"},
		{"format", "check a.yaml --format csv", 2, nil, `unknown --format "csv" (want md, text)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := exec(fake, strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			mustContain(t, "stdout", stdout, c.stdout...)
			mustContain(t, "stderr", stderr, c.stderr)
			if c.stdout == nil && stdout != "" || c.stderr == "" && stderr != "" {
				t.Errorf("unexpected output: stdout %q, stderr %q", stdout, stderr)
			}
		})
	}
}

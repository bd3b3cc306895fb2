package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"gdisim/scenarios"
	"gdisim/stage"
)

func TestExplain(t *testing.T) {
	fixture(t, "")
	for _, c := range []struct {
		word   string
		args   string
		stdout []string
		stderr string // of a failure
	}{
		{"host.clock", "", []string{"key host.clock", "notation:", "word, or frequency", "cold, warm", "default:  cold", "used by:  model/cpu"}, ""},
		{"workload.bytes", "", []string{"size, or a list of them", "1B to 1GiB", "the scenario must give it"}, ""},
		{"fabric.kind", "", []string{"not yet:  leaf-spine"}, ""},
		{"hardware.gpu.sm_clock", "--hardware p.yaml", []string{"frequency", "p.yaml", "1GHz", "Hz", "assumed", "a test"}, ""},
		{"gpu.sm_clock", "--hardware p.yaml", []string{"key hardware.gpu.sm_clock"}, ""},
		{"path.fence", "--stack s.yaml", []string{"key path.fence", "s.yaml", "none"}, ""},
		{"paths.any.fence", "--stack s.yaml", []string{"key path.fence"}, ""},
		{"fence", "--stack s.yaml", []string{"key path.fence"}, ""},
		{"nic.rx", "--hardware p.yaml", []string{"stage nic.rx", "receive processing", "lane: nic.rx"}, ""},
		{"gpu.sms", "", []string{"in b200-cx7-roce400, gb200-cx7-ib400", "value:    148", "h100-cx7-ib200, "}, ""},
		{"rtt", "", []string{"metric rtt", "unit: time; with .p50"}, ""},
		{"put+completion/gpu.poll.share", "", []string{"stage gpu.poll"}, ""},
		{"rtt.p99", "", []string{"metric rtt"}, ""},
		{"message-rate", "", []string{"unit: Mmsg/s"}, ""},
		{"stale-descriptor", "", []string{"finding stale-descriptor", "before its bytes were visible"}, ""},
		{"rtr", "", nil, `nothing to explain under "rtr", did you mean "rtt"?`},
		{"host.clok", "", nil, `did you mean "host.clock"?`},
		{"", "", nil, `nothing to explain under ""`},
		{"hardware.gpu.sm_clock", "--hardware nope", nil, `unknown profile "nope"`},
		{"path.fence", "--stack nope", nil, `unknown stack "nope"`},
	} {
		t.Run(c.word+c.args, func(t *testing.T) {
			code, stdout, stderr := exec(fake, append([]string{"explain", c.word}, strings.Fields(c.args)...)...)
			if c.stderr != "" {
				if mustContain(t, "stderr", stderr, c.stderr); code != 2 || stdout != "" {
					t.Errorf("code %d, stdout %q", code, stdout)
				}
				return
			}
			if mustContain(t, "stdout", stdout, c.stdout...); code != 0 || stderr != "" {
				t.Errorf("code %d, stderr %q", code, stderr)
			}
		})
	}
}

// TestExplainEverything explains each name of the index by itself.
func TestExplainEverything(t *testing.T) {
	code, index, stderr := exec(fake, "explain")
	if code != 0 {
		t.Fatal(stderr)
	}
	fixture(t, "")
	narrow := func(what, text string) {
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(line) - 1; n > textWidth {
				t.Errorf("%s: %d columns: %s", what, n, line)
			}
		}
	}
	narrow("index", index)
	for _, topic := range (&explainer{}).topics() {
		name := topic.name
		if section, rest, _ := strings.Cut(name, "."); isField(name) {
			mustContain(t, "index", index, "keys of "+section)
			name = rest
		}
		mustContain(t, "index", index, name)
		code, stdout, stderr := exec(fake, "explain", topic.name, "--hardware", "p.yaml")
		if code != 0 || !strings.Contains(stdout, topic.name) {
			t.Errorf("explain %s: code %d, stdout %q, stderr %q", topic.name, code, stdout, stderr)
		}
		narrow(topic.name, stdout)
	}
	if want := len(scenarios.Fields()) + int(stage.Count) - 1; len((&explainer{}).topics()) < want {
		t.Error("topics are missing")
	}
}

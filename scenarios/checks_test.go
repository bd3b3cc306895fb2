package scenarios

import (
	"strings"
	"testing"
)

// Every embedded check loads, is named after its file, and says of each figure
// where it is from and whether it fitted a parameter.
func TestChecks(t *testing.T) {
	figures, fitted := 0, 0
	for _, in := range Checks() {
		s, err := LoadCheck(in.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Name != in.Name || s.Title == "" || len(s.Expect) == 0 {
			t.Errorf("%s: name %q, title %q, %d expectations", in.Name, s.Name, s.Title, len(s.Expect))
		}
		for i := range s.Expect {
			e := &s.Expect[i]
			if e.Source == "" || e.Use == "" {
				t.Errorf("%s:%d: source %q, use %q", in.Name, e.Line, e.Source, e.Use)
			}
			if e.Use == "fitted" && e.Note == "" {
				t.Errorf("%s:%d: fitted, and no note says which parameter", in.Name, e.Line)
			}
			if e.Finding == "" && e.Order == nil {
				figures++
				if e.Use == "fitted" {
					fitted++
				}
			}
		}
	}
	if figures < 200 || fitted*3 > figures {
		t.Errorf("%d figures, %d of them fitted", figures, fitted)
	}
	if _, err := LoadCheck("bone-table3-p-bi"); err == nil || !strings.Contains(err.Error(), `did you mean "bone-table3-p-ib"`) {
		t.Error(err)
	}
}

// Platforms are made of parts, which are no platforms themselves.
func TestParts(t *testing.T) {
	for _, in := range Profiles() {
		if in.Name == "gpu-h200" {
			t.Error("a part is listed as a platform")
		}
	}
	text := func(hw string) []byte {
		return []byte("gdisim: v1\nhardware: " + hw + "\npaths: [mini-gda]\nworkload: {kind: put, bytes: 8B}\n")
	}
	for _, in := range Profiles() {
		if _, err := Parse("s.yaml", text(in.Name)); err != nil {
			t.Errorf("%s: %v", in.Name, err)
		}
	}
	if _, err := Parse("s.yaml", text("gpu-h200")); err == nil || !strings.Contains(err.Error(), "nic.mtu") {
		t.Errorf("a part as hardware: %v", err)
	}
}

func TestMinus(t *testing.T) {
	parse := func(expect string) (*Scenario, error) {
		return Parse("s.yaml", []byte("gdisim: v1\nhardware: h200-cx7-ib200\npaths: [mini-gda, mini-proxy]\nworkload: {kind: put, bytes: 8B}\nexpect:\n  - "+expect+"\n"))
	}
	s, err := parse("{path: mini-gda, metric: rtt, minus: {path: mini-proxy}, value: 1us, within: 5%}")
	if err != nil {
		t.Fatal(err)
	}
	if e := s.Expect[0]; e.MinusPath != "mini-proxy" || e.MinusMetric != "rtt" {
		t.Errorf("%+v", e)
	}
	for _, c := range []struct{ expect, want string }{
		{"{path: mini-gda, metric: rtt, minus: {path: mini-prox}, value: 1us, within: 5%}", `did you mean "mini-proxy"`},
		{"{path: mini-gda, metric: rtt, minus: {metric: message-rate}, value: 1us, within: 5%}", "message-rate cannot be taken from rtt"},
		{"{path: mini-gda, metric: rtt, minus: {metric: rtx}, value: 1us, within: 5%}", `metric "rtx" is unknown`},
		{"{path: mini-gda, metric: rtt, minus: {}, value: 1us, within: 5%}", "minus needs another path or another metric"},
		{"{metric: rtt, minus: {path: mini-proxy}, order: [mini-gda, mini-proxy]}", "minus needs"},
	} {
		if _, err := parse(c.expect); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.expect, err, c.want)
		}
	}
}

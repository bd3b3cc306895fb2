package scenarios

import (
	"slices"
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
			if e.Use == "fitted" && len(e.Fits) == 0 && e.Note == "" {
				t.Errorf("%s:%d: fitted, and neither fits nor a note says which parameter", in.Name, e.Line)
			}
			for _, key := range e.Fits {
				bounded(t, s, e, key)
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

// bounded wants bounds of a number of a profile or a stack that a figure fitted,
// and that the figure depends on no value of the scenario's own.
func bounded(t *testing.T, s *Scenario, e *Expect, key string) {
	t.Helper()
	k := slices.IndexFunc(s.Paths, func(p PathRef) bool { return p.Name == e.Path })
	p, ok := s.Config(0, k).Param(key)
	if !ok {
		t.Errorf("%s:%d: fits %s, which has no value", s.Name, e.Line, key)
		return
	}
	if f, _ := FieldOf(key); p.Owner != "" && f.Kind != Enum && p.Min == "" {
		t.Errorf("%s:%d: fits %s, for which %s states no bounds", s.Name, e.Line, key, p.Owner)
	}
	if p.Owner == "" && !strings.HasPrefix(key, "workload.") {
		t.Errorf("%s:%d: fits %s, which is from %s", s.Name, e.Line, key, p.Source)
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

func TestOver(t *testing.T) {
	parse := func(expect string) (*Scenario, error) {
		return Parse("s.yaml", []byte("gdisim: v1\nhardware: h200-cx7-ib200\npaths: [mini-gda, mini-proxy]\nworkload: {kind: put, bytes: [8B, 64B]}\nexpect:\n  - "+expect+"\n"))
	}
	s, err := parse("{path: mini-gda, metric: rtt, at: {workload.bytes: 64B}, over: {path: mini-proxy, at: {workload.bytes: 8B}}, value: 50%, within: 5%}")
	if err != nil {
		t.Fatal(err)
	}
	e := s.Expect[0]
	if b := e.Over; b.Path != "mini-proxy" || b.Metric != "rtt" || len(b.At) != 1 || b.At[0] != (Setting{"workload.bytes", "8B"}) || e.Value.Value != 0.5 {
		t.Errorf("%+v over %+v", e, b)
	}
	for _, c := range []struct{ expect, want string }{
		{"{path: mini-gda, metric: rtt, over: {path: mini-prox}, value: 1x, within: 5%}", `did you mean "mini-proxy"`},
		{"{path: mini-gda, metric: rtt, over: {metric: message-rate}, value: 1x, within: 5%}", "rtt cannot be divided by message-rate"},
		{"{path: mini-gda, metric: rtt, over: {at: {workload.bytes: 16B}}, value: 1x, within: 5%}", "no point has workload.bytes = 16B"},
		{"{path: mini-gda, metric: rtt, over: {path: mini-proxy}, value: 1us, within: 5%}", "value"},
		{"{path: mini-gda, metric: rtt, over: {}, value: 1x, within: 5%}", "over needs another path, metric or point"},
		{"{path: mini-gda, metric: rtt, minus: {path: mini-proxy}, over: {path: mini-proxy}, max: 1x}", "over stands with neither"},
	} {
		if _, err := parse(c.expect); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.expect, err, c.want)
		}
	}
}

// A --set that leaves one point takes the ratios of two away.
func TestOverSet(t *testing.T) {
	for set, want := range map[string]int{"workload.bytes=8B": 0, "workload.bytes=64B": 0, "workload.bytes=16B": 0, "seed=2": 1} {
		s, err := Parse("s.yaml", []byte("gdisim: v1\nhardware: h200-cx7-ib200\npaths: [mini-gda]\nworkload: {kind: put, bytes: [8B, 64B]}\nexpect:\n  - {path: mini-gda, metric: rtt, at: {workload.bytes: 64B}, over: {at: {workload.bytes: 8B}}, max: 2x}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply([]string{set}); err != nil || len(s.Expect) != want {
			t.Errorf("--set %s: %d expectations, %v, want %d", set, len(s.Expect), err, want)
		}
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

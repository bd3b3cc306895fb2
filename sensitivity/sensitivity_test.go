package sensitivity_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sensitivity"
	"gdisim/sim"
	"gdisim/stage"
)

// world is a run whose issue takes what the ACK takes and three times what the
// receiver does, and whose rate falls with the outstanding messages; it reads a
// clock that matters to nothing.
func world(_ context.Context, s *scenarios.Scenario) (*result.Result, error) {
	r := &result.Result{Points: []result.Point{{}}}
	for i, p := range s.Paths {
		c := s.Config(0, i)
		ack, rx, out := c.Delay("hardware.nic.ack").Mean(), c.Delay("hardware.nic.rx").Mean(), c.Count("workload.outstanding")
		c.Hz("hardware.gpu.sm_clock")
		c.Duration("hardware.nic.doorbell")
		issue := result.Summarise([]sim.Duration{ack + 3*rx})
		issue.Metric = stage.Issue
		x := result.Path{Name: p.Name, Metrics: []result.Metric{issue, {Metric: stage.MessageRate, Value: 10 / float64(out)}}}
		for _, u := range c.Used() {
			x.Params = append(x.Params, result.Param{Key: u.Key, Value: u.Value, Unit: u.Unit, Source: u.Source, Kind: u.Kind})
		}
		r.Points[0].Paths = append(r.Points[0].Paths, x)
	}
	return r, nil
}

func scene(t *testing.T) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte(`gdisim: v1
hardware: {profile: h200-cx7-ib200, set: {nic.ack: 100ns, nic.rx: 300ns, gpu.sm_clock: 2GHz, nic.doorbell: 0ns}}
paths: [mini-gda]
workload: {kind: stream, bytes: [8B, 16B], outstanding: 4}
`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestElasticity recomputes the elasticities of a known function.
func TestElasticity(t *testing.T) {
	rep, err := sensitivity.Of(t.Context(), scene(t), sensitivity.Options{Run: world})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	var order []string
	for _, r := range rep.Rows {
		got[r.Metric+" "+r.Key] = r.Elasticity
		if r.Metric == "issue.p50" {
			order = append(order, r.Key)
		}
	}
	for key, want := range map[string]float64{
		"issue.p50 hardware.nic.ack": 0.1, "issue.p99 hardware.nic.rx": 0.9, // their shares of 1000 ns
		"message-rate workload.outstanding": (2.0 - 10.0/3) / 2.5 / (5.0/4 - 3.0/4), // a whole number changes by 1
	} {
		if math.Abs(got[key]-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", key, got[key], want)
		}
	}
	if !slices.Equal(order, []string{"hardware.nic.rx", "hardware.nic.ack"}) {
		t.Errorf("order %v", order)
	}
	if len(rep.Idle) != 1 || rep.Idle[0].Key != "hardware.gpu.sm_clock" || !rep.Idle[0].Set {
		t.Errorf("idle %+v", rep.Idle)
	}
	if len(rep.Fixed) != 1 || rep.Fixed[0].Key != "hardware.nic.doorbell" {
		t.Errorf("fixed %+v", rep.Fixed)
	}
	if len(rep.At) != 1 || rep.At[0].Value != "8B" {
		t.Errorf("varied at %v", rep.At)
	}
	var text strings.Builder
	if err := sensitivity.Text(&text, rep); err != nil {
		t.Fatal(err)
	}
	if s := text.String(); !strings.Contains(s, "warning: set by the scenario, without effect on any metric: hardware.gpu.sm_clock") {
		t.Error(s)
	}
}

// The report does not depend on how many run at a time.
func TestWorkers(t *testing.T) {
	var texts []string
	for _, n := range []int{1, 7} {
		rep, err := sensitivity.Of(t.Context(), scene(t), sensitivity.Options{Run: world, Workers: n})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, w := range []func(*strings.Builder) error{
			func(b *strings.Builder) error { return sensitivity.JSON(b, rep) }, func(b *strings.Builder) error { return sensitivity.CSV(b, rep) },
			func(b *strings.Builder) error { return sensitivity.Markdown(b, rep) },
		} {
			if err := w(&b); err != nil {
				t.Fatal(err)
			}
		}
		texts = append(texts, b.String())
	}
	if texts[0] != texts[1] {
		t.Error("the report depends on the number of workers")
	}
}

func TestOnly(t *testing.T) {
	for only, want := range map[string]int{"nic": 2, "hardware.nic.*": 2, "*.ack": 1, "ack": 1, "": 3} {
		rep, err := sensitivity.Of(t.Context(), scene(t), sensitivity.Options{Run: world, Only: only})
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for _, r := range rep.Rows {
			keys[r.Key] = true
		}
		if len(keys) != want {
			t.Errorf("%q: %v, want %d inputs", only, keys, want)
		}
	}
	if _, err := sensitivity.Of(t.Context(), scene(t), sensitivity.Options{Run: world, Only: "nonsense"}); err == nil || !strings.Contains(err.Error(), `--only "nonsense" fits no number`) {
		t.Error(err)
	}
}

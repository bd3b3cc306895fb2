package testbed_test

import (
	"context"
	"reflect"
	"testing"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

// steps runs a scenario of one step and returns its path.
func steps(t *testing.T, text string) result.Path {
	t.Helper()
	r, err := testbed.Run(context.Background(), parse(t, text), testbed.Options{Breakdown: true})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return r.Points[0].Paths[0]
}

// Every step ends, is the same twice, and its stages sum to its total, idle and
// under load.
func TestSteps(t *testing.T) {
	loads := []string{"", "copy-to-host", "copy-both", "store-host, background.ctas: 4", "load-host, background.ctas: 2", "store-gpu, background.ctas: 20"}
	for _, tt := range []struct {
		workload string
		metric   stage.Metric
		loaded   bool
	}{
		{"kind: fence, stores: 2, memory: host", stage.Latency, true},
		{"kind: fence, scope: gpu", stage.Latency, false},
		{"kind: store, bytes: 64B, memory: host", stage.Latency, true},
		{"kind: load, memory: host", stage.Latency, true},
		{"kind: atomic", stage.Latency, false},
		{"kind: poll, memory: host, initiators.ctas: 5", stage.Latency, false},
		{"kind: poll, memory: host, scope: gpu, initiators.ctas: 20, pause: 0s", stage.Latency, false},
		{"kind: poll, memory: gpu", stage.Latency, false},
		{"kind: flag-echo, release: system", stage.RTT, true},
		{"kind: flag-echo, from: cpu", stage.RTT, true},
		{"kind: flag-echo, look_after: 300ns", stage.RTT, true},
	} {
		for _, load := range loads {
			if load != "" && !tt.loaded {
				continue
			}
			w := tt.workload
			if load != "" {
				w += ", background.kind: " + load
			}
			text := "gdisim: v1\nhardware: h200-vm\nworkload: {" + w + ", iterations: 30, warmup: 3}\n"
			p := steps(t, text)
			if p.Err != "" {
				t.Errorf("%s: %s", w, p.Err)
				continue
			}
			b := p.Breakdown(tt.metric)
			if b == nil {
				t.Errorf("%s: no breakdown of %v", w, tt.metric)
				continue
			}
			var sum sim.Duration
			for _, s := range b.Stages {
				sum += s.Time
			}
			if sum != b.Total || b.Total <= 0 {
				t.Errorf("%s: stages sum to %v, the total is %v", w, sum, b.Total)
			}
			if again := steps(t, text); !reflect.DeepEqual(p, again) {
				t.Errorf("%s: not the same twice", w)
			}
		}
	}
}

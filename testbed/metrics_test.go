package testbed_test

import (
	"slices"
	"testing"

	"gdisim/scenarios"
	"gdisim/stage"
	"gdisim/testbed"
)

// Each kind is measured by the metrics that scenarios says, and by no others.
func TestMetricsOfKinds(t *testing.T) {
	kinds := map[string]string{ // and what more each needs
		"put": ", bytes: 8B", "put-signal": ", bytes: 8B", "get": ", bytes: 8B", "ping-pong": ", bytes: 8B", "stream": ", bytes: 8B",
		"dma": ", op: read, bytes: 64B", "mmio": ", op: store, bytes: 64B", "register": ", op: register, bytes: 4KiB", "store": ", bytes: 8B", "copy": ", bytes: 64B",
	}
	for _, kind := range scenarios.MetricKinds(stage.CPUCores) {
		text := "gdisim: v1\nhardware: h200-cx7-ib200\n"
		beside := slices.Contains(scenarios.MetricKinds(stage.BackgroundRate), kind)
		if !scenarios.IsStep(kind) || kind == "post" {
			text += "paths: [mini-gda]\n"
		}
		text += "workload: {kind: " + kind + kinds[kind] + ", iterations: 20"
		if beside {
			text += ", background: {kind: stream, initiators: {ctas: 1, threads: 1}}"
		}
		res, err := testbed.Run(t.Context(), parse(t, text+"}\n"), testbed.Options{Workers: 1})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		p := res.Points[0].Paths[0]
		for m := stage.Metric(1); m < stage.MetricCount; m++ {
			if has, want := p.Metric(m) != nil, slices.Contains(scenarios.MetricKinds(m), kind); has != want {
				t.Errorf("%s: has %v is %v, want %v", kind, m, has, want)
			}
		}
	}
}

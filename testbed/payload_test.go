package testbed_test

import (
	"fmt"
	"testing"

	"gdisim/sim"
	"gdisim/stage"
)

// TestPayloadInRegister: who posts copies no argument of a call out of memory, and else
// the NIC reads it where it lies.
func TestPayloadInRegister(t *testing.T) {
	build := func(stack, set string) (issue, one sim.Duration) {
		p := paths(t, scene{
			hardware: smooth, paths: []string{fmt.Sprintf("{stack: %s, set: {%s}}", stack, set)}, workload: "{kind: put, bytes: 8B, iterations: 20, warmup: 2}",
		})[0]
		return metric(t, &p, stage.Issue).P50, metric(t, &p, stage.OneWay).P50
	}
	c := parse(t, scene{hardware: smooth, paths: []string{"mini-gda"}, workload: "{kind: put, bytes: 8B}"}.text()).Config(0, 0)
	for _, tt := range []struct {
		stack, set, like string
		less             sim.Duration // of issue: two words out of a line that an acquire made cold
	}{
		{"mini-gda", "payload_in: register", "payload_in: gpu", 2*costOf(c, "gpu.inline_word") + costOf(c, "gpu.l1_refill")},
		{"mini-gda", "payload_in: register, inline: false", "payload_in: gpu, inline: false", 0},
		{"mini-proxy-tuned", "payload_in: register", "payload_in: gpu", 0},
		{"verbs-cpu", "payload_in: register", "payload_in: host", 0},
	} {
		issue, one := build(tt.stack, tt.set)
		from, there := build(tt.stack, tt.like)
		if got := from - issue; !near(got, tt.less) {
			t.Errorf("%s {%s}: issue %v less than {%s}, want %v", tt.stack, tt.set, got, tt.like, tt.less)
		}
		if got := there - one; !near(got, tt.less) {
			t.Errorf("%s {%s}: one way %v less than {%s}, want %v", tt.stack, tt.set, got, tt.like, tt.less)
		}
	}
}

// TestHostPayloadBySectors: a thread that copies its payload out of host memory
// reads it sector by sector, 32 bytes at a time, each a PCIe round trip.
func TestHostPayloadBySectors(t *testing.T) {
	build := func(bytes int, in string) float64 {
		p := paths(t, scene{
			hardware: "nic.inline_max: 220B", paths: []string{fmt.Sprintf("{stack: mini-gda, set: {payload_in: %s, notify_in: gpu}}", in)},
			workload: fmt.Sprintf("{kind: put, bytes: %dB, iterations: 20, warmup: 2}", bytes),
		})[0]
		d, _ := at(breakdown(t, &p, stage.Issue), stage.GPUBuild, 0)
		return float64(d) / 1e6
	}
	const refill = 0.13 // of a sector that lies in GPU memory
	read := float64(hostLoad(t)) / 1e6
	for _, tt := range []struct{ bytes, reads int }{{8, 1}, {32, 1}, {36, 2}, {92, 3}, {132, 5}} {
		more := build(tt.bytes, "host") - build(tt.bytes, "gpu") + float64(tt.reads)*refill
		if want := float64(tt.reads) * read; more < 0.95*want || more > 1.05*want {
			t.Errorf("%d B: %.2f us more than from L1, want %d reads of %.2f us", tt.bytes, more, tt.reads, read)
		}
	}
}

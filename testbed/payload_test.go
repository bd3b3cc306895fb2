package testbed_test

import (
	"fmt"
	"testing"

	"gdisim/stage"
)

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

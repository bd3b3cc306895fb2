package scenarios

import "testing"

func TestVary(t *testing.T) {
	for _, tt := range []struct {
		key, text string
		percent   int64
		want      string
		factor    float64
	}{
		{"hardware.nic.ack", "404ns", 10, "444400ps", 1.1},
		{"hardware.nic.ack", "404ns", -10, "363600ps", 0.9},
		{"hardware.nic.ack", "0ns", 10, "", 0},
		{"hardware.nic.ack", "{dist: lognormal, median: 1us, p99: 4us}", 10, "{dist: lognormal, median: 1100ns, p99: 4400ns}", 1.1},
		{"hardware.nic.ack", "{dist: empirical, file: x.csv}", 10, "", 0},
		{"hardware.gpu.call", "40cy", 10, "44cy", 1.1},
		{"hardware.gpu.call", "40cy+10ns", -10, "36cy+9ns", 0.9},
		{"hardware.gpu.call", "10ns", -10, "9ns", 0.9},
		{"hardware.fabric.rate", "200Gb/s", 10, "220Gb/s", 1.1},
		{"workload.outstanding", "1", 10, "2", 2},
		{"workload.outstanding", "1", -10, "", 0},
		{"workload.outstanding", "64", -10, "58", 58.0 / 64},
		{"path.fence", "gpu", 10, "", 0},
		{"host.clock", "cold", 10, "", 0},
		{"host.clock", "2GHz", 10, "2200MHz", 1.1},
		{"hardware.nic.mtu", "4096B", 10, "", 0},
		{"hardware.nic.mtu", "4096B", -10, "2KiB", 0.5},
		{"fault.rate", "100%", 10, "", 0},
		{"fault.rate", "1%", 10, "1.1%", 1.1},
	} {
		f, ok := FieldOf(tt.key)
		if !ok {
			t.Fatal(tt.key)
		}
		got, factor, ok := f.Vary(tt.text, tt.percent)
		if !ok {
			got, factor = "", 0
		}
		if got != tt.want || factor-tt.factor > 1e-9 || tt.factor-factor > 1e-9 {
			t.Errorf("%s %s by %d %%: %q x %v, want %q x %v", tt.key, tt.text, tt.percent, got, factor, tt.want, tt.factor)
		}
		if _, err := parse(f.Kind, got); ok && err != nil && f.Alt == 0 && got[0] != '{' {
			t.Errorf("%s: %v", tt.key, err)
		}
	}
}

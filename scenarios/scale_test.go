package scenarios

import (
	"math"
	"strings"
	"testing"
)

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		key, text string
		x         float64
		want      string
	}{
		{"hardware.nic.ack", "404ns", 1, "404ns"},
		{"hardware.nic.ack", "404ns", 1.10003, "444400ps"},
		{"hardware.gpu.l1_refill", "226cy+16ns", 2, "452cy+32ns"},
		{"hardware.gpu.l1_refill", "226cy", 0.5, "113cy"},
		{"hardware.gpu.l1_refill", "16ns", 0.5, "8ns"},
		{"hardware.cpu.uncore.cold", "800MHz", 0.9936789, "794900kHz"},
		{"hardware.nic.context.cache", "3820kB", 1, "3820kB"},
		{"path.steps.lookups", "2", 1.4, "3"},
		{"hardware.pcie.dllp", "5%", 1.23456, "6.173%"},
	} {
		if got, err := Times(c.key, c.text, c.x); got != c.want || err != nil {
			t.Errorf("%s %s x %g: %q, %v, want %q", c.key, c.text, c.x, got, err, c.want)
		}
	}
	for _, c := range []struct{ key, text, want string }{
		{"hardware.nic.akc", "404ns", "no field"},
		{"path.fence", "gpu", "no size"},
		{"hardware.nic.ack", "0", "no size"},
		{"hardware.nic.ack", "404", "no unit"},
	} {
		if _, err := Times(c.key, c.text, 2); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.key, c.text, err, c.want)
		}
	}
	if x, err := Over("hardware.nic.ack", "0.8us", "400ns"); math.Abs(x-2) > 1e-12 || err != nil {
		t.Error(x, err)
	}
}

// Bounds stand together, and hold the value.
func TestBounds(t *testing.T) {
	profile := func(leaf string) error {
		files := map[string]string{"p.yaml": "gdisim-profile: v1\nname: p\ntitle: t\ninclude: [h200-cx7-ib200]\nsources: {n: notes}\nparameters:\n  nic.ack: {" + leaf + ", kind: measured, source: n}\n"}
		_, err := Parse("s.yaml", []byte("gdisim: v1\nhardware: ./p.yaml\npaths: [mini-gda]\nworkload: {kind: put, bytes: 8B}\n"), testFiles(t, files))
		return err
	}
	if err := profile("value: 300ns, min: 200ns, max: 0.4us"); err != nil {
		t.Error(err)
	}
	for leaf, want := range map[string]string{
		"value: 300ns, min: 200ns":             "one bound without the other",
		"value: 300ns, min: 400ns, max: 500ns": "does not hold 300ns",
		"value: 300ns, min: 0, max: 500ns":     "min above 0",
		"value: 300ns, min: 2, max: 500ns":     "no unit",
	} {
		if err := profile(leaf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", leaf, err, want)
		}
	}
}

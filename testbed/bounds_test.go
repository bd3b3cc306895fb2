package testbed_test

import (
	"strings"
	"testing"

	"gdisim/stage"
	"gdisim/testbed"
)

// TestLargeMessages: what takes many events is waited for: a message of the
// largest size by small packets, and a load of many lines.
func TestLargeMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("tens of millions of events")
	}
	s := scene{
		hardware: "nic.mtu: 1KiB", paths: []string{"{name: x, stack: verbs-cpu}"},
		workload: "{kind: put, bytes: 512MiB, iterations: 1, warmup: 0}",
	}
	for _, text := range []string{
		s.text(), "gdisim: v1\nhardware: h200-vm\nworkload: {kind: mmio, op: load, bytes: 64MiB, iterations: 1, warmup: 0}\n",
	} {
		r, err := testbed.Run(t.Context(), parse(t, text), testbed.Options{Workers: 1})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if p := r.Points[0].Paths[0]; p.Err != "" || len(p.Metrics) == 0 {
			t.Errorf("%s\n%s", p.Err, text)
		}
	}
}

// TestStepsUseNoMoreSMs: CTAs beyond the SMs share them.
func TestStepsUseNoMoreSMs(t *testing.T) {
	for _, kind := range []string{"poll", "post", "proxy-echo"} {
		for ctas, want := range map[string]int{"3": 3, "200": 132} {
			text := "gdisim: v1\nhardware: h200-vm\nworkload: {kind: " + kind + ", initiators.ctas: " + ctas + ", iterations: 2, warmup: 0}\n"
			if kind == "post" {
				text += "paths: [{stack: mini-gda}]\n"
			}
			p := steps(t, text)
			if v := metric(t, &p, stage.SMCount).Value; p.Cost.SMs != want || v != float64(want) {
				t.Errorf("%s by %s CTAs: %d SMs, metric %v (want %d)", kind, ctas, p.Cost.SMs, v, want)
			}
		}
	}
}

// TestNonsenseIsRefused: values that are fine each and make no sense together.
func TestNonsenseIsRefused(t *testing.T) {
	adaptive := func(low, high string) string {
		return "{proxy.wait: interrupt, interrupt.moderation: 50us, interrupt.adaptive.sample: 1ms, interrupt.adaptive.rate_low: " + low + ", interrupt.adaptive.rate_high: " + high + "}"
	}
	put := func(more string) string { return "{kind: put, bytes: 64KiB, iterations: 5, warmup: 1" + more + "}" }
	for _, tt := range []struct {
		host, workload, want string
	}{
		{adaptive("500000", "450000"), put(""), "host.interrupt.adaptive.rate_low: 500000, above the rate_high of 450000"},
		{adaptive("450000", "450000"), put(""), ""},
		{"{proxy.memory: nic}", put(", registration: on-demand, window: 32KiB"), "workload.window: 32768 B hold no message of 65536 B"},
		{"{proxy.memory: nic}", put(", registration: on-demand, window: 64KiB"), ""},
	} {
		s := scene{host: tt.host, paths: []string{"{name: x, stack: verbs-cpu, set: {payload_in: host}}"}, workload: tt.workload}
		if strings.Contains(tt.host, "adaptive") {
			s.paths = []string{"{name: x, stack: mini-proxy-tuned}"}
		}
		if why := refusal(t, s.text()); !strings.Contains(why, tt.want) || tt.want == "" && why != "" {
			t.Errorf("%q (want %q)\n%s", why, tt.want, s.text())
		}
	}
	text := "gdisim: v1\nhardware: h200-vm\nhost: " + adaptive("500000", "450000") + "\nworkload: {kind: proxy-echo, iterations: 2, warmup: 0}\n"
	if why := refusal(t, text); !strings.Contains(why, "rate_low: 500000") {
		t.Errorf("%q\n%s", why, text)
	}
}

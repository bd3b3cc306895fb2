package testbed_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"testing"

	"gdisim/result"
	"gdisim/stage"
	"gdisim/testbed"
)

// echoes runs a worker over rings with fixed prices: a look takes
// 2 ns, a descriptor 6 more, a line 100 and one that the prefetcher has 20.
func echoes(t *testing.T, ctas int, descriptor string, set map[string]string, load string) *result.Path {
	t.Helper()
	prices := map[string]string{
		"cpu.check": "2ns", "cpu.dequeue": "4ns", "cpu.publish": "1ns", "cpu.loop": "8ns", "cpu.miss": "100ns", "cpu.stream": "20ns", "cpu.rewrite": "100ns",
		"cpu.window": "80ns", "cpu.streams": "40", "cpu.mispredict": "0ns", "cpu.stolen.every": "0s", "gpu.descriptor": "42ns",
	}
	maps.Copy(prices, set)
	text := "gdisim: v1\nname: rings\nhardware:\n  profile: h200-vm\n  set:\n"
	for key, value := range prices {
		text += fmt.Sprintf("    %s: %s\n", key, value)
	}
	text += fmt.Sprintf("workload: {kind: proxy-echo, descriptor: %s, initiators.ctas: %d, %s, warmup: 20}\n", descriptor, ctas, load)
	res, err := testbed.Run(context.Background(), parse(t, text), testbed.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if e := res.Points[0].Paths[0].Err; e != "" {
		t.Fatal(e)
	}
	return &res.Points[0].Paths[0]
}

// TestRings recomputes what limits full rings: a GPU thread's own loop for one; the
// core's work for as many as its prefetcher follows; for more, one line's time for the
// work that the core does ahead of it.
func TestRings(t *testing.T) {
	const full = "outstanding: 64, pause: 0s, iterations: 600"
	for _, tt := range []struct {
		what string
		ctas int
		set  map[string]string
		want float64 // ns a descriptor
	}{
		{"one ring: 50 ns of the thread's loop, and a look of 1.2 us at the completions for each 64", 1, nil, 50 + 1200.0/64},
		{"32 rings: 8 ns of work, and a 32nd of the loop", 32, nil, 8 + 8.0/32},
		{"132 rings: 11 lines in a window of 80 ns, each of 8 ns of work", 132, nil, 102.0 / 11},
		{"132 rings, half the window", 132, map[string]string{"cpu.window": "40ns"}, 102.0 / 6},
		{"132 rings that the prefetcher follows", 132, map[string]string{"cpu.streams": "132"}, 8 + 8.0/132},
	} {
		p := echoes(t, tt.ctas, "lanes", tt.set, full)
		if got := 1e3 / metric(t, p, stage.MessageRate).Value; math.Abs(got/tt.want-1) > 0.1 {
			t.Errorf("%s: %.1f ns a descriptor, want %.1f", tt.what, got, tt.want)
		}
	}
}

// TestUnexpected has descriptors come seldom: each that the core did not expect costs
// it the line and what it did ahead, so that a round trip over many rings is longer
// than with a core that begins anew at no cost and whose window is wide.
func TestUnexpected(t *testing.T) {
	const echo = "pause: {dist: uniform, low: 1us, high: 3us}, iterations: 200"
	mean := func(window, flush string) float64 {
		return float64(metric(t, echoes(t, 132, "lanes", map[string]string{"cpu.window": window, "cpu.mispredict": flush}, echo), stage.RTT).Mean)
	}
	wide, narrow, flush := mean("1us", "0ns"), mean("20ns", "0ns"), mean("1us", "40ns")
	if narrow < 1.02*wide || flush < 1.02*wide {
		t.Errorf("mean round trips of %.0f ps, with a narrow window %.0f, and with a cost of what was done ahead %.0f: want each longer", wide, narrow, flush)
	}
}

// TestRetake has a body and its flag meet the core once each, one after the other for
// all CTAs; a whole line does not.
func TestRetake(t *testing.T) {
	const echo = "pause: {dist: uniform, low: 1us, high: 3us}, iterations: 200"
	for descriptor, most := range map[string]float64{"lanes": 0, "flag": 1} {
		free, costs := echoes(t, 132, descriptor, map[string]string{"host.pcie.retake": "0ns"}, echo), echoes(t, 132, descriptor, map[string]string{"host.pcie.retake": "40ns"}, echo)
		a, b := metric(t, free, stage.RTT).Mean, metric(t, costs, stage.RTT).Mean
		if most == 0 && a != b {
			t.Errorf("whole lines: %v, and %v where a part of a line takes it back", a, b)
		}
		// 132 messages of two times 40 ns are under way or paused for 2 us.
		if least := 132 * 2 * 40e3 * 0.7; most > 0 && (b <= a || float64(b) < least-2e6) {
			t.Errorf("flags: %v, and %v where a part of a line takes it back, want %.1f us at least", a, b, (least-2e6)/1e6)
		}
	}
}

package testbed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

// TestNotifyInHost recomputes what a receiver pays whose word lives in host
// memory: the NIC's write goes there, and the GPU thread looks by PCIe reads,
// one after the other. Of the read under way when the word comes only the second
// half is ahead, or one more read if it was sampled before: on average a period's
// half until the next look begins, and half a read until it has sampled.
func TestNotifyInHost(t *testing.T) {
	const put = "{kind: put, bytes: 8B, iterations: 2000, warmup: 20}"
	ps := paths(t, scene{paths: []string{"{name: gpu, stack: mini-gda}", "{name: host, stack: mini-gda, set: {notify_in: host}}"}, workload: put})
	var seen, deliver [2]sim.Duration
	for i := range ps {
		b := breakdown(t, &ps[i], stage.OneWay)
		if err := consistent(&ps[i]); err != nil {
			t.Error(err)
		}
		seen[i], _ = at(b, stage.GPUObserve, 1)
		deliver[i], _ = at(b, stage.PCIeDeliver, 1)
	}
	look := hostLoad(t)
	if least := look / 2; seen[1] < least || seen[1] > 2*look {
		t.Errorf("a word in host memory is seen after %v, want half a read of %v to two", seen[1], look)
	}
	if seen[0] > look/2 {
		t.Errorf("a word in GPU memory is seen after %v, want less than a read of host memory", seen[0])
	}
	if deliver[0] <= deliver[1] {
		t.Errorf("the NIC's write takes %v to the GPU and %v to the host, want less to the host, which is no peer", deliver[0], deliver[1])
	}
	gpu, host := metric(t, &ps[0], stage.RTT), metric(t, &ps[1], stage.RTT)
	if d := host.Mean - gpu.Mean; 10*d < 8*look || d > 3*look {
		t.Errorf("the round trip grows by %v, want about two looks of %v less the nearer write", d, look)
	}
}

// TestWordOfAPut: a put that no signal follows is seen where its data lands, wherever
// the signals of the path's round trips would be.
func TestWordOfAPut(t *testing.T) {
	for stack, elsewhere := range map[string]string{"mini-gda": "host", "mini-proxy": "host", "verbs-cpu": "gpu"} {
		for _, signal := range []string{"signal-write", "signal-atomic"} {
			ps := paths(t, scene{
				paths:    []string{stack, fmt.Sprintf("{name: elsewhere, stack: %s, set: {notify: %s, notify_in: %s}}", stack, signal, elsewhere)},
				workload: "{kind: put, bytes: 8B, iterations: 40, warmup: 5}",
			})
			if a, b := metric(t, &ps[0], stage.OneWay).P50, metric(t, &ps[1], stage.OneWay).P50; a != b {
				t.Errorf("%s, %s in %s: one way %v, want %v as without", stack, signal, elsewhere, b, a)
			}
			if a, b := metric(t, &ps[0], stage.RTT).P50, metric(t, &ps[1], stage.RTT).P50; a == b {
				t.Errorf("%s, %s in %s: round trip %v as without", stack, signal, elsewhere, b)
			}
		}
	}
	// Who is told of no message reads no word for it.
	r := run(t, scene{paths: []string{"{name: p, stack: mini-gda, set: {notify_in: host}}"}, workload: "{kind: stream, bytes: 8B, outstanding: 4, iterations: 40}"}, testbed.Options{Workers: 1})
	if all := strings.Join(r.Notices, "\n"); !strings.Contains(all, "without effect here: path.notify_in") {
		t.Errorf("notices %q, want notify_in in one", all)
	}
}

// hostLoad is a load of host memory by a GPU thread.
func hostLoad(t *testing.T) sim.Duration {
	t.Helper()
	res, err := testbed.Run(context.Background(), parse(t, "gdisim: v1\nname: load\nhardware: h200-cx7-ib200\nworkload: {kind: load, memory: host, iterations: 10, warmup: 1}\n"), testbed.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	return metric(t, &res.Points[0].Paths[0], stage.Latency).P50
}

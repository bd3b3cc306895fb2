package testbed_test

import (
	"fmt"
	"testing"

	"gdisim/scenarios"
	"gdisim/stage"
	"gdisim/testbed"
)

// TestSignalsAlike: a put with a signal and a round trip's message that a signal
// announces are one operation, by whichever kind of workload it is asked for.
func TestSignalsAlike(t *testing.T) {
	var seen int
	for _, s := range scenarios.Stacks() {
		var rtt [2]int64
		for i, kind := range []string{"ping-pong", "put-signal"} {
			sc := scene{paths: []string{s.Name}, workload: fmt.Sprintf("{kind: %s, bytes: 8B, iterations: 20, warmup: 5}", kind)}
			if parse(t, sc.text()).Config(0, 0).Enum("path.notify") != "signal-atomic" {
				break
			}
			rtt[i] = int64(metric(t, &paths(t, sc)[0], stage.RTT).P50)
		}
		if rtt[0] != 0 {
			seen++
		}
		if rtt[0] != rtt[1] {
			t.Errorf("%s: round trip %d ps, as a put with a signal %d ps", s.Name, rtt[0], rtt[1])
		}
	}
	if seen == 0 {
		t.Error("no stack announces its messages by a fetch-add")
	}
}

// TestPayloadPlace: the place of the payload is that of the source: where a put
// of a GPU thread is delivered and seen does not depend on it, and a get reads it
// there.
func TestPayloadPlace(t *testing.T) {
	for _, stack := range []string{"mini-gda", "gin-gdaki", "mini-proxy", "mini-proxy-tuned"} {
		ends := []string{"{name: gpu, stack: " + stack + "}", "{name: host, stack: " + stack + ", set: {payload_in: host}}"}
		ps := paths(t, scene{hardware: smooth, workload: "{kind: put, bytes: 8B, iterations: 10, warmup: 5}", paths: ends})
		for _, s := range []stage.Stage{stage.PCIeDeliver, stage.GPUObserve} {
			gpu, _ := at(breakdown(t, &ps[0], stage.OneWay), s, 1)
			host, _ := at(breakdown(t, &ps[1], stage.OneWay), s, 1)
			if gpu != host || gpu == 0 {
				t.Errorf("%s: %v takes %v, with the payload in host memory %v", stack, s, gpu, host)
			}
		}
		ps = paths(t, scene{hardware: smooth, workload: "{kind: get, bytes: 8B, iterations: 10, warmup: 5}", paths: ends})
		gpu, _ := at(breakdown(t, &ps[0], stage.Get), stage.NICPayloadFetch, 1)
		host, _ := at(breakdown(t, &ps[1], stage.Get), stage.NICPayloadFetch, 1)
		if gpu == host || gpu == 0 || host == 0 {
			t.Errorf("%s: a get reads GPU memory in %v, host memory in %v", stack, gpu, host)
		}
		here, _ := at(breakdown(t, &ps[0], stage.Get), stage.PCIeDeliver, 0)
		there, _ := at(breakdown(t, &ps[1], stage.Get), stage.PCIeDeliver, 0)
		if here != there {
			t.Errorf("%s: a get is delivered in %v, of host memory in %v", stack, here, there)
		}
	}
}

// TestNarrowWindow: a CPU thread chains, and asks for CQEs, as its window has room
// for, and the result says so; a window that one CQE ends has no rate, which it
// says too.
func TestNarrowWindow(t *testing.T) {
	for _, tt := range []struct {
		stack       string
		outstanding int
		rate        bool
		notices     int
	}{{"verbs-cpu", 1, true, 1}, {"verbs-cpu", 64, true, 1}, {"fabric-lib", 1, true, 1}, {"fabric-lib", 8, true, 0}, {"verbs-cpu", 512, false, 1}} {
		s := scene{paths: []string{tt.stack}, workload: fmt.Sprintf("{kind: stream, bytes: 8B, iterations: 200, warmup: 100, outstanding: %d}", tt.outstanding)}
		if !tt.rate {
			s.workload = fmt.Sprintf("{kind: stream, bytes: 8B, iterations: 20, warmup: 10, outstanding: %d}", tt.outstanding)
		}
		res := run(t, s, testbed.Options{Workers: 1})
		has := false
		for _, m := range res.Points[0].Paths[0].Metrics {
			has = has || m.Metric == stage.MessageRate && m.Value > 0
		}
		if has != tt.rate || len(res.Notices) != tt.notices {
			t.Errorf("%s, %d outstanding: rate %v, notices %q", tt.stack, tt.outstanding, has, res.Notices)
		}
	}
}

package testbed_test

import (
	"context"
	"reflect"
	"strings"
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
		{"kind: launch, until: blocking-sync", stage.Latency, false},
		{"kind: launch, until: stream-sync, graph: 5", stage.Latency, false},
		{"kind: notice, by: next-kernel", stage.Latency, false},
		{"kind: notice, by: copy", stage.Latency, false},
		{"kind: notice, by: host-callback, after: 5us", stage.Latency, false},
		{"kind: copy, bytes: 100000B", stage.Latency, false},
		{"kind: copy, bytes: 5MiB, seen_by: poll", stage.Latency, false},
		{"kind: copy, bytes: 10B, direction: to-gpu", stage.Latency, false},
		{"kind: proxy-echo, initiators.ctas: 3", stage.RTT, false},
		{"kind: proxy-echo, descriptor: flag, initiators.ctas: 2, outstanding: 8, pause: 0s", stage.RTT, false},
		{"kind: proxy-echo, descriptor: thread, outstanding: 16, pause: 0s", stage.RTT, false},
		{"kind: post, initiators.ctas: 3, pause: 0s", stage.Issue, false},
		{"kind: post, initiators.ctas: 3, queue: shared, pause: 0s", stage.Issue, false},
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
			if strings.HasPrefix(w, "kind: post") {
				text += "paths: [{stack: mini-gda, set: {fence: system, record: true}}]\n"
			}
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

// What the steps of a launch and of an idle flag exchange cost, added by hand
// from the profile: two reads of the flag, since the first look is too early.
func TestStepsByHand(t *testing.T) {
	const set = "hardware: {profile: h200-vm, set: {cpu.loop: 0ns, cpu.check: 0cy, cpu.stolen.length: 0s}}\n"
	// A posted write: egress 250, two links, switch and root 25 + 110 + 25 + 40,
	// 30 in the host; a read: the way twice, 250, 330 in the host, 225.
	const write, read, look = 480, 1205, 110
	for _, tt := range []struct {
		workload string
		metric   stage.Metric
		want     float64 // ns
	}{
		{"{kind: launch, until: first-store}", stage.Latency, 6500 + write + look},
		{"{kind: launch, until: stream-sync, graph: 11}", stage.Latency, 1000 + 2900 + 10*530 + 2500},
		{"{kind: load, memory: host}", stage.Latency, read},
		{"{kind: flag-echo}", stage.RTT, 7.6 + 2*read},
		{"{kind: flag-echo, look_after: 1us}", stage.RTT, 7.6 + 1000 + read},
		{"{kind: fence}", stage.Latency, 475 + 42},
	} {
		p := steps(t, "gdisim: v1\n"+set+"workload: "+tt.workload+"\n")
		for _, m := range p.Metrics {
			if got := float64(m.P50) / 1000; m.Metric == tt.metric && (got < tt.want-4 || got > tt.want+4) {
				t.Errorf("%s: %.1f ns, want %.1f", tt.workload, got, tt.want)
			}
		}
	}
}

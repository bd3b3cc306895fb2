package workload_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
	"gdisim/workload"
)

// run runs one workload on one path of the embedded profile, with real
// hardware models behind the threads.
func run(t *testing.T, path, load string) *result.Path {
	t.Helper()
	text := fmt.Sprintf("gdisim: v1\nname: test\ntitle: test\nhardware: h200-cx7-ib200\npaths: [%s]\nworkload: %s\n", path, load)
	s, err := scenarios.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	res, err := testbed.Run(context.Background(), s, testbed.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := &res.Points[0].Paths[0]
	if p.Err != "" {
		t.Fatal(p.Err)
	}
	return p
}

func metric(t *testing.T, p *result.Path, m stage.Metric) result.Metric {
	t.Helper()
	for _, x := range p.Metrics {
		if x.Metric == m {
			return x
		}
	}
	t.Fatalf("no %v", m)
	return result.Metric{}
}

// TestMetricsOfKinds: a workload measures what its kind defines, and no more.
func TestMetricsOfKinds(t *testing.T) {
	times := []stage.Metric{stage.Issue, stage.PutCompletion, stage.OneWay, stage.RTT, stage.Get, stage.Latency}
	for kind, want := range map[string][]bool{
		"put":        {true, true, true, true, false, false},
		"put-signal": {true, true, true, true, false, false},
		"get":        {false, false, false, false, true, false},
		"ping-pong":  {false, false, false, true, false, false},
		"stream":     {false, false, false, false, false, true},
	} {
		p := run(t, "mini-gda", fmt.Sprintf("{kind: %s, bytes: 8B, iterations: 5, warmup: 1}", kind))
		for i, m := range times {
			has := false
			for _, x := range p.Metrics {
				has = has || x.Metric == m
			}
			if has != want[i] {
				t.Errorf("%s: %v measured: %v", kind, m, has)
			}
		}
	}
}

// TestOrderOfMarks: a put is issued before it is seen there, and seen there or
// not, a signal comes behind its data.
func TestOrderOfMarks(t *testing.T) {
	for _, path := range []string{"mini-gda", "mini-proxy", "mini-proxy-tuned"} {
		put := run(t, path, "{kind: put, bytes: 8B, iterations: 20, warmup: 2}")
		signal := run(t, path, "{kind: put-signal, bytes: 8B, iterations: 20, warmup: 2}")
		issue, oneway, completion := metric(t, put, stage.Issue).P50, metric(t, put, stage.OneWay).P50, metric(t, put, stage.PutCompletion).P50
		if issue <= 0 || oneway <= issue || completion <= issue {
			t.Errorf("%s: issue %v, one way %v, completion %v", path, issue, oneway, completion)
		}
		if s := metric(t, signal, stage.OneWay).P50; s <= oneway {
			t.Errorf("%s: one way %v, with a signal behind it %v", path, oneway, s)
		}
	}
}

// TestStreamRate: goodput is rate times size, and a batch counts as its
// messages.
func TestStreamRate(t *testing.T) {
	for _, load := range []string{
		"{kind: stream, bytes: 64B, iterations: 2000, warmup: 100, outstanding: 16}",
		"{kind: stream, bytes: 64B, iterations: 2000, warmup: 100, outstanding: 32, wqes_per_doorbell: 16}",
		"{kind: stream, bytes: 64B, iterations: 1000, warmup: 100, outstanding: 16, initiators: {ctas: 4}}",
	} {
		p := run(t, "mini-gda", load)
		rate, good := metric(t, p, stage.MessageRate).Value, metric(t, p, stage.Goodput).Value
		if got := rate * 64 / 1e3; rate <= 0 || got < good*0.999999 || got > good*1.000001 {
			t.Errorf("%s: %v Mmsg/s of 64 B are %v GB/s", load, rate, good)
		}
		if got := float64(p.Cost.Messages) / p.Cost.Window.Seconds() / 1e6; got < rate*0.999999 || got > rate*1.000001 {
			t.Errorf("%s: %d messages in %v, but %v Mmsg/s", load, p.Cost.Messages, p.Cost.Window, rate)
		}
	}
	one, many := run(t, "mini-gda", "{kind: stream, bytes: 8B, iterations: 3200, warmup: 320, outstanding: 64}"),
		run(t, "mini-gda", "{kind: stream, bytes: 8B, iterations: 3200, warmup: 320, outstanding: 64, wqes_per_doorbell: 16}")
	if a, b := metric(t, one, stage.MessageRate).Value, metric(t, many, stage.MessageRate).Value; b <= 1.2*a {
		t.Errorf("%v Mmsg/s with a doorbell each, %v with one in 16", a, b)
	}
}

// TestWindowOfOne: a stream with one message outstanding is a loop of puts.
func TestWindowOfOne(t *testing.T) {
	for _, path := range []string{"mini-gda", "mini-proxy-tuned"} {
		p := run(t, path, "{kind: stream, bytes: 8B, iterations: 1000, warmup: 100, outstanding: 1}")
		rate, mean := metric(t, p, stage.MessageRate).Value*1e6, metric(t, p, stage.Latency).Mean
		if got := rate * mean.Seconds(); got < 0.99 || got > 1.01 {
			t.Errorf("%s: %v messages of %v outstanding", path, got, mean)
		}
	}
}

// TestBackground: load on the same queue costs the measured messages much, load
// on queues of its own little.
func TestBackground(t *testing.T) {
	const load = "{kind: ping-pong, bytes: 8B, iterations: 50, warmup: 5, background: {kind: stream, bytes: 8B, outstanding: 16, initiators: {threads: 4}, queue: %s}}"
	const path = "{name: x, stack: mini-gda, set: {posting: lock, qps_per_peer: 1}}"
	alone := metric(t, run(t, path, "{kind: ping-pong, bytes: 8B, iterations: 50, warmup: 5}"), stage.RTT).P50
	shared, reserved := run(t, path, fmt.Sprintf(load, "shared")), run(t, path, fmt.Sprintf(load, "reserved"))
	for _, p := range []*result.Path{shared, reserved} {
		if r := metric(t, p, stage.BackgroundRate).Value; r < 0.1 {
			t.Errorf("the background carries %v Mmsg/s", r)
		}
	}
	a, b := metric(t, reserved, stage.RTT).P50, metric(t, shared, stage.RTT).P50
	if alone > a || a > alone+alone/10 || b < a+a/5 {
		t.Errorf("round trip %v alone, %v beside load, %v behind it", alone, a, b)
	}
}

// TestGroup: the window of a group whose streams never end is what Open and the
// first Close say.
func TestGroup(t *testing.T) {
	r := &workload.Run{Eng: sim.New()}
	g := workload.NewGroup(r, stage.NoMetric, 0)
	if g.Every != 1 {
		t.Errorf("one operation in %d is recorded", g.Every)
	}
	r.Eng.RunUntil(100)
	g.Open()
	r.Eng.RunUntil(350)
	g.Close()
	r.Eng.RunUntil(900)
	g.Close()
	if n, w := g.Rate(); n != 0 || w != 250 {
		t.Errorf("%d messages in %v, want none in 250ps", n, w)
	}
	workload.NewStream(g, -1, 0, 1)
	if r.Open() != 0 {
		t.Error("a run waits for a stream without end")
	}
	workload.NewStream(g, 1, 0, 1)
	workload.NewPut(r, stage.Get, 1, 0, false)
	workload.NewPingPong(r, 1, 0)
	if r.Open() != 3 {
		t.Errorf("a run waits for %d clients, want 3", r.Open())
	}
}

// TestArrivals: threads that learn only that their descriptors were read measure
// what lands, which is what the wire carries, however few iterations there are.
func TestArrivals(t *testing.T) {
	for _, path := range []string{"uccl-ep", "mscclpp", "nvshmem-ibrc"} {
		for _, n := range []int{20, 100} {
			p := run(t, path, fmt.Sprintf("{kind: stream, bytes: 256KiB, outstanding: 32, iterations: %d, warmup: 1, initiators: {ctas: 4}}", n))
			if got := metric(t, p, stage.Goodput).Value; got < 24.5 || got > 25 {
				t.Errorf("%s, %d iterations: %.2f GB/s on 200 Gb/s", path, n, got)
			}
		}
	}
}

// TestLateBackground: a measurement that begins before every background thread has
// completed a message says so.
func TestLateBackground(t *testing.T) {
	for _, tt := range []struct {
		warmup int
		late   bool
	}{{1, true}, {40, false}} {
		text := fmt.Sprintf("gdisim: v1\nname: test\nhardware: h200-cx7-ib200\npaths: [{name: x, stack: mini-gda, set: {posting: lock}}]\nworkload: {kind: ping-pong, bytes: 8B, iterations: 5, warmup: %d, background: {kind: stream, outstanding: 1, queue: reserved, initiators: {ctas: 64}}}\n", tt.warmup)
		s, err := scenarios.Parse("test.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		res, err := testbed.Run(context.Background(), s, testbed.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		late := false
		for _, n := range res.Notices {
			late = late || strings.Contains(n, "background threads had not completed a message")
		}
		if late != tt.late {
			t.Errorf("warm-up %d: notices %q", tt.warmup, res.Notices)
		}
	}
}

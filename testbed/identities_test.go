package testbed_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"

	"github.com/google/go-cmp/cmp"
)

// smooth takes away what quantises times: polls see at once, a worker's pass
// has no length and nothing interrupts it.
const smooth = `
	gpu.poll: 0
	cpu.loop: 0
	cpu.check: 0
	cpu.poll_empty: 0
	cpu.tick.length: 0`

// near reports whether two durations differ by no more than the rounding of
// the bytes on a few links.
func near(a, b sim.Duration) bool { return a-b <= 10 && b-a <= 10 }

// TestFenceCostsOnlyIssue is identity 2: among fences whose completion is
// acquired, what comes after the issue does not depend on the fence.
func TestFenceCostsOnlyIssue(t *testing.T) {
	s := scene{hardware: "gpu.poll_phase: fixed", workload: "{kind: put, bytes: 8B, iterations: 20, warmup: 5}"}
	for _, f := range []string{"gpu", "gpu+record", "gpu-release", "device", "system-release", "system"} {
		s.paths = append(s.paths, fmt.Sprintf("{name: %s, stack: mini-gda, set: {fence: %s}}", f, f))
	}
	ps := paths(t, s)
	after := func(p *result.Path) sim.Duration {
		return metric(t, p, stage.PutCompletion).P50 - metric(t, p, stage.Issue).P50
	}
	for i := range ps {
		if got, want := after(&ps[i]), after(&ps[0]); !near(got, want) {
			t.Errorf("%s: %v after the issue, with fence gpu %v", ps[i].Name, got, want)
		}
	}
	issue := func(i int) sim.Duration { return metric(t, &ps[i], stage.Issue).P50 }
	if issue(0) >= issue(1) || issue(1) >= issue(4) || issue(4) >= issue(5) || issue(0) != issue(2) {
		t.Errorf("issue does not grow with the fence: %v", []sim.Duration{issue(0), issue(1), issue(2), issue(3), issue(4), issue(5)})
	}
}

// TestInlineFromHost: who copies a payload out of host memory waits for its line
// as a load of host memory does, in place of a refill of L1; who only names the
// payload does not.
func TestInlineFromHost(t *testing.T) {
	res, err := testbed.Run(context.Background(), parse(t, "gdisim: v1\nname: t\nhardware: h200-cx7-ib200\nworkload: {kind: load, memory: host, iterations: 5, warmup: 2}\n"), testbed.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	load := metric(t, &res.Points[0].Paths[0], stage.Latency).P50
	const refill = 114*sim.Nanosecond + 141 + 16*sim.Nanosecond // 226 cycles of 1980 MHz, and 16 ns
	for _, tt := range []struct {
		stack, set string
		want       sim.Duration
	}{
		{"mini-gda", "", load - refill},
		{"mini-gda", ", inline: false", 0},
		{"gin-gdaki", ", inline: true", load - refill},
		{"mini-proxy-tuned", "", load}, // a value in a register else
		{"mini-proxy-tuned", ", inline: false", 0},
	} {
		s := scene{hardware: smooth, workload: "{kind: put, bytes: 8B, iterations: 5, warmup: 2}"}
		for _, place := range []string{"gpu", "host"} {
			s.paths = append(s.paths, fmt.Sprintf("{name: %s, stack: %s, set: {payload_in: %s%s}}", place, tt.stack, place, tt.set))
		}
		ps := paths(t, s)
		d := metric(t, &ps[1], stage.Issue).P50 - metric(t, &ps[0], stage.Issue).P50
		a, _ := at(breakdown(t, &ps[0], stage.Issue), stage.GPUBuild, 0)
		b, _ := at(breakdown(t, &ps[1], stage.Issue), stage.GPUBuild, 0)
		if d-tt.want > 1000 || tt.want-d > 1000 || !near(b-a, d) {
			t.Errorf("%s%s: from host memory %v more, gpu.build %v more, want %v", tt.stack, tt.set, d, b-a, tt.want)
		}
	}
}

// TestPointerAgainstInline is identities 3 and 4: the payload read comes on top
// of the WQE fetch, by what the place of the payload costs, whatever the stack.
func TestPointerAgainstInline(t *testing.T) {
	extra := map[string]sim.Duration{}
	for _, place := range []string{"gpu", "host"} {
		for _, stack := range []string{"mini-gda", "mini-proxy-tuned"} {
			s := scene{hardware: smooth, workload: "{kind: put, bytes: 8B, iterations: 5, warmup: 2}"}
			for _, inline := range []string{"true", "false"} {
				s.paths = append(s.paths, fmt.Sprintf("{name: inline-%s, stack: %s, set: {inline: %s, payload_in: %s}}", inline, stack, inline, place))
			}
			ps := paths(t, s)
			after := func(p *result.Path) sim.Duration {
				return metric(t, p, stage.PutCompletion).P50 - metric(t, p, stage.Issue).P50
			}
			read, n := at(breakdown(t, &ps[1], stage.PutCompletion), stage.NICPayloadFetch, 0)
			if d := after(&ps[1]) - after(&ps[0]); !near(d, read) || read == 0 || n == 0 {
				t.Errorf("%s, payload in %s: a pointer costs %v more, the payload fetch %v", stack, place, d, read)
			}
			a, _ := at(breakdown(t, &ps[0], stage.PutCompletion), stage.NICWQEFetch, 0)
			b, _ := at(breakdown(t, &ps[1], stage.PutCompletion), stage.NICWQEFetch, 0)
			if a != b || (a == 0) != (stack == "mini-proxy-tuned") {
				t.Errorf("%s: WQE fetch %v inline, %v by pointer", stack, a, b)
			}
			if was, ok := extra[place]; ok && !near(was, read) {
				t.Errorf("payload in %s: %v by one stack, %v by the other", place, was, read)
			}
			extra[place] = read
		}
	}
	if extra["gpu"] == extra["host"] {
		t.Errorf("the payload's place costs nothing: %v", extra)
	}
}

// TestLittlesLaw is identity 5: in a closed loop mean latency is window over rate.
func TestLittlesLaw(t *testing.T) {
	for _, window := range []int{1, 3, 64} {
		for _, threads := range []int{1, 4} {
			s := scene{
				workload: fmt.Sprintf("{kind: stream, bytes: 8B, iterations: 1000, warmup: 100, outstanding: %d, initiators: {ctas: %d}}", window, threads),
				paths:    []string{"mini-gda", "mini-proxy-tuned", "{name: locked, stack: mini-gda, set: {posting: lock}}"},
			}
			for _, p := range paths(t, s) {
				rate := metric(t, &p, stage.MessageRate).Value * 1e6
				latency := metric(t, &p, stage.Latency).Mean.Seconds()
				// A thread that posts more slowly than messages complete never
				// fills a wide window.
				full := window*threads <= 4 || p.Stack == "mini-proxy-tuned"
				if got, want := rate*latency, float64(window*threads); full && got < 0.99*want || got > 1.01*want {
					t.Errorf("%s: rate x latency is %.3f, window %v", p.Name, got, want)
				}
			}
		}
	}
}

// TestRoundTrip is identity 6: without polling phases a round trip is twice the
// way there, and twice the store of the word that the receiver polls, where the NIC
// reads it from memory.
func TestRoundTrip(t *testing.T) {
	for _, p := range paths(t, scene{
		hardware: smooth, workload: "{kind: put, bytes: 8B, iterations: 20, warmup: 5}",
		paths: []string{"mini-gda", "mini-proxy-tuned", "{name: large, stack: mini-gda, set: {inline: false}}", "{name: system, stack: mini-gda, set: {fence: system}}"},
	}) {
		rtt, there := metric(t, &p, stage.RTT).P50, metric(t, &p, stage.OneWay).P50
		if p.Name == "large" {
			there += 7576 * sim.Picosecond // gpu.host_store: 15 cycles at 1980 MHz
		}
		if !near(rtt, 2*there) {
			t.Errorf("%s: round trip %v, one way %v", p.Name, rtt, there)
		}
	}
}

// TestSlowerStep is identity 8: a step that takes d longer costs each metric
// exactly n x d, n being its occurrences on the way, and never more under load.
func TestSlowerStep(t *testing.T) {
	const d = 123 * sim.Nanosecond
	base := scene{hardware: smooth, workload: "{kind: put, bytes: 8B, iterations: 3, warmup: 2}", paths: []string{"mini-gda", "mini-proxy-tuned"}}
	before := paths(t, base)
	cfg := parse(t, base.text()).Config(0, 0)
	for key, st := range map[string]stage.Stage{"nic.tx": stage.NICTx, "nic.rx": stage.NICRx, "nic.sched": stage.NICSched} {
		s := base
		s.hardware += fmt.Sprintf("\n%s: %dps", key, cfg.Delay("hardware."+key).Mean()+d)
		after := paths(t, s)
		for i := range after {
			for _, m := range []stage.Metric{stage.Issue, stage.PutCompletion, stage.OneWay, stage.RTT} {
				n := 0
				for _, x := range breakdown(t, &before[i], m).Stages {
					if x.Stage == st {
						n += x.N
					}
				}
				got := metric(t, &after[i], m).P50 - metric(t, &before[i], m).P50
				if !near(got, sim.Duration(n)*d) {
					t.Errorf("%s: %v longer %s makes %v %v longer, with %d on its way", after[i].Name, d, key, m, got, n)
				}
			}
		}
	}
}

// TestSeeds is identity 9: same seed, same bytes, on any number of workers;
// paths of one stack draw the same numbers; another seed draws others.
func TestSeeds(t *testing.T) {
	s := scene{
		paths: []string{"mini-gda", "{name: again, stack: mini-gda}", "mini-proxy", "{name: proxy-again, stack: mini-proxy}"},
		hardware: `
			nic.tx: {dist: exponential, mean: 200ns}
			gpu.build: {dist: lognormal, median: 30ns, p99: 300ns}`,
		workload: "{kind: put, bytes: [8B, 64B, 4KiB], iterations: 30, warmup: 3}",
		seed:     7,
	}
	bytes := func(workers int) string {
		var b strings.Builder
		if err := result.Encode(&b, run(t, s, testbed.Options{Breakdown: true, Workers: workers})); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := bytes(1)
	for _, workers := range []int{1, 2, 8} {
		if bytes(workers) != first {
			t.Errorf("a run by %d workers differs from one by a single worker", workers)
		}
	}
	one := run(t, s, testbed.Options{Breakdown: true, Workers: 1})
	for _, p := range one.Points {
		for i := 0; i < len(p.Paths); i += 2 {
			a, b := p.Paths[i], p.Paths[i+1]
			if diff := cmp.Diff([]any{a.Metrics, a.Breakdowns, a.Cost}, []any{b.Metrics, b.Breakdowns, b.Cost}); diff != "" || !reflect.DeepEqual(a.Graphs, b.Graphs) {
				t.Errorf("%s and %s differ:\n%s", a.Name, b.Name, diff)
			}
		}
	}
	s.seed = 8
	other := run(t, s, testbed.Options{Workers: 1})
	for i := range other.Points {
		for j := range other.Points[i].Paths {
			if cmp.Equal(one.Points[i].Paths[j].Metrics, other.Points[i].Paths[j].Metrics) {
				t.Errorf("point %d, %s: another seed gives the same numbers", i, other.Points[i].Paths[j].Name)
			}
		}
	}
	// A point of a sweep is not its neighbour.
	if cmp.Equal(one.Points[0].Paths[0].Metrics, one.Points[1].Paths[0].Metrics) {
		t.Error("two points of the sweep give the same numbers")
	}
}

// costOf is a GPU's cost of the hardware: cycles at the SM's clock, and what does
// not depend on it.
func costOf(c *scenarios.Config, key string) sim.Duration {
	x := c.Cost("hardware." + key)
	hz := c.Hz("hardware.gpu.sm_clock")
	return x.Fixed.Mean() + sim.Duration((x.MilliCycles*1e9+hz/2)/hz)
}

// TestByHand recomputes every stage of an 8-byte put from the profile's and the
// stack's numbers: the steady state of one thread, NIC and GPU on one switch.
func TestByHand(t *testing.T) {
	s := scene{
		hardware: "pcie.path.gpu_nic: PIX\ngpu.poll_phase: fixed\ngpu.placement: typical",
		workload: "{kind: put, bytes: 8B, iterations: 10, warmup: 5}",
		paths:    []string{"{name: gda, stack: mini-gda, set: {fence: gpu}}"},
	}
	c := parse(t, s.text()).Config(0, 0)
	cost := func(key string) sim.Duration { return costOf(c, key) }
	delay := func(key string) sim.Duration { return c.Delay("hardware." + key).Mean() }
	// A pair of links of 32 GT/s x16 with a switch between: the bytes count once.
	const raw = int64(32e9) * 16 / 130 * 128
	for _, l := range []string{"gpu_link", "nic_link"} {
		if l := c.Link("hardware.pcie." + l); l.Lanes != 16 || l.MTps != 32000 {
			t.Skipf("the arithmetic is for 32GT/s x16, not %v", l)
		}
	}
	link := sim.NewPipe(raw - int64(float64(raw)*c.Ratio("hardware.pcie.dllp")))
	cross := func(bytes int64) sim.Duration {
		return 2*delay("pcie.link_latency") + delay("pcie.switch_latency") + link.Transfer(bytes)
	}
	request, completion := c.Bytes("hardware.pcie.header.request"), c.Bytes("hardware.pcie.header.completion")
	wire := sim.NewPipe(c.Rate("hardware.fabric.rate"))
	const header, reth, aeth = 8 + 12 + 4 + 2, 16, 4 // LRH, BTH, ICRC, VCRC
	cables, hop := 2*delay("fabric.cable"), delay("fabric.switch")

	type row struct {
		stage stage.Stage
		node  int
		want  sim.Duration
	}
	rows := []row{
		// Call; queue state behind a cold L1; WQE; the payload's line, cold too, and two words of it.
		{stage.GPUBuild, 0, sim.Duration(c.Count("path.steps.calls"))*cost("gpu.call") + cost("gpu.l1_refill") + sim.Duration(c.Count("path.steps.state_loads"))*cost("gpu.l1_hit") +
			cost("gpu.build") + cost("gpu.l1_refill") + 2*cost("gpu.inline_word")},
		{stage.GPUFence, 0, cost("gpu.fence.release_gpu.typical")},
		{stage.GPURing, 0, cost("gpu.ring")},
		{stage.PCIeDoorbell, 0, delay("gpu.pcie.egress") + cross(8+request) + delay("nic.pcie.write")},
		{stage.NICSched, 0, delay("nic.sched")},
		{stage.NICWQEFetch, 0, delay("nic.pcie.egress") + cross(request) + delay("gpu.pcie.read") + cross(64+completion) + delay("nic.pcie.return")},
		{stage.NICTx, 0, delay("nic.tx")},
		{stage.FabricSerialise, 0, wire.Transfer(8 + header + reth)},
		{stage.FabricPropagate, 0, cables},
		{stage.FabricSwitch, 0, hop},
		{stage.NICRx, 1, delay("nic.rx")},
		{stage.NICAck, 1, wire.Transfer(header+aeth) + cables + hop},
		{stage.NICAck, 0, delay("nic.ack")},
		{stage.NICCQE, 0, delay("nic.pcie.egress") + cross(c.Bytes("hardware.nic.cqe")+request) + delay("gpu.pcie.write")},
	}
	// Polls follow each other from the issue's end on, and look in their middle.
	visible := sim.Duration(0)
	for _, r := range rows[3:] {
		visible += r.want
	}
	period := cost("gpu.poll")
	seen := period
	for seen-period+period/2 < visible {
		seen += period
	}
	rows = append(rows, row{stage.GPUPoll, 0, seen - visible + cost("gpu.routine") + cost("gpu.fence.acquire")})

	p := paths(t, s)[0]
	b := breakdown(t, &p, stage.PutCompletion)
	total := sim.Duration(0)
	for _, r := range rows {
		total += r.want
		if got, _ := at(b, r.stage, r.node); !near(got, r.want) {
			t.Errorf("%v at node %d: %v, by hand %v", r.stage, r.node, got, r.want)
		}
	}
	if len(b.Stages) != len(rows) {
		t.Errorf("%d stages, by hand %d", len(b.Stages), len(rows))
	}
	if got := metric(t, &p, stage.PutCompletion).P50; !near(got, total) {
		t.Errorf("put+completion %v, by hand %v", got, total)
	}
	issue := rows[0].want + rows[1].want + rows[2].want
	if got := metric(t, &p, stage.Issue).P50; !near(got, issue) {
		t.Errorf("issue %v, by hand %v", got, issue)
	}
}

// TestDeadlock: a run in which nothing more can happen ends, and says so.
func TestDeadlock(t *testing.T) {
	for _, tt := range []struct {
		name string
		s    scene
	}{
		{"a batch that nobody fills", scene{
			workload: "{kind: put, bytes: 8B, iterations: 10, warmup: 0, wqes_per_doorbell: 4}",
			paths:    []string{"{name: x, stack: mini-gda, set: {posting: handoff}}"},
		}},
		{"a worker whose send queue holds half a message", scene{
			hardware: "nic.sq_depth: 1", workload: "{kind: put-signal, bytes: 8B, iterations: 10, warmup: 0}",
			paths: []string{"{name: x, stack: mini-proxy-tuned}"},
		}},
	} {
		p := run(t, tt.s, testbed.Options{Breakdown: true, Workers: 1}).Points[0].Paths[0]
		found := false
		for _, f := range p.Findings {
			found = found || f.Finding == stage.Deadlock && f.Grade == stage.Occurred && f.Cause != ""
		}
		if !strings.Contains(p.Err, "deadlock") || !found {
			t.Errorf("%s: error %q, findings %+v", tt.name, p.Err, p.Findings)
		}
	}
}

// TestStale: a doorbell that nothing orders behind its WQE is a hazard, and an
// accident if the NIC is quick.
func TestStale(t *testing.T) {
	grades := func(p *result.Path) (possible, occurred int) {
		for _, f := range p.Findings {
			if f.Finding == stage.StaleDescriptor {
				if f.Grade == stage.Occurred {
					occurred += f.Count
				} else {
					possible += f.Count
				}
			}
		}
		return possible, occurred
	}
	s := scene{workload: "{kind: put, bytes: 8B, iterations: 10, warmup: 0}", paths: []string{
		"{name: none, stack: mini-gda, set: {fence: none}}", "{name: gpu, stack: mini-gda, set: {fence: gpu}}",
		"{name: host, stack: mini-gda, set: {fence: gpu, queues_in: host}}", "{name: system, stack: mini-gda, set: {fence: system, queues_in: host}}",
	}}
	for _, slow := range []bool{false, true} {
		if slow {
			s.hardware = "gpu.store_visible: 3us"
		}
		for i, p := range paths(t, s) {
			hazard := i == 0 || i == 2
			possible, occurred := grades(&p)
			if (possible > 0) != hazard || (occurred > 0) != (hazard && slow) {
				t.Errorf("%s, slow stores %v: %d possible, %d occurred", p.Name, slow, possible, occurred)
			}
		}
	}
}

// TestRecordingChangesNothing: spans are only written down.
func TestRecordingChangesNothing(t *testing.T) {
	s := scene{
		paths:    []string{"mini-gda", "mini-proxy", "{name: locked, stack: mini-gda, set: {posting: lock, queues_in: host, fence: system}}"},
		workload: "{kind: put-signal, bytes: [8B, 10KiB], iterations: 40, warmup: 4, initiators: {ctas: 2, threads: 3}}",
	}
	with, without := run(t, s, testbed.Options{Breakdown: true, Workers: 1}), run(t, s, testbed.Options{Workers: 1})
	if with.Events != without.Events || with.Messages != without.Messages {
		t.Errorf("%d events and %d messages with recording, %d and %d without", with.Events, with.Messages, without.Events, without.Messages)
	}
	for i := range with.Points {
		for j := range with.Points[i].Paths {
			a, b := &with.Points[i].Paths[j], &without.Points[i].Paths[j]
			if diff := measured(a, b); diff != "" {
				t.Errorf("%s:\n%s", a.Name, diff)
			}
			if len(a.Breakdowns) == 0 || len(b.Breakdowns)+len(b.Graphs) != 0 {
				t.Errorf("%s: %d breakdowns with recording, %d without", a.Name, len(a.Breakdowns), len(b.Breakdowns))
			}
		}
	}
}

// measured compares what two runs measured.
func measured(a, b *result.Path) string {
	return cmp.Diff([]any{a.Metrics, a.Cost, a.Findings, a.Params, a.Err}, []any{b.Metrics, b.Cost, b.Findings, b.Params, b.Err})
}

func TestCancel(t *testing.T) {
	s := parse(t, scene{
		paths: []string{"mini-gda"}, workload: "{kind: put, bytes: {from: 1B, to: 64KiB, factor: 2}, iterations: 200, warmup: 0}",
	}.text())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	res, err := testbed.Run(ctx, s, testbed.Options{Workers: 1, Progress: func(done, _ int) {
		if done == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || res == nil || !res.Partial || len(res.Points) < 3 || len(res.Points) >= len(s.Points()) {
		t.Fatalf("result %+v, error %v", res, err)
	}
	whole, err := testbed.Run(context.Background(), s, testbed.Options{Workers: 1})
	if err != nil || whole.Partial || len(whole.Points) != len(s.Points()) {
		t.Fatalf("%v", err)
	}
	for i := range res.Points {
		res.Points[i].Account = result.Account{} // what only a part keeps
		if diff := cmp.Diff(whole.Points[res.Points[i].Index], res.Points[i]); diff != "" {
			t.Errorf("point %d of the partial result:\n%s", i, diff)
		}
	}

	// In the middle of a point that would take minutes.
	long := parse(t, scene{paths: []string{"mini-gda"}, workload: "{kind: put, bytes: 8B, iterations: 100000000}"}.text())
	if res, err = testbed.Run(&countdown{Context: context.Background(), left: 5}, long, testbed.Options{Workers: 1}); !errors.Is(err, context.Canceled) || !res.Partial || len(res.Points) != 0 {
		t.Errorf("result %+v, error %v", res, err)
	}
}

// countdown is a context that ends when it has been asked so many times.
type countdown struct {
	context.Context
	mu   sync.Mutex
	left int
}

func (c *countdown) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return context.Canceled
	}
	c.left--
	return nil
}

// TestNamedCombinations: what no machine could run is an error with the place of
// the key that is named for it.
func TestNamedCombinations(t *testing.T) {
	for _, tt := range []struct{ path, workload, want string }{
		{"{name: x, stack: mini-gda, set: {qps_per_peer: 2}}", "{kind: put, bytes: 8B, initiators: {threads: 3}}", "test.yaml:7:52: paths[0].set.qps_per_peer: 3 threads"},
		{"{name: x, stack: mini-proxy-tuned, set: {proxy.rings: 2}}", "{kind: put, bytes: 8B, initiators: {threads: 3}}", "test.yaml:7:59: paths[0].set.proxy.rings: 3 threads"},
		{"{name: x, stack: mini-gda}", "{kind: put, bytes: 8B, outstanding: 2}", "test.yaml:8:47: workload.outstanding: 2 for"},
		{"{name: x, stack: mini-gda}", "{kind: stream, bytes: 8B, outstanding: 2, wqes_per_doorbell: 4}", "test.yaml:8:50: workload.outstanding: 2 messages"},
		{"{name: x, stack: mini-gda}", "{kind: stream, bytes: 8B, wqes_per_doorbell: 4}", "test.yaml:8:11: workload: workload.outstanding: 1 messages"},
		{"{name: x, stack: mini-gda, set: {posting: cooperative}}", "{kind: put, bytes: 8B, initiators: {threads: 3}}", "test.yaml:8:56: workload.initiators.threads: 3 with"},
		{"{name: x, stack: mini-gda}", "{kind: stream, bytes: 8B, background: {kind: stream}}", "test.yaml:8:56: workload.background.kind: "},
		{"{name: x, stack: mini-gda}", "{kind: put, bytes: 8B, background: {kind: stream, bytes: 64B}}", "test.yaml:8:68: workload.background.bytes: "},
		{"{name: x, stack: gin-gdaki, set: {notify: immediate}}", "{kind: put, bytes: 8B}", "test.yaml:7:47: paths[0].set.notify: "},
		{"ibgda-cpu-doorbell", "{kind: put, bytes: 8B, registration: per-operation}", "test.yaml:8:48: workload.registration: "},
	} {
		s := parse(t, scene{paths: []string{tt.path}, workload: tt.workload}.text())
		res, err := testbed.Run(context.Background(), s, testbed.Options{})
		var p *scenarios.Problem
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || res != nil || !errors.As(err, &p) {
			t.Errorf("%s with %s: %v, want %q", tt.path, tt.workload, err, tt.want)
		}
	}
}

// All that a sweep combines badly is told at once, alike things once, and before
// anything has run: its first points are as good as endless.
func TestRefusalsComeFirst(t *testing.T) {
	text := scene{
		hardware: "nic.sq_depth: 8",
		paths:    []string{"{name: a, stack: mini-gda, set: {transport: dc, dcis: 8}}", "{name: b, stack: mini-gda, set: {posting: handoff}}", "{name: c, stack: mini-gda}"},
		workload: "{kind: stream, bytes: 8B, outstanding: 16, iterations: 100000000}",
		more:     "sweep:\n  hardware.nic.pcie.tags: [16, 32]\n  workload.wqes_per_doorbell: [1, 16, 32]\n  paths.a.dcis: [8, 0]\n",
	}.text()
	want := strings.Join([]string{
		"test.yaml:7:19: hardware.set.nic.sq_depth: paths a, c: 8 WQEs cannot hold a post of 16 messages",
		"test.yaml:12:50: workload.outstanding: paths a, c: 16 messages cannot fill a batch of 32 (want at least 32)",
		"test.yaml:16:21: sweep.paths.a.dcis[1]: 0 with transport dc (want at least 1)",
	}, "\n")
	for _, workers := range []int{1, 4} {
		_, err := testbed.Run(context.Background(), parse(t, text), testbed.Options{Workers: workers})
		if err == nil || err.Error() != want {
			t.Errorf("%d workers:\n%v\nwant\n%s", workers, err, want)
		}
	}
	// A shard hears of the others' points, and of many refusals at one place a few are told.
	s := parse(t, scene{
		paths: []string{"mini-gda"}, workload: "{kind: stream, bytes: 8B, outstanding: 16, iterations: 100}",
		more: "sweep:\n  workload.wqes_per_doorbell: [1, 17, 18, 19, 20, 21, 22]\n",
	}.text())
	_, err := testbed.Run(context.Background(), s, testbed.Options{Shard: testbed.Shard{K: 0, N: 7}})
	if err == nil || strings.Count(err.Error(), "cannot fill a batch") != 4 || !strings.HasSuffix(err.Error(), "and more like it at other points (2 found)") {
		t.Errorf("a shard whose own point can run: %v", err)
	}
	// A --set has no line.
	s = parse(t, scene{paths: []string{"mini-gda"}, workload: "{kind: put, bytes: 8B}"}.text())
	if err := s.Apply([]string{"workload.outstanding=3"}); err != nil {
		t.Fatal(err)
	}
	if _, err := testbed.Run(context.Background(), s, testbed.Options{}); err == nil || !strings.HasPrefix(err.Error(), "--set: workload.outstanding: 3 for kind put") {
		t.Errorf("--set: %v", err)
	}
}

// More CTAs than SMs is told; a load of more SMs than there are is refused.
func TestMoreCTAsThanSMs(t *testing.T) {
	for _, tt := range []struct{ paths, workload, want string }{
		{"[mini-gda]", "{kind: put, bytes: 8B, iterations: 1, warmup: 0, initiators: {ctas: 133}}", "133 CTAs on 132 SMs: those of one SM share its L1, and take no issue slots from each other"},
		{"[mini-gda]", "{kind: put, bytes: 8B, iterations: 1, warmup: 0, initiators: {ctas: 132}}", ""},
		{"[mini-gda]", "{kind: put, bytes: 8B, iterations: 1, warmup: 0, initiators: {ctas: 100}, background: {kind: stream, initiators: {ctas: 33, threads: 1}}}", "133 CTAs on 132 SMs: those of one SM share its L1, and take no issue slots from each other"},
		{"[verbs-cpu]", "{kind: put, bytes: 8B, iterations: 1, warmup: 0, initiators: {ctas: 133}}", ""},
		{"", "{kind: poll, iterations: 1, warmup: 0, initiators: {ctas: 133}}", "133 CTAs on 132 SMs: those of one SM run as if each had one to itself"},
		{"", "{kind: fence, iterations: 1, warmup: 0, background: {kind: poll-words, ctas: 133}}", ""},
	} {
		text := "gdisim: v1\nhardware: h200-cx7-ib200\nworkload: " + tt.workload + "\n"
		if tt.paths != "" {
			text += "paths: " + tt.paths + "\n"
		}
		res, err := testbed.Run(t.Context(), parse(t, text), testbed.Options{})
		if err != nil {
			t.Fatal(err)
		}
		crowded := func(n string) bool { return strings.Contains(n, "CTAs on") }
		if has := slices.ContainsFunc(res.Notices, crowded); has != (tt.want != "") || has && !slices.Contains(res.Notices, tt.want) {
			t.Errorf("%s: notices %q, want %q", tt.workload, res.Notices, tt.want)
		}
	}
	const load = "gdisim: v1\nhardware: h200-cx7-ib200\nworkload: {kind: fence, background: {kind: store-host, ctas: 1024}}\n"
	if got := refusal(t, load); !strings.HasPrefix(got, "test.yaml:3:62: workload.background.ctas: 1024 SMs of 132") {
		t.Errorf("%q", got)
	}
}

// What the scenario combines badly is an error even where the platform would block
// the path.
func TestBlockedPathsAreChecked(t *testing.T) {
	for _, tt := range []struct{ profile, path, workload, want string }{
		{"h100-cx7-ib200", "mini-gda", "{kind: put, bytes: 8B}", ""},
		{"h100-cx7-ib200", "mini-gda", "{kind: put, bytes: 8B, outstanding: 100}", "workload.outstanding: 100 for kind put"},
		{"h100-cx7-ib200", "mini-gda", "{kind: put, bytes: 8B, registration: per-operation}", "workload.registration: per-operation with a path"},
		{"h100-cx7-ib200", "{name: x, stack: gin-gdaki, set: {completion: context, peers.count: 1, peers.before: 6}}", "{kind: put, bytes: 8B}", "paths[0].set.peers.before: 6 of 1"},
	} {
		text := strings.Replace(scene{paths: []string{tt.path}, workload: tt.workload}.text(), "h200-cx7-ib200", tt.profile, 1)
		res, err := testbed.Run(context.Background(), parse(t, text), testbed.Options{})
		switch {
		case tt.want != "":
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s with %s: %v, want %q", tt.path, tt.workload, err, tt.want)
			}
		case err != nil || !strings.HasPrefix(res.Points[0].Paths[0].Err, "refused: "):
			t.Errorf("%s: want a path that the platform blocks, got %v", tt.path, err)
		}
	}
}

// TestCounts: samples are the measured operations, warm-up left out, and the
// cost counts what was sent while measuring.
func TestCounts(t *testing.T) {
	const iterations, warmup, ctas, threads = 11, 4, 2, 3
	for _, kind := range []string{"put", "put-signal", "get", "ping-pong"} {
		for _, p := range paths(t, scene{
			workload: fmt.Sprintf("{kind: %s, bytes: 8B, iterations: %d, warmup: %d, initiators: {ctas: %d, threads: %d}}", kind, iterations, warmup, ctas, threads),
			paths:    []string{"mini-gda", "mini-proxy-tuned"},
		}) {
			for _, m := range p.Metrics {
				if m.Metric.IsTime() && m.N != iterations*ctas*threads {
					t.Errorf("%s %s: %d samples of %v, want %d", p.Name, kind, m.N, m.Metric, iterations*ctas*threads)
				}
			}
			if want := iterations * ctas * threads; p.Cost.Doorbells != want {
				t.Errorf("%s %s: %d doorbells, want %d", p.Name, kind, p.Cost.Doorbells, want)
			}
		}
	}
}

// BenchmarkMessages measures the simulator itself: a stream of 8-byte puts.
func BenchmarkMessages(b *testing.B) {
	for _, stack := range []string{"mini-gda", "mini-proxy-tuned"} {
		for _, recording := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/recording=%v", stack, recording), func(b *testing.B) {
				s, err := scenarios.Parse("bench.yaml", []byte(scene{paths: []string{stack}, workload: "{kind: stream, bytes: 8B, iterations: 50000, warmup: 100, outstanding: 64}"}.text()))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				messages := uint64(0)
				for b.Loop() {
					res, err := testbed.Run(context.Background(), s, testbed.Options{Breakdown: recording, Workers: 1})
					if err != nil {
						b.Fatal(err)
					}
					messages += res.Messages
				}
				b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "msg/s")
			})
		}
	}
}

// TestBackgroundOfBatches: where the path posts batches, so does the load, even
// if its window is smaller.
func TestBackgroundOfBatches(t *testing.T) {
	p := paths(t, scene{
		paths:    []string{"mini-gda"},
		workload: "{kind: put, bytes: 8B, iterations: 5, warmup: 1, wqes_per_doorbell: 7, background: {kind: stream, bytes: 8B, outstanding: 5, queue: reserved}}",
	})[0]
	if n, rate := metric(t, &p, stage.PutCompletion).N, metric(t, &p, stage.BackgroundRate).Value; n != 5 || rate <= 0 {
		t.Errorf("%d samples, %v Mmsg/s of load", n, rate)
	}
}

// TestFullSendQueue: a worker whose send queue is always full still serves each
// of its rings.
func TestFullSendQueue(t *testing.T) {
	p := paths(t, scene{
		hardware: "nic.sq_depth: 128",
		paths:    []string{"{name: x, stack: mini-proxy, set: {inline: false, signal: atomic, proxy.chain: 16}}"},
		workload: "{kind: put-signal, bytes: 576B, iterations: 1, warmup: 0, background: {kind: stream, bytes: 576B, initiators: {threads: 32}, queue: reserved}}",
	})[0]
	if n := metric(t, &p, stage.PutCompletion).N; n != 1 {
		t.Errorf("%d samples", n)
	}
}

// TestContextThrash: queues whose state does not fit the NIC's cache together
// still get on: what was read serves the work that waited for it.
func TestContextThrash(t *testing.T) {
	for _, p := range paths(t, scene{
		hardware: "nic.context.cache: 5000B",
		paths:    []string{"mini-gda", "{name: f, stack: fabric-lib, set: {proxy.workers: 32}}"},
		workload: "{kind: put, bytes: 39B, iterations: 2, warmup: 3, initiators: {threads: 32}}",
	}) {
		if n := metric(t, &p, stage.PutCompletion).N; n != 64 {
			t.Errorf("%s: %d samples, want 64", p.Name, n)
		}
	}
}

// TestBatchLandsOnce: a batch is one operation at the destination too, whoever
// posts it.
func TestBatchLandsOnce(t *testing.T) {
	for _, p := range paths(t, scene{
		paths:    []string{"mini-gda", "gin-gdaki", "verbs-cpu"},
		workload: "{kind: put, bytes: 8B, iterations: 5, warmup: 1, wqes_per_doorbell: 4}",
	}) {
		issue, oneWay := metric(t, &p, stage.Issue), metric(t, &p, stage.OneWay)
		if oneWay.N != 5 || oneWay.Min <= issue.Max {
			t.Errorf("%s: %d samples, one way %v at least, issue %v at most", p.Name, oneWay.N, oneWay.Min, issue.Max)
		}
	}
}

// TestBurstOfFullQueue: a worker that posts into a full send queue moves on to
// the next ring behind a burst, however long that takes.
func TestBurstOfFullQueue(t *testing.T) {
	p := paths(t, scene{
		hardware: "nic.sq_depth: 130",
		host:     "{clock: 3.1GHz, proxy: {core: dedicated}}",
		paths:    []string{"{name: x, stack: nvshmem-ibrc, set: {signal: atomic}}"},
		workload: "{kind: put-signal, bytes: 15B, iterations: 6, warmup: 0, initiators: {threads: 32}, background: {kind: stream, outstanding: 5, initiators: {threads: 32}, queue: reserved}}",
	})[0]
	if n := metric(t, &p, stage.PutCompletion).N; n != 192 {
		t.Errorf("%d samples", n)
	}
}

// TestQuietBehindChains: a chain over all rings does not pass a quiet that waits
// in one of them.
func TestQuietBehindChains(t *testing.T) {
	p := paths(t, scene{
		hardware: "nic.sq_depth: 130", host: "{clock: warm}",
		paths:    []string{"{name: x, stack: uccl-ep, set: {proxy.workers: 2}}"},
		workload: "{kind: put, bytes: 93B, iterations: 7, warmup: 3, initiators: {ctas: 2, threads: 32}, background: {kind: stream, outstanding: 5, initiators: {threads: 32}, queue: shared}}",
	})[0]
	if n := metric(t, &p, stage.PutCompletion).N; n != 448 {
		t.Errorf("%d samples", n)
	}
}

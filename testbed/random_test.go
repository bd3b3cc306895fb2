package testbed_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"

	"pgregory.net/rapid"
)

// named are the beginnings of the errors that name a combination which no
// machine could run.
var named = []string{
	"qps_per_peer:", "completion:", "peers.before:", "peers.used:", "lanes:", "sharing:", "dcis:", "notify:", "proxy.rings:", "proxy.gather:", "proxy.chain:", "workload.kind:", "workload.outstanding:",
	"workload.background", "workload.connections:", "workload.writes_per_visit:", "workload.initiators.threads:", "workload.wqes_per_doorbell:", "hardware.nic.sq_depth:",
}

// distributions that a latency may follow.
var shapes = []string{"{dist: uniform, low: 5ns, high: 400ns}", "{dist: exponential, mean: 150ns}", "{dist: lognormal, median: 100ns, p99: 900ns}", "{dist: normal, mean: 200ns, sd: 80ns}"}

// latencies that may be distributions, of every model.
var latencies = []string{
	"pcie.link_latency", "pcie.switch_latency", "pcie.root_latency", "nic.sched", "nic.tx", "nic.rx", "nic.ack", "nic.atomic", "nic.pcie.egress",
	"nic.pcie.write", "nic.pcie.return", "gpu.pcie.egress", "gpu.pcie.read", "gpu.pcie.write", "gpu.pcie.return", "gpu.poll", "gpu.build",
	"gpu.store_visible", "host.pcie.read", "host.pcie.write", "cpu.miss", "cpu.flush", "cpu.publish", "cpu.egress", "cpu.check", "cpu.loop",
	"fabric.cable", "fabric.switch", "gpu.atomic.typical", "gpu.atomic_interval", "gpu.call", "gpu.kernel_exit", "gpu.launch", "gpu.stream.op", "gpu.copy.to_host",
	"cpu.lookup", "cpu.stream", "cpu.yield", "cpu.interrupt", "cpu.switch", "cpu.idle.c1.exit", "nic.context.install",
}

// dice draws the words of a scenario.
type dice struct{ t *rapid.T }

func (d dice) pick(name string, of ...string) string { return rapid.SampledFrom(of).Draw(d.t, name) }

func (d dice) count(name string, of ...int) int { return rapid.SampledFrom(of).Draw(d.t, name) }

// keys draws each of the keys, given with its words: "inline: true false". A key
// whose words begin with a dash stays at its default at times.
func (d dice) keys(of ...string) (set []string) {
	for _, k := range of {
		key, words, _ := strings.Cut(k, ": ")
		if w := d.pick(key, strings.Fields(words)...); w != "-" {
			set = append(set, key+": "+w)
		}
	}
	return set
}

// bare and library draw what only a GPU thread that rings has.
func (d dice) bare(posting string) []string {
	return d.keys("fence: none gpu gpu+record gpu-release device system-release system", "posting: "+posting, "queues_in: gpu host", "record: auto true false",
		"rings_by: gpu gpu gpu host", "doorbell_slot_in: gpu host", "notify: data signal-write signal-atomic immediate", "completion: - - signal immediate")
}

func (d dice) library() []string {
	return d.keys("fence: gpu gpu-release device system", "queues_in: gpu host", "record: true false", "slot_check: true false", "sharing: gpu gpu cta thread",
		"lanes: drift together", "call: internal public", "completion: - used-qp all-qps context signal", "peers.count: - 1 5", "peers.before: - 0 3", "peers.used: - 1 4", "completion_fence: none acquire system", "wait_fence: acquire system",
		"transport: rc rc dc", "dcis: 0 1 3", "rings_by: gpu host", "doorbell_slot_in: gpu host", "ring_batch: 1 4 32", "sq_depth: - 128 1024",
		"steps.turn_rounds: 1 2", "steps.cold_lines: 0 2", "notify: data signal-write signal-atomic")
}

// handOff draws a hand-off to a proxy in all its parts, known its own software's
// way with few of them changed.
func (d dice) handOff() []string {
	return d.keys("proxy.handoff: general single-producer words entry fifo", "proxy.quiet: counter counter request entry", "proxy.completion_in: gpu host",
		"proxy.chain: 1 1 4 16", "proxy.burst: - 1 32", "proxy.workers: 1 2 3", "proxy.depth: 1 3 1024", "proxy.rings: - - 1 4", "proxy.retire: completion pop",
		"proxy.publish_every: 1 5", "proxy.gather: false false true", "proxy.signaled: chain each", "proxy.signal_call: chained chained apart", "proxy.signal_bytes: 0B 16B",
		"proxy.reference: false true", "proxy.cq_batch: 1 4", "proxy.cq_once: false true", "proxy.cq_tests: pass entry", "proxy.drain_polls: 0 3", "proxy.lock: false true",
		"proxy.descriptor: 16B 128B", "proxy.value: 8B 32B", "next_put: at-once progress completion", "blueflame: true false", "notify: data signal-write signal-atomic immediate",
		"completion: - - context signal immediate", "peers.count: 1 4", "proxy.ring_per_peer: false true", "proxy.receiver: worker thread",
		"steps.clears: 0 2", "steps.lookups: 0 2", "steps.pass_lookups: 0 8", "steps.yields: 0 1", "steps.stores: 0 2")
}

func (d dice) known() []string {
	return d.keys("proxy.depth: - - 3", "proxy.workers: - 2", "proxy.rings: - - 5", "proxy.chain: - - 4", "blueflame: - false", "notify: - data signal-atomic immediate",
		"completion: - - context signal immediate", "peers.count: - 4", "proxy.receiver: - thread")
}

func (d dice) verbs() []string {
	return d.keys("blueflame: true false", "notify: data signal-write signal-atomic immediate", "staged: false false true", "cpu.cqe_every: 1 4", "cpu.cq_batch: 1 16",
		"completion: - - signal immediate", "cpu.chain: 1 4", "cpu.hops: 0 1", "cpu.reply_hops: 0 2", "steps.front_ops: 0 0 3", "steps.kernel_exits: 0 1", "steps.launches: 0 1", "steps.lookups: 0 2")
}

// draw draws what a user may write.
func draw(t *rapid.T) scene {
	x := dice{t}
	var d scene
	kind := x.pick("kind", "put", "put-signal", "get", "ping-pong", "stream")
	posting := x.pick("posting", "single", "single", "lock", "handoff", "cooperative")
	ctas, threads := x.count("ctas", 1, 1, 2, 3), x.count("threads", 1, 1, 2, 5)
	if posting == "cooperative" {
		threads = x.count("warp threads", 32, 64)
	}
	wqes := 1
	if posting != "handoff" { // a thread of its own may not come to fill a batch: TestDeadlock
		wqes = x.count("wqes", 1, 1, 2, 7)
	}
	outstanding := 1
	more := ""
	families := []string{"bare", "library", "hand-off", "known", "verbs"}
	qps := []int{0, 0, 1, 4}
	background := kind != "stream" && x.count("background", 0, 0, 0, 1) == 1
	if kind == "stream" {
		outstanding = x.count("outstanding", 1, 8, 33, 64)
		if x.count("tour", 0, 0, 0, 1) == 1 {
			families, qps = families[:2], qps[:1]
			d.nodes = x.count("nodes", 2, 3, 4)
			more = fmt.Sprintf(", connections: %d, writes_per_visit: %d, direction: %s", x.count("connections", 8, 64, 200), x.count("visit", 8, 32), x.pick("direction", "send", "receive", "both"))
		}
	}
	if background {
		families = families[:4] // not available beside a CPU thread that initiates
		bgThreads := 2
		if posting == "cooperative" {
			bgThreads = 32
		}
		more = fmt.Sprintf(", background: {kind: stream, outstanding: %d, initiators: {threads: %d}, queue: %s}",
			x.count("bg outstanding", 1, 5, 16), bgThreads, x.pick("bg queue", "shared", "reserved"))
	}
	sizes := rapid.OneOf(rapid.SampledFrom([]int{1, 8, 28, 29, 92, 93, 4096, 4097, 65536}), rapid.IntRange(1, 65536))
	if posting == "cooperative" || ctas*threads*wqes > 10 || d.nodes > 0 { // many messages
		sizes = rapid.OneOf(rapid.SampledFrom([]int{1, 8, 28, 29, 92, 93}), rapid.IntRange(1, 1000))
	}
	d.workload = fmt.Sprintf("{kind: %s, bytes: %dB, iterations: %d, warmup: %d, outstanding: %d, wqes_per_doorbell: %d, initiators: {ctas: %d, threads: %d}%s}",
		kind, sizes.Draw(t, "bytes"), rapid.IntRange(1, 12).Draw(t, "iterations"), rapid.IntRange(0, 3).Draw(t, "warmup"), outstanding, wqes, ctas, threads, more)
	places := "payload_in: gpu host register"
	if background {
		places = "payload_in: gpu"
	}
	for _, f := range rapid.SliceOfNDistinct(rapid.SampledFrom(families), 1, 2, rapid.ID[string]).Draw(t, "paths") {
		set := x.keys("inline: true false", places, "signal: write atomic")
		var stack string
		switch f {
		case "bare":
			stack, set = "mini-gda", append(set, x.bare(posting)...)
		case "library":
			stack = x.pick("library", "gin-gdaki", "nvshmem-ibgda", "ibgda-cpu-doorbell", "deepep-v1")
			set = append(set, x.library()...)
		case "hand-off":
			stack, set = "mini-proxy", append(set, x.handOff()...)
		case "known":
			stack = x.pick("proxy", "mini-proxy", "mini-proxy-tuned", "nvshmem-ibrc", "gin-proxy", "uccl-ep", "mscclpp", "proxy-interrupt")
			set = append(set, x.known()...)
		case "verbs":
			stack, set = x.pick("cpu", "verbs-cpu", "host-staged", "gpudirect-async", "fabric-lib"), append(set, x.verbs()...)
		}
		if f == "bare" || f == "library" {
			if q := x.count("qps", qps...); q > 0 {
				set = append(set, fmt.Sprintf("qps_per_peer: %d", q))
			}
		}
		d.paths = append(d.paths, fmt.Sprintf("{name: %s, stack: %s, set: {%s}}", f, stack, strings.Join(set, ", ")))
	}
	core := x.pick("core", "dedicated", "smt-sibling", "shared")
	d.host = fmt.Sprintf("{clock: %s, proxy: {core: %s, wait: %s}", x.pick("clock", "cold", "warm", "3.1GHz"), core, x.pick("wait", "auto", "auto", "poll", "interrupt"))
	if core == "shared" {
		d.host += fmt.Sprintf(", competing: {threads: %d, slice: 20us}", x.count("competing", 0, 1, 3))
	}
	d.host += fmt.Sprintf(", idle: {deepest: %s}, interrupt: {moderation: %s, frames: %d}}", x.pick("idle", "none", "C1", "C1E", "C6"), x.pick("moderation", "0s", "4us"), x.count("frames", 0, 1, 3))
	d.fabric = "{kind: switch}"
	if d.nodes <= 2 {
		d.fabric = "{kind: " + x.pick("fabric", "switch", "back-to-back") + "}"
	}
	d.hardware = strings.Join(x.keys("pcie.path.gpu_nic: PIX PXB PHB NODE SYS C2C", "pcie.host_near: nic gpu", "nic.sq_depth: 128 130 1024", "nic.mtu: 256B 1024B 4096B",
		"nic.context.cache: 0B 0B 5000B 60000B", "nic.context.reads: 1 3", "nic.doorbell: 0ns 0ns 30ns", "nic.doorbells: 1 64"), "\n")
	// The NIC takes packets in faster than a far or starved GPU takes the
	// writes, and acknowledges them: beside an endless load that would never end.
	if !background && d.nodes == 0 && rapid.Bool().Draw(t, "tight") { // few credits and tags
		d.hardware += "\npcie.credits.posted: 2\npcie.credits.non_posted: 1\npcie.credits.completion: 3\nnic.pcie.tags: 2\ngpu.pcie.tags: 1"
	}
	for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(latencies), 0, 6, rapid.ID[string]).Draw(t, "latencies") {
		d.hardware += fmt.Sprintf("\n%s: %s", k, rapid.SampledFrom(shapes).Draw(t, k))
	}
	d.seed = rapid.Uint64Range(1, 1<<40).Draw(t, "seed")
	return d
}

// TestRandomScenarios runs random scenarios and checks what must hold
// whatever the numbers are.
func TestRandomScenarios(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		s := parse(t, d.text())
		res, err := testbed.Run(context.Background(), s, testbed.Options{Breakdown: true, Workers: 1})
		if err != nil {
			for l := range strings.SplitSeq(err.Error(), "\n") {
				if !slices.ContainsFunc(named, func(n string) bool { return strings.Contains(l, n) }) {
					t.Fatalf("%v\n%s", err, d.text())
				}
			}
			return
		}
		silent, err := testbed.Run(context.Background(), s, testbed.Options{Workers: 1})
		if err != nil {
			t.Fatalf("without recording: %v\n%s", err, d.text())
		}
		for i := range res.Points[0].Paths {
			p := &res.Points[0].Paths[i]
			if p.Err != "" {
				t.Fatalf("%s: %s\n%s", p.Name, p.Err, d.text())
			}
			if err := consistent(p); err != nil {
				t.Fatalf("%s: %v\n%s", p.Name, err, d.text())
			}
			if diff := measured(p, &silent.Points[0].Paths[i]); diff != "" {
				t.Fatalf("recording changes what is measured:\n%s\n%s", diff, d.text())
			}
		}
	})
}

// consistent checks what holds in every result in which each operation was
// recorded.
func consistent(p *result.Path) error {
	for i := range p.Breakdowns {
		b := &p.Breakdowns[i]
		if err := sums(b); err != nil {
			return err
		}
		for _, m := range p.Metrics {
			if m.Metric == b.Metric && (m.P50 != b.Total || m.Mean != b.MeanTotal) {
				return fmt.Errorf("%v: p50 %v, mean %v, but the breakdown has %v and %v", m.Metric, m.P50, m.Mean, b.Total, b.MeanTotal)
			}
		}
	}
	for i := range p.Graphs {
		if err := tiles(&p.Graphs[i]); err != nil {
			return fmt.Errorf("graph of %v at %s: %w", p.Graphs[i].Metric, p.Graphs[i].Which, err)
		}
	}
	for _, m := range p.Metrics {
		if m.N > 0 && !(m.Min <= m.P50 && m.P50 <= m.P99 && m.P99 <= m.P999 && m.P999 <= m.Max && m.Min <= m.Mean && m.Mean <= m.Max) {
			return fmt.Errorf("quantiles out of order: %+v", m)
		}
	}
	for _, l := range p.Cost.Links {
		if !(l.Busy >= 0 && l.Busy <= 1) { // NaN neither
			return fmt.Errorf("link %s is busy %v of the time", l.Name, l.Busy)
		}
	}
	return nil
}

func sums(b *result.Breakdown) error {
	var sum, means sim.Duration
	seen := map[[2]int]bool{}
	for _, s := range b.Stages {
		k := [2]int{int(s.Stage), s.Node}
		if seen[k] || s.Time < 0 || s.Mean < 0 || s.Stage == stage.None {
			return fmt.Errorf("%v: row %+v is there twice, negative or without a stage", b.Metric, s)
		}
		seen[k] = true
		sum += s.Time
		means += s.Mean
	}
	if sum != b.Total {
		return fmt.Errorf("%v: stages sum to %v, total %v", b.Metric, sum, b.Total)
	}
	if d := b.MeanTotal - means; d < -sim.Duration(len(b.Stages)) || d > sim.Duration(len(b.Stages)) {
		return fmt.Errorf("%v: means sum to %v, mean total %v", b.Metric, means, b.MeanTotal)
	}
	for _, o := range b.Overlaps {
		if o.Time < 0 || o.After < 0 || o.Time+o.After == 0 {
			return fmt.Errorf("%v: overlap %+v", b.Metric, o)
		}
	}
	return nil
}

// tiles checks that the spans on the walk cover [0, total] once, that each
// begins where its predecessor ends, and that the walk is all that is marked.
func tiles(g *result.Graph) error {
	at, walked := g.Total, 0
	last := -1
	for i, s := range g.Spans {
		if s.Arrival > s.Start || s.Start > s.End || s.Pred >= i {
			return fmt.Errorf("span %d: %+v", i, s)
		}
		arrival := sim.Duration(0)
		if s.Pred >= 0 {
			arrival = g.Spans[s.Pred].End
		}
		if s.Arrival != arrival {
			return fmt.Errorf("span %d arrives at %v, its predecessor ends at %v", i, s.Arrival, arrival)
		}
		if s.OnWalk && (last < 0 || s.End >= g.Spans[last].End) {
			last = i
		}
	}
	for i := last; i >= 0; i = g.Spans[i].Pred {
		s := g.Spans[i]
		if !s.OnWalk || s.End != at {
			return fmt.Errorf("walk breaks at span %d %+v, want an end at %v", i, s, at)
		}
		at = s.Arrival
		walked++
	}
	for _, s := range g.Spans {
		if s.OnWalk {
			walked--
		}
	}
	if at != 0 || walked != 0 {
		return fmt.Errorf("walk covers down to %v, %d spans are marked beside it", at, -walked)
	}
	return nil
}

// TestShapesParse keeps the list of latencies above true to the field table.
func TestShapesParse(t *testing.T) {
	for _, k := range latencies {
		f, ok := scenarios.FieldOf("hardware." + k)
		if !ok || !f.Dist {
			t.Errorf("%s: not a latency that may be a distribution", k)
		}
	}
}

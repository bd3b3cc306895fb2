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
var named = []string{"qps_per_peer:", "lanes:", "sharing:", "dcis:", "proxy.rings:", "workload.outstanding:", "workload.background", "workload.initiators.threads:", "workload.wqes_per_doorbell:"}

// distributions that a latency may follow.
var shapes = []string{"{dist: uniform, low: 5ns, high: 400ns}", "{dist: exponential, mean: 150ns}", "{dist: lognormal, median: 100ns, p99: 900ns}", "{dist: normal, mean: 200ns, sd: 80ns}"}

// latencies that may be distributions, of every model.
var latencies = []string{
	"pcie.link_latency", "pcie.switch_latency", "pcie.root_latency", "nic.sched", "nic.tx", "nic.rx", "nic.ack", "nic.atomic", "nic.pcie.egress",
	"nic.pcie.write", "nic.pcie.return", "gpu.pcie.egress", "gpu.pcie.read", "gpu.pcie.write", "gpu.pcie.return", "gpu.poll", "gpu.build",
	"gpu.store_visible", "host.pcie.read", "host.pcie.write", "cpu.miss", "cpu.flush", "cpu.publish", "cpu.egress", "cpu.check", "cpu.loop",
	"fabric.cable", "fabric.switch",
}

// drawn is a random scenario with what the checks must know of it.
type drawn struct {
	scene
	kind      string
	unrung    bool // a doorbell may be left to a thread that never comes
	aggregate bool // threads may fill a send queue before any of them rings
	recordAll bool // every measured operation is recorded
}

func draw(t *rapid.T) drawn {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	count := func(name string, of ...int) int { return rapid.SampledFrom(of).Draw(t, name) }
	d := drawn{kind: pick("kind", "put", "put-signal", "get", "ping-pong", "stream")}

	posting := pick("posting", "single", "single", "lock", "handoff", "cooperative")
	ctas, threads := count("ctas", 1, 1, 2, 3), count("threads", 1, 1, 2, 5)
	if posting == "cooperative" {
		threads = count("warp threads", 32, 64)
	}
	wqes := count("wqes", 1, 1, 2, 7)
	outstanding := 1
	if d.kind == "stream" {
		outstanding = count("outstanding", 1, 8, 33, 64)
	}
	d.unrung = posting == "handoff" && wqes > 1
	iterations := rapid.IntRange(1, 12).Draw(t, "iterations")
	background := ""
	if d.kind != "stream" && rapid.IntRange(0, 3).Draw(t, "background") == 0 {
		bgThreads := 2
		if posting == "cooperative" {
			bgThreads = 32
		}
		background = fmt.Sprintf(", background: {kind: stream, bytes: BYTES, outstanding: %d, initiators: {threads: %d}, queue: %s}",
			count("bg outstanding", 1, 5, 16), bgThreads, pick("bg queue", "shared", "reserved"))
	}
	bytes := fmt.Sprintf("%dB", rapid.OneOf(rapid.SampledFrom([]int{1, 8, 28, 29, 92, 93, 4096, 4097, 65536}), rapid.IntRange(1, 65536)).Draw(t, "bytes"))
	d.workload = fmt.Sprintf("{kind: %s, bytes: %s, iterations: %d, warmup: %d, outstanding: %d, wqes_per_doorbell: %d, initiators: {ctas: %d, threads: %d}%s}",
		d.kind, bytes, iterations, rapid.IntRange(0, 3).Draw(t, "warmup"), outstanding, wqes, ctas, threads, strings.ReplaceAll(background, "BYTES", bytes))
	d.recordAll = true

	set := []string{
		"inline: " + pick("inline", "true", "false"), "payload_in: " + pick("payload_in", "gpu", "host"), "signal: " + pick("signal", "write", "atomic"),
	}
	gda := append(slices.Clone(set), "fence: "+pick("fence", "none", "gpu", "gpu+record", "gpu-release", "device", "system-release", "system"),
		"posting: "+posting, "queues_in: "+pick("queues_in", "gpu", "host"), "record: "+pick("record", "auto", "true", "false"))
	if q := count("qps", 0, 0, 1, 4); q > 0 {
		gda = append(gda, fmt.Sprintf("qps_per_peer: %d", q))
	}
	prox := append(slices.Clone(set), "proxy.handoff: "+pick("handoff", "general", "single-producer"), "proxy.completion_in: "+pick("completion_in", "gpu", "host"),
		fmt.Sprintf("proxy.chain: %d", count("chain", 1, 4, 16)), fmt.Sprintf("proxy.workers: %d", count("workers", 1, 2, 3)),
		fmt.Sprintf("proxy.depth: %d", count("depth", 1, 3, 1024)), "reply_after_completion: "+pick("reply", "true", "false"), "blueflame: "+pick("blueflame", "true", "false"))
	if q := count("rings", 0, 0, 1, 4); q > 0 {
		prox = append(prox, fmt.Sprintf("proxy.rings: %d", q))
	}
	for i, keys := range [][]string{gda, prox} {
		d.paths = append(d.paths, fmt.Sprintf("{name: %s, stack: %s, set: {%s}}", []string{"gda", "proxy"}[i], []string{"mini-gda", "mini-proxy"}[i], strings.Join(keys, ", ")))
	}
	lib := append(slices.Clone(set), "fence: "+pick("library fence", "gpu", "gpu-release", "device", "system"), "queues_in: "+pick("library queues_in", "gpu", "host"),
		"record: "+pick("library record", "true", "false"), "slot_check: "+pick("slot_check", "true", "false"), "sharing: "+pick("sharing", "gpu", "gpu", "cta", "thread"),
		"lanes: "+pick("lanes", "drift", "together"), "call: "+pick("call", "internal", "public"), "completion: "+pick("completion", "used-qp", "all-qps"),
		"completion_fence: "+pick("completion_fence", "acquire", "system"), "transport: "+pick("transport", "rc", "dc"), "rings_by: "+pick("rings_by", "gpu", "host"),
		"doorbell_slot_in: "+pick("doorbell_slot_in", "gpu", "host"), fmt.Sprintf("ring_batch: %d", count("ring_batch", 1, 4, 32)), fmt.Sprintf("dcis: %d", count("dcis", 0, 1, 3)))
	if q := count("library qps", 0, 1, 4); q > 0 {
		lib = append(lib, fmt.Sprintf("qps_per_peer: %d", q))
	}
	library := pick("library", "gin-gdaki", "nvshmem-ibgda", "ibgda-cpu-doorbell", "deepep-v1")
	d.aggregate = library == "gin-gdaki" && wqes > 1 && ctas*threads > 1
	d.paths = append(d.paths, fmt.Sprintf("{name: lib, stack: %s, set: {%s}}", library, strings.Join(lib, ", ")))
	core := pick("core", "dedicated", "smt-sibling", "shared")
	d.host = fmt.Sprintf("{clock: %s, proxy: {core: %s}", pick("clock", "cold", "warm", "3.1GHz"), core)
	if core == "shared" {
		d.host += fmt.Sprintf(", competing: {threads: %d, slice: 20us}", count("competing", 0, 1, 3))
	}
	d.host += "}"
	d.fabric = "{kind: " + pick("fabric", "switch", "back-to-back") + "}"
	d.hardware = "pcie.path.gpu_nic: " + pick("class", "PIX", "PXB", "PHB", "NODE", "SYS", "C2C")
	d.hardware += fmt.Sprintf("\nnic.sq_depth: %d", count("sq_depth", 128, 130, 1024))
	d.hardware += fmt.Sprintf("\nnic.mtu: %dB", count("mtu", 256, 1024, 4096))
	if rapid.Bool().Draw(t, "tight") { // few credits and tags
		d.hardware += "\npcie.credits.posted: 2\npcie.credits.non_posted: 1\npcie.credits.completion: 3\nnic.pcie.tags: 2\ngpu.pcie.tags: 1"
	}
	for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(latencies), 0, 6, rapid.ID[string]).Draw(t, "latencies") {
		d.hardware += fmt.Sprintf("\n%s: %s", k, rapid.SampledFrom(shapes).Draw(t, k))
	}
	d.seed = rapid.Uint64Range(1, 1<<40).Draw(t, "seed")
	return d
}

// TestRandomScenarios runs what a user may write and checks what must hold
// whatever the numbers are.
func TestRandomScenarios(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		s := parse(t, d.text())
		res, err := testbed.Run(context.Background(), s, testbed.Options{Breakdown: true, Workers: 1})
		if err != nil {
			for l := range strings.SplitSeq(err.Error(), "\n") {
				_, what, _ := strings.Cut(l, ": ")
				if !slices.ContainsFunc(named, func(n string) bool { return strings.HasPrefix(what, n) }) {
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
			if p.Err != "" && !(d.unrung && p.Name == "gda") && !(d.aggregate && p.Name == "lib") {
				t.Fatalf("%s: %s\n%s", p.Name, p.Err, d.text())
			}
			if err := consistent(p, d.recordAll); err != nil {
				t.Fatalf("%s: %v\n%s", p.Name, err, d.text())
			}
			if diff := measured(p, &silent.Points[0].Paths[i]); diff != "" {
				t.Fatalf("recording changes what is measured:\n%s\n%s", diff, d.text())
			}
		}
	})
}

// consistent checks what holds in every result.
func consistent(p *result.Path, recordAll bool) error {
	for i := range p.Breakdowns {
		b := &p.Breakdowns[i]
		if err := sums(b); err != nil {
			return err
		}
		for _, m := range p.Metrics {
			if m.Metric == b.Metric && recordAll && (m.P50 != b.Total || m.Mean != b.MeanTotal) {
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
		if l.Busy < 0 || l.Busy > 1 {
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

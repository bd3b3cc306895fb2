package testbed_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

// cpuStacks are the stacks in which a CPU posts, or prepares.
var cpuStacks = []string{
	"mini-proxy", "mini-proxy-tuned", "nvshmem-ibrc", "gin-proxy", "uccl-ep", "mscclpp", "proxy-interrupt", "verbs-cpu", "fabric-lib", "host-staged", "gpudirect-async",
}

// TestCPUStacks runs every stack whose CPU posts over the workloads that it
// can, and holds its breakdowns together.
func TestCPUStacks(t *testing.T) {
	for _, stack := range cpuStacks {
		for _, w := range []string{
			"{kind: put, bytes: 8B, iterations: 40, warmup: 4}",
			"{kind: put-signal, bytes: 5000B, iterations: 20, warmup: 0}",
			"{kind: get, bytes: 100B, iterations: 20, warmup: 1}",
			"{kind: stream, bytes: 64B, iterations: 500, warmup: 100, outstanding: 128, initiators: {ctas: 3}}",
		} {
			if stack == "host-staged" && strings.Contains(w, "get") {
				continue
			}
			s := scene{paths: []string{stack}, workload: w}
			if stack == "mini-proxy-tuned" {
				s.paths = []string{"{stack: mini-proxy-tuned, set: {proxy.rings: 4}}"}
			}
			for _, p := range paths(t, s) {
				if err := consistent(&p); err != nil && !strings.Contains(w, "stream") {
					t.Errorf("%s, %s: %v", stack, w, err)
				}
			}
		}
	}
}

// TestRandomProxies runs combinations of a proxy's choices that no library has.
func TestRandomProxies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
		set := []string{
			"proxy.handoff: " + pick("handoff", "general", "words", "entry", "fifo"), "proxy.quiet: " + pick("quiet", "counter", "request", "entry"),
			"proxy.completion_in: " + pick("completion_in", "gpu", "host"), "proxy.burst: " + pick("burst", "1", "2", "32"),
			"proxy.depth: " + pick("depth", "4", "256"), "proxy.signaled: " + pick("signaled", "each", "chain"),
			"proxy.cq_once: " + pick("cq_once", "true", "false"), "proxy.cq_batch: " + pick("cq_batch", "1", "4"),
			"proxy.cq_tests: " + pick("cq_tests", "pass", "entry"), "proxy.lock: " + pick("lock", "true", "false"), "proxy.wait: " + pick("wait", "poll", "poll-yield", "sleep-poll", "interrupt", "spin-then-sleep"),
			"proxy.workers: " + pick("workers", "1", "2"), "proxy.rings: " + pick("rings", "1", "3"), "notify: " + pick("notify", "data", "signal-write", "signal-atomic", "immediate"),
			"completion: " + pick("completion", "used-qp", "context"), "peers.count: " + pick("peers", "1", "4"), "proxy.ring_per_peer: " + pick("ring_per_peer", "true", "false"), "proxy.receiver: " + pick("receiver", "worker", "thread"),
			"next_put: " + pick("next", "at-once", "progress", "completion"), "proxy.reference: " + pick("reference", "true", "false"),
		}
		gather := pick("gather", "true", "false") == "true"
		if gather {
			set = append(set, "proxy.gather: true")
		}
		if pick("retire", "completion", "pop") == "pop" {
			set = append(set, "proxy.retire: pop", "proxy.publish_every: "+pick("publish", "1", "3"))
		}
		if pick("signal_call", "chained", "apart") == "apart" {
			set = append(set, "proxy.signal_call: apart", "proxy.signal_after: "+pick("signal_after", "post", "completion")) // each post is a call
		} else {
			set = append(set, "proxy.chain: "+pick("chain", "1", "3", "16"))
		}
		kind := pick("kind", "put", "ping-pong", "put-signal", "stream")
		outstanding := "1"
		if kind == "stream" {
			outstanding = pick("outstanding", "1", "9", "64")
		}
		background, most := "", 30
		if kind == "ping-pong" && pick("background", "none", "some") == "some" {
			background = ", background: {kind: stream, bytes: 8B, outstanding: 3, initiators: {ctas: 5}, queue: " + pick("queue", "shared", "reserved") + "}"
			most = 3 // a worker that posts faster than it polls its CQ makes round trips of milliseconds
		}
		d := scene{
			host: "{interrupt: {moderation: " + pick("moderation", "0s", "5us") + ", frames: " + pick("frames", "0", "3") + "}, idle: {deepest: " + pick("idle", "none", "C1E", "C6") + "}, proxy: {core: " + pick("core", "dedicated", "shared") + ", nice: " + pick("nice", "-5", "0", "5") +
				", pinned: " + pick("pinned", "true", "false") + "}, competing: {threads: " + pick("rivals", "0", "2") + ", slice: 1us}, stalls: {every: " + pick("stalls", "0s", "20us") + ", length: 3us}}",
			paths: []string{"{name: p, stack: mini-proxy, set: {" + strings.Join(set, ", ") + "}}"},
			workload: fmt.Sprintf("{kind: %s, bytes: 8B, iterations: %d, warmup: %d, outstanding: %s, initiators: {ctas: %s}%s}",
				kind, rapid.IntRange(1, most).Draw(t, "iterations"), rapid.IntRange(0, 3).Draw(t, "warmup"), outstanding, pick("ctas", "1", "2", "7"), background),
			seed: rapid.Uint64Range(1, 1<<40).Draw(t, "seed"),
		}
		res, err := testbed.Run(context.Background(), parse(t, d.text()), testbed.Options{Breakdown: true, Workers: 1})
		if err != nil {
			if gather && strings.Contains(err.Error(), "proxy.gather:") {
				return
			}
			t.Fatalf("%v\n%s", err, d.text())
		}
		p := &res.Points[0].Paths[0]
		if p.Err != "" {
			t.Fatalf("%s\n%s", p.Err, d.text())
		}
		if err := consistent(p); err != nil {
			t.Fatalf("%v\n%s", err, d.text())
		}
	})
}

// value runs a scene of one path and returns one of its metrics at the median.
func value(t *testing.T, s scene, m stage.Metric) float64 {
	t.Helper()
	p := paths(t, s)[0]
	x := metric(t, &p, m)
	if m.IsTime() {
		return float64(x.P50) / float64(sim.Microsecond)
	}
	return x.Value
}

// TestSharedLock: workers that share a lock post no faster than one; without it
// they scale.
func TestSharedLock(t *testing.T) {
	rate := func(set string) float64 {
		return value(t, scene{paths: []string{"{stack: mini-proxy-tuned, set: {proxy.rings: 32, " + set + "}}"}, workload: "{kind: stream, bytes: 8B, outstanding: 64, initiators: {ctas: 32}, iterations: 600, warmup: 200}"}, stage.MessageRate)
	}
	one := rate("proxy.workers: 1")
	if free := rate("proxy.workers: 4"); free < 3*one {
		t.Errorf("four workers: %.2f M/s, one: %.2f: want three times as much at least", free, one)
	}
	// The lock is held from build to flush, most of a post.
	if locked := rate("proxy.workers: 4, proxy.lock: true"); locked > 2.5*one {
		t.Errorf("four workers with one lock: %.2f M/s, one: %.2f: want the lock to hold them", locked, one)
	}
}

// TestLittleProxies: a closed loop's mean latency is its window over its rate, where
// the worker is the limit and the window is full.
func TestLittleProxies(t *testing.T) {
	for _, stack := range []string{"{stack: mini-proxy-tuned, set: {proxy.workers: 1, proxy.rings: 8}}", "gin-proxy", "nvshmem-ibrc"} {
		const window, threads = 16, 8
		s := scene{paths: []string{stack}, workload: fmt.Sprintf("{kind: stream, bytes: 8B, outstanding: %d, initiators: {ctas: %d}, iterations: 3000, warmup: 500}", window, threads)}
		p := paths(t, s)[0]
		latency := metric(t, &p, stage.Latency).Mean.Seconds()
		rate := metric(t, &p, stage.MessageRate).Value * 1e6
		if got := latency * rate / (window * threads); math.Abs(got-1) > 0.03 {
			t.Errorf("%s: latency x rate / window = %.3f, want 1", stack, got)
		}
	}
}

// TestInterruptsCost: what the inputs give must come out.
func TestInterruptsCost(t *testing.T) {
	rtt := func(host, hardware string) float64 {
		return value(t, scene{host: host, hardware: hardware, paths: []string{"proxy-interrupt"}, workload: "{kind: ping-pong, bytes: 8B, iterations: 400, warmup: 20}"}, stage.RTT)
	}
	quiet := "cpu.tick.length: 0s\ngpu.poll_phase: fixed\n"
	base := rtt("{idle: {deepest: none}}", quiet)
	// Each of the two nodes takes one interrupt on the round trip's way.
	for _, c := range []struct {
		what, host, hardware string
		more                 float64
	}{
		{"C1 on both nodes", "{idle: {deepest: C1}}", quiet, 2 * 1},
		{"a slower handler", "{idle: {deepest: none}}", quiet + "cpu.interrupt: 3us", 2 * 1},
		{"moderation of 8 us, half of it in the mean", "{idle: {deepest: none}, interrupt: {moderation: 8us}}", quiet, 8},
		{"moderation ended by the first event", "{idle: {deepest: none}, interrupt: {moderation: 8us, frames: 1}}", quiet, 0},
	} {
		if got := rtt(c.host, c.hardware) - base; math.Abs(got-c.more) > 0.05*c.more+0.3 {
			t.Errorf("%s: %.2f us more, want %.2f", c.what, got, c.more)
		}
	}
}

// TestStagedCopies: a staged path shows both copies and their bytes.
func TestStagedCopies(t *testing.T) {
	const bytes = 1 << 20
	p := paths(t, scene{paths: []string{"host-staged"}, workload: fmt.Sprintf("{kind: put, bytes: %dB, iterations: 5, warmup: 0}", bytes)})[0]
	b := breakdown(t, &p, stage.OneWay)
	seconds := float64(bytes) / 54.2e9
	carry := sim.Duration(seconds * 1e12)
	for node, fixed := range []sim.Duration{6400 * sim.Nanosecond, 5800 * sim.Nanosecond} {
		if got, n := at(b, stage.GPUCopy, node); n != 1 || got < fixed+carry-sim.Nanosecond || got > fixed+carry+sim.Nanosecond {
			t.Errorf("copy of node %d: %v in %d parts, want %v", node, got, n, fixed+carry)
		}
	}
}

// TestWhatTheNICReads: the WQE comes by BlueFlame or is fetched, the payload is
// read where the stack leaves it.
func TestWhatTheNICReads(t *testing.T) {
	put := "{kind: put, bytes: 8B, iterations: 20, warmup: 2}"
	stages := func(path string, m stage.Metric) *result.Breakdown {
		p := paths(t, scene{paths: []string{path}, workload: put})[0]
		return breakdown(t, &p, m)
	}
	for _, c := range []struct {
		path           string
		m              stage.Metric
		fetch, payload bool
	}{
		{"verbs-cpu", stage.PutCompletion, false, false},
		{"{stack: verbs-cpu, set: {blueflame: false}}", stage.PutCompletion, true, false},
		{"{stack: verbs-cpu, set: {inline: false}}", stage.PutCompletion, false, true},
		{"nvshmem-ibrc", stage.PutCompletion, false, true},
		{"gin-proxy", stage.PutCompletion, false, true},
		{"gin-proxy", stage.RTT, true, false}, // chained, so fetched; the value is read beside that of the signal
		{"gpudirect-async", stage.PutCompletion, true, true},
	} {
		b := stages(c.path, c.m)
		if got, _ := at(b, stage.NICWQEFetch, 0); (got > 0) != c.fetch {
			t.Errorf("%s %v: WQE fetch %v, want one: %v", c.path, c.m, got, c.fetch)
		}
		if got, _ := at(b, stage.NICPayloadFetch, 0); (got > 0) != c.payload {
			t.Errorf("%s %v: payload fetch %v, want one: %v", c.path, c.m, got, c.payload)
		}
	}
}

// TestReadersShareTags: GPU threads that poll words of their own in host memory
// delay each other's reads, and a releasing thread, once they are more than the GPU
// has tags.
func TestReadersShareTags(t *testing.T) {
	issue := func(tags int) float64 {
		return value(t, scene{
			hardware: fmt.Sprintf("gpu.pcie.tags: %d", tags), paths: []string{"{stack: mini-proxy, set: {proxy.rings: 64}}"},
			workload: "{kind: put, bytes: 8B, iterations: 40, warmup: 10, background: {kind: stream, bytes: 8B, outstanding: 2, initiators: {ctas: 64}, queue: reserved}}",
		}, stage.Issue)
	}
	many, few := issue(1024), issue(8)
	// 64 readers over 8 tags: a read takes up to 8 round trips of 1.08 us. The enqueue
	// has one, and a fence that waits as long.
	if few-many < 8 || few-many > 2*7*1.08 {
		t.Errorf("8 tags cost %.1f us over 1024, want up to 2 x 7 reads", few-many)
	}
}

// TestReleaseBesidePollers: a thread that hands over a descriptor waits in its
// release for the reads of all that poll host memory; those of one word follow each
// other, and a warp's lanes share one.
func TestReleaseBesidePollers(t *testing.T) {
	issue := func(pollers string) float64 {
		return value(t, scene{
			paths:    []string{"{stack: mscclpp, set: {proxy.depth: 1}}"},
			workload: "{kind: put, bytes: 8B, iterations: 30, warmup: 20" + pollers + "}",
		}, stage.Issue)
	}
	alone := issue("")
	for _, c := range []struct{ ctas, threads, warps int }{{64, 32, 64}, {64, 20, 64}, {64, 64, 128}} {
		// Reads of 1078 ns meet 200 ns from the SM; the fence comes back with the last of
		// them, asked for within a turn before it is at the edge, 300 ns from its thread.
		k := float64(c.warps)
		want := alone + (k-0.5)*(1.078-0.2) - 0.3
		got := issue(fmt.Sprintf(", background: {kind: stream, bytes: 8B, outstanding: 1, initiators: {ctas: %d, threads: %d}, queue: reserved}", c.ctas, c.threads))
		if math.Abs(got-want) > 0.02*want {
			t.Errorf("beside %d x %d pollers: issue %.1f us, want %.1f", c.ctas, c.threads, got, want)
		}
	}
}

// TestNextPut: a thread that wants to know of its last put before the next one looks
// once, on either side of a round trip, where the answer lies long since; as a flush it
// hands over an entry first.
func TestNextPut(t *testing.T) {
	rtt := func(stack, next string) float64 {
		return value(t, scene{paths: []string{"{stack: " + stack + ", set: {next_put: " + next + "}}"}, workload: "{kind: ping-pong, bytes: 8B, iterations: 400, warmup: 20}"}, stage.RTT)
	}
	// A read of 1078 ns with its acquire, and what the routine does then.
	const look = 1.078 + 0.105 + 0.010 + 0.018
	for _, c := range []struct{ stack, next string }{{"mini-proxy", "progress"}, {"mini-proxy", "completion"}, {"uccl-ep", "progress"}} {
		if got := rtt(c.stack, c.next) - rtt(c.stack, "at-once"); math.Abs(got-2*look) > 0.15 {
			t.Errorf("%s: waiting for %s costs %.2f us a round trip, want two looks, %.2f", c.stack, c.next, got, 2*look)
		}
	}
	// The caller of fabric-lib receives the completion from a channel: three lines, a
	// look-up and the entry's decoding, worker cold.
	if got := rtt("fabric-lib", "completion") - rtt("fabric-lib", "at-once"); math.Abs(got-2*(3*0.090+0.048+0.012)) > 0.05 {
		t.Errorf("fabric-lib: two completions received cost %.2f us, want 0.66", got)
	}
	if flush := rtt("mscclpp", "completion") - rtt("mscclpp", "at-once"); flush < 2*(look+1.1) {
		t.Errorf("mscclpp: two flushes cost %.2f us, want an enqueue and a look each at least", flush)
	}
}

// TestCannot: what a path or a platform cannot do is an error with what to want.
func TestCannot(t *testing.T) {
	for _, c := range []struct{ hardware, path, workload, want string }{
		{"gpu.gpudirect: false", "mini-proxy", "{kind: put, bytes: 8B}", "no GPUDirect RDMA"},
		{"gpu.gpudirect: false", "fabric-lib", "{kind: put, bytes: 8B}", "no GPUDirect RDMA"},
		{"", "{stack: mini-proxy, set: {proxy.gather: true}}", "{kind: put, bytes: 8B}", "proxy.gather:"},
		{"", "{stack: mscclpp, set: {proxy.chain: 4}}", "{kind: put, bytes: 8B}", "proxy.chain: 4 with signals posted apart"},
		{"", "host-staged", "{kind: get, bytes: 8B}", "get over a staged path"},
	} {
		s := scene{hardware: c.hardware, paths: []string{c.path}, workload: c.workload}
		if why := refusal(t, s.text()); !strings.Contains(why, c.want) {
			t.Errorf("%s %s: got %q, want %q", c.path, c.hardware, why, c.want)
		}
	}
	for _, stack := range []string{"host-staged", "verbs-cpu"} {
		paths(t, scene{hardware: "gpu.gpudirect: false", paths: []string{stack}, workload: "{kind: put, bytes: 8B, iterations: 5}"})
	}
}

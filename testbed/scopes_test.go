package testbed_test

import (
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

const eightPuts = "{kind: put, bytes: 8B, iterations: 40, warmup: 5}"

// cpuCost is a cold CPU's cost: cycles of the core, or those of the uncore for a
// missed line, and what does not depend on them.
func cpuCost(c *scenarios.Config, key string) sim.Duration {
	x, hz := c.Cost("hardware."+key), c.Hz("hardware.cpu.clock.cold")
	if key == "cpu.miss" {
		hz = c.Hz("hardware.cpu.uncore.cold")
	}
	return x.Fixed.Mean() + sim.Duration((x.MilliCycles*1e9+hz/2)/hz)
}

// done returns a path's put+completion at the median.
func done(t *testing.T, p *result.Path) sim.Duration {
	t.Helper()
	return metric(t, p, stage.PutCompletion).P50
}

// TestContextByHand recomputes what a flush of a context takes beyond that of one
// peer: three loads for a peer never sent to; another, a full fence at system scope
// and an atomic for one that was.
func TestContextByHand(t *testing.T) {
	s := scene{
		hardware: steadyPoll + "\ngpu.placement: typical", workload: eightPuts,
		paths: []string{
			"{name: peer, stack: gin-gdaki}",
			"{name: alone, stack: gin-gdaki, set: {completion: context}}",
			"{name: fresh, stack: gin-gdaki, set: {completion: context, peers.count: 8}}",
			"{name: used, stack: gin-gdaki, set: {completion: context, peers.count: 8, peers.used: 3}}",
			"{name: lanes, stack: gin-gdaki, set: {completion: context, peers.count: 8, peers.lanes: 4}}",
			"{name: ahead, stack: gin-gdaki, set: {completion: context, peers.count: 4, peers.before: 3}}",
		},
	}
	c := parse(t, s.text()).Config(0, 0)
	load := costOf(c, "gpu.l2_load.typical")
	fence := costOf(c, "gpu.fence.release_system") + costOf(c, "gpu.fence.full_extra")
	atomic := costOf(c, "gpu.atomic.typical")
	ps := paths(t, s)
	if a, b := done(t, &ps[0]), done(t, &ps[1]); a != b {
		t.Errorf("a context of one peer is flushed in %v, the peer in %v", b, a)
	}
	if got, want := done(t, &ps[2])-done(t, &ps[1]), 7*3*load; !near(got, want) {
		t.Errorf("7 peers never sent to add %v, by hand %v", got, want)
	}
	if got, want := done(t, &ps[3])-done(t, &ps[2]), 2*(load+fence+atomic); !near(got, want) {
		t.Errorf("2 peers sent to add %v, by hand %v", got, want)
	}
	if got, want := done(t, &ps[4])-done(t, &ps[1]), 3*load+costOf(c, "gpu.syncwarp"); !near(got, want) {
		t.Errorf("4 lanes with 8 peers add %v, by hand %v", got, want)
	}
	if got := done(t, &ps[5]) - done(t, &ps[1]); got > 3*load {
		t.Errorf("3 peers ahead of the used one add %v (want them hidden behind the NIC)", got)
	}
	for i := range ps {
		if got, want := metric(t, &ps[i], stage.Issue).P50, metric(t, &ps[0], stage.Issue).P50; got != want {
			t.Errorf("%s: issue %v, want %v", ps[i].Name, got, want)
		}
	}
}

// TestContextOfProxies: GIN Proxy's GPU thread reads every peer's consumed index
// over PCIe, and its worker looks at every peer's ring; IBRC's worker looks at the
// other peers' queues; UCCL-EP's thread asks each worker.
func TestContextOfProxies(t *testing.T) {
	s := scene{hardware: steadyPoll + "\ngpu.placement: typical", workload: eightPuts, paths: []string{
		"{name: a, stack: gin-proxy}",
		"{name: b, stack: gin-proxy, set: {completion: context, peers.count: 9}}",
		"{name: c, stack: gin-proxy, set: {completion: context, peers.count: 9, proxy.completion_in: gpu}}",
		"{name: d, stack: gin-proxy, set: {peers.count: 65}}",
		"{name: e, stack: nvshmem-ibrc}",
		"{name: f, stack: nvshmem-ibrc, set: {peers.count: 1001}}",
		"{name: g, stack: uccl-ep, set: {completion: used-qp}}",
		"{name: h, stack: uccl-ep}",
		"{name: i, stack: uccl-ep, set: {proxy.workers: 1}}",
	}}
	c := parse(t, s.text()).Config(0, 0)
	load, check := costOf(c, "gpu.l2_load.typical"), cpuCost(c, "cpu.check")
	ps := paths(t, s)
	mean := func(i int) sim.Duration { return metric(t, &ps[i], stage.PutCompletion).Mean }
	const us = sim.Microsecond
	if got := (mean(1) - mean(0)) / 8; got < load+us*8/10 || got > load+us*15/10 {
		t.Errorf("a peer's index in host memory adds %v, want a load and a read over PCIe", got)
	}
	if got := (mean(2) - mean(0)) / 8; got > 2*load {
		t.Errorf("a peer's index in GPU memory adds %v, want two loads of %v at most", got, load)
	}
	if got := mean(3) - mean(0); got < 64*check/2 || got > 2*64*check {
		t.Errorf("64 rings more in a pass add %v, want about 64 looks of %v", got, check)
	}
	b, d := breakdown(t, &ps[4], stage.PutCompletion), breakdown(t, &ps[5], stage.PutCompletion)
	x, _ := at(b, stage.CPUPublish, 0)
	y, _ := at(d, stage.CPUPublish, 0)
	if got, low := y-x, 800*check; got < low || got > 3*low {
		t.Errorf("1000 peers more add %v to a drain, want 1000 looks of %v", got, check)
	}
	if more := mean(7) - mean(6); more < 3*us {
		t.Errorf("a quiet of 4 workers takes %v more than of one (want 3 entries and 3 reads over PCIe)", more)
	}
	if one, used := mean(8), mean(6); one > used+us {
		t.Errorf("a quiet of the only worker takes %v, of the ring's %v", one, used)
	}
}

// TestAnswerByHand recomputes a put whose completion is the peer's answer: a
// word there and a word back, each posted as by the stack, and no CQE.
func TestAnswerByHand(t *testing.T) {
	s := scene{
		hardware: "pcie.path.gpu_nic: PIX\n" + steadyPoll + "\ngpu.placement: typical", workload: "{kind: put, bytes: 8B, iterations: 10, warmup: 5}",
		paths: []string{"{name: a, stack: mini-gda, set: {fence: gpu, completion: signal}}", "{name: b, stack: mini-gda, set: {fence: gpu}}"},
	}
	c := parse(t, s.text()).Config(0, 0)
	cost := func(key string) sim.Duration { return costOf(c, key) }
	ps := paths(t, s)
	a, b := breakdown(t, &ps[0], stage.PutCompletion), breakdown(t, &ps[1], stage.OneWay)
	// Both ways are alike: what the one-way walk of a plain put has at either end.
	post := []stage.Stage{stage.GPUBuild, stage.GPUFence, stage.GPURing, stage.PCIeDoorbell, stage.NICSched, stage.NICWQEFetch, stage.NICTx, stage.FabricSerialise, stage.FabricPropagate, stage.FabricSwitch}
	var sum sim.Duration
	for _, st := range post {
		want, _ := at(b, st, 0)
		for node := range 2 {
			got, _ := at(a, st, node)
			if sum += got; want == 0 || !near(got, want) {
				t.Errorf("%v at node %d: %v, want %v", st, node, got, want)
			}
		}
	}
	for _, st := range []stage.Stage{stage.NICRx, stage.PCIeDeliver} {
		want, _ := at(b, st, 1)
		for node := range 2 {
			got, _ := at(a, st, node)
			if sum += got; want == 0 || !near(got, want) {
				t.Errorf("%v at node %d: %v, want %v", st, node, got, want)
			}
		}
	}
	// A poller looks in the middle of its periods: the peer's from the call on, the
	// initiator's from its own issue on.
	way := sum / 2
	routine, period := cost("gpu.routine")+cost("gpu.fence.acquire"), cost("gpu.poll")
	seen := func(visible sim.Duration) sim.Duration {
		at := period
		for at-period/2 < visible {
			at += period
		}
		return at - visible
	}
	there := seen(way) + routine
	issue := metric(t, &ps[0], stage.Issue).P50
	back := seen(way+there+way-issue) + routine
	for node, want := range []sim.Duration{back, there} {
		if got, _ := at(a, stage.GPUObserve, node); !near(got, want) {
			t.Errorf("gpu.observe at node %d: %v, by hand %v", node, got, want)
		}
	}
	if got, want := done(t, &ps[0]), 2*way+there+back; !near(got, want) {
		t.Errorf("put+completion %v, by hand %v", got, want)
	}
	if got, want := metric(t, &ps[0], stage.OneWay).P50, way+there; !near(got, want) {
		t.Errorf("one-way %v, by hand %v", got, want)
	}
	if len(a.Stages) != 2*(len(post)+3) {
		t.Errorf("%d stages, by hand %d: no CQE takes part", len(a.Stages), 2*(len(post)+3))
	}
}

// TestAnswers: whoever signals, a put whose completion is the answer takes about
// a round trip by the stack's own notification, and no quiet.
func TestAnswers(t *testing.T) {
	for _, stack := range []string{"mini-gda", "gin-gdaki", "nvshmem-ibgda", "deepep-v1", "ibgda-cpu-doorbell", "gin-proxy", "nvshmem-ibrc", "mscclpp", "uccl-ep", "mini-proxy-tuned", "verbs-cpu"} {
		for _, set := range []string{"completion: signal", "completion: immediate, notify: immediate"} {
			if strings.Contains(set, "immediate") && (stack == "gin-gdaki" || stack == "deepep-v1" || strings.Contains(stack, "ibgda")) {
				continue
			}
			p := paths(t, scene{paths: []string{"{name: p, stack: " + stack + ", set: {" + set + "}}"}, workload: "{kind: put, bytes: 8B, iterations: 60, warmup: 5, initiators: {ctas: 2}}"})[0]
			if err := consistent(&p); err != nil {
				t.Errorf("%s, %s: %v", stack, set, err)
			}
			answered, rtt := metric(t, &p, stage.PutCompletion).Mean, metric(t, &p, stage.RTT).Mean
			if answered > rtt*105/100 || answered < rtt*80/100 {
				t.Errorf("%s, %s: answered in %v, a round trip takes %v", stack, set, answered, rtt)
			}
		}
	}
	// Signals of put-signal are answered by signals.
	p := paths(t, scene{paths: []string{"{name: p, stack: nvshmem-ibgda, set: {completion: signal}}"}, workload: "{kind: put-signal, bytes: 4KiB, iterations: 20}"})[0]
	if d, _ := at(breakdown(t, &p, stage.PutCompletion), stage.PCIeDeliver, 0); d < 500*sim.Nanosecond {
		t.Errorf("the answer's fetch-add is delivered in %v", d)
	}
}

// TestImmediatesByHand: a CPU thread of the peer takes the receive CQE, posts a
// receive anew, counts, and stores the count into GPU memory.
func TestImmediatesByHand(t *testing.T) {
	for _, tt := range []struct {
		name, set string
		cores     float64 // of the initiator's node
		wqes      int     // of a message
	}{
		{"a GPU's thread", "stack: mini-gda", 1, 1},
		{"the proxy's worker", "stack: mini-proxy, set: {completion_in: gpu}", 1, 1},
		{"a thread beside the proxy", "stack: mini-proxy, set: {proxy.receiver: thread}", 2, 1},
		{"an empty write of its own", "stack: mini-proxy, set: {proxy.signal_call: apart}", 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stack, set, ok := strings.Cut(tt.set, ", set: {")
			if !ok {
				set = "}"
			}
			set = strings.Replace(set, "completion_in", "proxy.completion_in", 1)
			s := scene{
				hardware: "cpu.flush: 100ns\n" + steadyPoll, workload: "{kind: ping-pong, bytes: 8B, iterations: 20, warmup: 5}",
				paths: []string{"{name: p, " + stack + ", set: {next_put: at-once, notify: immediate, " + set + "}", "{name: q, " + stack + ", set: {next_put: at-once, " + set + "}"},
			}
			ps := paths(t, s)
			p, q := breakdown(t, &ps[0], stage.RTT), breakdown(t, &ps[1], stage.RTT)
			c := parse(t, s.text()).Config(0, 0)
			store := cpuCost(c, "cpu.publish")
			receive := cpuCost(c, "cpu.miss") + cpuCost(c, "cpu.poll_cqe") + cpuCost(c, "cpu.build") + cpuCost(c, "cpu.lookup")
			for node := range 2 {
				if got, _ := at(p, stage.CPUPublish, node); !near(got, store) {
					t.Errorf("node %d: count stored in %v, by hand %v", node, got, store)
				}
				if got, _ := at(p, stage.CPUPoll, node); !near(got, receive) {
					t.Errorf("node %d: a receive CQE takes %v, by hand %v", node, got, receive)
				}
				x, _ := at(p, stage.PCIeNotify, node)
				y, _ := at(q, stage.PCIeNotify, node)
				if x < y+300*sim.Nanosecond {
					t.Errorf("node %d: pcie.notify %v, without immediates %v (want the store through BAR1 beside it)", node, x, y)
				}
			}
			if got := ps[0].Cost.CPUCores; got != tt.cores {
				t.Errorf("%v cores, want %v", got, tt.cores)
			}
			msgs := float64(ps[0].Cost.Messages) / 2 // of this node
			if got := float64(ps[0].Cost.Doorbells) / msgs; got < float64(tt.wqes)*0.9 || got > float64(tt.wqes)*1.1 {
				t.Errorf("%.2f doorbells a message, want %d", got, tt.wqes)
			}
		})
	}
}

// TestScopesRefused: what a stack has no call for, and what to want.
func TestScopesRefused(t *testing.T) {
	const put = "{kind: put, bytes: 8B}"
	for _, tt := range []struct{ path, workload, want string }{
		{"{stack: mini-gda, set: {completion: context}}", put, "completion: context with post bare (want used-qp, signal, immediate)"},
		{"{stack: nvshmem-ibgda, set: {completion: context}}", put, "completion: context with post nvshmem (want used-qp, all-qps, signal)"},
		{"{stack: gin-gdaki, set: {completion: all-qps}}", put, "completion: all-qps with post doca (want used-qp, context, signal)"},
		{"{stack: deepep-v1, set: {completion: immediate}}", put, "completion: immediate with post deepep"},
		{"{stack: gin-proxy, set: {completion: all-qps}}", put, "completion: all-qps with protocol cpu-proxy"},
		{"{stack: verbs-cpu, set: {completion: context}}", put, "completion: context with protocol cpu-verbs"},
		{"{stack: host-staged, set: {completion: signal}}", put, "completion: signal with kernels that begin or end"},
		{"{stack: gpudirect-async, set: {completion: signal}}", put, "completion: signal with kernels that begin or end"},
		{"{stack: nvshmem-ibgda, set: {notify: immediate}}", put, "notify: immediate with post nvshmem"},
		{"{stack: mini-gda, set: {completion: immediate}}", put, "completion: immediate with notify data (want notify immediate"},
		{"{stack: mini-gda, set: {completion: signal, notify: immediate}}", put, "completion: signal with notify immediate (want completion immediate)"},
		{"{stack: mini-gda, set: {completion: immediate, notify: immediate}}", "{kind: put-signal, bytes: 8B}", "completion: immediate with workload.kind put-signal"},
		{"{stack: mini-gda, set: {completion: signal}}", "{kind: get, bytes: 8B}", "completion: signal with workload.kind get"},
		{"{stack: mini-gda, set: {completion: signal}}", "{kind: stream, bytes: 8B}", "completion: signal with workload.kind stream"},
		{"{stack: mini-gda, set: {completion: signal}}", "{kind: put, bytes: 8B, wqes_per_doorbell: 4}", "completion: signal with several messages a post"},
		{"{stack: mini-gda, set: {completion: signal, posting: handoff}}", "{kind: put, bytes: 8B, wqes_per_doorbell: 4}", "completion: signal with several messages a post"},
		{"{stack: mini-gda, set: {completion: signal}}", "{kind: put, bytes: 8B, background: {kind: stream}}", "completion: signal beside workload.background (want used-qp, or the metric rtt)"},
		{"{stack: gin-gdaki, set: {completion: context, peers.count: 4, peers.before: 4}}", put, "peers.before: 4 of 4 peers"},
		{"{stack: gin-gdaki, set: {completion: context, peers.count: 4, peers.used: 5}}", put, "peers.used: 5 of 4 peers"},
		{"{stack: gin-proxy, set: {proxy.rings: 100, peers.count: 1000}}", put, "peers.count: 1000 with 100 rings to each"},
	} {
		if why := refusal(t, scene{paths: []string{tt.path}, workload: tt.workload}.text()); !strings.Contains(why, tt.want) {
			t.Errorf("%s %s: got %q, want %q", tt.path, tt.workload, why, tt.want)
		}
	}
	// Keys without effect are told of.
	r := run(t, scene{paths: []string{"{name: p, stack: mini-gda, set: {peers.count: 8}}"}, workload: "{kind: put, bytes: 8B, iterations: 5}"}, testbed.Options{Workers: 1})
	if all := strings.Join(r.Notices, "\n"); !strings.Contains(all, "peers.count") {
		t.Errorf("notices %q, want peers.count in one", all)
	}
}

package testbed_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

const steadyPoll = "gpu.poll_phase: fixed"

// TestFirstDoorbellStartsTheNIC: with a record, DOCA rings before it writes it,
// so what follows the first doorbell overlaps with the NIC's work.
func TestFirstDoorbellStartsTheNIC(t *testing.T) {
	ps := paths(t, scene{
		hardware: steadyPoll, paths: []string{"{name: plain, stack: gin-gdaki}", "{name: record, stack: gin-gdaki, set: {record: true}}"},
		workload: "{kind: put, bytes: 8B, iterations: 20, warmup: 5}",
	})
	issue := metric(t, &ps[1], stage.Issue).P50 - metric(t, &ps[0], stage.Issue).P50
	done := metric(t, &ps[1], stage.PutCompletion).P50 - metric(t, &ps[0], stage.PutCompletion).P50
	if issue < 500*sim.Nanosecond || done > issue-250*sim.Nanosecond {
		t.Errorf("the record costs %v of issue and %v of put+completion (want the record, a fence and the second ring to overlap)", issue, done)
	}
	if ps[1].Cost.Doorbells != 2*ps[0].Cost.Doorbells {
		t.Errorf("%d doorbells with a record, %d without", ps[1].Cost.Doorbells, ps[0].Cost.Doorbells)
	}
}

// TestQuietVisitsQueues: each QP behind the used one costs a quiet one visit;
// DCIs before it are visited while the NIC works.
func TestQuietVisitsQueues(t *testing.T) {
	base := "call: internal, completion: all-qps, qps_per_peer: "
	ps := paths(t, scene{
		hardware: steadyPoll, paths: []string{
			"{name: five, stack: nvshmem-ibgda, set: {" + base + "5}}", "{name: nine, stack: nvshmem-ibgda, set: {" + base + "9}}",
			"{name: used, stack: nvshmem-ibgda, set: {call: internal, completion: used-qp, qps_per_peer: 9}}",
			"{name: one, stack: nvshmem-ibgda, set: {" + base + "1, dcis: 0}}", "{name: dcis, stack: nvshmem-ibgda, set: {" + base + "1, dcis: 4}}",
			"{name: many-dcis, stack: nvshmem-ibgda, set: {" + base + "1, dcis: 100}}",
		},
		workload: "{kind: put, bytes: 8B, iterations: 20, warmup: 5}",
	})
	done := func(i int) sim.Duration { return metric(t, &ps[i], stage.PutCompletion).P50 }
	visit := (done(1) - done(0)) / 4
	if visit < 300*sim.Nanosecond || visit > 700*sim.Nanosecond {
		t.Errorf("a visit takes %v", visit)
	}
	if hidden := done(4) - done(3); hidden >= visit {
		t.Errorf("4 DCIs before the used QP add %v (want them hidden behind the NIC)", hidden)
	}
	if more := done(5) - done(3); more < 80*visit {
		t.Errorf("100 DCIs add %v (want most of 100 visits of %v)", more, visit)
	}
	if done(2) >= done(1) {
		t.Errorf("quiet of the used QP takes %v, of all %v", done(2), done(1))
	}
}

func rate(t *testing.T, p *result.Path) float64 { return metric(t, p, stage.MessageRate).Value }

// TestTurnsAreHandedOn: many threads on one context publish in order of
// reservation, a hand-over each; held together by a syncwarp they do not wait
// for each other.
func TestTurnsAreHandedOn(t *testing.T) {
	ps := paths(t, scene{
		paths: []string{
			"{name: drift, stack: gin-gdaki}", "{name: quick, stack: gin-gdaki, set: {steps.turn_rounds: 1}}", "{name: together, stack: gin-gdaki, set: {lanes: together}}",
		},
		workload: "{kind: stream, bytes: 8B, outstanding: 2, initiators: {threads: 32}, iterations: 200, warmup: 50}",
	})
	round := 375/1.98e9 + 26e-9 // an atomic: gpu.atomic.typical at 1980 MHz
	if got, want := rate(t, &ps[0]), 1e-6/(2*round); math.Abs(got/want-1) > 0.02 {
		t.Errorf("two rounds a turn: %.2f M/s, want %.2f", got, want)
	}
	if got, want := rate(t, &ps[1]), 1e-6/round; math.Abs(got/want-1) > 0.02 {
		t.Errorf("one round a turn: %.2f M/s, want %.2f", got, want)
	}
	if rate(t, &ps[2]) < 3*rate(t, &ps[0]) {
		t.Errorf("together %.2f M/s, drifted %.2f", rate(t, &ps[2]), rate(t, &ps[0]))
	}
}

// TestDoorbellsPerMessage: who rings how often.
func TestDoorbellsPerMessage(t *testing.T) {
	for _, c := range []struct {
		name, path, workload string
		want                 float64
	}{
		{"deepep rings every fourth", "deepep-v1", "{kind: stream, bytes: 8B, outstanding: 16, iterations: 4000, warmup: 16}", 0.25},
		{"deepep's caller insists", "deepep-v1", "{kind: put, bytes: 8B, iterations: 40, warmup: 0}", 1},
		{"a warp of nvshmem rings once", "{name: p, stack: nvshmem-ibgda, set: {call: internal}}", "{kind: stream, bytes: 8B, outstanding: 64, initiators: {threads: 32}, iterations: 6400, warmup: 64}", 1. / 32},
		{"aggregated", "gin-gdaki", "{kind: stream, bytes: 8B, outstanding: 16, wqes_per_doorbell: 8, iterations: 4000, warmup: 16}", 1. / 8},
		{"together, a doorbell each", "{name: p, stack: gin-gdaki, set: {lanes: together}}", "{kind: stream, bytes: 8B, outstanding: 2, initiators: {threads: 32}, iterations: 6400, warmup: 64}", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &paths(t, scene{paths: []string{c.path}, workload: c.workload})[0]
			if got := float64(p.Cost.Doorbells) / float64(p.Cost.Messages); math.Abs(got-c.want) > 0.1*c.want {
				t.Errorf("%d doorbells for %d messages: %.3f each, want %.3f", p.Cost.Doorbells, p.Cost.Messages, got, c.want)
			}
		})
	}
}

// TestHostRings: the CPU thread's pass grows with the queues that it reads
// through BAR1, and hardly with those in its own memory; it keeps a core.
func TestHostRings(t *testing.T) {
	set := func(in, qps string) string {
		return "{name: " + in + qps + ", stack: ibgda-cpu-doorbell, set: {completion: used-qp, doorbell_slot_in: " + in + ", qps_per_peer: " + qps + "}}"
	}
	ps := paths(t, scene{paths: []string{set("host", "1"), set("host", "16"), set("gpu", "1"), set("gpu", "16")}, workload: "{kind: put, bytes: 8B, iterations: 300, warmup: 20}"})
	mean := func(i int) sim.Duration { return metric(t, &ps[i], stage.PutCompletion).Mean }
	if d := mean(1) - mean(0); d > 100*sim.Nanosecond {
		t.Errorf("16 slots in host memory add %v", d)
	}
	if d := mean(3) - mean(2); d < 3*sim.Microsecond {
		t.Errorf("16 slots in GPU memory add %v", d)
	}
	for i := range ps {
		if ps[i].Cost.CPUCores != 1 {
			t.Errorf("%s: %v cores", ps[i].Name, ps[i].Cost.CPUCores)
		}
	}
}

// TestQueueCompletesInOrder: a write behind a fetch-add completes behind it.
func TestQueueCompletesInOrder(t *testing.T) {
	ps := paths(t, scene{
		hardware: steadyPoll, paths: []string{"{name: p, stack: gin-gdaki, set: {notify: signal-atomic}}"},
		workload: "{kind: put-signal, bytes: 8B, iterations: 50, warmup: 5}",
	})
	b := breakdown(t, &ps[0], stage.PutCompletion)
	if d, _ := at(b, stage.PCIeDeliver, 1); d < 500*sim.Nanosecond {
		t.Errorf("put+signal completes without the fetch-add's read at the peer: pcie.deliver@1 %v", d)
	}
}

// TestDoorbellUnit: doorbells, not messages, are what the NIC takes one by one.
func TestDoorbellUnit(t *testing.T) {
	ps := paths(t, scene{
		hardware: "nic.doorbell: 100ns", paths: []string{"mini-gda"},
		workload: "{kind: stream, bytes: 8B, outstanding: 64, initiators: {ctas: 32}, iterations: 640, warmup: 64}",
	})
	if got := rate(t, &ps[0]); math.Abs(got-10) > 0.2 {
		t.Errorf("a doorbell each at 100 ns: %.2f M/s, want 10", got)
	}
	ps = paths(t, scene{
		hardware: "nic.doorbell: 100ns", paths: []string{"mini-gda"},
		workload: "{kind: stream, bytes: 8B, outstanding: 64, wqes_per_doorbell: 8, initiators: {ctas: 32}, iterations: 640, warmup: 64}",
	})
	if got := rate(t, &ps[0]); math.Abs(got-80) > 2 {
		t.Errorf("8 messages a doorbell of 100 ns: %.2f M/s, want 80", got)
	}
}

// TestLibraryErrors names combinations that no library offers.
func TestLibraryErrors(t *testing.T) {
	for _, c := range []struct{ set, stack, workload, want string }{
		{"transport: dc, dcis: 0", "nvshmem-ibgda", "{kind: put, bytes: 8B}", "dcis: 0 with transport dc"},
		{"lanes: together", "gin-gdaki", "{kind: put, bytes: 8B, initiators: {threads: 5}}", "workload.initiators.threads: 5 with lanes together"},
		{"lanes: together, record: true", "gin-gdaki", "{kind: put, bytes: 8B, initiators: {threads: 32}}", "lanes: together (want sharing gpu and no record"},
		{"sharing: thread", "gin-gdaki", "{kind: put, bytes: 8B, initiators: {threads: 2}}", "sharing: 2 threads of a CTA"},
		{"notify: immediate", "gin-gdaki", "{kind: put, bytes: 8B}", "notify: immediate with post doca"},
	} {
		s := parse(t, scene{paths: []string{"{name: p, stack: " + c.stack + ", set: {" + c.set + "}}"}, workload: c.workload}.text())
		_, err := testbed.Run(context.Background(), s, testbed.Options{Workers: 1})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.set, err, c.want)
		}
	}
}

// TestHeldDoorbells: where doorbells fill the NIC, SMs take turns, so that a probe
// on an SM and a queue of its own waits for those in the NIC only; on a queue of the
// background it waits for the posts that the background's SM holds.
func TestHeldDoorbells(t *testing.T) {
	probe := func(queue, waiting string) sim.Duration {
		p := &paths(t, scene{
			hardware: "nic.doorbells: " + waiting, paths: []string{"{name: p, stack: gin-gdaki, set: {qps_per_peer: 64}}"},
			workload: "{kind: ping-pong, bytes: 8B, iterations: 20, warmup: 5, background: {kind: stream, bytes: 8B, outstanding: 4, initiators: {ctas: 64, threads: 8}, queue: " + queue + "}}",
		})[0]
		v, err := p.Lookup("rtt.p50")
		if err != nil {
			t.Fatal(err)
		}
		return v.Time
	}
	reserved, deep, shared := probe("reserved", "64"), probe("reserved", "224"), probe("shared", "64")
	if shared < reserved*5/4 {
		t.Errorf("shared %v, reserved %v", shared, reserved)
	}
	ways := 2 * 160 * 9200 * sim.Picosecond // each way waits for 160 doorbells more
	if more := deep - reserved; more < ways*9/10 || more > ways*11/10 {
		t.Errorf("160 doorbells more in the NIC add %v to a round trip, want about %v", more, ways)
	}
}

package testbed_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/stage"
	"gdisim/testbed"
)

// TestDC: over DC each WQE carries the peer's address and each request 8 B more on
// the wire; the compact form leaves a WQE of one block. By hand: 48 B and the vector
// in blocks of 64 B are fetched, and 20 messages of one packet each are sent, behind
// one connect (headers of 26 B and 8 more).
func TestDC(t *testing.T) {
	const n = 20
	ps := paths(t, scene{
		paths: []string{
			"{name: rc, stack: nvshmem-ibgda, set: {call: internal, qps_per_peer: 1}}",
			"{name: compact, stack: nvshmem-ibgda, set: {call: internal, transport: dc, dcis: 1, address_vector: 16B}}",
			"{name: full, stack: nvshmem-ibgda, set: {call: internal, transport: dc, dcis: 1}}",
		},
		workload: "{kind: put, bytes: 8B, iterations: 20, warmup: 0}",
	})
	bytes := func(p *result.Path, link string) (sum int64) {
		for _, l := range p.Cost.Links {
			if strings.HasPrefix(l.Name, link) {
				sum += l.Bytes
			}
		}
		if sum == 0 {
			t.Fatalf("no link %s in %+v", link, p.Cost.Links)
		}
		return sum
	}
	const wire, wqes = "node0.port", "node0.pcie.nic.down"
	if d := bytes(&ps[1], wire) - bytes(&ps[0], wire); d != 8*n+34 {
		t.Errorf("%d messages over DC take %d B more on the wire, want %d", n, d, 8*n+34)
	}
	if d := bytes(&ps[2], wqes) - bytes(&ps[1], wqes); d != 64*n {
		t.Errorf("%d WQEs of two blocks take %d B more to fetch, want %d", n, d, 64*n)
	}
	if got := metric(t, &ps[1], stage.PutCompletion).P50 - metric(t, &ps[0], stage.PutCompletion).P50; got <= 0 {
		t.Errorf("DC takes %v more, want an address vector's build and 8 B", got)
	}
}

// dcTour runs streams of node 0's DC initiators, one a thread, that go round their
// targets, and returns the path's result.
func dcTour(t *testing.T, hardware string, initiators, targets int) *result.Path {
	t.Helper()
	s := scene{
		hardware: hardware, paths: []string{fmt.Sprintf("{name: dc, stack: mini-gda, set: {transport: dc, dcis: %d}}", initiators)},
		workload: fmt.Sprintf("{kind: stream, bytes: 8B, outstanding: 64, wqes_per_doorbell: 16, initiators: {ctas: %d}, connections: %d, writes_per_visit: 16, direction: send, iterations: 3200, warmup: 640}", initiators, initiators*targets),
	}
	text := strings.Replace(s.text(), "paths:", fmt.Sprintf("cluster: {nodes: %d}\npaths:", targets+1), 1)
	r, err := testbed.Run(context.Background(), parse(t, text), testbed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &r.Points[0].Paths[0]
	if p.Err != "" {
		t.Fatal(p.Err)
	}
	return p
}

// An initiator that visits several targets sends a connect a visit (34 B beside 16
// messages of 58) and waits for all answers of the last one before: no more than a
// visit a round trip, however much it has to send. With one target it connects once.
func TestDCTargets(t *testing.T) {
	perMessage := func(p *result.Path) float64 {
		for _, l := range p.Cost.Links {
			if l.Name == "node0.port" {
				return float64(l.Bytes) / float64(p.Cost.Messages)
			}
		}
		t.Fatal("no link node0.port")
		return 0
	}
	const far = "fabric.cable: 2us"
	one, two := dcTour(t, far, 4, 1), dcTour(t, far, 4, 2)
	if b := perMessage(one); math.Abs(b-58) > 0.3 {
		t.Errorf("one target: %.2f B a message, want 58", b)
	}
	if b, want := perMessage(two), 58+34.0/16; math.Abs(b-want) > 0.3 {
		t.Errorf("two targets: %.2f B a message, want %.2f", b, want)
	}
	rate := func(p *result.Path) float64 { return metric(t, p, stage.MessageRate).Value }
	// There and back: 0.25 us and 0.308 us of the NICs, 0.404 us for the answer, a switch
	// of 0.13 us and two cables of 2 us each way; 16 messages of 32.6 ns in between.
	trip := 0.25 + 0.308 + 0.404 + 2*(0.13+2*2) + 15*0.0326
	if want := 4 * 16 / trip; math.Abs(rate(two)/want-1) > 0.03 {
		t.Errorf("two targets: %.2f M/s, want %.2f, a visit a round trip", rate(two), want)
	}
	if rate(one) < 2*rate(two) {
		t.Errorf("one target: %.1f M/s, two %.1f: leaving a target costs nothing", rate(one), rate(two))
	}
}

// With as many initiators as connections each has one target: it connects once and
// never waits for another's answers. With as few as threads, each goes round all
// eight, a connect (34 B) a message; in between the pairs of a thread take turns.
func TestDCPairs(t *testing.T) {
	const threads, targets = 8, 8
	run := func(set string) (bytes, rate float64) {
		s := scene{
			paths:    []string{"{name: dc, stack: mini-gda, set: {transport: dc" + set + "}}"},
			workload: fmt.Sprintf("{kind: stream, bytes: 8B, outstanding: 64, initiators: {ctas: %d}, connections: %d, writes_per_visit: 1, direction: send, iterations: 800, warmup: 160}", threads, threads*targets),
		}
		text := strings.Replace(s.text(), "paths:", fmt.Sprintf("cluster: {nodes: %d}\npaths:", targets+1), 1)
		r, err := testbed.Run(context.Background(), parse(t, text), testbed.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := &r.Points[0].Paths[0]
		for _, l := range p.Cost.Links {
			if l.Name == "node0.port" {
				return float64(l.Bytes) / float64(p.Cost.Messages), metric(t, p, stage.MessageRate).Value
			}
		}
		t.Fatalf("no link node0.port: %s", p.Err)
		return 0, 0
	}
	few, slow := run("") // one a thread
	some, better := run(", dcis: 16")
	all, fast := run(", dcis: 64")
	if math.Abs(few-92) > 0.5 || math.Abs(some-92) > 0.5 || math.Abs(all-58) > 0.5 {
		t.Errorf("%.2f, %.2f and %.2f B a message over 8, 16 and 64 initiators, want 92, 92 and 58", few, some, all)
	}
	if better < 1.5*slow || fast < 1.1*better { // then the threads are at their own pace
		t.Errorf("%.1f, %.1f and %.1f M/s over 8, 16 and 64 initiators, want more each time", slow, better, fast)
	}
}

// A target keeps state for each initiator that has been there: where its NIC does
// not hold all of it, a visit costs reads, one after the other.
func TestDCResponders(t *testing.T) {
	rate := func(hardware string) float64 {
		return metric(t, dcTour(t, "nic.context.cache: 200kB\nnic.context.requester: 0B\nnic.context.reads: 1\n"+hardware, 64, 2), stage.MessageRate).Value
	}
	fits, falls, twice := rate("nic.context.dcr: 3kB"), rate("nic.context.dcr: 6kB\nnic.context.dcr_reads: 1"), rate("nic.context.dcr: 6kB\nnic.context.dcr_reads: 2")
	if falls > 0.8*fits {
		t.Errorf("%.1f M/s where responders do not fit, %.1f where they do", falls, fits)
	}
	if r := twice / falls; r < 0.45 || r > 0.65 {
		t.Errorf("two reads a miss: %.1f M/s, one: %.1f, want about half", twice, falls)
	}
}

package testbed_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

const manyConnections = "{kind: stream, bytes: 8B, outstanding: 64, wqes_per_doorbell: 16, initiators: {ctas: 16}, connections: %d, writes_per_visit: 16, direction: %s, iterations: 1600, warmup: 1600}"

// tourRate is node 0's rate over that many connections.
func tourRate(t *testing.T, hardware string, connections int, direction string, nodes int) float64 {
	t.Helper()
	s := scene{hardware: hardware, paths: []string{"mini-gda"}, workload: fmt.Sprintf(manyConnections, connections, direction)}
	text := strings.Replace(s.text(), "paths:", fmt.Sprintf("cluster: {nodes: %d}\npaths:", nodes), 1)
	r, err := testbed.Run(context.Background(), parse(t, text), testbed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &r.Points[0].Paths[0]
	if p.Err != "" {
		t.Fatal(p.Err)
	}
	return metric(t, p, stage.MessageRate).Value
}

// A cache of about 30 connections both ways: beyond it a NIC that sends and
// receives slows down, one that only sends to several peers does not, and
// without a limit neither does.
func TestConnections(t *testing.T) {
	const small, many = 16, 256
	cache := "nic.context.cache: 80kB"
	both := tourRate(t, cache, small, "both", 2)
	if r := tourRate(t, cache, many, "both", 2); r > 0.7*both {
		t.Errorf("both ways over %d connections: %.1f M/s, over %d %.1f: no knee", many, r, small, both)
	}
	if r := tourRate(t, "nic.context.cache: 0B", many, "both", 2); math.Abs(r/both-1) > 0.05 {
		t.Errorf("both ways without a limit: %.1f M/s over %d connections, %.1f over %d", r, many, both, small)
	}
	send := tourRate(t, cache, small, "send", 5)
	if r := tourRate(t, cache, many, "send", 5); math.Abs(r/send-1) > 0.05 {
		t.Errorf("sending over %d connections: %.1f M/s, over %d %.1f", many, r, small, send)
	}
	if both > send {
		t.Errorf("both ways %.1f M/s, sending only %.1f", both, send)
	}
	if r := tourRate(t, cache, small, "receive", 3); r <= send {
		t.Errorf("two senders deliver %.1f M/s, one sends %.1f", r, send)
	}
}

// Beyond the cache more connections are never faster, whatever a visit spares: 3 %
// are for where a run begins and ends.
func TestConnectionsFall(t *testing.T) {
	for _, c := range []struct {
		direction string
		visit     int
	}{{"both", 1}, {"both", 16}, {"receive", 16}} {
		t.Run(fmt.Sprintf("%s-%d", c.direction, c.visit), func(t *testing.T) {
			t.Parallel()
			last := math.Inf(1)
			for _, n := range []int{16, 32, 64, 128, 256} {
				s := scene{hardware: "nic.context.cache: 80kB", paths: []string{"mini-gda"}, workload: fmt.Sprintf(strings.ReplaceAll(manyConnections, ": 16,", fmt.Sprintf(": %d,", c.visit)), n, c.direction)}
				rate := metric(t, &paths(t, s)[0], stage.MessageRate).Value
				if rate > 1.03*last {
					t.Errorf("%.1f M/s over %d connections, %.1f over fewer", rate, n, last)
				}
				last = rate
			}
		})
	}
}

// A receive that finds no read free stops its NIC's port, answers included: so a node
// whose peer misses cannot be sent to at full rate meanwhile, and two nodes alike stay
// alike whatever the seed.
func TestConnectionsEven(t *testing.T) {
	for seed := range 3 {
		s := scene{hardware: "nic.context.cache: 800kB", paths: []string{"mini-gda"}, workload: "{kind: stream, bytes: 8B, outstanding: 64, wqes_per_doorbell: 16, initiators: {ctas: 64}, connections: 512, direction: both, iterations: 1500, warmup: 1000}"}
		r, err := testbed.Run(context.Background(), parse(t, fmt.Sprintf("%s\nseed: %d\n", s.text(), seed+1)), testbed.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var ports []int64
		for _, l := range r.Points[0].Paths[0].Cost.Links {
			if strings.HasSuffix(l.Name, ".port") {
				ports = append(ports, l.Bytes)
			}
		}
		if len(ports) != 2 || math.Abs(float64(ports[0])/float64(ports[1])-1) > 0.1 {
			t.Errorf("seed %d: ports carried %v bytes, want alike", seed+1, ports)
		}
	}
}

// A cache that holds no connection is refused.
func TestContextCacheTooSmall(t *testing.T) {
	for hardware, want := range map[string]string{
		"nic.context.cache: 2kB":                           "do not hold the 2560 B of one connection",
		"nic.context.cache: 3kB\nnic.context.line: 1600B":  "hardware.nic.context.cache: 3000 B in lines of 1600 B do not hold",
		"nic.context.cache: 2500B\nnic.context.page: 0B":   "",
		"nic.context.cache: 2600B\nnic.context.page: 100B": "do not hold",
	} {
		s := scene{hardware: hardware, paths: []string{"mini-gda"}, workload: "{kind: put, bytes: 8B, iterations: 2, warmup: 0}"}
		_, err := testbed.Run(context.Background(), parse(t, s.text()), testbed.Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", hardware, err, want)
		}
	}
}

func TestConnectionErrors(t *testing.T) {
	ok := fmt.Sprintf(manyConnections, 64, "send")
	for _, c := range []struct{ name, path, workload, nodes, want string }{
		{"too few", "mini-gda", fmt.Sprintf(manyConnections, 8, "send"), "2", "8 for 16 initiators"},
		{"kind", "mini-gda", "{kind: put, bytes: 8B, connections: 4}", "2", "with kind put"},
		{"proxy", "mini-proxy", ok, "2", "for a path whose CPU posts"},
		{"qps", "{name: p, stack: mini-gda, set: {qps_per_peer: 64}}", ok, "2", "beside qps_per_peer"},
		{"visit", "mini-gda", strings.Replace(ok, "visit: 16", "visit: 8", 1), "2", "writes_per_visit: 8 (want 16"},
		{"dc", "{name: p, stack: mini-gda, set: {transport: dc, dcis: 20}}", ok, "3", "64 between 16 initiators' 20 DC initiators and 2 targets (want 32 to 40"},
		{"dcis", "{name: p, stack: mini-gda, set: {transport: dc, dcis: 1}}", "{kind: put, bytes: 8B, initiators: {ctas: 8}}", "2", "dcis: 8 threads on 1 DC initiators with posting single (want 8"},
		{"no dcis", "{name: p, stack: mini-gda, set: {transport: dc, dcis: 0}}", "{kind: put, bytes: 8B}", "2", "dcis: 0 with transport dc (want at least 1)"},
		{"nodes", "mini-gda", "{kind: put, bytes: 8B}", "3", "cluster.nodes: 3 without workload.connections"},
	} {
		s := scene{paths: []string{c.path}, workload: c.workload}
		text := strings.Replace(s.text(), "paths:", "cluster: {nodes: "+c.nodes+"}\npaths:", 1)
		if _, err := testbed.Run(context.Background(), parse(t, text), testbed.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A stack's own QPs to a peer are no connections: its threads visit those that the
// workload has, over either transport. The library does not choose among them: where
// the NIC's cache misses, a visit of its public routine makes as many reads as one of
// the internal. And one CPU thread rings for all of them, to however many peers.
func TestConnectionsOfLibraries(t *testing.T) {
	rate := func(hardware, path string, connections, nodes int) (perSecond, read float64) {
		s := scene{hardware: hardware, paths: []string{path}, workload: fmt.Sprintf("{kind: stream, bytes: 8B, outstanding: 64, initiators: {ctas: 64}, connections: %d, writes_per_visit: 32, direction: both, iterations: 320, warmup: 160}", connections)}
		r, err := testbed.Run(context.Background(), parse(t, strings.Replace(s.text(), "paths:", fmt.Sprintf("cluster: {nodes: %d}\npaths:", nodes), 1)), testbed.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := &r.Points[0].Paths[0]
		if p.Err != "" {
			t.Fatal(p.Err)
		}
		for _, l := range p.Cost.Links {
			if l.Name == "node0.pcie.nic.down" {
				read = float64(l.Bytes) / float64(p.Cost.Messages)
			}
		}
		return metric(t, p, stage.MessageRate).Value, read
	}
	for _, stack := range []string{"nvshmem-ibgda", "ibgda-cpu-doorbell"} {
		rate("", "{name: p, stack: "+stack+", set: {transport: dc, dcis: 64}}", 256, 5)
	}
	const cache = "nic.context.cache: 80kB\nnic.context.reads: 1"
	_, inside := rate(cache, "{name: p, stack: nvshmem-ibgda, set: {call: internal}}", 256, 2)
	if _, public := rate(cache, "nvshmem-ibgda", 256, 2); inside == 0 || math.Abs(public/inside-1) > 0.1 {
		t.Errorf("the NIC reads %.1f B a message of the public routine, %.1f of the internal", public, inside)
	}
	const ringer = "{name: p, stack: ibgda-cpu-doorbell, set: {call: internal}}"
	one, _ := rate("", ringer, 256, 2)
	four, _ := rate("", ringer, 256, 5)
	if math.Abs(four/one-1) > 0.05 {
		t.Errorf("a CPU thread rings for %.2f M/s to one peer, for %.2f to four", one, four)
	}
}

// A platform that maps no doorbell page refuses stacks whose GPU rings.
func TestNoDoorbellMapping(t *testing.T) {
	s := scene{hardware: "gpu.doorbell_mapping: false", paths: []string{"mini-gda"}, workload: "{kind: put, bytes: 8B, iterations: 10}"}
	if why := refusal(t, s.text()); !strings.Contains(why, "no doorbell mapping: want rings_by host") {
		t.Error(why)
	}
	s.paths = []string{"mini-proxy", "ibgda-cpu-doorbell"}
	paths(t, s)
}

// Across sockets, doorbell, WQE fetch and delivery cross four times: a cold
// uncore on the way adds so many times what one crossing is dearer.
func TestOtherSocket(t *testing.T) {
	oneWay := func(host string) sim.Duration {
		s := scene{hardware: "pcie.path.gpu_nic: SYS\ngpu.poll_phase: fixed", host: host, paths: []string{"mini-gda"}, workload: "{kind: put, bytes: 8B, iterations: 50}"}
		return metric(t, &paths(t, s)[0], stage.OneWay).P50
	}
	ps, err := scenarios.ProfileParams("h200-cx7-ib200")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ps {
		if p.Key == "hardware.pcie.socket_latency" && p.Value != "100ns" {
			t.Fatalf("socket latency %s: mend this test", p.Value)
		}
	}
	// 100 ns at 2.4 GHz take 300 ns at 800 MHz.
	if d := oneWay("{other_socket: cold}") - oneWay("{}"); d < 800*sim.Nanosecond-170*sim.Nanosecond || d > 800*sim.Nanosecond+170*sim.Nanosecond {
		t.Errorf("cold other socket adds %v, want about 800 ns", d)
	}
}

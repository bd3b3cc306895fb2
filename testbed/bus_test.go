package testbed_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

const quietCore = "cpu.tick.length: 0ns"

// TestRegistration: a thread that registers each buffer pays for it before the
// post and, when it waits for completion, for the release behind it.
func TestRegistration(t *testing.T) {
	p50 := func(hardware, workload string) sim.Duration {
		ps := paths(t, scene{hardware: quietCore + "\n" + hardware, paths: []string{"{name: v, stack: verbs-cpu}"}, workload: "{kind: put, bytes: 64KiB, iterations: 20, warmup: 2, " + workload + "}"})
		return metric(t, &ps[0], stage.PutCompletion).P50
	}
	pool := p50("", "registration: pool")
	const us, ns = sim.Microsecond, sim.Nanosecond
	for _, tt := range []struct {
		hardware, workload string
		want               sim.Duration
	}{
		{"", "registration: per-operation", 16*us + 16*246*ns + 8*us + 16*123*ns},
		{"", "registration: per-operation, page: 2MiB", 16*us + 246*ns + 8*us + 123*ns},
		{"pcie.iommu.mode: lazy\npcie.iommu.hit: 0ns\npcie.iommu.walk: 0ns\npcie.iommu.interval: 0ns", "registration: per-operation", 16*us + 16*346*ns + 8*us + 16*123*ns},
		{"pcie.iommu.mode: strict\npcie.iommu.hit: 0ns\npcie.iommu.walk: 0ns\npcie.iommu.interval: 0ns", "registration: per-operation", 16*us + 16*346*ns + 9*us + 16*123*ns},
	} {
		// A polling thread may see its CQE a look earlier or later.
		if d := p50(tt.hardware, tt.workload) - pool - tt.want; d < -100*ns || d > 100*ns {
			t.Errorf("%s %s: %v more than from a pool, want %v", tt.hardware, tt.workload, d+tt.want, tt.want)
		}
	}
}

// TestOnDemand: each page is a fault on its first touch at either end, and none
// after. The target refuses a write whose page it lacks, and the initiator tries
// again when the receiver's timer is over; so the completion waits for the page.
func TestOnDemand(t *testing.T) {
	const us = sim.Microsecond
	measure := func(set, workload string) (oneWay, completed sim.Duration) {
		ps := paths(t, scene{hardware: quietCore + "\nnic.page_fault: 100us", paths: []string{"{name: v, stack: verbs-cpu, set: {" + set + "}}"}, workload: "{kind: put, bytes: 8KiB, iterations: 40, warmup: 2, " + workload + "}"})
		return metric(t, &ps[0], stage.OneWay).P50, metric(t, &ps[0], stage.PutCompletion).P50
	}
	pool, poolDone := measure("", "registration: pool, window: 64MiB")
	for _, tt := range []struct {
		set, window string
		from, to    sim.Duration
	}{
		// Pages that are there.
		{"", "16KiB", -us / 10, us / 10},
		// The source's first page, then the timer; the other three have come by
		// then. The packets cross the wire, the NAK comes back, and the payload is
		// read again: another 2 us.
		{"", "64MiB", 740 * us, 743 * us},
		{"qp.min_rnr_timer: 1ms", "64MiB", 1100 * us, 1103 * us},
		// The source's first page, then the target's two, tried every 12 us.
		{"qp.min_rnr_timer: 10us", "64MiB", 300 * us, 326 * us},
	} {
		oneWay, done := measure(tt.set, "registration: on-demand, window: "+tt.window)
		for what, d := range map[string]sim.Duration{"one way": oneWay - pool, "completion": done - poolDone} {
			if d < tt.from || d > tt.to {
				t.Errorf("window %s, %q: %s %v more, want %v to %v", tt.window, tt.set, what, d, tt.from, tt.to)
			}
		}
	}
	// A finding tells of the timer.
	for word, want := range map[string]bool{"pool": false, "on-demand": true} {
		p := paths(t, scene{paths: []string{"{stack: mini-gda, set: {payload_in: host, notify_in: host}}"}, workload: "{kind: put, bytes: 8KiB, iterations: 4, warmup: 4, window: 64MiB, registration: " + word + "}"})[0]
		got := slices.ContainsFunc(p.Findings, func(f result.Finding) bool {
			return f.Finding == stage.RNR && f.Grade == stage.Occurred && strings.Contains(f.Cause, "page") && strings.Contains(f.Cause, "qp.min_rnr_timer")
		})
		if got != want {
			t.Errorf("registration %s: findings %+v, want one of the timer: %t", word, p.Findings, want)
		}
	}
	// Who does not try again gives up.
	res := run(t, scene{hardware: "nic.page_fault: 100us", paths: []string{"{name: v, stack: verbs-cpu, set: {qp.min_rnr_timer: 10us, qp.rnr_retry: 2}}"}, workload: "{kind: put, bytes: 8KiB, iterations: 4, warmup: 0, registration: on-demand}"}, testbed.Options{Workers: 1})
	if p := &res.Points[0].Paths[0]; !strings.Contains(p.Err, "RNR retry counter exceeded") {
		t.Errorf("a page of 100 us within three tries of 10 us: %q", p.Err)
	}
}

// TestUnreachable: what the platform or the path cannot do is refused by name.
func TestUnreachable(t *testing.T) {
	for _, tt := range []struct{ hardware, path, workload, want string }{
		{"pcie.path.gpu_nic: PHB\npcie.p2p: none", "mini-gda", "", "hardware.pcie.p2p: none"},
		{"pcie.path.gpu_nic: PHB\npcie.p2p: none", "mini-proxy", "", "hardware.pcie.p2p: none"},
		{"pcie.path.gpu_nic: PHB\npcie.p2p: writes", "mini-gda", "", "hardware.pcie.p2p: writes"}, // its queues are in GPU memory
		{"pcie.path.gpu_nic: PHB\npcie.p2p: writes", "{name: p, stack: mini-proxy, set: {inline: false}}", "", "hardware.pcie.p2p: writes"},
		{"pcie.acs: redirect\npcie.p2p: none", "mini-gda", "", "hardware.pcie.p2p: none"},
		{"", "mini-gda", "registration: per-operation", "registration: per-operation"},
		{"", "mini-proxy", "registration: on-demand", "registration: on-demand with a payload in GPU memory, which is pinned (want pool, or payload_in host)"},
		{"", "{stack: mini-gda, set: {payload_in: host}}", "registration: on-demand", "lands in GPU memory, which is pinned (want pool, a CPU thread that initiates with payload_in host, or a put told of by its data with notify_in host)"},
		{"", "{stack: mini-gda, set: {payload_in: host, notify: signal-write, notify_in: host}}", "registration: on-demand", "lands in GPU memory"},
	} {
		s := scene{hardware: tt.hardware, paths: []string{tt.path}, workload: "{kind: put, bytes: 8B, iterations: 3, warmup: 1, registration: pool}"}
		if tt.workload != "" {
			s.workload = strings.Replace(s.workload, "registration: pool", tt.workload, 1)
		}
		if why := refusal(t, s.text()); !strings.Contains(why, tt.want) {
			t.Errorf("%s with %s: %q, want %q", tt.path, tt.hardware+tt.workload, why, tt.want)
		}
	}
	for _, tt := range []struct{ hardware, path string }{
		{"pcie.p2p: none", "mini-gda"}, // a switch between them
		{"pcie.path.gpu_nic: PHB\npcie.p2p: writes", "mini-proxy-tuned"},
		{"pcie.path.gpu_nic: PHB\npcie.p2p: none", "host-staged"},
		{"pcie.acs: redirect\npcie.p2p: none\npcie.ats: true\npcie.iommu.mode: strict", "mini-gda"},
	} {
		paths(t, scene{hardware: tt.hardware, paths: []string{tt.path}, workload: "{kind: put, bytes: 8B, iterations: 3, warmup: 1}"})
	}
}

// TestRelaxedOrdering: where ordered writes wait for each other, relaxed ones
// carry the link's rate.
func TestRelaxedOrdering(t *testing.T) {
	goodput := func(hardware string) float64 {
		ps := paths(t, scene{
			hardware: "fabric.rate: 400Gb/s\npcie.nic_link: 32GT/s x16\npcie.gpu_link: 32GT/s x16\npcie.path.gpu_nic: PHB\n" + hardware, paths: []string{"mini-gda"},
			workload: "{kind: stream, bytes: 64KiB, outstanding: 16, iterations: 300, warmup: 50}",
		})
		return metric(t, &ps[0], stage.Goodput).Value
	}
	free := goodput("pcie.ordered_write: 0ns")
	ordered := goodput("pcie.ordered_write: 10ns") // 256 B each
	if ordered < 24.9 || ordered > 25.7 {
		t.Errorf("ordered writes of 256 B each 10 ns carry %.2f GB/s, want 25.6", ordered)
	}
	for _, tt := range []struct {
		hardware string
		want     float64
	}{
		{"nic.payload.relaxed_ordering: true", free},
		{"nic.payload.relaxed_ordering: true\npcie.relaxed_ordering: false", ordered},
	} {
		if got := goodput("pcie.ordered_write: 10ns\n" + tt.hardware); got < tt.want*0.99 || got > tt.want*1.01 {
			t.Errorf("%s: %.2f GB/s, want %.2f", tt.hardware, got, tt.want)
		}
	}
}

// TestDMAWorkload: what a step reports is what the engine's test has.
func TestDMAWorkload(t *testing.T) {
	for _, op := range []string{"read", "write", "write-read", "read-write"} {
		s := fmt.Sprintf("gdisim: v1\nname: t\nhardware: pcie-ideal\nworkload: {kind: dma, op: %s, memory: host, bytes: 1KiB, outstanding: 64, pause: 0s, iterations: 2000, warmup: 100}\n", op)
		res, err := testbed.Run(context.Background(), parse(t, s), testbed.Options{Workers: 1, Breakdown: true})
		if err != nil {
			t.Fatal(err)
		}
		p := &res.Points[0].Paths[0]
		if p.Err != "" {
			t.Fatal(p.Err)
		}
		rate, bytes := metric(t, p, stage.MessageRate).Value, metric(t, p, stage.Goodput).Value
		if d := bytes - rate*1024/1000; d < -1e-6 || d > 1e-6 {
			t.Errorf("%s: %.4f Mmsg/s of 1 KiB are not %.4f GB/s", op, rate, bytes)
		}
		for _, l := range p.Cost.Links {
			if l.Busy > 1.001 {
				t.Errorf("%s: %s was busy for %.3f of the time", op, l.Name, l.Busy)
			}
		}
	}
}

// TestFlagOvertakes: data whose page must be walked for is passed by a relaxed
// flag whose page is known, and by no other; and packets that land in any order
// leave nothing behind.
func TestFlagOvertakes(t *testing.T) {
	for _, flag := range []bool{false, true} {
		hardware := fmt.Sprintf("pcie.path.gpu_nic: PHB\npcie.iommu.mode: lazy\nnic.payload.relaxed_ordering: true\nnic.signal.relaxed_ordering: %t", flag)
		p := paths(t, scene{hardware: hardware, paths: []string{"mini-gda"}, workload: "{kind: put-signal, bytes: 12KiB, window: 64MiB, iterations: 30, warmup: 2}"})[0]
		if !blamed(&p, "relaxed writes", flag) {
			t.Errorf("relaxed flag %t: findings %+v", flag, p.Findings)
		}
		occurred := false
		for _, f := range p.Findings {
			occurred = occurred || f.Finding == stage.FlagBeforeData && f.Grade == stage.Occurred
		}
		if occurred != flag {
			t.Errorf("relaxed flag %t: overtook %t", flag, occurred)
		}
		paths(t, scene{hardware: hardware, paths: []string{"mini-gda"}, workload: "{kind: stream, bytes: 64KiB, window: 64MiB, outstanding: 16, iterations: 200, warmup: 20}"})
	}
}

// blamed reports whether each flag that was seen before its data has that cause, and
// whether there is one as wanted.
func blamed(p *result.Path, cause string, want bool) bool {
	got := false
	for _, f := range p.Findings {
		if f.Finding == stage.FlagBeforeData && f.Grade == stage.Occurred {
			if got = true; !strings.HasPrefix(f.Cause, cause) {
				return false
			}
		}
	}
	return got == want
}

// TestFlagInTheOtherMemory: a flag that goes another way than its data is seen before
// it with all writes in order, and the finding says why.
func TestFlagInTheOtherMemory(t *testing.T) {
	for in, want := range map[string]bool{"gpu": false, "host": true} {
		p := paths(t, scene{hardware: "pcie.path.gpu_nic: PHB\npcie.iommu.mode: lazy", paths: []string{"{name: a, stack: mini-gda, set: {notify_in: " + in + "}}"}, workload: "{kind: put-signal, bytes: 12KiB, window: 64MiB, iterations: 30, warmup: 2}"})[0]
		if !blamed(&p, "two memories", want) {
			t.Errorf("flag in %s memory: findings %+v, want %t", in, p.Findings, want)
		}
	}
}

// BenchmarkBulk is how much payload of 1 MiB messages a second of CPU carries,
// each TLP in the counters.
func BenchmarkBulk(b *testing.B) {
	const messages = 500
	s := scene{hardware: "pcie.mps: 256B", paths: []string{"mini-gda"}, workload: "{kind: stream, bytes: 1MiB, outstanding: 8, iterations: 500, warmup: 20}"}
	b.SetBytes(messages << 20)
	for b.Loop() {
		run(b, s, testbed.Options{Workers: 1})
	}
}

// TestFlitNotice: a link that nothing has been held against says so, once.
func TestFlitNotice(t *testing.T) {
	for link, want := range map[string]int{"32GT/s x16": 0, "64GT/s x16": 1} {
		res := run(t, scene{hardware: "pcie.nic_link: " + link, paths: []string{"mini-gda"}, workload: "{kind: put, bytes: 8B, iterations: 3, warmup: 1}"}, testbed.Options{Workers: 1})
		n := 0
		for _, s := range res.Notices {
			if strings.Contains(s, "flit") {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d notices of flits, want %d: %q", link, n, want, res.Notices)
		}
	}
}

// TestFlagBeforeData: whose attribute lets whom pass.
func TestFlagBeforeData(t *testing.T) {
	const data, flag = "nic.payload.relaxed_ordering: true", "nic.signal.relaxed_ordering: true"
	for _, tt := range []struct {
		hardware, path, workload string
		want                     bool
	}{
		{"", "mini-gda", "{kind: put-signal, bytes: 1KiB", false},
		{data, "mini-gda", "{kind: put-signal, bytes: 1KiB", false}, // the flag is strictly ordered
		{data + "\n" + flag, "mini-gda", "{kind: put-signal, bytes: 1KiB", true},
		{data + "\n" + flag + "\npcie.relaxed_ordering: false", "mini-gda", "{kind: put-signal, bytes: 1KiB", false},
		{data + "\n" + flag, "{name: a, stack: mini-gda, set: {signal: atomic}}", "{kind: put-signal, bytes: 1KiB", false},
		{data + "\n" + flag + "\nnic.atomics: pcie", "{name: a, stack: mini-gda, set: {signal: atomic}}", "{kind: put-signal, bytes: 1KiB", true},
		{data, "mini-gda", "{kind: put, bytes: 256B", false}, // one TLP
		{data, "mini-gda", "{kind: put, bytes: 257B", true},
		{data, "{name: i, stack: verbs-cpu, set: {notify: immediate}}", "{kind: ping-pong, bytes: 4KiB", false},
		{"", "{name: a, stack: mini-gda, set: {notify_in: host}}", "{kind: put-signal, bytes: 1KiB", true},                 // nothing orders two memories
		{"", "{name: a, stack: mini-gda, set: {notify_in: host, signal: atomic}}", "{kind: put-signal, bytes: 1KiB", true}, // nor does a read of one of them
		{"", "{name: a, stack: mini-gda, set: {notify_in: host}}", "{kind: put, bytes: 8B", false},                         // the data is the word
	} {
		p := paths(t, scene{hardware: "gpu.warp: 32\n" + tt.hardware, paths: []string{tt.path}, workload: tt.workload + ", iterations: 3, warmup: 1}"})[0]
		got := false
		for _, f := range p.Findings {
			got = got || f.Finding == stage.FlagBeforeData
		}
		if got != tt.want {
			t.Errorf("%s %s with %q: flag-before-data %v, want %v", tt.path, tt.workload, tt.hardware, got, tt.want)
		}
	}
}

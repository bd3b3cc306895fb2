package testbed_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/stage"
	"gdisim/testbed"

	"pgregory.net/rapid"
)

// causes are the faults that may bring a finding; what no fault brings is not in
// it.
var causes = map[stage.Finding][]string{
	stage.RetryExceeded:      {"loss", "link-down", "no-recv"},
	stage.RNR:                {"no-recv"},
	stage.RKeyViolation:      {"wrong-rkey"},
	stage.UnregisteredMemory: {"unregistered"},
}

// drawFaults draws entries of `faults`, and returns their kinds.
func drawFaults(t *rapid.T) (entries, kinds []string) {
	x := dice{t}
	when := func(name string) string { return fmt.Sprintf("at: %dus", x.count(name, 0, 0, 5, 20)) }
	for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"drop-fence", "reorder", "skip-doorbell", "two-producers", "slow-reader", "loss", "link-down", "cqe-error", "wrong-rkey", "unregistered", "no-recv",
	}), 1, 3, rapid.ID[string]).Draw(t, "faults") {
		keys := ""
		switch k {
		case "two-producers":
		case "slow-reader", "link-down":
			keys = ", " + when(k) + x.pick(k+" for", "", ", for: 30us", ", for: 1us")
		default:
			keys = ", " + when(k) + x.pick(k+" chance", ", count: 1", ", count: 3", ", rate: 10%, count: 20")
		}
		entries, kinds = append(entries, "{kind: "+k+keys+"}"), append(kinds, k)
	}
	return entries, kinds
}

// Whatever goes wrong: a run ends with a result whose stages add up, or with a
// named cause; every finding says why and what avoids it, and none comes without
// a fault that may bring it; and the same seed brings the same.
func TestRandomFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		if strings.Contains(d.workload, "background") {
			return // a load that goes on for ever takes long to give up beside
		}
		entries, kinds := drawFaults(t)
		d.more += "faults: [" + strings.Join(entries, ", ") + "]\n"
		s := parse(t, d.text())
		res, err := testbed.Run(context.Background(), s, testbed.Options{Breakdown: true, Workers: 1})
		if err != nil {
			return // TestRandomScenarios looks at what no machine can run
		}
		again, err := testbed.Run(context.Background(), s, testbed.Options{Workers: 1})
		if err != nil {
			t.Fatalf("without recording: %v\n%s", err, d.text())
		}
		for i := range res.Points[0].Paths {
			p, q := &res.Points[0].Paths[i], &again.Points[0].Paths[i]
			if err := consistent(p); err != nil {
				t.Fatalf("%s: %v\n%s", p.Name, err, d.text())
			}
			if p.Err != q.Err || !slices.Equal(p.Findings, q.Findings) {
				t.Fatalf("recording changes what is found:\n%s %+v\n%s %+v\n%s", p.Err, p.Findings, q.Err, q.Findings, d.text())
			}
			if p.Err != "" && !strings.Contains(p.Err, " initiators wait (") {
				t.Fatalf("%s: error %q names nobody\n%s", p.Name, p.Err, d.text())
			}
			dead := false
			for _, f := range p.Findings {
				if f.Cause == "" || f.Avoid == "" || f.Count < 1 {
					t.Fatalf("%s: finding %+v\n%s", p.Name, f, d.text())
				}
				if by, known := causes[f.Finding]; known && !slices.ContainsFunc(by, func(k string) bool { return slices.Contains(kinds, k) }) {
					t.Fatalf("%s: %v without a fault that brings it\n%s", p.Name, f.Finding, d.text())
				}
				dead = dead || f.Finding == stage.Deadlock
			}
			if dead != strings.HasPrefix(p.Err, "deadlock") {
				t.Fatalf("%s: error %q, findings %+v\n%s", p.Name, p.Err, p.Findings, d.text())
			}
		}
	})
}

// found returns the strongest grade of each finding of the path, by name.
func found(p *result.Path) map[string]string {
	out := map[string]string{}
	for _, f := range p.Findings {
		if out[f.Finding.String()] != stage.Occurred.String() {
			out[f.Finding.String()] = f.Grade.String()
		}
	}
	return out
}

// TestFaults: each fault brings its findings, and its consequence.
func TestFaults(t *testing.T) {
	const gda, proxy, nvshmem, cpu = "{name: x, stack: mini-gda}", "{name: x, stack: mini-proxy-tuned}", "{name: x, stack: nvshmem-ibgda, set: {qps_per_peer: 1}}", "{name: x, stack: verbs-cpu, set: {notify: immediate}}"
	const put = "{kind: put, bytes: 8B, iterations: 30, warmup: 0}"
	for _, tt := range []struct {
		name, path, workload, fault string
		want                        string // findings with their grades
		err                         string // part of the error; "": it finishes
		hardware                    string
	}{
		{"a fence left out", gda, put, "{kind: drop-fence}", "stale-descriptor possible", "", ""},
		{"a release left out", "{name: x, stack: mini-proxy}", put, "{kind: drop-fence}", "flag-before-data possible", "", ""},
		{"no doorbell", gda, put, "{kind: skip-doorbell}", "deadlock occurred, lost-doorbell occurred", "(0 doorbells rung) and no event is left that could wake them; initiator 0 for the completion of WQE 0 of queue 0, for which no doorbell came; destination 0 for data", ""},
		{"no doorbell from the proxy", proxy, put, "{kind: skip-doorbell, at: 20us}", "deadlock occurred, lost-doorbell occurred", "initiator 0 for the proxy's progress in ring 0", ""},
		{"a doorbell that the next makes good", gda, "{kind: stream, bytes: 8B, iterations: 300, warmup: 0, outstanding: 16}", "{kind: skip-doorbell, at: 5us}", "lost-doorbell possible", "", ""},
		{"a proxy that stops", proxy, put, "{kind: slow-reader, at: 20us}", "deadlock occurred, lost-doorbell occurred", "deadlock", ""},
		{"a proxy that pauses", proxy, put, "{kind: slow-reader, at: 20us, for: 1ms}", "", "", ""},
		{"a lost packet", gda, put, "{kind: loss, count: 1}", "", "", ""},
		{"a link that stays down", gda, put, "{kind: link-down, at: 20us}", "deadlock occurred, retry-exceeded occurred", "queue 0 of node 0 is in error since", ""},
		{"a key that does not fit", gda, put, "{kind: wrong-rkey}", "deadlock occurred, rkey-violation occurred", "remote access error, WQE 0", ""},
		{"memory without a registration", gda, "{kind: put, bytes: 4KiB, iterations: 30}", "{kind: unregistered}", "deadlock occurred, unregistered-memory occurred", "local protection error, WQE 0", ""},
		{"an error CQE", gda, put, "{kind: cqe-error}", "deadlock occurred", "CQE with an error, by a fault", ""},
		{"no receive for a while", cpu, "{kind: ping-pong, bytes: 8B, iterations: 30}", "{kind: no-recv, for: 1ms}", "rnr occurred", "", ""},
		{"no receive for a GPU thread's immediate", "{name: x, stack: mini-gda, set: {notify: immediate}}", "{kind: ping-pong, bytes: 8B, iterations: 30}", "{kind: no-recv, for: 1ms}", "rnr occurred", "", ""},
		{"no receive for a proxy's", "{name: x, stack: mscclpp, set: {notify: immediate}}", "{kind: ping-pong, bytes: 8B, iterations: 30}", "{kind: no-recv, for: 1ms}", "rnr occurred", "", ""},
		{"nobody takes the answers", "{name: x, stack: mini-gda, set: {notify: immediate, completion: immediate}}", put, "{kind: slow-reader, at: 20us}", "deadlock occurred", "initiator 0 for data", ""},
		{"two producers, alike", nvshmem, "{kind: put, bytes: 8B, iterations: 20, initiators: {threads: 2}}", "{kind: two-producers}", "", "", ""},
		{"two producers", nvshmem, "{kind: put, bytes: 8B, iterations: 100, initiators: {threads: 4}}", "{kind: two-producers}", "deadlock occurred, stale-descriptor occurred", "destination", "gpu.build: {dist: lognormal, median: 100ns, p99: 4us}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := run(t, scene{paths: []string{tt.path}, workload: tt.workload, hardware: tt.hardware, more: "faults: [" + tt.fault + "]\n"}, testbed.Options{Workers: 1}).Points[0].Paths[0]
			var got []string
			for f, g := range found(&p) {
				got = append(got, f+" "+g)
			}
			slices.Sort(got)
			if s := strings.Join(got, ", "); s != tt.want {
				t.Errorf("found %q, want %q", s, tt.want)
			}
			if (tt.err == "") != (p.Err == "") || !strings.Contains(p.Err, tt.err) {
				t.Errorf("error %q, want %q", p.Err, tt.err)
			}
		})
	}
}

// TestFaultFree: a fault that never strikes changes nothing but the notices, not
// even a random number.
func TestFaultFree(t *testing.T) {
	sc := scene{paths: []string{"{name: x, stack: mini-proxy}"}, workload: "{kind: put, bytes: 8B, iterations: 50}"}
	want := run(t, sc, testbed.Options{Breakdown: true})
	sc.more = "faults: [{kind: loss, rate: 0%}, {kind: skip-doorbell, at: 900s}]\n"
	got := run(t, sc, testbed.Options{Breakdown: true})
	want.Points[0].Paths[0].Params, got.Points[0].Paths[0].Params = nil, nil // those of connections are read where there are faults
	if d := measured(&want.Points[0].Paths[0], &got.Points[0].Paths[0]); d != "" {
		t.Errorf("a fault that never struck: %s", d)
	}
	if n := strings.Join(got.Notices, "; "); !strings.Contains(n, "fault loss never struck") || !strings.Contains(n, "fault skip-doorbell never struck") {
		t.Errorf("notices %q", n)
	}
}

// TestFaultAtPeer: what puts a queue of the peer into the error state is found
// too, and the deadlock names the fault.
func TestFaultAtPeer(t *testing.T) {
	for _, seed := range []uint64{1, 2, 4} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := run(t, scene{
				paths: []string{"{name: x, stack: mini-gda, set: {qp.retry_cnt: 0}}"}, workload: "{kind: ping-pong, bytes: 8B, iterations: 200}",
				more: "faults: [{kind: loss, rate: 1%}]\n", seed: seed,
			}, testbed.Options{Workers: 1}).Points[0].Paths[0]
			if !strings.Contains(p.Err, "queue 0 of node 1 is in error") || !strings.Contains(p.Err, "retry counter exceeded") {
				t.Fatalf("error %q, want one at node 1", p.Err)
			}
			i := slices.IndexFunc(p.Findings, func(f result.Finding) bool { return f.Finding == stage.RetryExceeded })
			if i < 0 || !strings.HasSuffix(p.Findings[i].Where, "queue 0, node 1") {
				t.Errorf("findings %+v", p.Findings)
			}
		})
	}
}

// TestFaultBlamed: a deadlock's cause names the faults that have struck, and no
// others.
func TestFaultBlamed(t *testing.T) {
	const wait, failed = "initiators wait and nothing is left that could wake them", "initiators wait for completions that a queue in error does not bring"
	for _, tt := range []struct{ name, set, fault, want string }{
		{"a loss that nobody sends again", "{qp.timeout: 0}", "{kind: loss, count: 1}", wait + "; fault loss struck once"},
		{"a link that stays down", "{qp.timeout: 0}", "{kind: link-down, at: 20us}", wait + "; fault link-down struck once"},
		{"given up", "{qp.retry_cnt: 2}", "{kind: loss, count: 3}", failed + "; fault loss struck 3 times"},
		{"an error CQE", "{}", "{kind: cqe-error}, {kind: loss, at: 900s, count: 1}", failed + "; fault cqe-error struck once"},
		{"two of them", "{}", "{name: cut, kind: loss, count: 2}, {kind: wrong-rkey}", failed + "; fault cut struck 2 times; fault wrong-rkey struck once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := run(t, scene{
				paths: []string{"{name: x, stack: mini-gda, set: " + tt.set + "}"}, workload: "{kind: put, bytes: 8B, iterations: 30, warmup: 0}", more: "faults: [" + tt.fault + "]\n",
			}, testbed.Options{Workers: 1}).Points[0].Paths[0]
			i := slices.IndexFunc(p.Findings, func(f result.Finding) bool { return f.Finding == stage.Deadlock })
			if i < 0 || p.Findings[i].Cause != tt.want {
				t.Errorf("findings %+v, want %q", p.Findings, tt.want)
			}
		})
	}
}

// TestFaultNotices: a fault that struck nothing that is measured says why.
func TestFaultNotices(t *testing.T) {
	const gda, proxy = "mini-gda", "mini-proxy-tuned"
	const put, tour = "{kind: put, bytes: 8B, iterations: 30}", "{kind: stream, bytes: 8B, iterations: 200, outstanding: 16, connections: 4}"
	for _, tt := range []struct{ name, stack, workload, fault, want string }{
		{"in the warm-up of both runs", gda, put, "{kind: loss, count: 1}", "x: fault loss struck 2 times, all before the measured operations began"},
		{"in the warm-up of the only run", gda, "{kind: ping-pong, bytes: 8B, iterations: 30}", "{kind: loss, count: 1}", "x: fault loss struck once, before the measured operations began"},
		{"a flap in the warm-up", gda, put, "{kind: link-down, at: 100us, for: 10us}", "x: fault link-down struck 2 times, all before the measured operations began"},
		{"in the warm-up of a tour", gda, tour, "{kind: loss, count: 1}", "x: fault loss struck once, before the measured operations began"},
		{"without a warm-up", gda, "{kind: put, bytes: 8B, iterations: 30, warmup: 0}", "{kind: loss, count: 1}", ""},
		{"a pause in the warm-up", proxy, put, "{kind: slow-reader, at: 20us, for: 1us}", "x: fault slow-reader struck 2 times, all before the measured operations began"},
		{"a pause that lasts into what is measured", proxy, "{kind: ping-pong, bytes: 8B, iterations: 30, warmup: 1}", "{kind: slow-reader, at: 2us, for: 100us}", ""},
		{"all the time", gda, put, "{kind: loss, rate: 10%}", ""},
		{"seldom", gda, put, "{kind: loss, rate: 0.0001%}", "x: fault loss never struck: it had chances and none was drawn"},
		{"never drawn", gda, put, "{kind: loss, rate: 0%}", "x: fault loss never struck: it had chances and none was drawn"},
		{"too late", gda, put, "{kind: loss, at: 900s, count: 1}", "x: fault loss never struck: the path gave it no chance, or none in its time"},
		{"nothing to strike", gda, put, "{kind: no-recv}", "x: fault no-recv never struck: the path gave it no chance, or none in its time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := run(t, scene{paths: []string{"{name: x, stack: " + tt.stack + "}"}, workload: tt.workload, more: "faults: [" + tt.fault + "]\n"}, testbed.Options{Workers: 1})
			if p := &res.Points[0].Paths[0]; p.Err != "" {
				t.Fatal(p.Err)
			}
			var got []string
			for _, n := range res.Notices {
				if strings.Contains(n, ": fault ") {
					got = append(got, n)
				}
			}
			if s := strings.Join(got, "; "); s != tt.want {
				t.Errorf("notices %q, want %q", s, tt.want)
			}
		})
	}
}

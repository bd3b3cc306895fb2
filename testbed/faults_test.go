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

package cli

import (
	"strings"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

const ns = sim.Nanosecond

// timed is a metric whose samples all took d, and extra at p99.
func timed(m stage.Metric, d, extra sim.Duration) result.Metric {
	return result.Metric{Metric: m, N: 1000, Min: d, P50: d, P99: d + extra, P999: d + extra, Max: d + extra, Mean: d + extra/100}
}

// brokenDown has parts that no tenth of a nanosecond holds, so that plain
// rounding would not add up.
func brokenDown(m stage.Metric, extra sim.Duration, parts ...result.StageTime) result.Breakdown {
	b := result.Breakdown{Metric: m, Stages: parts}
	for i := range parts {
		parts[i].Lane, parts[i].Mean, parts[i].N = parts[i].Stage.Lane(), parts[i].Time+extra/sim.Duration(100*len(parts)), 1
		b.Total += parts[i].Time
		b.MeanTotal += parts[i].Mean
	}
	return b
}

// sample is one point of three paths: one plain, one with tails and a finding,
// one that did not finish.
func sample() *result.Result {
	const gda, proxy = 4033*ns + 333, 7123*ns + 667
	gdaParts := func() []result.StageTime {
		return []result.StageTime{
			{Stage: stage.GPUBuild, Time: 197*ns + 979},
			{Stage: stage.GPUFence, Time: 512*ns + 333},
			{Stage: stage.NICWQEFetch},
			{Stage: stage.NICTx, Time: 1500*ns + 5},
			{Stage: stage.NICTx, Node: 1, Time: 800*ns + 16},
			{Stage: stage.GPUPoll, Time: 1023 * ns},
		}
	}
	return &result.Result{
		Schema: result.Schema, Tool: "gdisim 0.1.0", Backend: "sim", Name: "sample", Title: "does the doorbell pay?", Source: "sample.yaml", Digest: "00", Seed: 7,
		Notices: []string{"the wire is shorter than the cable"}, Messages: 3000, Events: 90000,
		Points: []result.Point{{Paths: []result.Path{
			{
				Name: "mini-gda", Stack: "mini-gda", Hardware: "h200-cx7-ib200", Workload: "put 8 B, 1 CTA x 1 thread, 1 outstanding",
				Metrics:    []result.Metric{timed(stage.Issue, 512*ns, 0), timed(stage.PutCompletion, gda, 0), timed(stage.RTT, 6900*ns, 0), {Metric: stage.CPUCores}},
				Breakdowns: []result.Breakdown{brokenDown(stage.Issue, 0, result.StageTime{Stage: stage.GPURing, Time: 512 * ns}), brokenDown(stage.PutCompletion, 0, gdaParts()...)},
				Cost:       result.Cost{Window: sim.Millisecond, Messages: 1000, SMBusy: 900 * sim.Microsecond, SMs: 1, Doorbells: 1000, WQEFetches: 1000, Links: []result.Link{{Name: "node0.pcie.nic.up", TLPs: 3000, Bytes: 120000, Busy: 0.0125}}},
			},
			{
				Name: "proxy|odd", Stack: "mini-proxy", Hardware: "h200-cx7-ib200", Workload: "put 8 B, 1 CTA x 1 thread, 1 outstanding",
				Metrics: []result.Metric{timed(stage.Issue, 100*ns, 0), timed(stage.PutCompletion, proxy, 200*ns), timed(stage.RTT, 5900*ns, 0)},
				Breakdowns: []result.Breakdown{func() result.Breakdown {
					b := brokenDown(stage.PutCompletion, 200*ns, result.StageTime{Stage: stage.CPUWait, Time: 3000*ns + 333}, result.StageTime{Stage: stage.CPUPost, Time: 4123*ns + 334})
					b.Overlaps = []result.Overlap{{Stage: stage.NICAck, Time: 210 * ns, After: 90 * ns}, {Stage: stage.NICCQE, Node: 1, After: 55 * ns}, {Stage: stage.NICRx, Time: 5 * ns}}
					return b
				}()},
				Findings: []result.Finding{{Finding: stage.StaleDescriptor, Grade: stage.Possible, Count: 1000, Cause: "no fence between WQE and doorbell", Avoid: "set fence to gpu"}},
				Cost:     result.Cost{Window: sim.Millisecond, Messages: 1000, CPUBusy: sim.Millisecond, CPUCores: 1, SMBusy: 900 * sim.Microsecond, SMs: 1, Doorbells: 1000},
			},
			{Name: "hung", Stack: "hung", Hardware: "h200-cx7-ib200", Workload: "put 8 B, 1 CTA x 1 thread, 1 outstanding", Err: "deadlock: 0 doorbells, 3 operations wait"},
		}}},
	}
}

// swept is the sample at nine points of two keys.
func swept() *result.Result {
	r := sample()
	p := r.Points[0]
	r.Points = nil
	for i, clock := range []string{"502MHz", "1000MHz", "1980MHz"} {
		for j, host := range []string{"cold", "warm"} {
			q := result.Point{Index: 2*i + j, At: []result.Setting{{Key: "hardware.gpu.sm_clock", Value: clock}, {Key: "host.clock", Value: host}}}
			for _, x := range p.Paths[:2] {
				x.Metrics = append([]result.Metric(nil), x.Metrics...)
				if x.Name == "mini-gda" {
					x.Metrics[2] = timed(stage.RTT, sim.Duration(8000-1000*i)*ns, 0)
				}
				q.Paths = append(q.Paths, x)
			}
			r.Points = append(r.Points, q)
		}
	}
	return r
}

// longNames makes everything a user can name very long.
func longNames(r *result.Result) *result.Result {
	long := strings.Repeat("gpu-initiated-doorbell-", 8)
	r.Name, r.Title = long, long
	for i := range r.Points {
		p := &r.Points[i]
		for j := range p.At {
			p.At[j].Key, p.At[j].Value = long+p.At[j].Key, long
		}
		for j := range p.Paths {
			p.Paths[j].Name, p.Paths[j].Hardware, p.Paths[j].Workload = long+p.Paths[j].Name, long, long+" "+long
		}
	}
	return r
}

package plots

import (
	"fmt"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

const ns = sim.Nanosecond

// leg is one step of a made-up operation.
type leg struct {
	stage stage.Stage
	node  int
	time  sim.Duration
	off   bool // beside the walk, from the step before
}

// operation lays legs end to end.
func operation(m stage.Metric, legs []leg) (result.Graph, result.Breakdown) {
	g := result.Graph{Metric: m, Which: "p50"}
	b := result.Breakdown{Metric: m}
	at, pred := sim.Duration(0), -1
	for i, l := range legs {
		s := result.Span{Stage: l.stage, Wait: l.stage, Lane: l.stage.Lane(), Node: l.node, Arrival: at, Start: at, End: at + l.time, Pred: pred, OnWalk: !l.off}
		g.Spans = append(g.Spans, s)
		if l.off {
			b.Overlaps = append(b.Overlaps, result.Overlap{Stage: l.stage, Node: l.node, Time: l.time})
			continue
		}
		at += l.time
		pred = i
		b.Stages = append(b.Stages, result.StageTime{Stage: l.stage, Lane: l.stage.Lane(), Node: l.node, Time: l.time, Mean: l.time, N: 1})
	}
	g.Total, b.Total, b.MeanTotal = at, at, at
	return g, b
}

// doorbell and proxy are the two paths' steps for a message of that size; the
// proxy's are more, but it copies faster.
func doorbell(bytes int) []leg {
	copying := sim.Duration(bytes) * 300
	return []leg{
		{stage.GPUReserve, 0, 120 * ns, false},
		{stage.GPUBuild, 0, 430 * ns, false},
		{stage.GPUFence, 0, 225 * ns, false},
		{stage.GPURing, 0, 14 * ns, false},
		{stage.PCIeDoorbell, 0, 430 * ns, false},
		{stage.NICSched, 0, 90 * ns, false},
		{stage.NICWQEFetch, 0, 612 * ns, false},
		{stage.NICPayloadFetch, 0, copying, false},
		{stage.NICTx, 0, 250 * ns, false},
		{stage.FabricSerialise, 0, 2 * ns, false},
		{stage.FabricPropagate, 0, 40 * ns, false},
		{stage.FabricSwitch, 0, 130 * ns, false},
		{stage.NICRx, 1, 308 * ns, false},
		{stage.PCIeDeliver, 1, 665 * ns, true},
		{stage.NICAck, 1, 575 * ns, false},
		{stage.NICCQE, 0, 666 * ns, false},
		{stage.GPUPoll, 0, 195 * ns, false},
	}
}

func proxy(bytes int) []leg {
	copying := sim.Duration(bytes) * 40
	return []leg{
		{stage.GPUReserve, 0, 1296 * ns, false},
		{stage.GPUBuild, 0, 411 * ns, false},
		{stage.GPUFence, 0, 580 * ns, false},
		{stage.PCIeNotify, 0, 480 * ns, false},
		{stage.CPUWait, 0, 41 * ns, false},
		{stage.CPUDequeue, 0, 192 * ns, false},
		{stage.CPUPost, 0, 36 * ns, false},
		{stage.CPURing, 0, 150 * ns, false},
		{stage.PCIeDoorbell, 0, 311 * ns, false},
		{stage.NICSched, 0, 90 * ns, false},
		{stage.NICPayloadFetch, 0, copying, false},
		{stage.NICTx, 0, 250 * ns, false},
		{stage.FabricPropagate, 0, 40 * ns, false},
		{stage.NICRx, 1, 308 * ns, false},
		{stage.NICAck, 1, 575 * ns, false},
		{stage.NICCQE, 0, 291 * ns, false},
		{stage.CPUPoll, 0, 294 * ns, false},
		{stage.CPUPublish, 0, 8 * ns, false},
		{stage.GPUPoll, 0, 300 * ns, false},
	}
}

// measured makes a path of those steps, with samples that have a tail.
func measured(name string, legs []leg, tail sim.Duration) result.Path {
	p := result.Path{Name: name, Stack: name, Hardware: "h200-cx7-ib200", Workload: "put, 1 initiator"}
	g, b := operation(stage.PutCompletion, legs)
	var samples []sim.Duration
	for i := range 1000 {
		d := g.Total + sim.Duration(i%50)*ns
		if i >= 985 {
			d += tail * sim.Duration(i-984)
		}
		samples = append(samples, d)
	}
	m := result.Summarise(samples)
	m.Metric = stage.PutCompletion
	p.Metrics = []result.Metric{m, {Metric: stage.MessageRate, Value: 1e6 / float64(g.Total) * 4}}
	p.Breakdowns, p.Graphs = []result.Breakdown{b}, []result.Graph{g}
	p.Params = []result.Param{
		{Key: "hardware.gpu.sm_clock", Value: "1980MHz", Unit: "Hz", Source: "data sheet <b>", Kind: "published"},
		{Key: "host.poll", Value: "50ns", Unit: "time", Source: "measured here", Kind: "measured"},
	}
	return p
}

// sample is one point of two paths.
func sample() *result.Result {
	return &result.Result{
		Schema: result.Schema, Tool: "gdisim 0.1.0", Backend: "sim", Name: "sample", Title: "does the doorbell pay?", Source: "sample.yaml", Digest: "00", Seed: 7,
		Messages: 2000, Events: 90000, Notices: []string{"the wire is shorter than the cable"},
		Points: []result.Point{{Paths: []result.Path{measured("gda", doorbell(8), 5*ns), withFinding(measured("proxy", proxy(8), 300*ns))}}},
	}
}

func withFinding(p result.Path) result.Path {
	p.Cost.CPUCores = 1
	p.Findings = []result.Finding{{Finding: stage.StaleDescriptor, Grade: stage.Possible, Count: 3, Cause: "no fence", Avoid: "set fence: gpu"}}
	return p
}

// sizes sweeps the message size over n powers of two from 8 B; the paths cross.
func sizes(n int) *result.Result {
	r := sample()
	r.Name, r.Points = "sizes", nil
	for i := range n {
		bytes := 8 << i
		text := fmt.Sprintf("%dB", bytes)
		if bytes >= 1024 {
			text = fmt.Sprintf("%dKiB", bytes/1024)
		}
		r.Points = append(r.Points, result.Point{
			Index: i, At: []result.Setting{{Key: "workload.bytes", Value: text}},
			Paths: []result.Path{measured("gda", doorbell(bytes), 40*ns), measured("proxy", proxy(bytes), 90*ns)},
		})
	}
	return r
}

// gridSweep sweeps a clock and a window.
func gridSweep() *result.Result {
	r := sample()
	r.Name, r.Points = "grid", nil
	for i, clock := range []string{"502MHz", "1000MHz", "1980MHz"} {
		for j, window := range []string{"1", "4", "16", "64"} {
			legs := doorbell(8)
			for k := range legs {
				if legs[k].stage.Lane() == stage.LaneSM {
					legs[k].time *= sim.Duration(4 - i)
				}
			}
			gda, prox := measured("gda", legs, 0), measured("proxy", proxy(8), 0)
			gda.Metrics[1].Value, prox.Metrics[1].Value = float64(2+i)*float64(j+1), 3*float64(j+1)
			gda.Params[0].Value, prox.Params[0].Value = clock, clock
			r.Points = append(r.Points, result.Point{
				Index: len(r.Points), At: []result.Setting{{Key: "hardware.gpu.sm_clock", Value: clock}, {Key: "workload.outstanding", Value: window}},
				Paths: []result.Path{gda, prox},
			})
		}
	}
	return r
}

// hardware is a result measured elsewhere, some way off.
func hardware(r *result.Result) *result.Result {
	h := *r
	h.Backend, h.Name = "hw", "cluster"
	h.Points = nil
	for _, p := range r.Points {
		q := p
		q.Paths = nil
		for i, x := range p.Paths {
			x.Metrics = append([]result.Metric(nil), x.Metrics...)
			m := &x.Metrics[0]
			m.P50 = m.P50 * sim.Duration(96+10*i) / 100
			q.Paths = append(q.Paths, x)
		}
		h.Points = append(h.Points, q)
	}
	return &h
}

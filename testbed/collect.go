package testbed

import (
	"cmp"
	"fmt"
	"slices"

	"gdisim/model/path"
	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// collect adds a run's measurements to the path's result.
func (r *runner) collect(p *plan, m *machine, run *workload.Run, group, background *workload.Group, rec *sim.Recorder, find *findings, fwd side, cost result.Cost, sms int) {
	r.out.Findings = find.into(r.out.Findings)
	r.samples(run, rec)
	value := func(k stage.Metric, v float64) {
		r.rates = append(r.rates, result.Metric{Metric: k, Value: v})
	}
	if group != nil {
		n, w := group.Rate()
		switch {
		case w <= 0 && r.out.Err == "":
			r.note(r.name + ": no rate: one CQE ended the warm-up and all that is measured (want more workload.iterations)")
		case w > 0:
			rate := float64(n) / w.Seconds()
			value(stage.MessageRate, rate/1e6)
			value(stage.Goodput, rate*float64(p.msg.Bytes)/1e9)
		}
	}
	if background != nil {
		if n := background.Late(); n > 0 {
			r.note(fmt.Sprintf("%s: %d of %d background threads had not completed a message when measuring began (want more workload.warmup)", r.name, n, 2*p.bg.agents))
		}
		if n, w := background.Rate(); w > 0 {
			value(stage.BackgroundRate, float64(n)/w.Seconds()/1e6)
		}
	}
	if r.out.Cost.Window > 0 {
		return // costs are those of the first run: puts, not their ping-pong
	}
	if p.cpu {
		sms = 0
	}
	c := cost
	if x, ok := fwd.(interface{ Workers() int }); ok && x.Workers() > 0 {
		rivals := rivals(r.cfg)
		c.CPUCores = min(c.CPUCores, float64(x.Workers())*rivals.Share())
	}
	c.SMs = sms
	// A thread that posts or waits keeps its SM.
	c.SMBusy = sim.Duration(sms) * c.Window
	r.out.Cost = c
	value(stage.CPUCores, c.CPUCores)
	value(stage.SMCount, float64(sms))
}

// samples adds the distributions of times that a run measured.
func (r *runner) samples(run *workload.Run, rec *sim.Recorder) {
	for k := stage.NoMetric; k < stage.MetricCount; k++ {
		if s := run.Samples[k]; len(s) > 0 {
			mt := result.Summarise(s)
			mt.Metric = k
			r.out.Metrics = append(r.out.Metrics, mt)
			if rec != nil {
				r.breakdowns(k, rec)
			}
		}
	}
}

// key of a stage's row: a stage of another node is a row of its own.
type key struct {
	stage stage.Stage
	node  uint8
}

// breakdowns walks every recorded operation back from the metric's end.
func (r *runner) breakdowns(k stage.Metric, rec *sim.Recorder) {
	type op struct {
		rec   *sim.Record
		mark  sim.Mark
		total sim.Duration
	}
	var ops []op
	records := rec.Records()
	for i := range records {
		for _, mk := range records[i].Marks {
			if mk.Metric == uint8(k) {
				ops = append(ops, op{&records[i], mk, records[i].Total(mk)})
			}
		}
	}
	if len(ops) == 0 {
		return
	}
	b := result.Breakdown{Metric: k}
	sums := map[key]sim.Duration{}
	var order []key // of first sight; the p50 operation's own comes first
	at := func(o *op, s sim.Step) key {
		sp := o.rec.Spans[s.Span-1]
		return key{stage.Stage(s.Stage), sp.Node}
	}
	for i := range ops {
		o := &ops[i]
		b.MeanTotal += o.total
		o.rec.Walk(o.mark, func(s sim.Step) {
			q := at(o, s)
			if _, ok := sums[q]; !ok {
				order = append(order, q)
			}
			sums[q] += s.Time
		})
	}
	n := sim.Duration(len(ops))
	b.MeanTotal /= n
	slices.SortStableFunc(ops, func(x, y op) int { return cmp.Compare(x.total, y.total) })
	mid := &ops[result.Rank(len(ops), 500)]
	b.Total = mid.total

	rows := map[key]*result.StageTime{}
	var seq []key
	onWalk := map[sim.SpanID]bool{}
	mid.rec.Walk(mid.mark, func(s sim.Step) {
		q := at(mid, s)
		onWalk[s.Span] = true
		t := rows[q]
		if t == nil {
			t = &result.StageTime{Stage: q.stage, Lane: q.stage.Lane(), Node: int(q.node)}
			rows[q] = t
			seq = append(seq, q)
		}
		t.Time += s.Time
		t.N++
	})
	slices.Reverse(seq)
	for _, q := range order {
		if rows[q] == nil {
			rows[q] = &result.StageTime{Stage: q.stage, Lane: q.stage.Lane(), Node: int(q.node)}
			seq = append(seq, q)
		}
	}
	for _, q := range seq {
		t := rows[q]
		t.Mean = sums[q] / n
		if t.Time > 0 || t.Mean > 0 {
			b.Stages = append(b.Stages, *t)
		}
	}
	b.Overlaps = overlaps(mid.rec, mid.mark, onWalk)
	r.out.Breakdowns = append(r.out.Breakdowns, b)
	for _, w := range []struct {
		name     string
		permille int
	}{{"p50", 500}, {"p99", 990}, {"max", 1000}} {
		o := &ops[result.Rank(len(ops), w.permille)]
		r.out.Graphs = append(r.out.Graphs, graph(k, w.name, o.rec, o.mark, rec))
	}
}

// overlaps sums, per stage and node, the work of the operation that the metric
// did not wait for: beside its walk, and after its end.
func overlaps(rec *sim.Record, m sim.Mark, onWalk map[sim.SpanID]bool) []result.Overlap {
	end := rec.Begin.Add(rec.Total(m))
	rows := map[key]*result.Overlap{}
	var seq []key
	for i := range rec.Spans {
		s := &rec.Spans[i]
		if onWalk[sim.SpanID(i+1)] || s.End == s.Start {
			continue
		}
		q := key{stage.Stage(s.Stage), s.Node}
		o := rows[q]
		if o == nil {
			o = &result.Overlap{Stage: q.stage, Node: int(q.node)}
			rows[q] = o
			seq = append(seq, q)
		}
		in := max(0, min(s.End, end).Sub(s.Start))
		o.Time += in
		o.After += s.End.Sub(s.Start) - in
	}
	out := make([]result.Overlap, len(seq))
	for i, q := range seq {
		out[i] = *rows[q]
	}
	return out
}

// graph copies an operation's spans, times from its begin.
func graph(k stage.Metric, which string, rec *sim.Record, m sim.Mark, all *sim.Recorder) result.Graph {
	on := map[sim.SpanID]bool{}
	rec.Walk(m, func(s sim.Step) { on[s.Span] = true })
	g := result.Graph{Metric: k, Which: which, Total: rec.Total(m)}
	for i, s := range rec.Spans {
		g.Spans = append(g.Spans, result.Span{
			Stage: stage.Stage(s.Stage), Wait: stage.Stage(s.Wait), Lane: stage.Lane(s.Lane), Node: int(s.Node),
			Arrival: s.Arrival.Sub(rec.Begin), Start: s.Start.Sub(rec.Begin), End: s.End.Sub(rec.Begin),
			Pred: int(s.Pred) - 1, Blocker: blockerName(all, s.Blocker), OnWalk: on[sim.SpanID(i+1)],
		})
	}
	return g
}

var _ path.Client = (*workload.Put)(nil)

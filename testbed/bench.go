package testbed

import (
	"fmt"

	"gdisim/model/gpu"
	"gdisim/model/path"
	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// step is what a workload kind without messages runs: who repeats which
// operation on node 0.
type step struct {
	title  string               // one line, as result.Path has it
	metric stage.Metric         // of one operation
	agents []workload.Operation // each repeated by a loop of its own
	window int                  // operations that an agent has under way; 0 is 1
	bytes  int64                // of one operation, for goodput; 0: it moves no payload
	piece  int64                // bytes that cross at a time, where they are few
	each   int                  // messages of an operation; 0 is 1
	skew   sim.Duration         // the agents begin within so long of each other
	rate   bool                 // messages per second are of interest
	cores  float64              // CPU cores kept busy
	sms    int                  // SMs kept busy
}

// bench is the machine that a step is set up on: node 0 of a cluster that
// carries no messages.
type bench struct {
	*runner
	m    *machine
	node *path.Node
	run  *workload.Run
	door *gpu.Edge
}

// kind records the spans of a stage on the node.
func (b *bench) kind(s stage.Stage) sim.Kind {
	return sim.Kind{Stage: uint8(s), Lane: uint8(s.Lane())}
}

// sm returns a new SM of the node.
func (b *bench) sm() *gpu.SM { return gpu.NewSM(b.node.GPU, b.node.Rand) }

// step sets a kind up. Each kind is a file of its own.
func (b *bench) step(kind string) (*step, error) {
	switch kind {
	case "fence":
		return b.fence()
	case "dma":
		return b.dma()
	case "store", "load", "atomic":
		return b.access(kind)
	case "poll":
		return b.poll()
	case "proxy-echo":
		return b.proxyEcho()
	case "post":
		return b.post()
	case "flag-echo":
		return b.flagEcho()
	case "register":
		return b.register()
	case "mmio":
		return b.mmio()
	case "launch":
		return b.launch()
	case "notice":
		return b.notice()
	case "copy":
		return b.copyEngine()
	case "wake":
		return b.wake()
	}
	return nil, refuse("workload.kind", "nothing runs %s", kind)
}

// steps runs a scenario's step workload.
func (r *runner) steps(kind string) error {
	var rec *sim.Recorder
	if r.breakdown {
		rec = sim.NewRecorder()
	}
	m, err := r.build(rec)
	if err != nil {
		return err
	}
	c := r.cfg
	run := &workload.Run{Eng: m.env.Eng, Rec: rec}
	if op := rec.Owner("background or warm-up"); op != 0 {
		run.Owner = sim.Cause{Op: op}
	}
	switch kind {
	case "proxy-echo", "flag-echo", "launch", "notice", "copy", "wake": // a CPU thread takes part
		if err := coreLeft(c); err != nil {
			return err
		}
	}
	switch kind {
	case "poll", "post", "proxy-echo":
		r.crowd(c.Count("workload.initiators.ctas"), "run as if each had one to itself")
	}
	b := &bench{runner: r, m: m, node: m.env.Nodes[0], run: run}
	if err := r.loadFits(); err != nil {
		return err
	}
	s, err := b.step(kind)
	if err != nil || r.dry {
		return err
	}
	r.out.Workload = s.title
	iterations := c.Count("workload.iterations")
	group := workload.NewGroup(run, s.metric, max(1, len(s.agents)*iterations/recordedOps))
	window := max(1, s.window)
	pause, rng := c.Delay("workload.pause"), m.rands.Stream("pause")
	loops := make([]*workload.Loop, len(s.agents))
	for i, op := range s.agents {
		loops[i] = workload.NewLoop(group, op, iterations, c.Count("workload.warmup"), window, pause, rng)
	}
	var sink result.TraceSink
	if r.trace != nil && rec != nil {
		if sink = r.trace(kind); sink != nil {
			m.watchCredits(sink)
		}
	}
	first := m.usage(run, nil)
	var last usage
	run.OnMeasure = func() { first = m.usage(run, nil) }
	run.OnEnd = func() { last = m.usage(run, nil) }
	b.background()
	for _, l := range loops {
		if s.skew > 0 {
			l.StartAfter(sim.Duration(rng.Int64N(int64(s.skew))))
		} else {
			l.Start()
		}
	}
	each := int64(64)
	if s.piece > 0 {
		each = min(each, s.piece)
	}
	patience := 20_000_000 + moved(s.bytes, each, len(s.agents)*window)
	if err := r.drive(m, run, patience); err != nil {
		return err
	}
	r.counts.Messages += run.Messages
	r.counts.Events += m.env.Eng.Executed()
	if last.links == nil { // it did not finish
		last = m.usage(run, nil)
	}
	if n := run.Open(); n > 0 {
		who := fmt.Sprintf("%d of %d initiators wait", n, len(s.agents))
		if m.env.Eng.Pending() == 0 {
			var find findings
			find.add(m.env.Eng.Now(), stage.Hazard{Finding: stage.Deadlock, Grade: stage.Occurred, Queue: -1, Cause: "initiators wait and nothing is left that could wake them"})
			r.out.Findings = find.into(r.out.Findings)
			r.out.Err = fmt.Sprintf("deadlock at %v: %s and no event is left that could wake them", m.env.Eng.Now(), who)
		} else {
			r.out.Err = fmt.Sprintf("gave up at %v: %s and no step has ended for %d events", m.env.Eng.Now(), who, patience)
		}
	}
	if sink != nil {
		feedTrace(sink, rec)
	}
	r.samples(run, rec)
	value := func(k stage.Metric, v float64) {
		r.rates = append(r.rates, result.Metric{Metric: k, Value: v})
	}
	if n, w := group.Rate(); w > 0 {
		rate := float64(n) / w.Seconds()
		if s.rate {
			value(stage.MessageRate, rate*float64(max(1, s.each))/1e6)
		}
		if s.bytes > 0 {
			value(stage.Goodput, rate*float64(s.bytes)/1e9)
		}
	}
	r.out.Cost = last.since(&first)
	r.out.Cost.CPUCores, r.out.Cost.SMs = s.cores, s.sms
	r.out.Cost.SMBusy = sim.Duration(s.sms) * r.out.Cost.Window
	value(stage.CPUCores, s.cores)
	value(stage.SMCount, float64(s.sms))
	return nil
}

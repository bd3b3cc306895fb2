package testbed

import (
	"context"
	"fmt"

	"gdisim/model/gpu"
	"gdisim/model/path"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// runner runs one path at one point.
type runner struct {
	ctx       context.Context
	cfg       *scenarios.Config
	seed      uint64
	point     uint64
	breakdown bool
	dry       bool                               // set up, to see what is refused, and run nothing
	name      string                             // of the path
	trace     func(pass string) result.TraceSink // nil: no trace
	counts    result.Account
	struck    map[string]strikes // by fault
	out       result.Path
	rates     []result.Metric
	awake     bool // no CPU thread of the path sleeps
}

// thread is an initiating thread of either protocol.
type thread interface {
	workload.Thread
	path.Receiver
	Waits() string
	SendTo(path.Receiver)
}

// side is one node's half of a path: it makes threads that initiate there.
type side interface {
	thread(sm *gpu.SM, warp, queue int, client path.Client) thread
	busy() sim.Duration
}

type doorbellSide struct{ *path.DoorbellPath }

func (d doorbellSide) thread(sm *gpu.SM, _, q int, c path.Client) thread {
	return d.NewThread(sm, q, c)
}
func (d doorbellSide) busy() sim.Duration { return d.Busy() }

type proxySide struct{ *path.ProxyPath }

func (p proxySide) thread(sm *gpu.SM, warp, q int, c path.Client) thread {
	return p.NewThread(sm, warp, q, c)
}
func (p proxySide) busy() sim.Duration { return p.Busy() }

// chosen reports whether the scenario sets the key itself.
func (r *runner) chosen(key string) bool {
	v, ok := r.cfg.Param(key)
	return ok && v.Kind == "scenario"
}

func (r *runner) note(s string) { r.counts.Notices = append(r.counts.Notices, s) }

// run measures the path and assembles its part of the result.
func (r *runner) run() (result.Path, error) {
	if kind := r.cfg.Enum("workload.kind"); scenarios.IsStep(kind) {
		if err := r.steps(kind); err != nil {
			return r.refuse(err)
		}
		if r.dry {
			return r.out, nil
		}
		return r.finish(), nil
	}
	p, err := r.plan()
	if err != nil {
		return r.refuse(err)
	}
	r.out.Workload = p.describe()
	switch p.kind {
	case "put", "put-signal":
		if err := r.pass(p, false); err != nil {
			return r.out, err
		}
		if r.out.Err == "" {
			// Round trips are a ping-pong of the same message.
			if err := r.pass(p, true); err != nil {
				return r.out, err
			}
		}
	default:
		if p.tours.connections > 0 {
			err = r.tourPass(p)
		} else {
			err = r.pass(p, p.kind == "ping-pong")
		}
		if err != nil {
			return r.out, err
		}
	}
	return r.finish(), nil
}

// finish adds the rates to the result, and the parameters that were read.
func (r *runner) finish() result.Path {
	r.out.Metrics = append(r.out.Metrics, r.rates...)
	r.spared()
	if keys := r.cfg.Ignored(); len(keys) > 0 {
		r.counts.Unread = append(r.counts.Unread, result.Unread{Path: r.name, Keys: keys})
	}
	for _, u := range r.cfg.Used() {
		r.out.Params = append(r.out.Params, result.Param{Key: u.Key, Value: u.Value, Unit: u.Unit, Source: u.Source, Kind: u.Kind})
	}
	return r.out
}

// side sets the path up on a node. Queues of the background come first.
func (r *runner) side(m *machine, p *plan, node, peer int) (side, error) {
	queues := p.fg.queues
	if p.background {
		queues += p.bg.queues
		if p.shared {
			queues = p.bg.queues
		}
	}
	if p.cpu {
		s, err := path.NewVerbs(m.env, node, peer, p.verbs, p.msg, queues, p.fg.batch)
		return verbsSide{s}, err
	}
	if p.proxy {
		x := p.prox
		x.Rings = queues
		x.Workers = min(x.Workers, queues)
		s, err := path.NewProxy(m.env, node, peer, x, p.msg, p.fg.batch)
		return proxySide{s}, err
	}
	s, err := path.NewDoorbell(m.env, node, peer, p.doorbell, p.msg, queues, p.fg.batch, p.kind == "stream" || p.background)
	return doorbellSide{s}, err
}

// pass simulates one run: puts, or their ping-pong, or a stream.
func (r *runner) pass(p *plan, pingPong bool) error {
	if pingPong || p.answered {
		q := *p
		q.msg = p.told()
		p = &q
	}
	back := p // the other way
	if p.answered && !pingPong {
		q := *p
		q.msg = p.msg.Answer()
		back = &q
	}
	var rec *sim.Recorder
	if r.breakdown {
		rec = sim.NewRecorder()
	}
	m, err := r.build(rec)
	if err != nil {
		return err
	}
	find := &findings{}
	m.report(find)
	r.flagged(p, find)
	r.rerouted(p, find)
	fwd, err := r.side(m, p, 0, 1)
	if err != nil {
		return err
	}
	rev, err := r.side(m, back, 1, 0)
	if err != nil || r.dry {
		return err
	}
	run := &workload.Run{Eng: m.env.Eng, Rec: rec}
	if op := rec.Owner("background or warm-up"); op != 0 {
		run.Owner = sim.Cause{Op: op}
	}
	sms := make([]map[int]*gpu.SM, len(m.gpus))
	sm := func(node, id int) *gpu.SM {
		if sms[node] == nil {
			sms[node] = map[int]*gpu.SM{}
		}
		if sms[node][id] == nil {
			sms[node][id] = gpu.NewSM(m.gpus[node], m.env.Nodes[node].Rand)
		}
		return sms[node][id]
	}
	used := map[int]bool{}
	smOf := func(p *plan, s shape, i, base int) int {
		id := (base + i/s.perCTA) % m.gpus[0].SMs
		used[id] = true
		return id
	}

	var group *workload.Group
	base := 0
	var background *workload.Group
	if p.background {
		background = workload.NewGroup(run, stage.NoMetric, 1)
		for n, s := range []side{fwd, rev} {
			for i := range p.bg.agents {
				c := workload.NewStream(background, -1, 0, max(p.bgWindow, p.fg.batch)) // the path's threads all post its batches
				t := s.thread(sm(n, smOf(p, p.bg, i, 0)), p.bg.warp(i, m.gpus[n]), p.bg.queue(i), c)
				if b, ok := t.(interface{ Background() }); ok {
					b.Background()
				}
				c.Start(t)
			}
			if n == 0 {
				base = (p.bg.agents + p.bg.perCTA - 1) / p.bg.perCTA
			}
		}
		used = map[int]bool{}
	}
	var starts []func()
	metric := stage.PutCompletion
	switch {
	case p.kind == "stream":
		group = workload.NewGroup(run, stage.Latency, max(1, p.fg.agents*p.iterations/p.fg.batch/recordedOps))
		iterations := p.iterations
		var arrivals *workload.Arrivals
		if p.proxy && p.prox.Pop { // threads see their descriptors read, and no more
			arrivals = workload.NewArrivals(group, p.fg.agents, iterations, max(p.warmup, p.window))
			iterations = -1
		}
		for i := range p.fg.agents {
			c := workload.NewStream(group, iterations, p.warmup, p.window)
			t := fwd.thread(sm(0, smOf(p, p.fg, i, base)), p.fg.warp(i, m.gpus[0]), p.foregroundQueue(i), c)
			if arrivals != nil {
				t.SendTo(arrivals)
			}
			m.waiters = append(m.waiters, waiter{fmt.Sprintf("initiator %d", i), t})
			starts = append(starts, func() { c.Start(t) })
		}
	case pingPong:
		for i := range p.fg.agents {
			c, a := workload.NewPingPong(run, p.iterations, p.warmup), workload.NewResponder()
			id := smOf(p, p.fg, i, base)
			t := fwd.thread(sm(0, id), p.fg.warp(i, m.gpus[0]), p.foregroundQueue(i), c)
			u := rev.thread(sm(1, id), p.fg.warp(i, m.gpus[1]), p.foregroundQueue(i), a)
			t.SendTo(u)
			u.SendTo(t)
			m.waiters = append(m.waiters, waiter{fmt.Sprintf("initiator %d", i), t}, waiter{fmt.Sprintf("responder %d", i), u})
			starts = append(starts, func() { a.Start(u); c.Start(t) })
		}
	default:
		if p.msg.Get {
			metric = stage.Get
		}
		for i := range p.fg.agents {
			c := workload.NewPut(run, metric, p.iterations, p.warmup, p.answered)
			id := smOf(p, p.fg, i, base)
			t := fwd.thread(sm(0, id), p.fg.warp(i, m.gpus[0]), p.foregroundQueue(i), c)
			m.waiters = append(m.waiters, waiter{fmt.Sprintf("initiator %d", i), t})
			var u workload.Thread
			if !p.msg.Get {
				d := rev.thread(sm(1, id), p.fg.warp(i, m.gpus[1]), p.foregroundQueue(i), c.Destination())
				t.SendTo(d)
				d.SendTo(t)
				m.waiters = append(m.waiters, waiter{fmt.Sprintf("destination %d", i), d})
				u = d
			}
			starts = append(starts, func() { c.Start(t, u) })
		}
	}
	var sink result.TraceSink
	if r.trace != nil && rec != nil {
		pass := p.kind
		if pingPong {
			pass = "ping-pong"
		}
		if sink = r.trace(pass); sink != nil {
			m.watchCredits(sink)
		}
	}
	first := m.usage(run, fwd)
	var last usage
	run.OnMeasure = func() {
		m.faults.measure(m.env.Eng.Now())
		first = m.usage(run, fwd)
		if background != nil {
			background.Open()
		}
	}
	run.OnEnd = func() { last = m.usage(run, fwd) }
	for _, f := range starts {
		f()
	}
	if err := r.drive(m, run, r.patience(p)); err != nil {
		return err
	}
	r.counts.Messages += run.Messages
	r.counts.Events += m.env.Eng.Executed()
	if background != nil {
		background.Close()
	}
	if last.links == nil { // it did not finish
		last = m.usage(run, fwd)
	}
	r.strikes(m.faults)
	if n := run.Open(); n > 0 {
		r.out.Err = r.stuck(m, n, p.fg.agents, []side{fwd, rev}, find)
	}
	if sink != nil {
		feedTrace(sink, rec)
	}
	r.collect(p, m, run, group, background, rec, find, fwd, last.since(&first), len(used))
	return nil
}

// recordedOps bounds the operations of a stream whose spans are kept.
const recordedOps = 2000

// patience is how many events may pass without a measured message ending: a run
// in which threads poll for ever, or only the background moves, is as dead as one
// without events. Large messages take many events until one of them ends.
func (r *runner) patience(p *plan) uint64 {
	n := uint64(5_000_000)
	under := p.fg.agents * max(1, p.window)
	if p.background {
		n = 20_000_000
		under += 2 * p.bg.agents * max(p.bgWindow, p.fg.batch)
	}
	return n + moved(p.msg.Bytes, r.cfg.Bytes("hardware.nic.mtu"), under)
}

// moved bounds the events that n transfers under way at once need, each of so many
// bytes that cross in pieces of so many: packets, or reads and writes of a bus.
func moved(bytes, piece int64, n int) uint64 {
	const events = 64 // of a piece, both ways and acknowledged, with room: a packet takes some 12
	return events * uint64(n) * uint64(bytes/piece)
}

// drive runs the engine until all initiators have finished, no event is left
// or nothing ends any more, and looks at the context now and then.
func (r *runner) drive(m *machine, run *workload.Run, patience uint64) error {
	const slice = 1 << 14
	eng := m.env.Eng
	last, at := run.Finished, eng.Executed()
	for {
		for range slice {
			if run.Open() == 0 || !eng.Step() {
				return nil
			}
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if run.Finished != last {
			last, at = run.Finished, eng.Executed()
		} else if d := eng.Executed() - at; d > patience || d > patience/50 && m.nics[0].Failures > 0 {
			return nil // a queue in error will not come back, whatever load goes on elsewhere
		}
	}
}

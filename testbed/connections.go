package testbed

import (
	"fmt"

	"gdisim/model/gpu"
	"gdisim/model/path"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// tours is what workload.connections asks for.
type tours struct {
	connections int // active per sending NIC; 0: the workload has none
	visit       int
	direction   string
}

// planTours reads the keys of workloads with many connections.
func (r *runner) planTours(p *plan) error {
	c := r.cfg
	if !c.Has("workload.connections") {
		if n := c.Count("cluster.nodes"); n > 2 {
			return refuse("cluster.nodes", "%d without workload.connections (want 2)", n)
		}
		return nil
	}
	p.tours = tours{c.Count("workload.connections"), c.Count("workload.writes_per_visit"), c.Enum("workload.direction")}
	t := &p.tours
	nodes := c.Count("cluster.nodes")
	targets := t.targets(nodes)
	switch {
	case t.direction == "to-host" || t.direction == "to-gpu":
		return refuse("workload.direction", "%s with workload.connections (want send, receive or both)", t.direction)
	case p.kind != "stream":
		return refuse("workload.connections", "with kind %s (want stream)", p.kind)
	case p.proxy:
		return refuse("workload.connections", "for a path whose CPU posts (want protocol gpu-doorbell)")
	case r.chosen("path.qps_per_peer"): // a stack's own is for what it does without connections
		return refuse("workload.connections", "beside qps_per_peer (want one of them)")
	case t.connections < p.fg.agents:
		return refuse("workload.connections", "%d for %d initiators (want one each at least)", t.connections, p.fg.agents)
	case t.connections < nodes-1:
		return refuse("workload.connections", "%d to %d peers (want one each at least)", t.connections, nodes-1)
	case p.overDC > 0 && (t.connections < p.fg.agents*targets || t.connections > p.overDC*targets):
		return refuse("workload.connections", "%d between %d initiators' %d DC initiators and %d targets (want %d to %d, pairs of both)", t.connections, p.fg.agents, p.overDC, targets, p.fg.agents*targets, p.overDC*targets)
	case t.visit < p.fg.batch:
		return refuse("workload.writes_per_visit", "%d (want %d, the messages of a post, at least)", t.visit, p.fg.batch)
	}
	if n := p.overDC - t.connections; n > 0 {
		r.note(fmt.Sprintf("%s: %d DC initiators for %d connections: %d of them do nothing (path key dcis)", r.name, p.overDC, t.connections, n))
	}
	return nil
}

// links are the pairs of nodes that the direction makes senders of: each goes
// round its peers from the node behind its own.
func (t *tours) links(nodes int) (out [][2]int) {
	for from := range nodes {
		for i := 1; i < nodes; i++ {
			to := (from + i) % nodes
			if t.direction == "both" || t.direction == "send" && from == 0 || t.direction == "receive" && to == 0 {
				out = append(out, [2]int{from, to})
			}
		}
	}
	return out
}

// targets is how many peers a sender has.
func (t *tours) targets(nodes int) int {
	if t.direction == "receive" {
		return 1
	}
	return nodes - 1
}

// tourPass simulates streams over many connections. The rate is that of a NIC:
// what it sends or, with direction receive, what it is sent; with direction both
// the mean of all, which need not be alike at every moment.
func (r *runner) tourPass(p *plan) error {
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
	run := &workload.Run{Eng: m.env.Eng, Rec: rec}
	if op := rec.Owner("background or warm-up"); op != 0 {
		run.Owner = sim.Cause{Op: op}
	}
	t := &p.tours
	nodes := len(m.nics)
	links := t.links(nodes)
	group := workload.NewGroup(run, stage.Latency, max(1, p.fg.agents*p.iterations/p.fg.batch/recordedOps))
	ctas := (p.fg.agents + p.fg.perCTA - 1) / p.fg.perCTA
	var fwd side
	type tour struct {
		*workload.Tour
		*workload.Stream
	}
	all := make([][]tour, nodes)
	initiators := map[int]*path.DoorbellPath{} // over DC, by node
	next := make([]int, nodes)                 // connection that a sender adds next
	pairs := make([][]int, nodes)              // over DC, those that its threads have so far
	for _, l := range links {
		from := l[0]
		per := t.to(l, nodes)
		s, err := r.towards(m, p, from, l[1], per, initiators)
		if err != nil {
			return err
		}
		if fwd == nil {
			fwd = s
		}
		if all[from] == nil {
			pairs[from] = make([]int, p.fg.agents)
			for range p.fg.agents {
				x := workload.NewStream(group, p.iterations, p.warmup, p.window)
				all[from] = append(all[from], tour{workload.NewTour(x, t.visit), x})
			}
		}
		sms := map[int]*gpu.SM{}
		for i := range per {
			a, q := next[from]%p.fg.agents, i
			next[from]++
			if p.overDC > 0 {
				a = i % p.fg.agents
				q = p.initiator(a, pairs[from][a])
				pairs[from][a]++
			}
			id := a / p.fg.perCTA % m.gpus[from].SMs
			if sms[id] == nil {
				sms[id] = gpu.NewSM(m.gpus[from], m.env.Nodes[from].Rand)
			}
			all[from][a].Add(s.thread(sms[id], p.fg.warp(a, m.gpus[from]), q, all[from][a].Tour))
		}
	}
	if r.dry {
		return nil
	}
	first := m.usage(run, fwd)
	var last usage
	run.OnMeasure = func() {
		m.faults.measure(m.env.Eng.Now())
		first = m.usage(run, fwd)
	}
	run.OnEnd = func() { last = m.usage(run, fwd) }
	initiating := 0
	for _, ts := range all {
		initiating += len(ts)
		for _, x := range ts {
			x.Start(x.Tour)
		}
	}
	if err := r.drive(m, run, r.patience(p)); err != nil {
		return err
	}
	r.counts.Messages += run.Messages
	r.counts.Events += m.env.Eng.Executed()
	if last.links == nil { // it did not finish
		last = m.usage(run, fwd)
	}
	r.strikes(m.faults)
	if n := run.Open(); n > 0 {
		r.out.Err = r.stuck(m, n, initiating, nil, find)
	}
	if t.direction == "both" {
		group.Share(nodes)
	}
	r.collect(p, m, run, group, nil, rec, find, fwd, last.since(&first), min(ctas, m.gpus[0].SMs))
	return nil
}

// initiator is the DC initiator of thread a's pair of that number. A thread has every
// fg.agents-th to itself and its pairs take them in turn, target by target: so those
// to one target never meet on one, and none has two targets while another has none.
func (p *plan) initiator(a, pair int) int {
	own := (p.overDC - a + p.fg.agents - 1) / p.fg.agents
	return a + pair%own*p.fg.agents
}

// towards sets the path up for one pair of nodes: with so many queues of its own
// or, over DC, with the initiators of the node.
func (r *runner) towards(m *machine, p *plan, from, to, queues int, initiators map[int]*path.DoorbellPath) (side, error) {
	if d := initiators[from]; d != nil {
		return doorbellSide{d.Towards(to)}, nil
	}
	q := *p
	q.fg.queues = max(queues, p.overDC)
	s, err := r.side(m, &q, from, to)
	if d, ok := s.(doorbellSide); ok && p.overDC > 0 {
		initiators[from] = d.DoorbellPath
	}
	return s, err
}

// to is the sender's share of connections for one peer.
func (t *tours) to(l [2]int, nodes int) int {
	peers := t.targets(nodes)
	n := t.connections / peers
	if before := (l[1] - l[0] - 1 + nodes) % nodes; peers > 1 && before < t.connections%peers {
		n++
	}
	return n
}

package testbed

import (
	"context"
	"fmt"

	"gdisim/model/cpu"
	"gdisim/model/gpu"
	"gdisim/model/path"
	"gdisim/model/pcie"
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

// shape is how many threads post, in what portions, to how many queues.
type shape struct {
	agents int // threads, or warps that act as one
	perCTA int
	batch  int  // messages per post
	queues int  // QPs or rings
	byCTA  bool // the threads of a CTA share its queue
}

// plan is what a run is made of, read from the configuration once.
type plan struct {
	kind       string
	msg        path.Message
	notify     path.Signal // of the messages of a round trip
	answered   bool        // the peer answers each put, and that is its completion
	byCTA      bool        // queues belong to CTAs
	overDC     int         // DC initiators that carry the messages; 0: reliable connections
	proxy      bool
	cpu        bool // a CPU thread initiates
	verbs      path.Verbs
	doorbell   path.Doorbell
	prox       path.Proxy
	fg, bg     shape
	tours      tours
	background bool
	shared     bool
	window     int
	bgWindow   int
	iterations int
	warmup     int
	blocked    blocked // "": NIC and GPU reach each other as the path needs it
}

// plan reads the path's and the workload's keys, and refuses combinations that
// no machine could run: first what the scenario combines, then what the platform
// blocks.
func (r *runner) plan() (*plan, error) {
	c := r.cfg
	p := &plan{
		kind: c.Enum("workload.kind"), msg: path.Message{Bytes: c.Bytes("workload.bytes")}, window: c.Count("workload.outstanding"),
		iterations: c.Count("workload.iterations"), warmup: c.Count("workload.warmup"), proxy: c.Enum("path.protocol") == "cpu-proxy",
	}
	switch p.kind {
	case "get":
		p.msg.Get = true
	case "put-signal":
		p.msg.Signal = path.SignalWrite
		if c.Enum("path.signal") == "atomic" {
			p.msg.Signal = path.SignalAtomic
		}
	}
	switch c.Enum("path.notify") {
	case "signal-write":
		p.notify = path.SignalWrite
	case "signal-atomic":
		p.notify = path.SignalAtomic
	case "immediate":
		p.notify = path.SignalImmediate
	}
	counts := path.Counts{
		Calls: c.Count("path.steps.calls"), StateLoads: c.Count("path.steps.state_loads"), ConstLoads: c.Count("path.steps.const_loads"),
		RingLoads: c.Count("path.steps.ring_loads"), Atomics: c.Count("path.steps.atomics"), HostLoads: c.Count("path.steps.host_loads"), Stores: c.Count("path.steps.stores"),
	}
	payload := pcie.GPU
	if c.Enum("path.payload_in") == "host" {
		payload = pcie.Host
	}
	if !c.Bool("hardware.gpu.gpudirect") && c.Enum("path.protocol") != "cpu-verbs" {
		p.block("no GPUDirect RDMA: the peer's NIC cannot reach GPU memory (want a stack that stages through host memory, as host-staged)")
	}
	warp := c.Count("hardware.gpu.warp")
	wqes := c.Count("workload.wqes_per_doorbell")
	var posting path.Posting
	var err error
	if c.Enum("path.protocol") == "cpu-verbs" {
		err = r.planVerbs(p, payload, wqes)
	} else if p.proxy {
		handoff, _ := path.ParseHandoff(c.Enum("path.proxy.handoff"))
		nextPut, _ := path.ParseNextPut(c.Enum("path.next_put"))
		in := pcie.Host
		if c.Enum("path.proxy.completion_in") == "gpu" {
			in = pcie.GPU
		}
		p.prox = path.Proxy{
			Handoff: handoff, Chain: c.Count("path.proxy.chain"), Depth: c.Count("path.proxy.depth"), Inline: c.Bool("path.inline"), ValueBytes: c.Bytes("path.proxy.value"),
			BlueFlame: c.Bool("path.blueflame"), CompletionIn: in, Payload: payload, NextPut: nextPut, Counts: counts,
			DescriptorBytes: c.Bytes("path.proxy.descriptor"), TailLines: c.Count("path.steps.tail_lines"), Rewrites: c.Count("path.steps.rewrites"),
			SignalBytes: c.Bytes("path.proxy.signal_bytes"), Reference: c.Bool("path.proxy.reference"), Stream: p.kind == "stream",
			SignaledEach: c.Enum("path.proxy.signaled") == "each", Pop: c.Enum("path.proxy.retire") == "pop", PublishEvery: c.Count("path.proxy.publish_every"),
			Gather: c.Bool("path.proxy.gather"), SignalApart: c.Enum("path.proxy.signal_call") == "apart", CQBatch: c.Count("path.proxy.cq_batch"),
			CQOnce: c.Bool("path.proxy.cq_once"), CQTests: c.Enum("path.proxy.cq_tests") == "entry", DrainPolls: c.Count("path.proxy.drain_polls"),
			Lock: c.Bool("path.proxy.lock"), Clears: c.Count("path.steps.clears"), Lookups: c.Count("path.steps.lookups"), PassLookups: c.Count("path.steps.pass_lookups"),
		}
		p.prox.NoSlotCheck, p.prox.CQDepth = !c.Bool("path.proxy.slot_check"), r.cqDepth()
		p.prox.Quiet, _ = path.ParseQuiet(c.Enum("path.proxy.quiet"))
		p.prox.Burst = p.prox.Chain
		if c.Has("path.proxy.burst") {
			p.prox.Burst = c.Count("path.proxy.burst")
		}
		if x := &p.prox; x.Gather && !x.Pop && !x.SignaledEach {
			return nil, refuse("path.proxy.gather", "with retire completion and one CQE a chain, which cannot tell whose ring it belongs to (want proxy.signaled each, or proxy.retire pop)")
		}
		if c.Enum("path.proxy.signal_after") == "completion" {
			p.prox.SignalApart, p.prox.SignalHeld = true, true
		}
		if x := &p.prox; x.SignalApart && x.Chain > 1 {
			return nil, refuse("path.proxy.chain", "%d with signals posted apart (want 1)", x.Chain)
		}
		if p.prox.Wait, err = waiting(c, c.Count("path.steps.yields")); err != nil {
			return nil, err
		}
		p.prox.Workers = c.Count("host.proxy.threads")
		if c.Has("path.proxy.workers") {
			p.prox.Workers = c.Count("path.proxy.workers")
		}
		p.prox.Receiver = p.notify == path.SignalImmediate && c.Enum("path.proxy.receiver") == "thread"
		p.fg, err = r.proxyShape("workload.initiators.", handoff, wqes)
	} else {
		if !c.Has("path.fence") {
			return nil, refuse("path.fence", "missing (want one of none, gpu, gpu+record, gpu-release, device, system-release, system) for protocol gpu-doorbell")
		}
		if c.Enum("path.rings_by") == "gpu" && !c.Bool("hardware.gpu.doorbell_mapping") {
			p.block("no doorbell mapping: want rings_by host")
		}
		fence, _ := path.ParseFence(c.Enum("path.fence"))
		posting, _ = path.ParsePosting(c.Enum("path.posting"))
		queues := pcie.GPU
		if c.Enum("path.queues_in") == "host" {
			queues = pcie.Host
		}
		p.doorbell = path.Doorbell{Fence: fence, Inline: c.Bool("path.inline"), InRegister: c.Enum("path.payload_in") == "register", Posting: posting, Queues: queues, Payload: payload, Counts: counts, RingUnit: wqes}
		if posting, wqes, err = r.library(p, posting, wqes, warp); err != nil {
			return nil, err
		}
		switch c.Enum("path.record") {
		case "true":
			p.doorbell.Record = true
		case "auto":
			p.doorbell.Record = fence != path.FenceNone && fence != path.FenceGPU && fence != path.FenceGPURelease
		}
		p.fg, err = r.doorbellShape(p, "workload.initiators.", posting, wqes, warp)
	}
	if err != nil {
		return nil, err
	}
	r.place(p)
	if err := r.scope(p); err != nil {
		return nil, err
	}
	if err := r.reachable(p, payload); err != nil {
		return nil, err
	}
	if w := window(c); w > 0 && w < p.msg.Bytes {
		return nil, refuse("workload.window", "%d B hold no message of %d B", w, p.msg.Bytes)
	}
	if p.proxy || p.cpu || p.doorbell.HostRings || p.notify == path.SignalImmediate {
		if err := coreLeft(c); err != nil {
			return nil, err
		}
	}
	r.awake = !p.proxy || p.prox.Wait.Waiting == cpu.Poll
	for _, key := range []string{"host.proxy.socket", "host.proxy.memory"} {
		if where := c.Enum(key); where != "nic" && c.Enum("hardware.pcie.path.gpu_nic") == "SYS" {
			return nil, refuse(key, "%s with hardware.pcie.path.gpu_nic SYS (want hardware.pcie.host_near, which says whose socket worker and memory are on there)", where)
		}
	}
	if p.proxy && c.Enum("host.proxy.core") == "shared" && c.Count("host.competing.threads") == 0 {
		r.note("host.proxy.core: shared with nobody; host.competing.threads says with how many")
	}
	if p.proxy && p.prox.Workers > p.fg.queues && !c.Has("workload.background.kind") {
		r.note(fmt.Sprintf("%d proxy workers with %d descriptor rings: a ring has one worker, so %d of them do nothing (path key proxy.rings)", p.prox.Workers, p.fg.queues, p.prox.Workers-p.fg.queues))
	}
	if p.kind != "stream" {
		if p.window != 1 {
			return nil, refuse("workload.outstanding", "%d for kind %s (want 1; kind stream keeps more outstanding)", p.window, p.kind)
		}
	} else if p.window < p.fg.batch {
		return nil, refuse("workload.outstanding", "%d messages cannot fill a batch of %d (want at least %d)", p.window, p.fg.batch, p.fg.batch)
	}
	if err := r.planTours(p); err != nil {
		return nil, err
	}
	if n := 2 * p.fg.batch; !p.proxy && c.Count("hardware.nic.sq_depth") < n && (p.msg.Signal != path.SignalNone || c.Count("hardware.nic.sq_depth") < p.fg.batch) {
		return nil, refuse("hardware.nic.sq_depth", "%d WQEs cannot hold a post of %d messages", c.Count("hardware.nic.sq_depth"), p.fg.batch)
	}
	if v, _ := c.Param("path.inline"); v.Value == "true" && v.Kind == "scenario" && !p.msg.Get && p.msg.Bytes > c.Bytes("hardware.nic.inline_max") {
		r.note(fmt.Sprintf("%s: inline, but %d B are more than a WQE takes (hardware.nic.inline_max): the NIC reads the payload", r.name, p.msg.Bytes))
	}
	if c.Has("workload.background.kind") {
		if p.kind == "stream" {
			return nil, refuse("workload.background.kind", "a load beside kind stream (want put, put-signal, get or ping-pong)")
		}
		p.background = true
		p.shared = c.Enum("workload.background.queue") == "shared"
		p.bgWindow = c.Count("workload.background.outstanding")
		if c.Has("workload.background.bytes") {
			if b := c.Bytes("workload.background.bytes"); b != p.msg.Bytes {
				return nil, refuse("workload.background.bytes", "%d B beside messages of %d B (want the same size; others are not available yet)", b, p.msg.Bytes)
			}
		}
		if p.proxy {
			p.bg, err = r.proxyShape("workload.background.initiators.", p.prox.Handoff, 1)
		} else {
			p.bg, err = r.doorbellShape(p, "workload.background.initiators.", posting, 1, warp)
		}
		if err != nil {
			return nil, err
		}
		if p.shared && !p.proxy && p.doorbell.Posting == path.PostSingle && p.doorbell.Library == path.LibBare {
			p.doorbell.Posting = path.PostLock
			r.note("paths that post with one thread a queue take a lock where the background shares their queue")
		}
		if p.shared && p.proxy && p.prox.Handoff == path.HandoffSingleProducer {
			r.note("a ring with hand-off single-producer that the background shares is assumed to cost its producers nothing")
		}
	}
	if !p.cpu {
		r.crowd(p.fg.ctas()+p.bg.ctas(), "share its L1, and take no issue slots from each other")
	}
	switch err := r.fits(p); {
	case err != nil:
		return nil, err
	case p.blocked != "":
		return nil, p.blocked
	}
	return p, nil
}

// ctas is how many CTAs the agents are.
func (s *shape) ctas() int {
	if s.agents == 0 {
		return 0
	}
	return (s.agents + s.perCTA - 1) / s.perCTA
}

// crowd tells of more CTAs than SMs, and what then holds for those of one SM.
func (r *runner) crowd(ctas int, what string) {
	if sms := r.cfg.Count("hardware.gpu.sms"); ctas > sms {
		r.note(fmt.Sprintf("%d CTAs on %d SMs: those of one SM %s", ctas, sms, what))
	}
}

// fits refuses batches that a library's threads reserve message by message if
// those of a queue can fill it before any of them has come to ring.
func (r *runner) fits(p *plan) error {
	d := &p.doorbell
	if d.Library == path.LibBare || d.Posting == path.PostCooperative || d.Lanes > 1 || p.fg.batch == 1 || p.tours.connections > 0 {
		return nil
	}
	depth := r.cfg.Count("hardware.nic.sq_depth")
	if d.Depth > 0 {
		depth = min(depth, d.Depth)
	}
	wqes := 1
	if p.msg.Signal != path.SignalNone || p.notify != path.SignalNone {
		wqes = 2
	}
	threads := map[int]int{}
	for i := range p.fg.agents {
		threads[p.foregroundQueue(i)]++
	}
	for i := range p.bg.agents {
		threads[p.bg.queue(i)]++
	}
	for _, n := range threads {
		if need := n*(p.fg.batch-1)*wqes + wqes; need > depth {
			return refuse("workload.wqes_per_doorbell", "%d by %d threads of one queue, which fill its %d WQEs before any of them rings (want less, or more queues)", p.fg.batch, n, depth)
		}
	}
	return nil
}

// cqDepth is the CQEs that a CQ holds; 0: as many as can come.
func (r *runner) cqDepth() int {
	if r.cfg.Has("path.cq_depth") {
		return r.cfg.Count("path.cq_depth")
	}
	return 0
}

func (r *runner) note(s string) { r.counts.Notices = append(r.counts.Notices, s) }

func (r *runner) doorbellShape(p *plan, prefix string, posting path.Posting, wqes, warp int) (shape, error) {
	c := r.cfg
	ctas, threads := c.Count(prefix+"ctas"), c.Count(prefix+"threads")
	s := shape{agents: ctas * threads, perCTA: threads, batch: wqes, queues: 1}
	switch posting {
	case path.PostSingle:
		s.queues = s.agents
	case path.PostLock:
	case path.PostHandoff:
		s.batch = 1
	case path.PostCooperative:
		if threads%warp != 0 {
			return s, refuse(prefix+"threads", "%d with posting cooperative (want a multiple of the warp's %d)", threads, warp)
		}
		s.perCTA = threads / warp
		s.agents = ctas * s.perCTA
		s.batch = warp
	}
	if p.byCTA {
		s.byCTA, s.queues = true, ctas
	}
	if c.Has("path.qps_per_peer") {
		s.queues = c.Count("path.qps_per_peer")
	}
	if p.overDC > 0 {
		s.queues = p.overDC
	}
	if posting == path.PostSingle && s.agents > s.queues {
		return s, refuse("path.qps_per_peer", "%d threads on %d QPs with posting single (want %d QPs, or posting lock, handoff or cooperative)", s.agents, s.queues, s.agents)
	}
	return s, nil
}

func (r *runner) proxyShape(prefix string, h path.Handoff, wqes int) (shape, error) {
	c := r.cfg
	ctas, threads := c.Count(prefix+"ctas"), c.Count(prefix+"threads")
	s := shape{agents: ctas * threads, perCTA: threads, batch: 1, queues: 1}
	if wqes > 1 {
		r.note("wqes_per_doorbell does not reach a proxy, whose chain limit decides (path key proxy.chain)")
	}
	if h == path.HandoffSingleProducer {
		s.queues = s.agents
	}
	if c.Has("path.proxy.rings") {
		s.queues = c.Count("path.proxy.rings")
	}
	s.byCTA = ctas >= s.queues
	if h == path.HandoffSingleProducer && s.agents > s.queues {
		return s, refuse("path.proxy.rings", "%d threads on %d rings with hand-off single-producer (want %d rings, or proxy.handoff general)", s.agents, s.queues, s.agents)
	}
	return s, nil
}

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

func (p *plan) describe() string {
	s := fmt.Sprintf("%s %d B, %d initiator", p.kind, p.msg.Bytes, p.fg.agents)
	if p.fg.agents > 1 {
		s += "s"
	}
	s += fmt.Sprintf(", %d outstanding", p.window)
	if p.fg.batch > 1 {
		s += fmt.Sprintf(", %d a batch", p.fg.batch)
	}
	if p.background {
		q := "reserved"
		if p.shared {
			q = "shared"
		}
		s += fmt.Sprintf(", beside %d streams (%s queue)", p.bg.agents, q)
	}
	return s
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

// foregroundQueue maps initiator i to its queue.
func (p *plan) foregroundQueue(i int) int {
	switch {
	case !p.background:
		return p.fg.queue(i)
	case p.shared:
		return p.bg.queue(i)
	}
	return p.bg.queues + p.fg.queue(i)
}

// warp is the number of initiator i's warp in its CTA.
func (s *shape) warp(i int, g *gpu.Config) int { return i % s.perCTA / g.WarpSize }

// queue maps initiator i to one of the shape's queues.
func (s *shape) queue(i int) int {
	if s.byCTA {
		i /= s.perCTA
	}
	return i % s.queues
}

// told is the message where somebody looks for it and replies.
func (p *plan) told() path.Message {
	m := p.msg
	if m.Signal == path.SignalNone {
		m.Signal, m.Fresh = p.notify, p.notify == path.SignalNone
	}
	return m
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
				if x, ok := t.(interface{ Plain() }); ok {
					x.Plain()
				}
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

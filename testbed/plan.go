package testbed

import (
	"fmt"

	"gdisim/model/cpu"
	"gdisim/model/gpu"
	"gdisim/model/path"
	"gdisim/model/pcie"
	"gdisim/scenarios"
)

// shape is how many threads post, in what portions, to how many queues.
type shape struct {
	agents int // threads, or warps that act as one
	perCTA int
	batch  int  // messages per post
	queues int  // QPs or rings
	byCTA  bool // the threads of a CTA share its queue
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

// plan is what a run is made of, read from the configuration once.
type plan struct {
	kind       string
	msg        path.Message
	notify     path.Signal // of the messages of a round trip
	word       pcie.Unit   // that of a message which a receiver is told of
	answered   bool        // the peer answers each put, and that is its completion
	byCTA      bool        // queues belong to CTAs
	overDC     int         // DC initiators that carry the messages; 0: reliable connections
	proxy      bool
	cpu        bool // a CPU thread initiates
	verbs      path.Verbs
	doorbell   path.Doorbell
	posting    path.Posting // how threads share a queue: a library's own way where it has one
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

// ctas is how many CTAs the agents are.
func (s *shape) ctas() int {
	if s.agents == 0 {
		return 0
	}
	return (s.agents + s.perCTA - 1) / s.perCTA
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
	payload := memory(c, "path.payload_in")
	if c.Enum("path.payload_in") == "register" && c.Enum("path.protocol") == "cpu-verbs" { // the CPU's
		payload = pcie.Host
	}
	if !c.Bool("hardware.gpu.gpudirect") && c.Enum("path.protocol") != "cpu-verbs" {
		p.block("no GPUDirect RDMA: the peer's NIC cannot reach GPU memory (want a stack that stages through host memory, as host-staged)")
	}
	wqes := c.Count("workload.wqes_per_doorbell")
	var err error
	switch {
	case c.Enum("path.protocol") == "cpu-verbs":
		err = r.planVerbs(p, payload, wqes)
	case p.proxy:
		err = r.planProxy(p, payload, counts, wqes)
	default:
		err = r.planDoorbell(p, payload, counts, wqes)
	}
	if err != nil {
		return nil, err
	}
	r.place(p)
	if err := r.scope(p); err != nil {
		return nil, err
	}
	inline := r.inlined(p)
	if err := r.reachable(p, payload, inline); err != nil {
		return nil, err
	}
	if c.Enum("path.payload_in") == "register" && !inline {
		in := "GPU"
		if payload == pcie.Host && !p.verbs.Copies {
			in = "host"
		}
		r.note(fmt.Sprintf("%s: payload_in: register, but %d B do not travel inline: they lie in %s memory", r.name, p.msg.Bytes, in))
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
	if r.chosen("path.inline") && c.Bool("path.inline") && !p.msg.Get && p.msg.Bytes > c.Bytes("hardware.nic.inline_max") {
		r.note(fmt.Sprintf("%s: inline, but %d B are more than a WQE takes (hardware.nic.inline_max): the NIC reads the payload", r.name, p.msg.Bytes))
	}
	if c.Has("workload.background.kind") {
		if err := r.planBackground(p); err != nil {
			return nil, err
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

// crowd tells of more CTAs than SMs, and what then holds for those of one SM.
func (r *runner) crowd(ctas int, what string) {
	if sms := r.cfg.Count("hardware.gpu.sms"); ctas > sms {
		r.note(fmt.Sprintf("%d CTAs on %d SMs: those of one SM %s", ctas, sms, what))
	}
}

// planProxy reads the keys of a path whose CPU worker posts.
func (r *runner) planProxy(p *plan, payload pcie.Unit, counts path.Counts, wqes int) error {
	c := r.cfg
	handoff, _ := path.ParseHandoff(c.Enum("path.proxy.handoff"))
	nextPut, _ := path.ParseNextPut(c.Enum("path.next_put"))
	p.prox = path.Proxy{
		Handoff: handoff, Chain: c.Count("path.proxy.chain"), Depth: c.Count("path.proxy.depth"), Inline: c.Bool("path.inline"), ValueBytes: c.Bytes("path.proxy.value"),
		BlueFlame: c.Bool("path.blueflame"), CompletionIn: memory(c, "path.proxy.completion_in"), Payload: payload, NextPut: nextPut, Counts: counts,
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
		return refuse("path.proxy.gather", "with retire completion and one CQE a chain, which cannot tell whose ring it belongs to (want proxy.signaled each, or proxy.retire pop)")
	}
	if c.Enum("path.proxy.signal_after") == "completion" {
		p.prox.SignalApart, p.prox.SignalHeld = true, true
	}
	if x := &p.prox; x.SignalApart && x.Chain > 1 {
		return refuse("path.proxy.chain", "%d with signals posted apart (want 1)", x.Chain)
	}
	var err error
	if p.prox.Wait, err = waiting(c, c.Count("path.steps.yields")); err != nil {
		return err
	}
	p.prox.Workers = c.Count("host.proxy.threads")
	if c.Has("path.proxy.workers") {
		p.prox.Workers = c.Count("path.proxy.workers")
	}
	p.prox.Receiver = p.notify == path.SignalImmediate && c.Enum("path.proxy.receiver") == "thread"
	p.fg, err = r.proxyShape("workload.initiators.", handoff, wqes)
	return err
}

// planDoorbell reads the keys of a path whose GPU threads post.
func (r *runner) planDoorbell(p *plan, payload pcie.Unit, counts path.Counts, wqes int) error {
	c := r.cfg
	if !c.Has("path.fence") {
		return refuse("path.fence", "missing (want one of none, gpu, gpu+record, gpu-release, device, system-release, system) for protocol gpu-doorbell")
	}
	if next := c.Enum("path.next_put"); next != "at-once" {
		return refuse("path.next_put", "%s over gpu-doorbell (want at-once, or a path whose CPU posts)", next)
	}
	if c.Enum("path.rings_by") == "gpu" && !c.Bool("hardware.gpu.doorbell_mapping") {
		p.block("no doorbell mapping: want rings_by host")
	}
	fence, _ := path.ParseFence(c.Enum("path.fence"))
	posting, _ := path.ParsePosting(c.Enum("path.posting"))
	p.doorbell = path.Doorbell{Fence: fence, Inline: c.Bool("path.inline"), InRegister: c.Enum("path.payload_in") == "register", Posting: posting, Queues: memory(c, "path.queues_in"), Payload: payload, Counts: counts, RingUnit: wqes}
	var err error
	if p.posting, wqes, err = r.library(p, posting, wqes, c.Count("hardware.gpu.warp")); err != nil {
		return err
	}
	p.doorbell.Record = record(c, fence)
	p.fg, err = r.doorbellShape(p, "workload.initiators.", wqes)
	return err
}

// memory returns the memory that a key names; an argument of a call comes with the
// GPU's.
func memory(c *scenarios.Config, key string) pcie.Unit {
	if c.Enum(key) == "host" {
		return pcie.Host
	}
	return pcie.GPU
}

// record reports whether posters write a doorbell record.
func record(c *scenarios.Config, fence path.Fence) bool {
	switch c.Enum("path.record") {
	case "true":
		return true
	case "auto":
		return fence != path.FenceNone && fence != path.FenceGPU && fence != path.FenceGPURelease
	}
	return false
}

// planBackground reads the keys of the load beside the messages.
func (r *runner) planBackground(p *plan) error {
	c := r.cfg
	if p.kind == "stream" {
		return refuse("workload.background.kind", "a load beside kind stream (want put, put-signal, get or ping-pong)")
	}
	p.background = true
	p.shared = c.Enum("workload.background.queue") == "shared"
	p.bgWindow = c.Count("workload.background.outstanding")
	if c.Has("workload.background.bytes") {
		if b := c.Bytes("workload.background.bytes"); b != p.msg.Bytes {
			return refuse("workload.background.bytes", "%d B beside messages of %d B (want the same size; others are not available yet)", b, p.msg.Bytes)
		}
	}
	var err error
	if p.proxy {
		p.bg, err = r.proxyShape("workload.background.initiators.", p.prox.Handoff, 1)
	} else {
		p.bg, err = r.doorbellShape(p, "workload.background.initiators.", 1)
	}
	if err != nil {
		return err
	}
	if p.shared && !p.proxy && p.doorbell.Posting == path.PostSingle && p.doorbell.Library == path.LibBare {
		p.doorbell.Posting = path.PostLock
		r.note("paths that post with one thread a queue take a lock where the background shares their queue")
	}
	if p.shared && p.proxy && p.prox.Handoff == path.HandoffSingleProducer {
		r.note("a ring with hand-off single-producer that the background shares is assumed to cost its producers nothing")
	}
	return nil
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

func (r *runner) doorbellShape(p *plan, prefix string, wqes int) (shape, error) {
	c, warp := r.cfg, r.cfg.Count("hardware.gpu.warp")
	ctas, threads := c.Count(prefix+"ctas"), c.Count(prefix+"threads")
	s := shape{agents: ctas * threads, perCTA: threads, batch: wqes, queues: 1}
	switch p.posting {
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
	key, what := "qps_per_peer", "QPs"
	switch {
	case p.overDC > 0:
		s.queues, key, what = p.overDC, "dcis", "DC initiators"
	case c.Has("workload.connections"): // each is a QP
	case c.Has("path.qps_per_peer"):
		s.queues = c.Count("path.qps_per_peer")
	}
	if p.posting == path.PostSingle && s.agents > s.queues {
		return s, refuse("path."+key, "%d threads on %d %s with posting single (want %d, or posting lock, handoff or cooperative)", s.agents, s.queues, what, s.agents)
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

// told is the message where somebody looks for it and replies.
func (p *plan) told() path.Message {
	m := p.msg
	if m.Signal == path.SignalNone {
		m.Signal, m.Word, m.Fresh = p.notify, p.word, p.notify == path.SignalNone
	}
	return m
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

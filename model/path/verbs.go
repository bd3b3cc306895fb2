package path

import (
	"gdisim/model/cpu"
	"gdisim/model/nic"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// Verbs configures the path that a CPU thread initiates: it calls
// ibv_post_send and polls the CQ itself.
type Verbs struct {
	Inline      bool
	BlueFlame   bool
	Payload     pcie.Unit // where the payload lives at both ends: Host, or GPU through GPUDirect RDMA
	CQEEvery    int       // messages per CQE; a batch has at least one where the window would end
	CQBatch     int       // CQEs that one poll may return
	CQDepth     int       // CQEs that the CQ holds; 0: as many as can come
	Lookups     int       // tree or hash look-ups per message
	Hops        int       // hand-overs between threads from the caller to the one that posts
	ReplyHops   int       // the same from the one that polls to the caller
	NextPut     NextPut   // there is no progress beside the completion
	Stream      bool      // a window is kept: hand-overs run beside the posts
	KernelExits int       // ends of a kernel that the CPU waits for before it posts
	Launches    int       // kernels that the CPU launches on what came
	Copies      bool      // the payload lives in GPU memory and is staged by the copy engine
	Copy        CopyEngine
	Front       FrontEnd
	Register    sim.Delay // of a message's buffer, before its post
	Release     sim.Delay // the same when it has completed; in a stream, before a later post
}

// FrontEnd is the unit of a GPU that runs a stream's memory operations: with
// Ops above 0 the CPU only prepares, and the stream rings and waits.
type FrontEnd struct {
	Ops    int       // stores and barriers that ring
	Exit   sim.Delay // end of a kernel until the next operation of its stream
	Op     sim.Delay // one store or barrier
	Launch sim.Delay // from the operation before a kernel to its first instruction
}

// CopyEngine is what copies between GPU and host memory cost, call and wait
// included, and what the host learns of kernels.
type CopyEngine struct {
	ToHost, ToGPU sim.Delay
	Rate          int64 // bit/s
	KernelExit    sim.Delay
	Launch        sim.Delay
}

// inlined reports whether the payload travels in the WQE.
func (x *Verbs) inlined(m Message, limit int64) bool {
	return x.Inline && !m.Get && x.Payload == pcie.Host && m.Bytes <= limit
}

// VerbsPath is the set-up in which CPU threads of a node post.
type VerbsPath struct {
	env     *Env
	node    *Node
	peer    int
	cfg     Verbs
	msg     Message
	batch   int
	kinds   *kindTable
	threads []*verbsThread
}

// NewVerbs sets the path up on node towards peer, with a number of threads;
// batch is the number of messages that one call of ibv_post_send chains.
func NewVerbs(env *Env, node, peer int, cfg Verbs, m Message, threads, batch int) (*VerbsPath, error) {
	p := &VerbsPath{env: env, node: env.Nodes[node], peer: peer, cfg: cfg, msg: m, batch: batch, kinds: newKinds(node)}
	for i := range threads {
		t := &verbsThread{path: p, core: p.node.Core(i)}
		qp, err := p.node.NIC.NewQP(peer, pcie.Host, verbsCQE{t})
		if err != nil {
			return nil, err
		}
		t.qp = qp
		t.h = env.Eng.Register(verbsAct{t})
		p.threads = append(p.threads, t)
	}
	return p, nil
}

// verbsThread is a CPU thread with a QP and a core of its own.
type verbsThread struct {
	path   *VerbsPath
	core   *cpu.Core
	qp     *nic.QP
	h      sim.HandlerID
	client Client
	land   sim.Sink

	state  verbsState
	c      sim.Cause
	begin  sim.Time // of polling
	unsent int      // messages since the last CQE was asked for
	blue   bool
	busy   sim.Duration

	cqes   sim.FIFO[completion]
	reaped uint32
	asked  uint32 // WQEs that a CQE will retire
	due    sim.FIFO[uint32]
	inbox  sim.FIFO[sim.Cause]
}

type verbsState uint8

const (
	verbsIdle verbsState = iota
	verbsPosting
	verbsDraining
	verbsRoom    // waits for a free slot in the send queue
	verbsPolling // the CQ
	verbsReaped
	verbsWaiting // for data
	verbsObserved
)

// NewThread returns thread i, which tells client.
func (p *VerbsPath) NewThread(i int, client Client) *verbsThread {
	t := p.threads[i]
	t.client = client
	return t
}

// Busy returns the time that the threads spent on work, polling left out.
func (p *VerbsPath) Busy() sim.Duration {
	var d sim.Duration
	for _, t := range p.threads {
		d += t.busy
	}
	return d
}

// Workers returns the number of threads, each of which keeps a core.
// A stream's CPU prepares ahead and polls nothing.
func (p *VerbsPath) Workers() int {
	if p.cfg.Front.Ops > 0 {
		return 0
	}
	return len(p.threads)
}

// SendTo lets the thread's messages land at a thread of the peer.
func (t *verbsThread) SendTo(r Receiver) { t.land = r.Landing() }

// Landing returns the sink of messages for this thread.
func (t *verbsThread) Landing() sim.Sink { return verbsLanding{t} }

// Batch returns the messages per post.
func (t *verbsThread) Batch() int { return t.path.batch }

// Settle is the stack's choice.
func (t *verbsThread) Settle(c sim.Cause) bool {
	if t.path.cfg.NextPut == NextAtOnce {
		return false
	}
	t.AwaitCompletion(c)
	return true
}

func (t *verbsThread) times(n int, d sim.Delay) sim.Duration {
	var sum sim.Duration
	for range n {
		sum += t.core.Draw(d)
	}
	return sum
}

// spend works for d from the end of what led to t.c, and records it.
func (t *verbsThread) spend(at sim.Time, s stage.Stage, d sim.Duration) sim.Time {
	if d <= 0 {
		return at
	}
	start, end := t.core.Run(at, d)
	t.busy += d
	t.c = t.path.env.Rec.Span(t.c, t.path.kinds[s], start, end, 0)
	return end
}

// pass lets time pass in which the core does not work for the thread.
func (t *verbsThread) pass(at sim.Time, s stage.Stage, d sim.Duration) sim.Time {
	if d <= 0 {
		return at
	}
	end := at.Add(d)
	t.c = t.path.env.Rec.Span(t.c, t.path.kinds[s], at, end, 0)
	return end
}

// hopLines are the lines of a channel that its reader misses: the slot, the
// index of the writer, and what tells of a sleeping reader.
const hopLines = 3

// hops are hand-overs to threads that poll: the line of the channel is missed,
// at a phase of the poller's loop that nothing is tied to.
func (t *verbsThread) hops(at sim.Time, n int) sim.Time {
	cfg := t.core.Config()
	for range n {
		at = t.pass(at, stage.CPUWait, t.core.Within(cfg.Loop.Mean()+cfg.PollEmpty.Mean()))
		at = t.spend(at, stage.CPUDequeue, t.core.Draw(cfg.Publish)+t.receive())
	}
	return at
}

// receive is what the reader of a channel does.
func (t *verbsThread) receive() sim.Duration {
	cfg := t.core.Config()
	return t.times(hopLines, cfg.Miss) + t.core.Draw(cfg.Lookup) + t.core.Draw(cfg.Dequeue)
}

// hop is the mean of what a hand-over costs both its ends, the phase of the poller's
// loop left out.
func hop(c *cpu.Config) sim.Duration {
	return c.Publish.Mean() + hopLines*c.Miss.Mean() + c.Lookup.Mean() + c.Dequeue.Mean()
}

// handed reports whether the other threads have handed a completion that came at at
// over to the caller by now, who has only to receive it.
func (t *verbsThread) handed(at, now sim.Time) bool {
	cfg, n := t.core.Config(), sim.Duration(t.path.cfg.ReplyHops)
	look := (cfg.Loop.Mean() + cfg.PollEmpty.Mean()) / 2
	return n > 0 && at.Add(cfg.Miss.Mean()+cfg.PollCQE.Mean()+n*(look+hop(cfg))) <= now
}

// copy is a copy between GPU and host memory, waited for.
func (t *verbsThread) copy(at sim.Time, d sim.Delay) sim.Time {
	bits := float64(t.path.msg.Bytes) * 8
	return t.pass(at, stage.GPUCopy, t.core.Draw(d)+sim.Duration(bits/float64(t.path.cfg.Copy.Rate)*1e12))
}

// Post posts one batch with one call.
func (t *verbsThread) Post(c sim.Cause) {
	t.c = c
	p := t.path
	x := &p.cfg
	at := p.env.Eng.Now()
	if !x.Stream {
		at = t.hops(at, x.Hops)
	}
	for range x.KernelExits {
		at = t.pass(at, stage.GPUKernelExit, t.core.Draw(x.Copy.KernelExit))
	}
	if x.Copies {
		at = t.copy(at, x.Copy.ToHost)
	}
	t.state = verbsPosting
	if t.qp.Free() < t.wqes() {
		t.state = verbsRoom
		return
	}
	t.post(at)
}

func (t *verbsThread) wqes() int { return t.path.msg.wqes() * t.path.batch }

func (t *verbsThread) post(at sim.Time) {
	p, cfg := t.path, t.core.Config()
	x := &p.cfg
	n := t.wqes()
	if x.Front.Ops > 0 {
		at = t.pass(at, stage.GPUKernelExit, t.core.Draw(x.Front.Exit))
		at = t.pass(at, stage.GPURing, t.times(x.Front.Ops, x.Front.Op))
		t.busy += t.times(n, cfg.Build) + t.core.Draw(cfg.Post)
		t.enqueue(at)
		return
	}
	at = t.spend(at, stage.CPUPost, t.times(p.batch, x.Register))
	if x.Stream {
		at = t.spend(at, stage.CPUPost, t.times(p.batch, x.Release))
	}
	at = t.spend(at, stage.CPUPost, t.times(n, cfg.Build)+t.times(p.batch*x.Lookups, cfg.Lookup)+t.core.Draw(cfg.Post))
	at = t.spend(at, stage.CPURing, t.core.Draw(cfg.Flush))
	t.enqueue(at)
}

// enqueue puts the batch's WQEs into the send queue; the doorbell leaves at at.
func (t *verbsThread) enqueue(at sim.Time) {
	p := t.path
	x := &p.cfg
	n := t.wqes()
	e := nic.WQE{Opcode: nic.RDMAWrite, Bytes: p.msg.Bytes, Inline: x.inlined(p.msg, p.env.InlineLimit), Cause: t.c}
	e.Local, e.Remote = p.msg.ends(x.Payload)
	if p.msg.Get {
		e.Opcode = nic.RDMARead
	}
	sig := p.msg.flag(e)
	if p.msg.Alone {
		e = sig
	} else {
		e.Imm = p.msg.Signal == SignalImmediate
	}
	for i := range p.batch {
		if i == p.batch-1 {
			e.Land, sig.Land = t.land, t.land // the batch has come with its last message
		}
		t.unsent++
		asks := !x.Stream || t.unsent >= x.CQEEvery
		if asks {
			t.unsent = 0
		}
		w := e
		if p.msg.wqes() == 2 {
			w.Land = nil
			t.qp.Post(w)
			w = sig
		}
		w.Signaled = asks
		t.qp.Post(w)
		if asks {
			t.asked = t.qp.Head()
		}
	}
	t.blue = x.BlueFlame && x.Front.Ops == 0 && n == 1 && e.Size() <= p.env.BlueFlame
	t.due.Push(t.qp.Head())
	p.env.Eng.At(at, t.h, 0)
}

type verbsAct struct{ *verbsThread }

// Handle goes on at the time that was asked for.
func (a verbsAct) Handle(uint32) {
	t := a.verbsThread
	p := t.path
	s := t.state
	t.state = verbsIdle
	switch s {
	case verbsPosting:
		sink, bytes := t.qp.Doorbell(), int64(8)
		if t.blue {
			e := nic.WQE{Bytes: p.msg.Bytes, Inline: p.cfg.inlined(p.msg, p.env.InlineLimit)}
			sink, bytes = t.qp.BlueFlame(), e.Size()
		}
		from := pcie.CPU
		if p.cfg.Front.Ops > 0 {
			from = pcie.GPU
		}
		p.node.ring(p.env, from, t.qp, bytes, t.c, p.kinds[stage.PCIeDoorbell], sink, t.qp.Head())
		if d := t.core.Draw(t.core.Config().Drain); d > 0 && from == pcie.CPU {
			t.state = verbsDraining
			p.env.Eng.At(t.spend(p.env.Eng.Now(), stage.CPURing, d), t.h, 0)
			return
		}
		t.client.Posted(t.c)
	case verbsDraining:
		t.client.Posted(t.c)
	case verbsReaped:
		t.client.Completed(t.c)
	case verbsObserved:
		t.client.Observed(t.c)
	}
}

type verbsCQE struct{ *verbsThread }

// Done is a CQE visible in the thread's CQ.
func (q verbsCQE) Done(upto uint32, c sim.Cause) {
	t := q.verbsThread
	now := t.path.env.Eng.Now()
	if p := t.path; p.cfg.CQDepth > 0 && t.cqes.Len() == p.cfg.CQDepth {
		p.env.find(p.node, stage.CQOverflow, stage.Occurred, t.qp.ID(), "a CQE came to a CQ that was full of ones that the thread had not polled")
		t.qp.Fail("CQ overrun")
		return
	}
	t.cqes.Push(completion{upto, c, now})
	switch t.state {
	case verbsPolling:
		if int32(upto-*t.due.Front()) >= 0 {
			t.reap(now)
		}
	case verbsRoom:
		if t.qp.Free() >= t.wqes() {
			t.state = verbsPosting
			at := t.drain(now)
			t.post(at)
		}
	}
}

// drain takes the CQEs that are there.
func (t *verbsThread) drain(at sim.Time) sim.Time {
	cfg := t.core.Config()
	var d sim.Duration
	for n := 0; t.cqes.Len() > 0; n++ {
		e := t.cqes.Pop()
		t.reaped = e.upto
		line := cfg.Miss
		if n%t.path.cfg.CQBatch > 0 {
			line = cfg.Stream
		}
		d += t.core.Draw(line) + t.core.Draw(cfg.PollCQE)
		t.c = join(t.path.env.Rec, t.c, e.cause, t.path.kinds[stage.CPUPoll], at)
	}
	return t.spend(at, stage.CPUPoll, d)
}

// reap sees the CQE at the next look of the polling loop.
func (t *verbsThread) reap(now sim.Time) {
	cfg := t.core.Config()
	at := now
	if now > t.begin {
		at = now.Add(t.core.Within(cfg.PollEmpty.Mean() + cfg.Loop.Mean()))
	}
	rec, k := t.path.env.Rec, t.path.kinds
	if x := &t.path.cfg; x.Front.Ops > 0 {
		e := t.cqes.Pop()
		t.reaped = e.upto
		t.c = join(rec, t.c, e.cause, k[stage.GPUPoll], now)
		at = t.wait(now, stage.GPUPoll, t.path.node.Bus.RoundTrip(pcie.GPU, pcie.Host, 8))
		at = t.pass(at, stage.GPULaunch, t.core.Draw(x.Front.Launch))
		t.due.Pop()
		t.state = verbsReaped
		t.path.env.Eng.At(at, t.h, 0)
		return
	}
	t.c = join(rec, t.c, t.cqes.Front().cause, k[stage.CPUPoll], now)
	t.c = rec.Span(t.c, k[stage.CPUWait], at, at, 0)
	x := &t.path.cfg
	if first := t.cqes.Front().at; !x.Stream && t.handed(first, now) {
		for t.cqes.Len() > 0 {
			t.reaped = t.cqes.Pop().upto
		}
		at = t.spend(at, stage.CPUDequeue, t.receive())
	} else {
		at = t.drain(at)
		if !x.Stream {
			at = t.hops(at, x.ReplyHops)
		}
	}
	if !x.Stream {
		at = t.spend(at, stage.CPUPoll, t.times(t.path.batch, x.Release))
	}
	t.due.Pop()
	t.state = verbsReaped
	t.path.env.Eng.At(at, t.h, 0)
}

// wait is a poll of a word over PCIe, one read after the other: what came now
// is seen at the end of the first read that samples it.
func (t *verbsThread) wait(at sim.Time, s stage.Stage, read sim.Duration) sim.Time {
	return t.pass(at, s, t.core.Within(read)+read/2)
}

// AwaitCompletion polls the CQ for the oldest batch.
func (t *verbsThread) AwaitCompletion(c sim.Cause) {
	t.c = c
	now := t.path.env.Eng.Now()
	t.begin = now
	front := *t.due.Front()
	for i := range t.cqes.Len() {
		if int32(t.cqes.At(i).upto-front) >= 0 {
			t.reap(now)
			return
		}
	}
	t.state = verbsPolling
	if int32(t.asked-front) < 0 && t.qp.Free() > 0 {
		// No CQE was asked for that would tell: an empty write brings one.
		p := t.path
		p.node.ring(p.env, pcie.CPU, t.qp, 8, sim.Cause{}, p.kinds[stage.PCIeDoorbell], t.qp.Doorbell(), t.qp.Post(nic.WQE{Inline: true, Signaled: true, Local: pcie.Host, Remote: pcie.Host}))
		t.asked, t.unsent = t.qp.Head(), 0
	}
}

// Retire takes the oldest batch off if a CQE that was taken covers it.
func (t *verbsThread) Retire(own sim.Cause) (sim.Cause, bool) {
	if t.due.Len() == 0 {
		return own, false
	}
	now := t.path.env.Eng.Now()
	if !t.path.cfg.Stream { // a ping-pong's CQE came before the reply
		for t.cqes.Len() > 0 {
			t.reaped = t.cqes.Pop().upto
		}
	}
	if int32(t.reaped-*t.due.Front()) < 0 {
		return own, false
	}
	t.due.Pop()
	return t.path.env.Rec.Span(own, t.path.kinds[stage.CPUPoll], now, now, 0), true
}

// AwaitData polls memory, or the CQ of receives, until the next message has
// come.
func (t *verbsThread) AwaitData(c sim.Cause) {
	t.c = c
	t.begin = t.path.env.Eng.Now()
	if t.inbox.Len() > 0 {
		t.observe(t.inbox.Pop())
		return
	}
	t.state = verbsWaiting
}

type verbsLanding struct{ *verbsThread }

// Done is a message for this thread, visible where it looks.
func (l verbsLanding) Done(_ uint32, c sim.Cause) {
	t := l.verbsThread
	if t.state != verbsWaiting {
		t.inbox.Push(c)
		return
	}
	t.observe(c)
}

// observe sees the message at the next look and does what the caller needs to
// have it.
func (t *verbsThread) observe(c sim.Cause) {
	p, cfg := t.path, t.core.Config()
	x := &p.cfg
	now := p.env.Eng.Now()
	k := p.kinds
	t.c = join(p.env.Rec, t.c, c, k[stage.CPUPoll], now)
	at := now
	if x.Front.Ops > 0 {
		// The stream waits for a word in the GPU's own memory.
		at = t.pass(at, stage.GPUObserve, t.core.Draw(x.Front.Op))
		at = t.pass(at, stage.GPULaunch, t.core.Draw(x.Front.Launch))
		t.state = verbsObserved
		p.env.Eng.At(at, t.h, 0)
		return
	}
	look := cfg.Loop.Mean() + cfg.Check.Mean()
	seen := t.core.Draw(cfg.Miss)
	switch {
	case p.msg.Signal == SignalImmediate:
		look = cfg.Loop.Mean() + cfg.PollEmpty.Mean()
		seen += t.core.Draw(cfg.PollCQE) + t.core.Draw(cfg.Lookup) + t.core.Draw(cfg.Build) // a receive is posted anew
	case p.msg.Word == pcie.GPU:
		look = p.node.Bus.RoundTrip(pcie.CPU, pcie.GPU, 8)
		seen = look / 2
	}
	at = t.pass(at, stage.CPUWait, t.core.Within(look))
	at = t.spend(at, stage.CPUPoll, seen)
	at = t.hops(at, x.ReplyHops)
	if x.Copies {
		at = t.copy(at, x.Copy.ToGPU)
	}
	for range x.Launches {
		at = t.pass(at, stage.GPULaunch, t.core.Draw(x.Copy.Launch))
	}
	t.state = verbsObserved
	p.env.Eng.At(at, t.h, 0)
}

// Steps lists what the thread does for one message, for explain; if the peer
// answers, it looks for that and not for a CQE.
func (x *Verbs) Steps(c *cpu.Config, m Message, answered bool) []WorkerStep {
	var out []WorkerStep
	add := func(s stage.Stage, price sim.Duration, what, why string) {
		out = append(out, WorkerStep{s, what, price, why})
	}
	times := func(n int, d sim.Delay) sim.Duration { return sim.Duration(n) * d.Mean() }
	if x.Front.Ops > 0 {
		add(stage.CPUPost, 0, "CPU, ahead of time: post without ringing, stream operations in one batch", "not on the message's way")
		add(stage.GPUKernelExit, x.Front.Exit.Mean(), "kernel ends; the stream's front end goes on", "the kernel's boundary is the trigger")
		add(stage.GPURing, times(x.Front.Ops, x.Front.Op), "front end: record, barrier, doorbell", "stream memory operations")
		add(stage.GPUPoll, 0, "front end: WAIT_VALUE on the CQE in host memory", "one PCIe read after the other")
		add(stage.GPULaunch, x.Front.Launch.Mean(), "next kernel", "until its first instruction")
		return out
	}
	if x.Hops > 0 {
		add(stage.CPUDequeue, sim.Duration(x.Hops)*hop(c), "hand-overs to the thread that posts", "a channel's lines are missed at each; its poller's phase comes on top")
	}
	if x.KernelExits > 0 {
		add(stage.GPUKernelExit, times(x.KernelExits, x.Copy.KernelExit), "wait for the kernel", "the payload is complete when the kernel has ended")
	}
	if x.Copies {
		add(stage.GPUCopy, x.Copy.ToHost.Mean(), "copy to host memory", "call, copy engine and wait; the bytes come on top")
	}
	if x.Lookups > 0 {
		add(stage.CPUPost, times(x.Lookups, c.Lookup), "look-ups", "keys, connection, request")
	}
	add(stage.CPUPost, c.Build.Mean()+c.Post.Mean(), "ibv_post_send: WQE segments, doorbell record", "compiler barrier on x86 before the record")
	what := "sfence; 8-byte doorbell; sfence"
	if x.BlueFlame {
		what = "sfence; BlueFlame copy (one WR) or 8-byte doorbell (a chain); sfence"
	}
	add(stage.CPURing, c.Flush.Mean(), what, "pushes the write-combining buffer out")
	if !answered {
		add(stage.CPUPoll, c.Miss.Mean()+c.PollCQE.Mean(), "ibv_poll_cq: load the CQE's line (missed: the NIC wrote it)", "one CQE retires all before it")
		if x.ReplyHops > 0 {
			add(stage.CPUDequeue, sim.Duration(x.ReplyHops)*hop(c), "hand-overs of the completion to the caller", "as above")
		}
	}
	what = "peer: load the polled word (missed: the NIC wrote it)"
	if m.Signal == SignalImmediate {
		what = "peer: receive CQE with the immediate; receive posted anew; count"
	}
	add(stage.CPUPoll, c.Miss.Mean(), what, "the polling loop's phase comes on top")
	if x.ReplyHops > 0 {
		add(stage.CPUDequeue, sim.Duration(x.ReplyHops)*hop(c), "peer: hand-overs to the caller", "as above")
	}
	if x.Copies {
		add(stage.GPUCopy, x.Copy.ToGPU.Mean(), "peer: copy to GPU memory", "call, copy engine and wait; the bytes come on top")
	}
	if x.Launches > 0 {
		add(stage.GPULaunch, times(x.Launches, x.Copy.Launch), "peer: launch of the kernel that uses it", "until its first instruction")
	}
	if answered {
		add(stage.CPUPost, 0, "peer: the answer, by the steps above", "told of alike, without a payload")
		add(stage.CPUPoll, c.Miss.Mean(), "the answer, as the peer sees the message", "the peer has seen the message; no CQE is polled for")
	}
	return out
}

package testbed

import (
	"fmt"

	"gdisim/model/gpu"
	"gdisim/model/path"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// post is a GPU thread that posts by a stack's own steps to a queue that no NIC
// serves: what its own side lets it post.
type post struct {
	b    *bench
	sm   *gpu.SM
	prog []path.Step
	turn *turn // of a queue that all threads share; nil: its own
	pc   int
	n    int // loads of the present step from host memory, done

	ticket int
	done   sim.Sink
	arg    uint32
	c      sim.Cause
	h      sim.HandlerID
}

// turn is whose doorbell is next on a shared queue, a word in GPU memory.
type turn struct {
	next    int // ticket that may ring
	tickets int
	waiting map[int]*waitingPost
}

type waitingPost struct {
	p     *post
	begin sim.Time
}

// post sets up a CTA's thread each, with its own queue or one for all.
func (b *bench) post() (*step, error) {
	c := b.cfg
	if c.Enum("path.protocol") != "gpu-doorbell" {
		return nil, refuse("path.protocol", "a stack whose CPU rings, with kind post (want gpu-doorbell)")
	}
	if lib := c.Enum("path.post"); lib != "bare" {
		return nil, refuse("path.post", "%s with kind post (want bare; what a library's threads wait for are queues with a NIC)", lib)
	}
	if posting := c.Enum("path.posting"); posting != "single" {
		return nil, refuse("path.posting", "%s with kind post (want single; workload.queue says who shares)", posting)
	}
	if !c.Has("path.fence") {
		return nil, refuse("path.fence", "missing with kind post")
	}
	fence, _ := path.ParseFence(c.Enum("path.fence"))
	d := path.Doorbell{
		Fence: fence, Queues: memory(c, "path.queues_in"), Payload: memory(c, "path.payload_in"), Inline: true, InRegister: c.Enum("path.payload_in") == "register",
		Record: record(c, fence),
		Counts: path.Counts{Calls: c.Count("path.steps.calls"), StateLoads: c.Count("path.steps.state_loads"), ConstLoads: c.Count("path.steps.const_loads")},
	}
	n, wqes := c.Count("workload.initiators.ctas"), c.Count("workload.wqes_per_doorbell")
	shared := c.Enum("workload.queue") == "shared"
	prog := posting(&d, wqes, shared)
	s := &step{metric: stage.Issue, each: wqes, rate: true, sms: min(n, b.node.GPU.SMs), skew: c.Duration("hardware.gpu.start_skew"), title: fmt.Sprintf("%d CTAs post %d WQEs a doorbell, own queues, no NIC", n, wqes)}
	var t *turn
	if shared {
		t = &turn{waiting: map[int]*waitingPost{}}
		s.title = fmt.Sprintf("%d CTAs post %d WQEs a doorbell to one queue, no NIC", n, wqes)
	}
	for range n {
		p := &post{b: b, sm: b.sm(), prog: prog, turn: t}
		p.h = b.run.Eng.Register(p)
		s.agents = append(s.agents, p)
	}
	return s, nil
}

// posting lists the steps of a post: the stack's own, and around them what a
// queue costs that several threads share. There a doorbell may announce another
// thread's WQE, which that one's first fence has made visible before its turn.
func posting(d *path.Doorbell, wqes int, shared bool) []path.Step {
	p := d.Program(path.Message{Bytes: 8}, 8, false)
	var out []path.Step
	if shared {
		out = append(out, path.Step{Do: path.DoAtomic, Stage: stage.GPUReserve, N: 1, Why: "ticket"})
	}
	out = append(out, p.Before...)
	for range wqes {
		out = append(out, p.Each...)
	}
	after := p.After
	if shared {
		if len(after) > 0 && after[0].Do == path.DoFence {
			out, after = append(out, after[0]), after[1:]
		}
		out = append(out, path.Step{Do: path.DoAwaitTurn, Stage: stage.GPUReserve, N: 1, Why: "doorbells in the order of tickets"})
	}
	out = append(out, after...)
	if shared {
		out = append(out,
			path.Step{Do: path.DoFence, Stage: stage.GPUReserve, N: 1, Why: "release of the turn"},
			path.Step{Do: path.DoPassTurn, Stage: stage.GPUReserve, N: 1, Why: "turn word in GPU memory"})
	}
	return out
}

// Begin posts.
func (p *post) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	p.c, p.done, p.arg, p.pc = c, done, arg, 0
	if p.turn != nil {
		p.ticket = p.turn.tickets
		p.turn.tickets++
	}
	p.run()
}

// Handle goes on with the steps.
func (p *post) Handle(uint32) { p.run() }

func (p *post) run() {
	now := p.b.run.Eng.Now()
	t := now
	cfg := p.sm.Config()
	spend := func(s stage.Stage, d sim.Duration) {
		if d > 0 {
			p.c = p.b.run.Rec.Span(p.c, p.b.kind(s), t, t.Add(d), 0)
			t = t.Add(d)
		}
	}
	for p.pc < len(p.prog) {
		s := &p.prog[p.pc]
		waits := s.Do == path.DoFence && s.Scope == gpu.ScopeSystem || s.Do == path.DoAwaitTurn || s.Do == path.DoPassTurn || s.Do == path.DoRing || s.Do == path.DoHostLoad
		if waits && t > now {
			p.b.run.Eng.At(t, p.h, 0)
			return
		}
		if s.Do == path.DoHostLoad {
			if p.n++; p.n <= s.N {
				p.b.edge().Read(8, p.c, p.b.kind(s.Stage), p, 0)
				return
			}
			p.n = 0
			p.sm.Warm(s.Line)
		}
		p.pc++
		switch s.Do {
		case path.DoFence:
			if s.Scope == gpu.ScopeSystem {
				p.b.fenceSystem(p.c, s.Full, p, 0)
				return
			}
			spend(s.Stage, p.sm.Fence(s.Scope, s.Full, true, 0))
		case path.DoLoad:
			spend(s.Stage, p.sm.Load(s.Line, s.N))
		case path.DoReload:
			spend(s.Stage, p.sm.Reload(s.Line, s.N))
		case path.DoInline:
			spend(s.Stage, p.sm.Copy(8))
		case path.DoRing:
			p.b.edge().Write(8, p.b.run.Owner, p.b.kind(stage.PCIeDoorbell), nobody{}, 0)
			spend(s.Stage, p.sm.Draw(cfg.Ring))
		case path.DoAwaitTurn:
			if p.turn.next != p.ticket {
				p.turn.waiting[p.ticket] = &waitingPost{p, now}
				return
			}
			spend(s.Stage, p.sm.Draw(cfg.PollPeriod)+p.sm.Acquire())
		case path.DoPassTurn:
			p.turn.pass(p)
		default:
			warm, _ := s.Price(cfg)
			spend(s.Stage, warm)
		}
	}
	if t > now {
		p.b.run.Eng.At(t, p.h, 0)
		return
	}
	p.done.Done(p.arg, p.c)
}

// Done is the end of a fence at system scope, or of a load from host memory.
func (p *post) Done(_ uint32, c sim.Cause) {
	p.c = c
	p.run()
}

// pass lets the next ticket's thread ring once its polling has seen the turn.
func (t *turn) pass(p *post) {
	t.next = p.ticket + 1
	w := t.waiting[t.next]
	if w == nil {
		return
	}
	delete(t.waiting, t.next)
	q := w.p
	now := q.b.run.Eng.Now()
	there := now.Add(p.sm.Draw(p.sm.Config().L2Load) / 2) // the store's way to L2
	end := q.sm.Seen(w.begin, there).Add(q.sm.Acquire())
	k := q.b.kind(stage.GPUReserve)
	q.c = q.b.run.Rec.Span(q.c, k, now, end, p.c.Op)
	q.b.run.Eng.At(end, q.h, 0)
}

var _ workload.Operation = (*post)(nil)

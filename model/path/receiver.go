package path

import (
	"gdisim/model/cpu"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// receive is a receive CQE whose immediate is counted for a GPU thread.
type receive struct {
	cause  sim.Cause
	at     sim.Time // when it became visible
	thread *thread
}

// receiver is a CPU thread that takes receive CQEs, posts each receive anew,
// counts the immediate and stores the count into GPU memory through BAR1. It
// polls, and does nothing else.
type receiver struct {
	env   *Env
	node  *Node
	kinds *kindTable
	core  *cpu.Core
	wait  *cpu.Waiter
	h     sim.HandlerID
	cqes  sim.FIFO[receive]
	idle  bool
	token *thread   // whose count leaves at the event; nil: nobody's
	cause sim.Cause // of that
	last  sim.Op    // whom it worked for last
	busy  sim.Duration
}

func newReceiver(env *Env, node *Node, kinds *kindTable, core *cpu.Core) *receiver {
	r := &receiver{env: env, node: node, kinds: kinds, core: core, wait: cpu.NewWaiter(core, &cpu.Policy{})}
	r.h = env.Eng.Register(receiving{r})
	r.rest()
	return r
}

// landing returns the sink of CQEs whose immediates are counted for t.
func (r *receiver) landing(t *thread) sim.Sink { return &received{r, t} }

type received struct {
	*receiver
	thread *thread
}

// Done is a receive CQE, visible in host memory.
func (v *received) Done(_ uint32, c sim.Cause) {
	r, now := v.receiver, v.env.Eng.Now()
	r.cqes.Push(receive{c, now, v.thread})
	if !r.idle {
		return
	}
	if at, moved, _ := r.wait.Notice(now, r.core.Config().PollEmpty.Mean()); moved {
		r.env.Eng.At(at, r.h, 0)
	}
}

// rest lets the looks that find nothing go by without events.
func (r *receiver) rest() {
	cfg := r.core.Config()
	r.idle = true
	r.wait.Begin(r.env.Eng.Now(), cfg.Loop.Mean()+cfg.PollEmpty.Mean())
}

type receiving struct{ *receiver }

// Handle goes on with the oldest CQE.
func (a receiving) Handle(uint32) {
	r := a.receiver
	now := r.env.Eng.Now()
	r.idle = false
	if until := r.node.stalled(now); until > 0 {
		if until < never {
			r.env.Eng.At(until, r.h, 0)
		}
		return
	}
	if t := r.token; t != nil {
		r.token = nil
		r.node.Bus.Write(pcie.CPU, pcie.GPU, 8, r.cause, r.kinds[stage.PCIeNotify], landing{t}, 0)
	}
	if r.cqes.Len() == 0 {
		r.rest()
		return
	}
	e := r.cqes.Pop()
	cfg := r.core.Config()
	work, store := receiveWork(r.core, cfg.Miss), r.core.Draw(cfg.Publish)
	t0, t1 := r.core.Run(now, work)
	_, t2 := r.core.Run(t1, store)
	r.busy += work + store
	r.cause = counted(r.env.Rec, r.kinds, e.cause, t0, t1, t2, r.last)
	r.token, r.last = e.thread, r.cause.Op
	r.env.Eng.At(t2, r.h, 0)
}

// arrived is a receive CQE of the worker whose immediate is counted for a GPU
// thread.
type arrived struct {
	*worker
	thread *thread
}

// Done is the CQE, visible in the worker's CQ.
func (a *arrived) Done(_ uint32, c sim.Cause) {
	a.receives.Push(receive{c, a.path.env.Eng.Now(), a.thread})
	a.notice(len(a.rings))
}

// receivedFirst reports whether the CQ's oldest CQE is one of a receive.
func (w *worker) receivedFirst() bool {
	return w.receives.Len() > 0 && (w.cqes.Len() == 0 || w.receives.Front().at < w.cqes.Front().at)
}

// tally takes one receive CQE and counts its immediate.
func (w *worker) tally(t sim.Time) {
	p, cfg := w.path, w.core.Config()
	e := w.receives.Pop()
	line := cfg.Miss
	if w.polled%p.cfg.CQBatch > 0 {
		line = cfg.Stream
	}
	w.polled++
	t0, t1 := w.run(t, receiveWork(w.core, line))
	_, t2 := w.run(t1, w.core.Draw(cfg.Publish))
	w.cause = counted(p.env.Rec, p.kinds, w.woken(e.cause, e.at), t0, t1, t2, w.last)
	w.token, w.last = e.thread, w.cause.Op
	w.state = workerCounting
	p.env.Eng.At(t2, w.h, 0)
}

// receiveWork draws the time that a receive CQE takes: its line, the CQE, a
// receive posted anew and the look-up of the count.
func receiveWork(core *cpu.Core, line sim.Delay) sim.Duration {
	cfg := core.Config()
	return core.Draw(line) + core.Draw(cfg.PollCQE) + core.Draw(cfg.Build) + core.Draw(cfg.Lookup)
}

// counted records the work on a CQE from t0 to t1 and the store from there to t2.
func counted(rec *sim.Recorder, kinds *kindTable, c sim.Cause, t0, t1, t2 sim.Time, last sim.Op) sim.Cause {
	k := kinds[stage.CPUPoll]
	k.Wait = uint8(stage.CPUWait)
	return rec.Span(rec.Span(c, k, t0, t1, last), kinds[stage.CPUPublish], t1, t2, 0)
}

// ReceiverSteps lists what a CPU thread of the peer does for a message that brings an
// immediate; nil for other messages.
func ReceiverSteps(c *cpu.Config, m Message) []WorkerStep {
	if m.Signal != SignalImmediate {
		return nil
	}
	return []WorkerStep{
		{stage.CPUPoll, "receive CQE: load its line (missed: the NIC wrote it)", c.Miss.Mean() + c.PollCQE.Mean(), "until it shows, the phase of the polling loop"},
		{stage.CPUPoll, "empty receive posted anew", c.Build.Mean(), "none posted: RNR NAKs hold the sender (fault no-recv)"},
		{stage.CPUPoll, "count of the immediate", c.Lookup.Mean(), "which counter, by the immediate's value"},
		{stage.CPUPublish, "count stored into GPU memory through BAR1", c.Publish.Mean(), "the GPU thread polls its own L2"},
	}
}

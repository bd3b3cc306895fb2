package testbed

import (
	"fmt"

	"gdisim/model/cpu"
	"gdisim/model/gpu"
	"gdisim/sim"
	"gdisim/stage"
)

// descriptor is how a GPU thread writes one into a ring in host memory.
type descriptor uint8

const (
	byLanes  descriptor = iota // 64 bytes by four lanes at once: one write, valid by itself
	byFlag                     // body, release at system scope, flag
	byThread                   // four stores by one thread, each valid by itself
)

// proxyBlock is a CTA that keeps a window of descriptors in its ring and polls
// a completion counter in host memory, one read at a time, when the window is
// full.
type proxyBlock struct {
	b      *bench
	sm     *gpu.SM
	form   descriptor
	worker *proxyWorker
	ring   int // of the worker's

	out     []proxyMessage // from the oldest that is not completed on
	issued  int            // of out
	put     int            // of out, before the worker
	served  int            // of out, whose completion is visible
	taken   int            // by the worker, beside them
	issuing bool
	looking bool
	hIssue  sim.HandlerID
}

type proxyMessage struct {
	c    sim.Cause
	done sim.Sink
	arg  uint32
	at   sim.Time // when its completion became visible
}

// proxyWorker is a CPU thread that looks at its rings in turn, takes one
// descriptor of each in a pass, and stores a completion. Lines of different rings
// are on their way to the core at the same time; of one ring the next line is
// asked for in the next pass.
type proxyWorker struct {
	b     *bench
	core  *cpu.Core
	wait  *cpu.Waiter
	rings []*proxyBlock
	busy  bool
	first int // ring that the next pass begins at
	timer sim.TimerID
	hWake sim.HandlerID
	hPass sim.HandlerID
	hDone sim.HandlerID
}

func (b *bench) proxyEcho() (*step, error) {
	c := b.cfg
	n, workers, window := c.Count("workload.initiators.ctas"), c.Count("host.proxy.threads"), c.Count("workload.outstanding")
	s := &step{metric: stage.RTT, window: window, rate: true, sms: min(n, b.node.GPU.SMs), cores: float64(min(n, workers)), skew: c.Duration("hardware.gpu.start_skew")}
	s.title = fmt.Sprintf("%d CTAs hand descriptors to %d workers (%s), %d outstanding", n, workers, c.Enum("workload.descriptor"), window)
	form := map[string]descriptor{"lanes": byLanes, "flag": byFlag, "thread": byThread}[c.Enum("workload.descriptor")]
	policy, err := waiting(c, 0)
	if err != nil {
		return nil, err
	}
	ws := make([]*proxyWorker, min(n, workers))
	for i := range ws {
		w := &proxyWorker{b: b, core: b.node.Core(i)}
		w.wait = cpu.NewWaiter(w.core, &policy)
		w.hWake, w.hPass, w.hDone = b.run.Eng.Register(workerWakes{w}), b.run.Eng.Register(workerPasses{w}), b.run.Eng.Register(workerDone{w})
		ws[i] = w
	}
	for i := range n {
		w := ws[i%len(ws)]
		p := &proxyBlock{b: b, sm: b.sm(), form: form, worker: w, ring: len(w.rings)}
		p.hIssue = b.run.Eng.Register(blockIssues{p})
		w.rings = append(w.rings, p)
		s.agents = append(s.agents, p)
	}
	for _, w := range ws {
		w.wait.Begin(b.run.Eng.Now(), w.look())
	}
	return s, nil
}

// Begin issues a descriptor behind those that the thread is still at.
func (p *proxyBlock) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	p.out = append(p.out, proxyMessage{c: c, done: done, arg: arg})
	if !p.issuing {
		p.issue()
	}
}

// issue begins the next descriptor's stores, or looks for completions where there
// is none.
func (p *proxyBlock) issue() {
	p.issuing = p.issued < len(p.out)
	if !p.issuing {
		p.look()
		return
	}
	stores := 1
	if p.form != byLanes {
		stores = 4
	}
	m := &p.out[p.issued]
	now := p.b.run.Eng.Now()
	end := now
	for range stores {
		end = end.Add(p.sm.Draw(p.sm.Config().HostStore))
	}
	m.c = p.b.run.Rec.Span(m.c, p.b.kind(stage.GPUBuild), now, end, 0)
	p.b.run.Eng.At(end, p.hIssue, 0)
}

type blockIssues struct{ *proxyBlock }

// Handle has the descriptor's stores issued; a flag waits for what is before it.
func (i blockIssues) Handle(uint32) {
	p := i.proxyBlock
	e, m, k := p.b.edge(), &p.out[p.issued], p.b.kind(stage.PCIeNotify)
	switch p.form {
	case byLanes:
		e.Write(64, m.c, k, blockVisible{p}, 0)
	case byThread:
		for range 3 {
			e.Write(16, p.b.run.Owner, k, nobody{}, 0)
		}
		e.Write(16, m.c, k, blockVisible{p}, 0)
	case byFlag:
		for range 4 {
			e.Write(16, p.b.run.Owner, k, nobody{}, 0)
		}
		p.b.fenceSystem(m.c, false, blockFenced{p}, 0)
		return
	}
	p.issued++
	p.issue()
}

type blockFenced struct{ *proxyBlock }

// Done is the end of the release before the flag.
func (f blockFenced) Done(_ uint32, c sim.Cause) {
	p := f.proxyBlock
	p.b.edge().Write(8, c, p.b.kind(stage.PCIeNotify), blockVisible{p}, 0)
	p.issued++
	p.issue()
}

type blockVisible struct{ *proxyBlock }

// Done has a descriptor where the worker looks.
func (v blockVisible) Done(_ uint32, c sim.Cause) {
	v.out[v.put].c = c
	v.put++
	v.worker.notice(v.ring)
}

// look reads the completion counter.
func (p *proxyBlock) look() {
	if !p.looking && len(p.out) > 0 {
		p.looking = true
		p.b.edge().Read(8, p.b.run.Owner, p.b.kind(stage.GPUPoll), p, 0)
	}
}

// Done is the counter as it was when it was read.
func (p *proxyBlock) Done(uint32, sim.Cause) {
	now, at := p.b.run.Eng.Now(), p.b.node.Bus.Sampled()
	p.looking = false
	n := 0
	for n < p.served && p.out[n].at <= at {
		n++
	}
	for i := range n {
		m := p.out[i]
		m.done.Done(m.arg, p.b.run.Rec.Span(m.c, p.b.kind(stage.GPUPoll), m.at, now, 0))
	}
	p.out = p.out[:copy(p.out, p.out[n:])]
	p.issued, p.put, p.served = p.issued-n, p.put-n, p.served-n
	if !p.issuing {
		p.issue()
	}
}

// complete has the completion of the oldest descriptor visible, now.
func (p *proxyBlock) complete(c sim.Cause) {
	m := &p.out[p.served]
	m.c, m.at = c, p.b.run.Eng.Now()
	p.served++
}

// look is the length of a pass that finds nothing.
func (w *proxyWorker) look() sim.Duration {
	cfg := w.core.Config()
	return cfg.Loop.Mean() + sim.Duration(len(w.rings))*cfg.Check.Mean()
}

// notice tells the worker of a descriptor in a ring.
func (w *proxyWorker) notice(ring int) {
	if w.busy {
		return
	}
	cfg := w.core.Config()
	at, moved, _ := w.wait.Notice(w.b.run.Eng.Now(), cfg.Loop.Mean()+sim.Duration(ring+1)*cfg.Check.Mean())
	if !moved {
		return
	}
	w.b.run.Eng.Cancel(w.timer)
	w.first = ring
	w.timer = w.b.run.Eng.Timer(max(at, w.b.run.Eng.Now()), w.hWake, 0)
}

type workerWakes struct{ *proxyWorker }

// Handle has the worker at the ring that it found something in.
func (h workerWakes) Handle(uint32) {
	w := h.proxyWorker
	now := w.b.run.Eng.Now()
	if at := w.wait.Wake(now); at > now { // others have the core
		w.busy = true
		w.b.run.Eng.At(at, w.hPass, 0)
		return
	}
	w.pass()
}

type workerPasses struct{ *proxyWorker }

// Handle begins a pass.
func (h workerPasses) Handle(uint32) { h.pass() }

// pass takes one descriptor from each ring that has any, beginning where the
// first was found.
func (w *proxyWorker) pass() {
	eng, rec, cfg := w.b.run.Eng, w.b.run.Rec, w.core.Config()
	now := eng.Now()
	w.busy = true
	var at sim.Duration // of the look, from now
	var done sim.Duration
	found := false
	for i := range w.rings {
		ring := (w.first + i) % len(w.rings)
		p := w.rings[ring]
		at += w.core.Draw(cfg.Check)
		if p.put == p.served+p.taken {
			continue
		}
		found = true
		m := &p.out[p.served+p.taken]
		p.taken++
		// The line is on its way while the core goes on to the next rings.
		seen := max(done, at+w.core.Draw(cfg.Miss))
		done = seen + w.core.Draw(cfg.Dequeue) + 2*w.core.Draw(cfg.Publish)
		start, read := w.core.Run(now, seen)
		_, end := w.core.Run(now, done)
		k := w.b.kind(stage.CPUDequeue)
		k.Wait = uint8(stage.CPUWait)
		m.c = rec.Span(m.c, k, max(start, read.Add(-cfg.Miss.Mean())), end, 0)
		visible := end.Add(w.core.Draw(cfg.Rewrite))
		m.c = rec.Span(m.c, w.b.kind(stage.CPUPublish), end, visible, 0)
		eng.At(visible, w.hDone, uint32(ring))
	}
	if !found {
		w.busy = false
		w.wait.Begin(now, w.look())
		return
	}
	_, end := w.core.Run(now, max(at, done)+w.core.Draw(cfg.Loop))
	w.first = 0
	eng.At(end, w.hPass, 0)
}

type workerDone struct{ *proxyWorker }

// Handle has a completion visible in host memory.
func (h workerDone) Handle(ring uint32) {
	p := h.rings[ring]
	p.taken--
	p.complete(p.out[p.served].c)
}

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
	storing int            // of those, the completion is on its way
	issuing bool
	looking bool
	shared  bool // the GPU has read the completion's line since it was last stored
	hIssue  sim.HandlerID
}

type proxyMessage struct {
	c    sim.Cause
	done sim.Sink
	arg  uint32
	at   sim.Time // when its completion became visible
}

// proxyWorker is a CPU thread that looks at its rings in turn, takes one
// descriptor of each in a pass, and stores a completion. The core goes on to the
// next rings while the line of a descriptor that it expects is under way, as far as
// it has fill buffers. A descriptor that it did not expect ends what it did ahead
// meanwhile, but for the lines that it asked for.
type proxyWorker struct {
	b     *bench
	core  *cpu.Core
	wait  *cpu.Waiter
	fills *cpu.Fills
	guess cpu.Guess // whether a ring has a descriptor
	flush sim.Delay // what follows a look that the core did not expect to end so begins anew
	ahead int       // rings that the core looks at beyond one whose line is under way
	rings []*proxyBlock

	busy  bool
	first int // ring that the pass began at
	pos   int // rings looked at in it
	found bool
	began sim.Time
	free  sim.Time   // when the core is done with the last descriptor
	order sim.Time   // when the last completion was visible: stores keep their order
	lines []sim.Time // by ring, when a line asked for ahead is there; 0: none was
	timer sim.TimerID
	hWake sim.HandlerID
	hPass sim.HandlerID
	hLook sim.HandlerID
	hPut  sim.HandlerID
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
	clock, _ := clocks(c)
	ws := make([]*proxyWorker, min(n, workers))
	for i := range ws {
		w := &proxyWorker{b: b, core: b.node.Core(i), fills: cpu.NewFills(c.Count("hardware.cpu.fill_buffers")), ahead: c.Count("hardware.cpu.ahead"), flush: priced(c.Cost("hardware.cpu.mispredict"), clock)}
		w.wait = cpu.NewWaiter(w.core, &policy)
		w.hWake, w.hPass, w.hLook = b.run.Eng.Register(workerWakes{w}), b.run.Eng.Register(workerPasses{w}), b.run.Eng.Register(workerLooks{w})
		w.hPut, w.hDone = b.run.Eng.Register(workerPuts{w}), b.run.Eng.Register(workerDone{w})
		ws[i] = w
	}
	for i := range n {
		w := ws[i%len(ws)]
		p := &proxyBlock{b: b, sm: b.sm(), form: form, worker: w, ring: len(w.rings), shared: true}
		p.hIssue = b.run.Eng.Register(blockIssues{p})
		w.rings, w.lines = append(w.rings, p), append(w.lines, 0)
		s.agents = append(s.agents, p)
	}
	for _, w := range ws {
		w.wait.Begin(b.run.Eng.Now(), w.empty())
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
	p.looking, p.shared = false, true
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

// empty is the length of a pass that finds nothing.
func (w *proxyWorker) empty() sim.Duration {
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

// pass begins to look at each ring, from where the first descriptor was found.
func (w *proxyWorker) pass() {
	w.busy, w.found, w.pos, w.began = true, false, 0, w.b.run.Eng.Now()
	w.look()
}

type workerLooks struct{ *proxyWorker }

// Handle goes on with a pass.
func (h workerLooks) Handle(uint32) { h.look() }

// look goes on to the next ring that has a descriptor, or ends the pass.
func (w *proxyWorker) look() {
	eng, cfg := w.b.run.Eng, w.core.Config()
	now := eng.Now()
	var at sim.Duration // of the look, from now
	for w.pos < len(w.rings) {
		ring := (w.first + w.pos) % len(w.rings)
		w.pos++
		at += w.core.Draw(cfg.Check)
		has := w.rings[ring].waits()
		expected := w.guess.Next(has)
		if has {
			w.take(ring, at, expected)
			return
		}
		if !expected {
			at += w.core.Draw(w.flush)
		}
	}
	if !w.found {
		w.busy = false
		w.wait.Begin(w.began, w.empty())
		return
	}
	_, end := w.core.Run(max(now.Add(at), w.free), w.core.Draw(cfg.Loop))
	w.first = 0
	eng.At(end, w.hPass, 0)
}

// waits reports whether the ring has a descriptor that the worker has not taken.
func (p *proxyBlock) waits() bool { return p.put > p.served+p.taken }

// take serves the descriptor of a ring that the core looks at so long from now.
func (w *proxyWorker) take(ring int, at sim.Duration, expected bool) {
	eng, rec, cfg := w.b.run.Eng, w.b.run.Rec, w.core.Config()
	now, p := eng.Now(), w.rings[ring]
	w.found = true
	m := &p.out[p.served+p.taken]
	p.taken++
	asked, line := now.Add(at), w.lines[ring]
	if line == 0 {
		asked, line = w.fills.Take(asked, w.core.Draw(cfg.Miss))
	}
	w.lines[ring] = 0
	read := w.core.Available(max(line, now.Add(at), w.free))
	_, w.free = w.core.Run(read, w.core.Draw(cfg.Dequeue)+2*w.core.Draw(cfg.Publish))
	k := w.b.kind(stage.CPUDequeue)
	k.Wait = uint8(stage.CPUWait)
	m.c = rec.Span(m.c, k, read.Add(-cfg.Miss.Mean()), w.free, 0)
	eng.At(w.free, w.hPut, uint32(ring))
	if expected {
		eng.At(max(now.Add(at), asked), w.hLook, 0)
		return
	}
	// It took the ring for empty: of the next ones, it has asked for their lines.
	check := cfg.Check.Mean()
	for i := range min(w.ahead, len(w.rings)-w.pos) {
		t := now.Add(at + sim.Duration(i+1)*check)
		if t >= read {
			break
		}
		next := (w.first + w.pos + i) % len(w.rings)
		if w.lines[next] == 0 && w.rings[next].waits() {
			_, w.lines[next] = w.fills.Take(t, w.core.Draw(cfg.Miss))
		}
	}
	eng.At(w.free.Add(w.core.Draw(w.flush)), w.hLook, 0)
}

type workerPuts struct{ *proxyWorker }

// Handle has a completion stored: it is visible when the core has the line alone.
func (h workerPuts) Handle(ring uint32) {
	w, p, cfg := h.proxyWorker, h.rings[ring], h.core.Config()
	now := w.b.run.Eng.Now()
	visible := now
	if p.shared {
		p.shared = false
		_, visible = w.fills.Take(now, w.core.Draw(cfg.Rewrite))
	}
	w.order = max(w.order, visible)
	m := &p.out[p.served+p.storing]
	p.storing++
	m.c = w.b.run.Rec.Span(m.c, w.b.kind(stage.CPUPublish), now, w.order, 0)
	w.b.run.Eng.At(w.order, w.hDone, ring)
}

type workerDone struct{ *proxyWorker }

// Handle has a completion visible in host memory.
func (h workerDone) Handle(ring uint32) {
	p := h.rings[ring]
	p.taken--
	p.storing--
	p.complete(p.out[p.served].c)
}

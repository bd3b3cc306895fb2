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
	ring   int          // of the worker's
	loop   sim.Delay    // between the stores of one descriptor and the next's
	merge  *sim.Server  // all CTAs' writes become visible one after the other
	back   sim.Duration // a line taken back from a core

	out     []proxyMessage // from the oldest that is not completed on
	issued  int            // of out
	put     int            // of out, before the worker
	served  int            // of out, whose completion is visible
	taken   int            // by the worker, beside them
	coming  int            // whose last write waits for its turn, beside those put
	issuing bool
	looking bool
	ready   sim.Time // when the thread may issue again
	looked  sim.Time // when the worker last looked in a pass that found something
	since   sim.Time // when the line it looks at was last written, or is the one
	ahead   sim.Time // when that line is there that the core asked for ahead; 0: it did not
	hIssue  sim.HandlerID
	hPut    sim.HandlerID
}

type proxyMessage struct {
	c    sim.Cause
	done sim.Sink
	arg  uint32
	at   sim.Time // when its completion became visible
}

// proxyWorker is a CPU thread that looks at its rings in turn, takes one
// descriptor of each in a pass, and stores a completion. The core works ahead of a
// line that is under way, as far as its window reaches. A descriptor that it did not
// expect ends that work, but for the lines that it asked for.
type proxyWorker struct {
	b      *bench
	core   *cpu.Core
	wait   *cpu.Waiter
	guess  cpu.Guess    // whether a ring has a descriptor
	flush  sim.Delay    // of what the core did ahead
	window sim.Duration // work that it does ahead
	stream bool         // the prefetcher follows all rings
	rings  []*proxyBlock

	busy  bool
	first int // ring that the pass began at
	pos   int // rings looked at in it
	found bool
	began sim.Time     // of the pass, or of the first look that found nothing
	work  sim.Duration // that the core has begun
	lines []underWay   // of descriptors, oldest first, that it works ahead of
	read  sim.Time     // when the last descriptor was read: they are in order
	timer sim.TimerID
	hWake sim.HandlerID
	hPass sim.HandlerID
	hLook sim.HandlerID
	hDone sim.HandlerID
}

// underWay is a line that the core asked for when it had begun so much work.
type underWay struct {
	work  sim.Duration
	there sim.Time
}

func (b *bench) proxyEcho() (*step, error) {
	c := b.cfg
	n, workers, outstanding := c.Count("workload.initiators.ctas"), c.Count("host.proxy.threads"), c.Count("workload.outstanding")
	s := &step{metric: stage.RTT, window: outstanding, rate: true, sms: min(n, b.node.GPU.SMs), cores: float64(min(n, workers)), skew: c.Duration("hardware.gpu.start_skew")}
	s.title = fmt.Sprintf("%d CTAs hand descriptors to %d workers (%s), %d outstanding", n, workers, c.Enum("workload.descriptor"), outstanding)
	form := map[string]descriptor{"lanes": byLanes, "flag": byFlag, "thread": byThread}[c.Enum("workload.descriptor")]
	policy, err := waiting(c, 0)
	if err != nil {
		return nil, err
	}
	clock, _ := clocks(c)
	flush, window, streams := priced(c.Cost("hardware.cpu.mispredict"), clock), priced(c.Cost("hardware.cpu.window"), clock).Mean(), c.Count("hardware.cpu.streams")
	ws := make([]*proxyWorker, min(n, workers))
	for i := range ws {
		w := &proxyWorker{b: b, core: b.node.Core(i), flush: flush, window: window, stream: (n-i+len(ws)-1)/len(ws) <= streams}
		w.wait = cpu.NewWaiter(w.core, &policy)
		w.hWake, w.hPass, w.hLook, w.hDone = b.run.Eng.Register(workerWakes{w}), b.run.Eng.Register(workerPasses{w}), b.run.Eng.Register(workerLooks{w}), b.run.Eng.Register(workerDone{w})
		ws[i] = w
	}
	loop, merge, back := c.Delay("hardware.gpu.descriptor"), &sim.Server{}, c.Duration("hardware.host.pcie.retake")
	for i := range n {
		w := ws[i%len(ws)]
		p := &proxyBlock{b: b, sm: b.sm(), form: form, worker: w, ring: len(w.rings), loop: loop, merge: merge, back: back}
		p.hIssue, p.hPut = b.run.Eng.Register(blockIssues{p}), b.run.Eng.Register(blockPuts{p})
		w.rings = append(w.rings, p)
		s.agents = append(s.agents, p)
	}
	for _, w := range ws {
		w.began = b.run.Eng.Now()
		w.wait.Begin(w.began, w.empty())
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
	now := max(p.b.run.Eng.Now(), p.ready)
	end := now
	for range stores {
		end = end.Add(p.sm.Draw(p.sm.Config().HostStore))
	}
	p.ready = end.Add(p.sm.Draw(p.loop))
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
		e.Write(64, m.c, k, blockArrives{p}, wholeLine|lastPart)
	case byThread:
		for range 3 {
			e.Write(16, p.b.run.Owner, k, blockArrives{p}, 0)
		}
		e.Write(16, m.c, k, blockArrives{p}, lastPart)
	case byFlag:
		for range 4 {
			e.Write(16, p.b.run.Owner, k, blockArrives{p}, 0)
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
	p.b.edge().Write(8, c, p.b.kind(stage.PCIeNotify), blockArrives{p}, lastPart)
	p.issued++
	p.issue()
}

// What a write of a descriptor is.
const (
	wholeLine = 1 << iota
	lastPart
)

type blockArrives struct{ *proxyBlock }

// Done has a write at the memory, in the order of all writes.
func (v blockArrives) Done(what uint32, c sim.Cause) {
	p, now := v.proxyBlock, v.b.run.Eng.Now()
	var back sim.Duration
	if what&wholeLine == 0 && p.held() {
		back = p.back
	}
	_, at, _ := p.merge.Take(now, back, 0)
	if p.put == p.served+p.taken {
		p.since = at
	}
	if what&lastPart == 0 {
		return
	}
	m := &p.out[p.arrived()]
	m.c = p.b.run.Rec.Span(c, p.b.kind(stage.PCIeNotify), now, at, 0)
	p.coming++
	p.b.run.Eng.At(at, p.hPut, 0)
}

// arrived counts the descriptors of out whose last write has come.
func (p *proxyBlock) arrived() int { return p.put + p.coming }

// held reports whether the worker's core has the line that is written next: it has
// looked at it since it was last written.
func (p *proxyBlock) held() bool {
	return p.arrived() == p.served+p.taken && p.worker.lookedAt(p) > p.since
}

type blockPuts struct{ *proxyBlock }

// Handle has a descriptor where the worker looks.
func (v blockPuts) Handle(uint32) {
	v.coming--
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

// empty is the length of a pass that finds nothing.
func (w *proxyWorker) empty() sim.Duration { return w.offset(len(w.rings) - 1) }

// offset is how long after its begin a pass that finds nothing looks at a ring.
func (w *proxyWorker) offset(ring int) sim.Duration {
	cfg := w.core.Config()
	return cfg.Loop.Mean() + sim.Duration(ring+1)*cfg.Check.Mean()
}

// lookedAt returns when the worker last looked at a ring.
func (w *proxyWorker) lookedAt(p *proxyBlock) sim.Time {
	if w.busy {
		return p.looked
	}
	now, at, look := w.b.run.Eng.Now(), w.began.Add(w.offset(p.ring)), w.empty()
	if now < at {
		return p.looked
	}
	return at.Add(now.Sub(at) / look * look)
}

// notice tells the worker of a descriptor in a ring.
func (w *proxyWorker) notice(ring int) {
	if w.busy {
		return
	}
	at, moved, _ := w.wait.Notice(w.b.run.Eng.Now(), w.offset(ring))
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
	cfg := w.core.Config()
	at := w.core.Available(w.b.run.Eng.Now())
	for w.pos < len(w.rings) {
		p := w.rings[(w.first+w.pos)%len(w.rings)]
		w.pos++
		check := w.core.Draw(cfg.Check)
		w.work += check
		at = max(at, w.reach()).Add(check)
		p.looked = at
		has := p.waits()
		expected := w.guess.Next(has)
		if has {
			w.take(p, at, expected)
			return
		}
		if !expected {
			at = at.Add(w.core.Draw(w.flush))
		}
	}
	if !w.found {
		w.busy = false
		w.wait.Begin(w.began, w.empty())
		return
	}
	w.first = 0
	w.b.run.Eng.At(at.Add(w.core.Draw(cfg.Loop)), w.hPass, 0)
}

// reach returns when the core may go on: its work ahead of each line under way is
// within the window.
func (w *proxyWorker) reach() (t sim.Time) {
	n := 0
	for n < len(w.lines) && w.work-w.lines[n].work > w.window {
		t = w.lines[n].there
		n++
	}
	w.lines = w.lines[:copy(w.lines, w.lines[n:])]
	return t
}

// waits reports whether the ring has a descriptor that the worker has not taken.
func (p *proxyBlock) waits() bool { return p.put > p.served+p.taken }

// take serves the descriptor of a ring that the core looks at at that time.
func (w *proxyWorker) take(p *proxyBlock, at sim.Time, expected bool) {
	eng, rec, cfg := w.b.run.Eng, w.b.run.Rec, w.core.Config()
	w.found = true
	m := &p.out[p.served+p.taken]
	p.taken++
	line := p.ahead
	if line == 0 {
		line = at.Add(w.core.Draw(cfg.Miss))
	}
	p.ahead = 0
	w.read = w.core.Available(max(line, at, w.read))
	w.lines = append(w.lines, underWay{w.work, w.read})
	work := w.core.Draw(cfg.Dequeue) + 2*w.core.Draw(cfg.Publish)
	w.work += work
	_, end := w.core.Run(w.read, work)
	k := w.b.kind(stage.CPUDequeue)
	k.Wait = uint8(stage.CPUWait)
	m.c = rec.Span(m.c, k, min(w.read, max(at, w.read.Add(-cfg.Miss.Mean()))), end, 0)
	visible := end.Add(w.core.Draw(cfg.Rewrite))
	m.c = rec.Span(m.c, w.b.kind(stage.CPUPublish), end, visible, 0)
	eng.At(visible, w.hDone, uint32(p.ring))
	p.since = end // the next line is the one that it looks at
	if p.waits() && w.stream {
		p.ahead = w.read.Add(w.core.Draw(cfg.Stream))
	}
	if expected {
		eng.At(at.Add(work), w.hLook, 0)
		return
	}
	// It took the ring for empty: of the next ones, it has asked for their lines.
	for i := w.pos; i < len(w.rings); i++ {
		t := at.Add(sim.Duration(i-w.pos+1) * cfg.Check.Mean())
		if t >= w.read || t.Sub(at) > w.window {
			break
		}
		if next := w.rings[(w.first+i)%len(w.rings)]; next.ahead == 0 && next.waits() {
			next.ahead = t.Add(w.core.Draw(cfg.Miss))
		}
	}
	eng.At(end.Add(w.core.Draw(w.flush)), w.hLook, 0)
}

type workerDone struct{ *proxyWorker }

// Handle has a completion visible in host memory.
func (h workerDone) Handle(ring uint32) {
	p := h.rings[ring]
	p.taken--
	p.complete(p.out[p.served].c)
}

package path

import (
	"gdisim/model/gpu"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// thread executes the steps of a GPU thread. Steps that touch nothing shared
// only move its own clock on; the others first let the engine catch up.
type thread struct {
	env    *Env
	node   *Node
	kinds  *kindTable
	sm     *gpu.SM
	h      sim.HandlerID
	client Client
	acts   actions

	prog   []Step
	pc     int
	loads  int // of the present step from host memory, done
	t      sim.Time
	settle sim.Time
	c      sim.Cause
	built  sim.Time // when the last WQE's stores were issued
	stored bool     // something since the last fence
	state  threadState

	acquires bool
	fences   bool     // a full fence at system scope ends the wait for a message
	begin    sim.Time // of polling
	inbox    sim.FIFO[sim.Cause]
	waitData bool
	looksIn  pcie.Unit // where the word lies that the thread polls for a message

	// Lines of host memory that only this thread reads: its payload's, and the word
	// that tells it of a message.
	payload, data hostReader

	host struct { // polling a word in host memory
		read  *hostReader
		there bool // it held what is waited for from the start
		stage stage.Stage
		next  threadState // when the word has been seen; idle: seen
	}
}

type threadState uint8

const (
	idle    threadState = iota
	running             // executing steps; the engine has caught up when it resumes
	parked              // waits for a lock, a turn or room
	polling
	loading // a load from host memory is a step of the program
	pollingHost
	seen   // the look that succeeds has been computed
	looked // so has that of a step of the program, which goes on
	seenData
)

// actions are the steps that differ between the protocols.
type actions interface {
	// shared executes a step at the engine's time; it reports whether the
	// thread goes on now.
	shared(s *Step) bool
	// rings reports whether this post stores to the doorbell.
	rings(s *Step) bool
	// stores reports whether building leaves stores outstanding (a WQE does, a
	// descriptor in registers does not).
	stores() bool
	// ended is called when the program is over; it reports whether that was a
	// post (and not the steps of a completion routine).
	ended() bool
	// unfenced is told that a fault left out the fence before what publishes.
	unfenced()
}

func (t *thread) init(env *Env, node *Node, kinds *kindTable, sm *gpu.SM, client Client, acts actions) {
	t.env, t.node, t.kinds, t.sm, t.client, t.acts = env, node, kinds, sm, client, acts
	t.h = env.Eng.Register(resume{t})
}

// start runs the program from now on.
func (t *thread) start(c sim.Cause, prog []Step) {
	t.prog, t.pc, t.c = prog, 0, c
	t.t = t.env.Eng.Now()
	t.settle = t.t
	t.state = running
	t.run()
}

type resume struct{ *thread }

// Handle goes on at the time that was asked for.
func (r resume) Handle(uint32) {
	t := r.thread
	switch t.state {
	case running, parked, looked:
		t.state, t.t = running, t.env.Eng.Now()
		t.run()
	case loading:
		t.readHost(t.prog[t.pc].Stage)
	case seen:
		t.state = idle
		t.client.Completed(t.c)
	case seenData:
		t.state = idle
		t.client.Observed(t.c)
	}
}

// spend records d of a stage on the thread's own clock.
func (t *thread) spend(s stage.Stage, d sim.Duration) {
	if d <= 0 {
		return
	}
	end := t.t.Add(d)
	t.c = t.env.Rec.Span(t.c, t.kinds[s], t.t, end, 0)
	t.t = end
}

// waited records that the thread was held until now.
func (t *thread) waited(s stage.Stage, by sim.Op) {
	now := t.env.Eng.Now()
	if now > t.t {
		t.c = t.env.Rec.Span(t.c, t.kinds[s], now, now, by)
	}
	t.t = now
}

// ahead asks the engine to catch up with the thread's clock, if need be.
func (t *thread) ahead() bool {
	if t.t > t.env.Eng.Now() {
		t.env.Eng.At(t.t, t.h, 0)
		return true
	}
	return false
}

func (t *thread) run() {
	cfg := t.sm.Config()
	for t.pc < len(t.prog) {
		s := &t.prog[t.pc]
		switch s.Do {
		case DoCall:
			t.times(s, cfg.Call)
		case DoConst:
			t.times(s, cfg.L1Hit)
		case DoReadOnly:
			t.times(s, cfg.ReadOnlyHit)
		case DoLoad:
			t.spend(s.Stage, t.sm.Load(s.Line, s.N))
		case DoReload:
			t.spend(s.Stage, t.sm.Reload(s.Line, s.N))
		case DoCheck:
			t.settle = t.t.Add(t.sm.Draw(cfg.L2Load))
		case DoSettle:
			t.spend(s.Stage, t.settle.Sub(t.t))
		case DoFresh:
			t.times(s, cfg.L2Load)
		case DoBuild:
			t.times(s, cfg.Build)
			t.built, t.stored = t.t, t.stored || t.acts.stores()
		case DoInline:
			t.spend(s.Stage, t.sm.Copy(4*int64(s.N)))
		case DoSyncWarp:
			t.times(s, cfg.SyncWarp)
		case DoAcquire:
			t.spend(s.Stage, t.sm.Acquire())
		case DoRecord:
			t.times(s, cfg.Record)
			t.stored = true
		case DoRing:
			if t.acts.rings(s) {
				t.spend(s.Stage, t.sm.Draw(cfg.Ring))
			}
		case DoHostStore, DoSlot:
			t.times(s, cfg.HostStore)
		case DoStores:
			t.times(s, cfg.HostStore)
			t.stored = true
		case DoVisit:
			for range s.N {
				t.spend(s.Stage, t.sm.Draw(cfg.L2Load)+2*t.sm.Draw(cfg.L1Hit)+t.sm.Draw(cfg.L2Load))
			}
		case DoFence:
			if s.Stage == stage.GPUFence && t.node.Faults.DropFence.Strikes(t.env.Eng.Now()) {
				t.acts.unfenced()
				break
			}
			if s.Scope == gpu.ScopeSystem && t.ahead() {
				return
			}
			if s.Scope == gpu.ScopeCTA {
				t.times(s, cfg.FenceCTA)
				break
			}
			t.spend(s.Stage, t.sm.Fence(s.Scope, s.Full, t.stored, t.backlog(s.Scope)))
			t.stored = false
		default:
			if t.ahead() {
				return
			}
			if !t.acts.shared(s) {
				return
			}
		}
		t.pc++
	}
	if t.ahead() {
		return
	}
	t.state = idle
	if t.acts.ended() {
		t.client.Posted(t.c)
	}
}

func (t *thread) times(s *Step, d sim.Delay) {
	var sum sim.Duration
	for range s.N {
		sum += t.sm.Draw(d)
	}
	t.spend(s.Stage, sum)
}

func (t *thread) backlog(s gpu.Scope) sim.Duration {
	if s != gpu.ScopeSystem {
		return 0
	}
	return t.node.drain(t.sm)
}

// caughtUp records that c's operation was over before the thread noticed, now.
func (t *thread) caughtUp(c sim.Cause) sim.Cause {
	now := t.env.Eng.Now()
	return t.env.Rec.Span(c, t.kinds[stage.GPUPoll], now, now, 0)
}

// look computes when the thread, polling a word in GPU memory since begin,
// knows of what became visible now, and resumes it in the given state.
func (t *thread) look(k stage.Stage, c sim.Cause, next threadState) {
	now := t.env.Eng.Now()
	t.c = join(t.env.Rec, t.c, c, t.kinds[k], now)
	if next == running { // a step of a completion routine, whose further steps are listed
		end := t.sm.SeenBy(t.begin, now, t.prog[t.pc].N)
		t.c = t.env.Rec.Span(t.c, t.kinds[k], now, end, 0)
		t.pc++
		t.state = running
		t.env.Eng.At(end, t.h, 0)
		return
	}
	end := t.sm.Seen(t.begin, now).Add(t.settleLook(next))
	t.c = t.env.Rec.Span(t.c, t.kinds[k], now, end, 0)
	t.state = next
	t.env.Eng.At(end, t.h, 0)
}

// settleLook is what follows the look that succeeded, until the thread goes on.
func (t *thread) settleLook(next threadState) sim.Duration {
	d := t.sm.Draw(t.sm.Config().Routine)
	switch {
	case t.fences && next == seenData:
		d += t.sm.Fence(gpu.ScopeSystem, true, false, t.backlog(gpu.ScopeSystem))
	case t.acquires:
		d += t.sm.Acquire()
	}
	return d
}

// AwaitData polls until the next message has landed.
func (t *thread) AwaitData(c sim.Cause) {
	t.c = c
	t.begin = t.env.Eng.Now()
	there := t.inbox.Len() > 0
	t.waitData, t.state = !there, polling
	if t.looksIn == pcie.Host {
		t.pollHost(stage.GPUObserve, &t.data, there)
	}
	if there {
		t.observe(t.inbox.Pop())
	}
}

// observe has the thread, which polls for it, see a message that is visible.
func (t *thread) observe(c sim.Cause) {
	if t.looksIn == pcie.Host {
		t.host.next = seenData
		t.hostArrived(c)
		return
	}
	t.look(stage.GPUObserve, c, seenData)
}

// Done is a message for this thread, visible where it lands.
func (l landing) Done(_ uint32, c sim.Cause) {
	t := l.thread
	if !t.waitData {
		t.inbox.Push(c)
		return
	}
	t.waitData = false
	t.observe(c)
}

type landing struct{ *thread }

// pollHost polls a word in host memory, one PCIe read after the other, until
// hostArrived is called for it. No event stands for the reads: their period is
// known, and nothing ties its phase to what they wait for unless that is there.
func (t *thread) pollHost(k stage.Stage, r *hostReader, there bool) {
	t.state = pollingHost
	t.host.stage, t.host.read, t.host.there, t.begin = k, r, there, t.env.Eng.Now()
	t.node.beginRead(r)
}

// hostArrived says that what the thread polls host memory for is visible now:
// it is seen at the end of the first read that samples it.
func (t *thread) hostArrived(c sim.Cause) {
	now := t.env.Eng.Now()
	t.c = join(t.env.Rec, t.c, c, t.kinds[t.host.stage], now)
	period := t.node.readTime(t.host.read.word)
	t.node.endRead(t.host.read)
	cfg := t.sm.Config()
	var acquire sim.Duration
	if t.acquires {
		acquire = t.sm.Draw(cfg.HostAcquire)
	}
	end := t.begin.Add(period)
	if !t.host.there {
		end = max(end, now.Add(t.sm.Phase(period+acquire)+t.node.idleRead()/2))
	}
	t.state = seen
	if t.host.next != idle {
		t.state, t.host.next = t.host.next, idle
	}
	end = end.Add(acquire + t.settleLook(t.state))
	t.c = t.env.Rec.Span(t.c, t.kinds[t.host.stage], now, end, 0)
	t.env.Eng.At(end, t.h, 0)
}

// loadHost is a load from host memory as a step of the program.
func (t *thread) loadHost(k stage.Stage, r *hostReader) {
	t.state, t.host.read = loading, r
	t.node.beginRead(r)
	if wait := t.node.readTime(r.word) - t.node.idleRead(); wait > 0 {
		t.env.Eng.After(wait, t.h, 0)
		return
	}
	t.readHost(k)
}

func (t *thread) readHost(k stage.Stage) {
	t.node.Bus.Read(pcie.GPU, pcie.Host, 8, t.c, t.kinds[k], hostLoaded{t}, 0)
}

type hostLoaded struct{ *thread }

// Done is the load's data.
func (l hostLoaded) Done(_ uint32, c sim.Cause) {
	t := l.thread
	t.node.endRead(t.host.read)
	t.c, t.t = c, t.env.Eng.Now()
	if t.loads++; t.loads < t.prog[t.pc].N {
		t.loadHost(t.prog[t.pc].Stage, t.host.read)
		return
	}
	t.loads = 0
	t.sm.Warm(t.prog[t.pc].Line)
	t.state = running
	t.pc++
	t.run()
}

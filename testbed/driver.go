package testbed

import (
	"fmt"

	"gdisim/model/cpu"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// leg is a part of what a CPU thread asks of the GPU's driver and waits for.
type leg struct {
	do    legKind
	stage stage.Stage
	d     sim.Delay
	n     int64 // bytes; or the number of times
}

type legKind uint8

const (
	legWait      legKind = iota // d passes, on the GPU or on its way
	legCall                     // d of the CPU thread's core, n times
	legStore                    // the GPU stores a word to the host
	legSee                      // the polling CPU thread sees it
	legInterrupt                // the GPU interrupts; the sleeping CPU thread runs again
	legToHost                   // n bytes by a copy engine
	legToGPU
	legDirty // the same to the host, whose lines a core has just written
)

// driver is a CPU thread that repeats a sequence of legs. Before it the thread
// sleeps or waits through a kernel's length.
type driver struct {
	b     *bench
	core  *cpu.Core
	sleep *cpu.Waiter // nil: it polls
	legs  []leg
	pc    int
	first sim.Duration // that the kernel takes, and its last store until it is seen

	dirty *sim.Pipe // takes lines that a core holds; nil: it holds none
	held  int64     // bytes of a copy's target that it holds

	left   int64 // bytes of a copy that are not there yet
	asked  int64 // that a copy has under way or done
	c      sim.Cause
	done   sim.Sink
	arg    uint32
	h      sim.HandlerID
	hPiece sim.HandlerID
}

func (b *bench) driver(legs []leg) *driver {
	d := &driver{b: b, core: b.node.Core(0), legs: legs}
	d.h, d.hPiece = b.run.Eng.Register(d), b.run.Eng.Register(driverPiece{d})
	return d
}

// repeats is the step of one driver.
func (d *driver) repeats(title string) *step {
	return &step{title: title, metric: stage.Latency, agents: []workload.Operation{d}, cores: 1, sms: 1}
}

// Prepare is the kernel that runs before.
func (d *driver) Prepare() sim.Duration {
	if d.sleep != nil {
		d.sleep.Begin(d.b.run.Eng.Now(), 0)
	}
	return d.first
}

// Begin goes through the legs.
func (d *driver) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	d.c, d.done, d.arg, d.pc = c, done, arg, 0
	d.next()
}

// Handle has a leg over.
func (d *driver) Handle(uint32) {
	d.pc++
	d.next()
}

// Done has a store or a piece of a copy in its memory.
func (d *driver) Done(_ uint32, c sim.Cause) {
	if l := &d.legs[d.pc]; l.do == legStore {
		d.c = c
		d.Handle(0)
		return
	}
	d.piece()
}

func (d *driver) next() {
	if d.pc == len(d.legs) {
		d.done.Done(d.arg, d.c)
		return
	}
	l := &d.legs[d.pc]
	now := d.b.run.Eng.Now()
	cfg := d.core.Config()
	switch l.do {
	case legWait:
		d.span(l.stage, now, now.Add(l.d.Draw(d.b.node.Rand)))
	case legCall:
		var work sim.Duration
		for range max(1, l.n) {
			work += d.core.Draw(l.d)
		}
		start, end := d.core.Run(now, work)
		d.span(l.stage, start, end)
	case legStore:
		d.b.edge().Write(8, d.c, d.b.kind(stage.PCIeNotify), d, 0)
	case legSee:
		start, end := d.core.Run(now, d.core.Within(d.core.Draw(cfg.Loop)+d.core.Draw(cfg.Check))+d.core.Draw(cfg.Miss))
		d.span(stage.CPUPoll, start, end)
	case legInterrupt:
		at, _, _ := d.sleep.Notice(now, 0)
		at = max(at, d.sleep.Wake(max(now, at)))
		d.span(stage.CPUInterrupt, now, max(now, at).Add(d.core.Draw(cfg.Remote)))
	case legToHost, legToGPU, legDirty:
		d.left, d.asked = l.n, 0
		d.c = d.b.run.Rec.Span(d.c, d.b.kind(stage.GPUCopy), now, now, 0)
		d.copy()
	}
}

func (d *driver) span(s stage.Stage, start, end sim.Time) {
	k := d.b.kind(s)
	k.Wait = uint8(stage.CPUWait)
	d.c = d.b.run.Rec.Span(d.c, k, start, end, 0)
	d.b.run.Eng.At(end, d.h, 0)
}

// copy asks for as many pieces as the engine has under way.
func (d *driver) copy() {
	l := &d.legs[d.pc]
	cfg := d.b.edge().Config()
	window := cfg.CopyWrites
	if l.do == legToGPU {
		window = cfg.CopyReads
	}
	for d.asked < l.n && d.asked-(l.n-d.left) < window {
		n := min(cfg.CopyChunk, l.n-d.asked)
		d.asked += n
		k := d.b.kind(stage.GPUCopy)
		if l.do == legToGPU {
			d.b.edge().Read(n, d.b.run.Owner, k, d, 0)
		} else {
			d.b.node.Bus.Write(pcie.GPU, pcie.Host, n, d.b.run.Owner, k, d, 0)
		}
	}
}

// piece counts a piece of the copy in, once the cores have given up its lines.
func (d *driver) piece() {
	l := &d.legs[d.pc]
	n := min(d.b.edge().Config().CopyChunk, d.left)
	if l.do == legDirty && l.n-d.left < d.held {
		now := d.b.run.Eng.Now()
		if _, end, _ := d.dirty.Take(now, n, 0); end > now {
			d.b.run.Eng.At(end, d.hPiece, 0)
			return
		}
	}
	d.arrived(n)
}

type driverPiece struct{ *driver }

// Handle has a piece in memory whose lines a core held.
func (p driverPiece) Handle(uint32) { p.arrived(min(p.b.edge().Config().CopyChunk, p.left)) }

func (d *driver) arrived(n int64) {
	if d.left -= n; d.left > 0 {
		d.copy()
		return
	}
	now := d.b.run.Eng.Now()
	d.c = d.b.run.Rec.Span(d.c, d.b.kind(stage.GPUCopy), now, now, 0)
	d.Handle(0)
}

// trip is what a store of the GPU takes until a polling CPU thread has seen it.
func (d *driver) trip() sim.Duration {
	cfg := d.core.Config()
	return d.b.node.Bus.OneWay(pcie.GPU, pcie.Host, 8) + (cfg.Loop.Mean()+cfg.Check.Mean())/2 + cfg.Miss.Mean()
}

// launch is a kernel launch, or that of a graph of kernels, until something of it
// is known to the CPU.
func (b *bench) launch() (*step, error) {
	c := b.cfg
	graph, until := c.Count("workload.graph"), c.Enum("workload.until")
	call := c.Delay("hardware.cpu.call.launch")
	title := "a kernel's launch until " + until
	rest := sim.Fixed(max(0, c.Delay("hardware.gpu.launch").Mean()-call.Mean()))
	if graph > 0 {
		call = c.Delay("hardware.cpu.call.graph")
		title = fmt.Sprintf("launch of a graph of %d kernels until %s", graph, until)
	}
	legs := []leg{{do: legCall, stage: stage.CPUCall, d: call}, {do: legWait, stage: stage.GPULaunch, d: rest}}
	for range max(0, graph-1) {
		legs = append(legs, leg{do: legWait, stage: stage.GPULaunch, d: c.Delay("hardware.gpu.stream.launch")})
	}
	d := b.driver(nil)
	switch until {
	case "first-store":
		if graph > 1 {
			return nil, refuse("workload.until", "first-store with a graph of %d kernels (want stream-sync)", graph)
		}
		legs = append(legs, leg{do: legStore}, leg{do: legSee})
	case "stream-sync":
		legs = append(legs, leg{do: legWait, stage: stage.GPUKernelExit, d: c.Delay("hardware.gpu.kernel_exit")})
	default:
		d.sleeps()
		legs = append(legs, leg{do: legWait, stage: stage.GPUKernelExit, d: c.Delay("hardware.gpu.stream.exit")}, leg{do: legInterrupt})
	}
	d.legs = legs
	return d.repeats(title), nil
}

// notice is how long after a polling thread would have seen a kernel's last store
// the CPU knows by other means that the kernel has ended.
func (b *bench) notice() (*step, error) {
	c := b.cfg
	d := b.driver(nil)
	trip := d.trip()
	d.first = c.Duration("workload.after") + trip
	// The end of the kernel goes on while its last store travels.
	rest := func(key string) leg {
		return leg{do: legWait, stage: stage.GPUKernelExit, d: sim.Fixed(max(0, c.Delay("hardware.gpu."+key).Mean()-trip))}
	}
	by := "stream-sync"
	if c.Has("workload.by") {
		by = c.Enum("workload.by")
	}
	switch by {
	case "next-kernel":
		d.legs = []leg{rest("stream.exit"), {do: legWait, stage: stage.GPULaunch, d: c.Delay("hardware.gpu.stream.launch")}, {do: legStore}, {do: legSee}}
	case "stream-write":
		d.legs = []leg{rest("stream.exit"), {do: legWait, stage: stage.GPUStore, d: c.Delay("hardware.gpu.stream.op")}, {do: legStore}, {do: legSee}}
	case "stream-sync", "event-sync":
		d.legs = []leg{rest("kernel_exit")}
	case "event-query":
		d.legs = []leg{rest("kernel_exit"), {do: legCall, stage: stage.CPUCall, d: c.Delay("hardware.cpu.call.query")}}
	case "copy":
		d.legs = []leg{rest("stream.exit"), {do: legWait, stage: stage.GPUCopy, d: c.Delay("hardware.gpu.copy.behind")}, {do: legToHost, n: 8}, {do: legSee}}
	case "blocking-event":
		d.sleeps()
		d.legs = []leg{rest("stream.exit"), {do: legInterrupt}}
	case "host-callback":
		d.sleeps()
		d.legs = []leg{rest("stream.exit"), {do: legInterrupt}, {do: legCall, stage: stage.CPUCall, d: c.Delay("hardware.cpu.call.callback")}}
	}
	return d.repeats(fmt.Sprintf("end of a kernel of %v known by %s", c.Duration("workload.after"), by)), nil
}

// sleeps makes the thread ask for an interrupt and sleep.
func (d *driver) sleeps() { d.sleep = cpu.NewWaiter(d.core, &cpu.Policy{Waiting: cpu.Interrupt}) }

// copyEngine is a copy through pinned host memory by a copy engine, call included.
func (b *bench) copyEngine() (*step, error) {
	c := b.cfg
	n, call, start := c.Bytes("workload.bytes"), c.Delay("hardware.cpu.call.copy"), c.Delay("hardware.gpu.copy.start")
	direction := c.Enum("workload.direction")
	if direction == "receive" || direction == "both" {
		return nil, refuse("workload.direction", "%s for kind copy (want to-host or to-gpu)", direction)
	}
	toHost, polled := direction != "to-gpu", c.Enum("workload.seen_by") == "poll"
	d := b.driver([]leg{{do: legCall, stage: stage.CPUCall, d: call}, {do: legWait, stage: stage.GPUCopy, d: start}})
	move, known := leg{do: legToHost, n: n}, c.Delay("hardware.gpu.copy.to_host").Mean()-b.node.Bus.OneWay(pcie.GPU, pcie.Host, 8)
	switch {
	case toHost && polled: // the target was written by the core that looks
		move.do = legDirty
		d.dirty, d.held = sim.NewPipe(c.Rate("hardware.host.dirty_rate")), c.Bytes("hardware.cpu.l2")
		d.legs = append(d.legs, move, leg{do: legSee})
		return d.copies(n, toHost, polled), nil
	case polled:
		return nil, refuse("workload.seen_by", "poll with direction to-gpu (want sync)")
	case !toHost:
		move.do, known = legToGPU, c.Delay("hardware.gpu.copy.to_gpu").Mean()-b.node.Bus.RoundTrip(pcie.GPU, pcie.Host, 8)
	}
	rest := sim.Fixed(max(0, known-call.Mean()-start.Mean()))
	if toHost || n > c.Bytes("hardware.gpu.copy.inline") {
		d.legs = append(d.legs, move)
	}
	d.legs = append(d.legs, leg{do: legWait, stage: stage.GPUKernelExit, d: rest})
	return d.copies(n, toHost, polled), nil
}

func (d *driver) copies(n int64, toHost, polled bool) *step {
	s := d.repeats(fmt.Sprintf("copy of %d B to the %s, known by %s", n, map[bool]string{true: "host", false: "GPU"}[toHost], map[bool]string{true: "polling the last byte", false: "stream sync"}[polled]))
	s.bytes, s.sms = n, 0
	return s
}

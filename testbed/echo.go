package testbed

import (
	"gdisim/model/cpu"
	"gdisim/model/gpu"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// flagEcho is a GPU thread and a CPU thread that answer each other by flags in
// host memory.
type flagEcho struct {
	b       *bench
	sm      *gpu.SM
	core    *cpu.Core
	flag    gpuFlag
	fromCPU bool
	release bool
	look    sim.Duration // before the GPU thread's first look
	state   echoState
	c       sim.Cause
	done    sim.Sink
	arg     uint32
	h, wake sim.HandlerID
}

// echoState is what the exchange's next event ends.
type echoState uint8

const (
	echoGPUStore echoState = iota // the GPU's flag is issued
	echoCPUWait                   // the CPU looks
	echoCPULook                   // the CPU has the line of the GPU's flag
	echoCPUStore                  // the CPU's flag is in host memory
)

func (b *bench) flagEcho() (*step, error) {
	c := b.cfg
	f := &flagEcho{
		b: b, sm: b.sm(), core: b.node.Core(0), fromCPU: c.Enum("workload.from") == "cpu", release: c.Enum("workload.release") == "system", look: c.Duration("workload.look_after"),
	}
	if f.fromCPU && f.look > 0 {
		return nil, refuse("workload.look_after", "%v with from cpu, whose GPU thread looks all the time (want from gpu)", f.look)
	}
	f.h, f.wake = b.run.Eng.Register(f), b.run.Eng.Register(echoLooks{f})
	f.flag.init(b, f)
	title := "flags between GPU and CPU, the GPU asks"
	if f.fromCPU {
		title = "flags between GPU and CPU, the CPU asks"
		f.flag.await()
	}
	if f.release {
		title += ", the GPU fences before its flag"
	}
	return &step{title: title, metric: stage.RTT, agents: []workload.Operation{f}, sms: 1, cores: 1}, nil
}

// Begin asks.
func (f *flagEcho) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	f.c, f.done, f.arg = c, done, arg
	if f.fromCPU {
		f.onCore(stage.CPUPublish, f.core.Draw(f.core.Config().Rewrite)+f.core.Draw(f.core.Config().Publish), echoCPUStore)
		return
	}
	f.answer()
}

// answer stores the GPU's flag.
func (f *flagEcho) answer() {
	if f.release {
		f.b.fenceSystem(f.c, true, echoFenced{f}, 0)
		return
	}
	f.store()
}

type echoFenced struct{ *flagEcho }

// Done is the end of the fence before the GPU's flag.
func (e echoFenced) Done(_ uint32, c sim.Cause) {
	e.c = c
	e.store()
}

func (f *flagEcho) store() {
	now := f.b.run.Eng.Now()
	end := now.Add(f.sm.Draw(f.sm.Config().HostStore))
	f.c = f.b.run.Rec.Span(f.c, f.b.kind(stage.GPUStore), now, end, 0)
	f.state = echoGPUStore
	f.b.run.Eng.At(end, f.h, 0)
}

// onCore is work of the CPU thread.
func (f *flagEcho) onCore(s stage.Stage, d sim.Duration, next echoState) {
	start, end := f.core.Run(f.b.run.Eng.Now(), d)
	k := f.b.kind(s)
	k.Wait = uint8(stage.CPUWait)
	f.c = f.b.run.Rec.Span(f.c, k, start, end, 0)
	f.state = next
	f.b.run.Eng.At(end, f.h, 0)
}

// Handle goes on in the exchange.
func (f *flagEcho) Handle(uint32) {
	cfg := f.core.Config()
	switch f.state {
	case echoGPUStore:
		f.b.edge().Write(8, f.c, f.b.kind(stage.PCIeNotify), echoVisible{f}, 0)
		if !f.fromCPU && f.look > 0 {
			f.b.run.Eng.After(f.look, f.wake, 0)
		} else {
			f.flag.await()
		}
	case echoCPUWait:
		f.onCore(stage.CPUPoll, f.core.Draw(cfg.Miss), echoCPULook)
	case echoCPULook:
		if f.fromCPU {
			f.done.Done(f.arg, f.c)
			return
		}
		f.onCore(stage.CPUPublish, f.core.Draw(cfg.Rewrite)+f.core.Draw(cfg.Publish), echoCPUStore)
	case echoCPUStore:
		f.flag.set(f.c)
	}
}

type echoLooks struct{ *flagEcho }

// Handle is the GPU thread's first look after its pause.
func (e echoLooks) Handle(uint32) { e.flag.await() }

type echoVisible struct{ *flagEcho }

// Done has the GPU's flag where the CPU thread polls; it may be anywhere in its
// loop.
func (e echoVisible) Done(_ uint32, c sim.Cause) {
	f := e.flagEcho
	f.c = c
	cfg := f.core.Config()
	f.onCore(stage.CPUWait, f.core.Within(f.core.Draw(cfg.Loop)+f.core.Draw(cfg.Check)), echoCPUWait)
}

// Done has the CPU's flag seen by the GPU thread.
func (f *flagEcho) Done(_ uint32, c sim.Cause) {
	f.c = c
	if f.fromCPU {
		f.answer()
		return
	}
	f.done.Done(f.arg, c)
}

// gpuFlag is a word in host memory that a GPU thread waits for, one PCIe read
// after the other: it is seen by the end of the first read that samples it.
type gpuFlag struct {
	b     *bench
	seen  sim.Sink
	isSet bool
	setAt sim.Time
	c     sim.Cause
}

func (g *gpuFlag) init(b *bench, seen sim.Sink) { g.b, g.seen = b, seen }

// await begins to look.
func (g *gpuFlag) await() {
	g.b.edge().Read(8, g.b.run.Owner, g.b.kind(stage.GPUPoll), g, 0)
}

// set is the store that sets the flag, now.
func (g *gpuFlag) set(c sim.Cause) { g.isSet, g.setAt, g.c = true, g.b.run.Eng.Now(), c }

// Done is the end of a look.
func (g *gpuFlag) Done(uint32, sim.Cause) {
	if !g.isSet || g.b.node.Bus.Sampled() < g.setAt {
		g.b.edge().Read(8, g.b.run.Owner, g.b.kind(stage.GPUPoll), g, 0)
		return
	}
	g.isSet = false
	g.seen.Done(0, g.b.run.Rec.Span(g.c, g.b.kind(stage.GPUPoll), g.setAt, g.b.run.Eng.Now(), 0))
}

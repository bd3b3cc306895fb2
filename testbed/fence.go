package testbed

import (
	"fmt"

	"gdisim/model/gpu"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// fence is a GPU thread that stores and then fences; only the fence is measured.
type fence struct {
	b      *bench
	sm     *gpu.SM
	scope  gpu.Scope
	stores int
	host   bool
	done   sim.Sink
	arg    uint32
	c      sim.Cause
	h      sim.HandlerID
	hStore sim.HandlerID
}

func (b *bench) fence() (*step, error) {
	c := b.cfg
	f := &fence{b: b, sm: b.sm(), stores: c.Count("workload.stores"), host: c.Enum("workload.memory") == "host"}
	word := c.Enum("workload.scope")
	switch word {
	case "block":
		f.scope = gpu.ScopeCTA
	case "gpu":
		f.scope = gpu.ScopeGPU
	default:
		f.scope = gpu.ScopeSystem
	}
	f.h, f.hStore = b.run.Eng.Register(f), b.run.Eng.Register(fenceStores{f})
	return &step{
		title: fmt.Sprintf("fence at %s scope after %d stores to %s memory", word, f.stores, c.Enum("workload.memory")), metric: stage.Latency,
		agents: []workload.Operation{f}, sms: 1,
	}, nil
}

// Prepare issues the stores.
func (f *fence) Prepare() sim.Duration {
	var d sim.Duration
	for range f.stores {
		if f.host {
			f.b.run.Eng.After(d, f.hStore, 0)
		}
		d += f.sm.Draw(f.sm.Config().HostStore)
	}
	return d
}

type fenceStores struct{ *fence }

// Handle is one of the stores to the host.
func (s fenceStores) Handle(uint32) {
	s.b.edge().Write(8, s.b.run.Owner, s.b.kind(stage.PCIeNotify), nobody{}, 0)
}

// Begin fences.
func (f *fence) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	f.done, f.arg, f.c = done, arg, c
	cfg := f.sm.Config()
	if f.scope == gpu.ScopeSystem {
		f.b.fenceSystem(c, true, done, arg)
		return
	}
	d := f.sm.Fence(f.scope, true, true, 0)
	if f.scope == gpu.ScopeGPU && f.stores == 0 {
		d = f.sm.Draw(cfg.ReleaseIdle) + f.sm.Draw(cfg.FullExtra)
	}
	f.spend(d)
}

func (f *fence) spend(d sim.Duration) {
	now := f.b.run.Eng.Now()
	f.c = f.b.run.Rec.Span(f.c, f.b.kind(stage.GPUFence), now, now.Add(d), 0)
	f.b.run.Eng.At(now.Add(d), f.h, 0)
}

// Handle ends the fence.
func (f *fence) Handle(uint32) { f.done.Done(f.arg, f.c) }

// fenceSystem is a fence at system scope: a trip to the GPU's edge and back.
func (b *bench) fenceSystem(c sim.Cause, full bool, done sim.Sink, arg uint32) {
	k := b.kind(stage.GPUFence)
	k.Wait = uint8(stage.GPUDrain)
	b.edge().Fence(c, k, full, done, arg)
}

// nobody waits for what it is told.
type nobody struct{}

// Done is told and forgets.
func (nobody) Done(uint32, sim.Cause) {}

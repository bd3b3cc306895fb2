package testbed

import (
	"fmt"

	"gdisim/model/gpu"
	"gdisim/model/pcie"
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
	ended  sim.HandlerID
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
	f.ended = b.run.Eng.Register(f)
	return &step{
		title: fmt.Sprintf("fence at %s scope after %d stores to %s memory", word, f.stores, c.Enum("workload.memory")), metric: stage.Latency,
		agents: []workload.Operation{f}, sms: 1,
	}, nil
}

// Prepare issues the stores.
func (f *fence) Prepare() sim.Duration {
	var d sim.Duration
	for range f.stores {
		d += f.sm.Draw(f.sm.Config().HostStore)
		if f.host {
			f.b.node.Bus.Write(pcie.GPU, pcie.Host, 8, f.b.run.Owner, f.b.kind(stage.PCIeNotify), nobody{}, 0)
		}
	}
	return d
}

// Begin fences.
func (f *fence) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	now := f.b.run.Eng.Now()
	end := now.Add(f.cost())
	f.done, f.arg, f.c = done, arg, f.b.run.Rec.Span(c, f.b.kind(stage.GPUFence), now, end, 0)
	f.b.run.Eng.At(end, f.ended, 0)
}

func (f *fence) cost() sim.Duration {
	cfg := f.sm.Config()
	switch {
	case f.scope == gpu.ScopeGPU && f.stores == 0:
		return f.sm.Draw(cfg.ReleaseIdle) + f.sm.Draw(cfg.FullExtra)
	case f.scope != gpu.ScopeSystem:
		return f.sm.Fence(f.scope, true, true, 0)
	}
	d := f.sm.Fence(f.scope, true, f.stores > 0, f.b.node.Bus.Backlog(pcie.GPU))
	if f.host && f.stores > 0 {
		d += f.sm.Draw(cfg.HostStores)
	}
	return d
}

// Handle ends the fence.
func (f *fence) Handle(uint32) { f.done.Done(f.arg, f.c) }

// nobody waits for what it is told.
type nobody struct{}

// Done is told and forgets.
func (nobody) Done(uint32, sim.Cause) {}

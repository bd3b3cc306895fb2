package testbed

import (
	"fmt"

	"gdisim/model/gpu"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// access is a GPU thread's store, load or atomic, one at a time. A store ends
// when it is issued, the others when their result is there.
type access struct {
	b     *bench
	sm    *gpu.SM
	price sim.Delay // of what the SM does
	host  bool
	bytes int64 // of a store; 0: a load or an atomic
	stage stage.Stage
	done  sim.Sink
	arg   uint32
	c     sim.Cause
	h     sim.HandlerID
}

func (b *bench) access(kind string) (*step, error) {
	c := b.cfg
	a := &access{b: b, sm: b.sm(), host: c.Enum("workload.memory") == "host", stage: stage.GPULoad}
	cfg := a.sm.Config()
	switch kind {
	case "store":
		a.bytes, a.stage, a.price = c.Bytes("workload.bytes"), stage.GPUStore, cfg.HostStore
	case "load":
		a.price = cfg.L2Load
	default:
		a.price = cfg.Atomic
	}
	a.h = b.run.Eng.Register(a)
	return &step{title: fmt.Sprintf("%s, %s memory", kind, c.Enum("workload.memory")), metric: stage.Latency, agents: []workload.Operation{a}, bytes: a.bytes, sms: 1}, nil
}

// Begin issues the access. One of host memory that returns a result is a PCIe
// read round trip, an atomic as well: the host has no atomics for the GPU.
func (a *access) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	if a.bytes == 0 && a.host {
		a.b.edge().Read(8, c, a.b.kind(a.stage), done, arg)
		return
	}
	now := a.b.run.Eng.Now()
	d := sim.Duration(0)
	for range max(1, (a.bytes+15)/16) {
		d += a.sm.Draw(a.price)
	}
	if a.host {
		a.b.edge().Write(a.bytes, a.b.run.Owner, a.b.kind(stage.PCIeNotify), nobody{}, 0)
	}
	a.done, a.arg, a.c = done, arg, a.b.run.Rec.Span(c, a.b.kind(a.stage), now, now.Add(d), 0)
	a.b.run.Eng.At(now.Add(d), a.h, 0)
}

// Handle ends it.
func (a *access) Handle(uint32) { a.done.Done(a.arg, a.c) }

package testbed

import (
	"fmt"

	"gdisim/model/gpu"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

func edgeConfig(c *scenarios.Config) gpu.EdgeConfig {
	hz := c.Hz("hardware.gpu.sm_clock")
	back := c.Delay("hardware.gpu.pcie.return")
	release := priced(c.Cost("hardware.gpu.fence.release_system"), hz)
	return gpu.EdgeConfig{
		Out: sim.Fixed(max(0, release.Mean()-back.Mean())), Back: back, FullExtra: priced(c.Cost("hardware.gpu.fence.full_extra"), hz),
		StoreRate: c.Rate("hardware.gpu.pcie.store_rate"), SMRate: c.Rate("hardware.gpu.pcie.sm_rate"), MemoryRate: c.Rate("hardware.gpu.memory_rate"),
		StoreAck: c.Duration("hardware.gpu.pcie.store_ack"), Gather: c.Duration("hardware.gpu.fence.gather"), StoreTime: c.Duration("hardware.gpu.pcie.store_time"), StoreBurst: c.Bytes("hardware.gpu.store_burst"), LoadBurst: c.Bytes("hardware.gpu.load_burst"),
		SMQueue: c.Bytes("hardware.gpu.pcie.sm_queue"), EdgeQueue: c.Bytes("hardware.gpu.pcie.edge_queue"),
		CopyChunk: c.Bytes("hardware.gpu.copy.chunk"), CopyReads: c.Bytes("hardware.gpu.copy.reads"), CopyWrites: c.Bytes("hardware.gpu.copy.writes"),
	}
}

// edge is where the node's GPU reaches the host.
func (b *bench) edge() *gpu.Edge {
	if b.door == nil {
		b.door = gpu.NewEdge(edgeConfig(b.cfg), b.run.Eng, b.run.Rec, b.node.Rand, b.node.Bus, b.run.Owner, b.kind(stage.PCIeNotify))
	}
	return b.door
}

// fences reports whether the step has a fence at system scope.
func (b *bench) fences(kind string) bool {
	return kind == "fence" && b.cfg.Enum("workload.scope") == "system" || kind == "flag-echo" && b.cfg.Enum("workload.release") == "system"
}

// loadFits refuses loads of more SMs than there are.
func (r *runner) loadFits() error {
	c := r.cfg
	if !c.Has("workload.background.kind") {
		return nil
	}
	switch kind := c.Enum("workload.background.kind"); kind {
	case "store-host", "load-host", "store-gpu":
		if n, sms := c.Count("workload.background.ctas"), c.Count("hardware.gpu.sms"); n > sms {
			return refuse("workload.background.ctas", "%d SMs of %d with kind %s (want hardware.gpu.sms at most)", n, sms, kind)
		}
	}
	return nil
}

// background starts the load beside the step.
func (b *bench) background() {
	if !b.cfg.Has("workload.background.kind") {
		return
	}
	n := func() int { return b.cfg.Count("workload.background.ctas") }
	load, kind := b.cfg.Enum("workload.background.kind"), b.cfg.Enum("workload.kind")
	if polls := load == "poll-words" || load == "poll-line"; polls && !b.fences(kind) {
		b.note(fmt.Sprintf("workload.background.kind: %s does nothing to this %s: of pollers only what they cost a fence at system scope is modelled", load, kind))
	}
	switch load {
	case "copy-to-host":
		b.edge().CopyToHost()
	case "copy-to-gpu":
		b.edge().CopyToGPU()
	case "copy-both":
		b.edge().CopyToHost()
		b.edge().CopyToGPU()
	case "store-host":
		b.edge().StoreToHost(n())
	case "load-host":
		b.edge().LoadFromHost(n())
	case "store-gpu":
		b.edge().StoreToMemory(n())
	case "poll-words":
		b.edge().PollWords(n())
	case "poll-line":
		b.edge().PollLine(n(), b.lineWay())
	}
}

package testbed

import (
	"fmt"
	"math/rand/v2"

	"gdisim/model/nic"
	"gdisim/model/pcie"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/workload"
)

// dma is a device's DMA engine that reads and writes random places of a window.
type dma struct {
	engine *nic.DMA
	op     string
	access pcie.Access
	places uint64 // of a window
	unit   uint64 // bytes from one place to the next
	rng    *rand.Rand
	pairs  []pair
	free   sim.Free
	rec    *sim.Recorder
}

// pair is a read and a write that are one operation.
type pair struct {
	access pcie.Access
	left   int
	cause  sim.Cause
	done   sim.Sink
	arg    uint32
}

// line is what places in a window are aligned to.
const line = 64

func (b *bench) dma() (*step, error) {
	c := b.cfg
	op, n, window := c.Enum("workload.op"), c.Bytes("workload.bytes"), int64(8<<10)
	if c.Has("workload.window") {
		window = c.Bytes("workload.window")
	}
	d := &dma{op: op, rng: b.m.rands.Stream("dma.window"), rec: b.run.Rec}
	switch op {
	case "read", "write", "write-read", "read-write":
	default:
		return nil, refuse("workload.op", "%s with kind dma (want read, write, write-read or read-write)", op)
	}
	d.unit = uint64((n + line - 1) / line * line)
	if d.places = uint64(window) / d.unit; d.places == 0 {
		return nil, refuse("workload.window", "%d B hold no transfer of %d B", window, n)
	}
	d.access = pcie.Access{From: pcie.NIC, To: pcie.Host, Bytes: n, Cold: c.Enum("workload.cache") == "cold", Relaxed: relaxed(c)}
	where := "host"
	if c.Enum("workload.memory") == "gpu" {
		d.access.To, d.access.Cold, where = pcie.GPU, false, "GPU"
		if b := peers(c, op != "write", op != "read"); b != "" {
			return nil, b
		}
	}
	d.engine = nic.NewDMA(b.run.Eng, b.run.Rec, b.m.rands.Stream("dma"), b.node.Bus, dmaConfig(c))
	return &step{
		title: fmt.Sprintf("DMA %s of %d B in a window of %d B of %s memory, %d outstanding", op, n, window, where, c.Count("workload.outstanding")), metric: stage.Latency,
		agents: []workload.Operation{d}, window: c.Count("workload.outstanding"), bytes: n, rate: true,
	}, nil
}

func dmaConfig(c *scenarios.Config) nic.DMAConfig {
	half := func(key string) nic.Half {
		return nic.Half{Setup: c.Delay("hardware.nic.dma." + key + ".setup"), Interval: c.Duration("hardware.nic.dma." + key + ".interval")}
	}
	cfg := nic.DMAConfig{Read: half("read"), Write: half("write"), Move: c.Duration("hardware.nic.dma.move")}
	if c.Has("hardware.nic.dma.rate") {
		cfg.Rate = c.Rate("hardware.nic.dma.rate")
	}
	return cfg
}

// Begin starts an operation at a random place.
func (d *dma) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	a := d.access
	a.Addr = d.rng.Uint64N(d.places) * d.unit
	if d.op == "read" || d.op == "write" {
		a.Write = d.op == "write"
		d.engine.Submit(a, c, done, arg)
		return
	}
	id := sim.Alloc(&d.pairs, &d.free)
	d.pairs[id] = pair{access: a, left: 2, cause: c, done: done, arg: arg}
	w := a
	w.Write = true
	if d.op == "write-read" {
		d.engine.Behind(w, c, behind{d}, id)
		return
	}
	d.engine.Submit(a, c, ended{d}, id)
	d.engine.Submit(w, c, ended{d}, id)
}

type behind struct{ *dma }

// Done sends the read after its write.
func (b behind) Done(id uint32, c sim.Cause) {
	p := &b.pairs[id]
	p.left = 1
	b.engine.Submit(p.access, c, ended{b.dma}, id)
}

type ended struct{ *dma }

// Done has one half of a pair.
func (e ended) Done(id uint32, c sim.Cause) {
	p := &e.pairs[id]
	p.cause = e.rec.Later(p.cause, c)
	if p.left--; p.left > 0 {
		return
	}
	done, arg, cause := p.done, p.arg, p.cause
	sim.Release(&e.pairs, &e.free, id)
	done.Done(arg, cause)
}

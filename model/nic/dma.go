package nic

import (
	"math/rand/v2"

	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// DMAConfig describes an engine that moves data between a device's own memory
// and the bus on command. Reads and writes have their own half of it.
type DMAConfig struct {
	Read, Write Half
	Move        sim.Duration // per transfer between the device's memory and the engine
	Rate        int64        // bit/s of such a transfer; 0: it takes no time
}

// Half is what commands of one direction meet.
type Half struct {
	Setup    sim.Delay    // from the command until its request may leave
	Interval sim.Duration // commands are taken so far apart
}

// DMA is a device's DMA engine.
type DMA struct {
	cfg   DMAConfig
	eng   *sim.Engine
	rec   *sim.Recorder
	rng   *rand.Rand
	bus   *pcie.Fabric
	halfs [2]half
	jobs  []job
	free  sim.Free
	rate  *sim.Pipe // nil: moving takes no time for the bytes
	step  sim.HandlerID

	command, carry sim.Kind
	onBus          [2]sim.Kind
}

// half is one direction's queue and its way to the device's memory.
type half struct {
	commands, mover sim.Server
}

// job is a command under way.
type job struct {
	access pcie.Access
	stage  uint8
	cause  sim.Cause
	done   sim.Sink
	sent   sim.Sink // a write: told when it has been given to the bus; may be nil
	arg    uint32
}

// What a job does next: a read is set up, is on the bus, and is moved; a write
// is set up, is moved, and is on the bus.
const (
	setUp = iota
	moved
)

// NewDMA returns an idle engine on a bus.
func NewDMA(eng *sim.Engine, rec *sim.Recorder, rng *rand.Rand, bus *pcie.Fabric, cfg DMAConfig) *DMA {
	kind := func(s stage.Stage) sim.Kind { return sim.Kind{Stage: uint8(s), Lane: uint8(s.Lane())} }
	d := &DMA{
		cfg: cfg, eng: eng, rec: rec, rng: rng, bus: bus, jobs: make([]job, 0, 256),
		command: kind(stage.NICSched), carry: kind(stage.NICTx), onBus: [2]sim.Kind{kind(stage.NICPayloadFetch), kind(stage.PCIeDeliver)},
	}
	if cfg.Rate > 0 {
		d.rate = sim.NewPipe(cfg.Rate)
	}
	d.step = eng.Register(stepped{d})
	return d
}

// Submit takes a command now. done is told when a read's data is in the
// device's memory, or when a write may be seen in the target.
func (d *DMA) Submit(a pcie.Access, c sim.Cause, done sim.Sink, arg uint32) {
	d.submit(a, c, done, nil, arg)
}

// Behind takes a write now and tells sent when it has been given to the bus: a
// read that is submitted then stands behind it.
func (d *DMA) Behind(a pcie.Access, c sim.Cause, sent sim.Sink, arg uint32) {
	d.submit(a, c, nil, sent, arg)
}

func (d *DMA) submit(a pcie.Access, c sim.Cause, done, sent sim.Sink, arg uint32) {
	id := sim.Alloc(&d.jobs, &d.free)
	now := d.eng.Now()
	cfg, h := &d.cfg.Read, &d.halfs[0]
	if a.Write {
		cfg, h = &d.cfg.Write, &d.halfs[1]
	}
	start, _, blocker := h.commands.Take(now, cfg.Interval, c.Op)
	end := start.Add(cfg.Setup.Draw(d.rng))
	d.jobs[id] = job{access: a, cause: d.rec.Span(c, d.command, now, end, blocker), done: done, sent: sent, arg: arg}
	d.at(end, id)
}

// at goes on with a job at a time, at once where that is now.
func (d *DMA) at(t sim.Time, id uint32) {
	if t == d.eng.Now() {
		stepped{d}.Handle(id)
		return
	}
	d.eng.At(t, d.step, id)
}

type stepped struct{ *DMA }

// Handle takes a job's next step.
func (s stepped) Handle(id uint32) {
	d := s.DMA
	j := &d.jobs[id]
	was := j.stage
	j.stage = moved
	switch {
	case !j.access.Write && was == setUp:
		d.bus.Submit(j.access, j.cause, d.onBus[0], carried{d}, id)
	case !j.access.Write:
		d.end(id)
	case was == setUp:
		d.move(id, 1)
	default:
		sent, arg, c := j.sent, j.arg, j.cause
		d.bus.Submit(j.access, c, d.onBus[1], carried{d}, id)
		if sent != nil {
			sent.Done(arg, c)
		}
	}
}

// move carries a job's data between the engine and the device's memory.
func (d *DMA) move(id uint32, half int) {
	j := &d.jobs[id]
	now, t := d.eng.Now(), d.cfg.Move
	if d.rate != nil {
		t += d.rate.Transfer(j.access.Bytes)
	}
	start, end, blocker := d.halfs[half].mover.Take(now, t, j.cause.Op)
	j.cause = d.rec.Span(j.cause, d.carry, start, end, blocker)
	d.at(end, id)
}

type carried struct{ *DMA }

// Done has a job's access ended on the bus.
func (c carried) Done(id uint32, cause sim.Cause) {
	j := &c.jobs[id]
	j.cause = cause
	if j.access.Write {
		c.end(id)
		return
	}
	c.move(id, 0)
}

func (d *DMA) end(id uint32) {
	j := d.jobs[id]
	sim.Release(&d.jobs, &d.free, id)
	if j.done != nil {
		j.done.Done(j.arg, j.cause)
	}
}

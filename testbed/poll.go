package testbed

import (
	"fmt"

	"gdisim/model/gpu"
	"gdisim/sim"
	"gdisim/stage"
)

// poll is a GPU thread that looks at a flag over and over, one look after the
// other; one look is measured.
type poll struct {
	b       *bench
	sm      *gpu.SM
	line    *gpu.HostLine // nil: the flag is in GPU memory
	acquire sim.Delay     // what a look by a relaxed or acquiring load adds
	done    sim.Sink
	arg     uint32
	c       sim.Cause
	h       sim.HandlerID
}

// poll makes the pollers. A look at system scope is a volatile load, one at GPU
// scope a relaxed one.
func (b *bench) poll() (*step, error) {
	c := b.cfg
	n := c.Count("workload.initiators.ctas")
	s := &step{metric: stage.Latency, sms: min(n, b.node.GPU.SMs), title: fmt.Sprintf("%d CTAs poll, %s memory", n, c.Enum("workload.memory"))}
	system := c.Enum("workload.scope") == "system"
	host, shared := c.Enum("workload.memory") == "host", c.Enum("workload.line") == "shared"
	if c.Enum("workload.scope") == "block" {
		return nil, refuse("workload.scope", "block for kind poll (want gpu or system)")
	}
	merge, way := 1, b.lineWay()
	if !system {
		merge = c.Count("hardware.gpu.line_merge")
	}
	var line *gpu.HostLine
	for i := range n {
		p := &poll{b: b, sm: b.sm()}
		if host {
			if i == 0 || !shared {
				line = gpu.NewHostLine(b.edge(), merge, way)
			}
			p.line = line
			if !system {
				p.acquire = p.sm.Config().HostAcquire
			}
		}
		p.h = b.run.Eng.Register(p)
		s.agents = append(s.agents, p)
	}
	return s, nil
}

// lineWay is the way from an SM to where reads of one host line meet, and back.
func (b *bench) lineWay() sim.Duration {
	return priced(b.cfg.Cost("hardware.gpu.line_way"), b.cfg.Hz("hardware.gpu.sm_clock")).Mean()
}

// Begin looks once.
func (p *poll) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	p.done, p.arg, p.c = done, arg, c
	if p.line != nil {
		p.line.Read(c, p.b.kind(stage.GPUPoll), p, 0)
		return
	}
	p.spend(p.sm.Draw(p.sm.Config().PollPeriod))
}

func (p *poll) spend(d sim.Duration) {
	now := p.b.run.Eng.Now()
	p.c = p.b.run.Rec.Span(p.c, p.b.kind(stage.GPUPoll), now, now.Add(d), 0)
	p.b.run.Eng.At(now.Add(d), p.h, 0)
}

// Done is the data of a look at host memory.
func (p *poll) Done(_ uint32, c sim.Cause) {
	p.c = c
	if d := p.sm.Draw(p.acquire); d > 0 {
		p.spend(d)
		return
	}
	p.done.Done(p.arg, c)
}

// Handle ends a look.
func (p *poll) Handle(uint32) { p.done.Done(p.arg, p.c) }

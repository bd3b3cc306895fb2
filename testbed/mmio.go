package testbed

import (
	"fmt"

	"gdisim/model/cpu"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// mmio is a core that copies bytes to or from a device's memory.
type mmio struct {
	core  *cpu.MMIO
	to    pcie.Unit
	load  bool
	bytes int64
}

func (b *bench) mmio() (*step, error) {
	c := b.cfg
	op, n, cores := c.Enum("workload.op"), c.Bytes("workload.bytes"), c.Count("workload.cores")
	if op != "store" && op != "load" {
		return nil, refuse("workload.op", "%s with kind mmio (want store or load)", op)
	}
	to := pcie.GPU
	if c.Enum("workload.to") == "nic" {
		to = pcie.NIC
	}
	core, uncore := clocks(c)
	cfg := cpu.MMIOConfig{
		Call: priced(c.Cost("hardware.cpu.mmio.call"), core), Line: priced(c.Cost("hardware.cpu.mmio.line"), uncore),
		Buffers: c.Count("hardware.cpu.mmio.buffers"), Piece: c.Bytes("hardware.cpu.mmio.piece"), Loads: c.Count("hardware.cpu.mmio.loads"),
	}
	s := &step{
		title: fmt.Sprintf("%s of %d B by %d cores, %s", op, n, cores, c.Enum("workload.to")), metric: stage.Latency,
		bytes: n, piece: cfg.Piece, rate: true, cores: float64(cores),
	}
	for i := range cores {
		rng := b.m.rands.Stream(fmt.Sprintf("mmio.core%d", i))
		s.agents = append(s.agents, &mmio{core: cpu.NewMMIO(b.run.Eng, b.run.Rec, rng, b.node.Bus, cfg), to: to, load: op == "load", bytes: n})
	}
	return s, nil
}

// Begin copies once.
func (m *mmio) Begin(c sim.Cause, done sim.Sink, arg uint32) {
	if m.load {
		m.core.Load(m.to, m.bytes, c, done, arg)
		return
	}
	m.core.Store(m.to, m.bytes, c, done, arg)
}

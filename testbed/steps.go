package testbed

import (
	"fmt"

	"gdisim/model/path"
	"gdisim/model/pcie"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// Step is one step of a stack as its own code takes it.
type Step struct {
	Who   string // "GPU thread", "CPU worker"
	Stage stage.Stage
	What  string
	Price sim.Duration // on the scenario's hardware; 0 where it waits for others
	Cold  sim.Duration // what more it costs with a cold L1
	Why   string
}

// roundTrip returns what an 8-byte read of one unit by another takes alone.
func roundTrip(c *scenarios.Config, from, to pcie.Unit) (sim.Duration, error) {
	_, uncore := clocks(c)
	bus, err := pcie.New(sim.New(), nil, nil, "", pcieConfig(c, uncore))
	if err != nil {
		return 0, err
	}
	return bus.RoundTrip(from, to, 8), nil
}

// Steps lists what path number p of the scenario does for one message at the
// scenario's first point, from the same lists that a run executes.
func Steps(s *scenarios.Scenario, p int) ([]Step, error) {
	r := &runner{cfg: s.Config(0, p)}
	pl, err := r.plan()
	if err != nil {
		return nil, err
	}
	g := gpuConfig(r.cfg)
	var out []Step
	add := func(list []path.Step) {
		for i := range list {
			st := list[i]
			if st.Do == path.DoInline {
				st.N = int(pl.msg.Bytes+3) / 4
			}
			x := Step{Who: "GPU thread", Stage: st.Stage, What: st.Do.String(), Why: st.Why}
			x.Price, x.Cold = st.Price(g)
			if st.N > 1 {
				x.What += fmt.Sprintf(" x%d", st.N)
			}
			out = append(out, x)
		}
	}
	if pl.cpu {
		core, uncore := clocks(r.cfg)
		for _, w := range pl.verbs.Steps(cpuConfig(r.cfg, core, uncore, false), pl.msg) {
			out = append(out, Step{Who: "CPU thread", Stage: w.Stage, What: w.What, Price: w.Price, Why: w.Why})
		}
		return out, nil
	}
	if !pl.proxy {
		prog := pl.doorbell.Program(pl.msg, nicConfig(r.cfg).InlineMax, pl.window > 1)
		add(prog.Steps())
		core, uncore := clocks(r.cfg)
		bar1, err := roundTrip(r.cfg, pcie.CPU, pcie.GPU)
		if err != nil {
			return nil, err
		}
		for _, w := range pl.doorbell.Ringer(cpuConfig(r.cfg, core, uncore, false), bar1) {
			out = append(out, Step{Who: "CPU thread", Stage: w.Stage, What: w.What, Price: w.Price, Why: w.Why})
		}
		if wait := pl.doorbell.Wait(0, pl.fg.queues); wait != nil {
			add(wait)
			return out, nil
		}
		out = append(out, Step{Who: "GPU thread", Stage: stage.GPUPoll, What: "poll CQ", Price: g.PollPeriod.Mean(), Why: "until the CQE shows; acquire unless the fence is none; one CQE retires all before it"})
		return out, nil
	}
	prog := pl.prox.Program(pl.msg)
	add(prog.Steps())
	before, after := pl.prox.QuietProgram()
	core, uncore := clocks(r.cfg)
	for _, w := range pl.prox.Worker(cpuConfig(r.cfg, core, uncore, false), pl.msg) {
		out = append(out, Step{Who: "CPU worker", Stage: w.Stage, What: w.What, Price: w.Price, Why: w.Why})
	}
	where := "in GPU memory"
	if r.cfg.Enum("path.proxy.completion_in") == "host" {
		where = "in host memory, over PCIe"
	}
	add(before)
	what := "poll counter"
	if pl.prox.Quiet != path.QuietCounter {
		what, where = "poll answer", "in host memory, over PCIe"
	}
	out = append(out, Step{Who: "GPU thread", Stage: stage.GPUPoll, What: what, Why: where})
	add(after)
	return out, nil
}

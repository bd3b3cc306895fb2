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
			st := list[i].Of(pl.msg.Bytes, g)
			x := Step{Who: "GPU thread", Stage: st.Stage, What: st.Do.String(), Why: st.Why}
			x.Price, x.Cold = st.Price(g)
			if st.N > 1 {
				x.What += fmt.Sprintf(" x%d", st.N)
			}
			out = append(out, x)
		}
	}
	core, uncore := clocks(r.cfg)
	cpu := cpuConfig(r.cfg, core, uncore, false)
	work := func(who string, list []path.WorkerStep) {
		for _, w := range list {
			out = append(out, Step{Who: who, Stage: w.Stage, What: w.What, Price: w.Price, Why: w.Why})
		}
	}
	msg := pl.msg
	if pl.answered {
		msg = pl.told()
	}
	switch {
	case pl.cpu:
		work("CPU thread", pl.verbs.Steps(cpu, msg, pl.answered))
		return out, nil
	case pl.proxy:
		prog := pl.prox.Program(msg)
		add(prog.Steps())
		work("CPU worker", pl.prox.Worker(cpu, msg))
		if pl.answered {
			break
		}
		if quiet := pl.prox.QuietProgram(); quiet != nil {
			add(quiet)
			break
		}
		where := "in GPU memory"
		if pl.prox.CompletionIn == pcie.Host {
			where = "in host memory, over PCIe"
		}
		out = append(out, Step{Who: "GPU thread", Stage: stage.GPUPoll, What: "poll counter", Why: where})
	default:
		prog := pl.doorbell.Program(msg, nicConfig(r.cfg).InlineMax, pl.window > 1)
		add(prog.Steps())
		bar1, err := roundTrip(r.cfg, pcie.CPU, pcie.GPU)
		if err != nil {
			return nil, err
		}
		work("CPU thread", pl.doorbell.Ringer(cpu, bar1))
		if pl.answered {
			break
		}
		if wait := pl.doorbell.Wait(0, pl.fg.queues); wait != nil {
			add(wait)
			break
		}
		out = append(out, Step{Who: "GPU thread", Stage: stage.GPUPoll, What: "poll CQ", Price: g.PollPeriod.Mean(), Why: "until the CQE shows; acquire unless the fence is none; one CQE retires all before it"})
	}
	count := path.ReceiverSteps(cpu, pl.told()) // of a round trip's messages too
	work("CPU of the peer", count)
	if pl.answered {
		out = append(out, Step{Who: "GPU of the peer", Stage: stage.GPUObserve, What: "poll the word that tells of the message", Price: g.PollPeriod.Mean(), Why: "then the steps above for a message that is told of alike, without a payload: the answer"})
		work("CPU of the initiator", count)
		out = append(out, Step{Who: "GPU thread", Stage: stage.GPUObserve, What: "poll the word that tells of the answer", Price: g.PollPeriod.Mean(), Why: "the peer has seen the message; no queue is looked at"})
	}
	return out, nil
}

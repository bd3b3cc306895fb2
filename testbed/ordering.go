package testbed

import (
	"gdisim/model/nic"
	"gdisim/model/path"
	"gdisim/model/pcie"
	"gdisim/scenarios"
	"gdisim/stage"
)

// relaxed reports whether payload writes carry the relaxed-ordering attribute.
func relaxed(c *scenarios.Config) bool {
	return c.Bool("hardware.nic.payload.relaxed_ordering") && c.Bool("hardware.pcie.relaxed_ordering")
}

// relaxedFlag reports whether what writes flags does.
func relaxedFlag(c *scenarios.Config) bool {
	return c.Bool("hardware.nic.signal.relaxed_ordering") && c.Bool("hardware.pcie.relaxed_ordering")
}

// flagged asks the ordering rules whether the receiver of a message may see what
// tells it of the data before the data, whatever this run's times are.
func (r *runner) flagged(p *plan, find *findings) {
	c := r.cfg
	data := pcie.TLP{Kind: pcie.PostedWrite, Requester: pcie.NIC, Relaxed: relaxed(c)}
	flag := pcie.TLP{Kind: pcie.PostedWrite, Requester: pcie.NIC, Relaxed: relaxedFlag(c)}
	what := "a flag written with relaxed ordering may pass the data written before it"
	if s := p.msg.Signal; (s == path.SignalWrite || s == path.SignalAtomic) && p.msg.Word != p.msg.Lands {
		find.add(0, stage.Hazard{
			Finding: stage.FlagBeforeData, Grade: stage.Possible, Node: 1, Queue: -1, Index: -1,
			Cause: "the flag and the data before it go to different memories, which nothing orders",
			Avoid: nic.OneMemory,
		})
		return
	}
	switch p.msg.Signal {
	case path.SignalNone:
		// The data tells of itself: its last word, which is in the last TLP.
		if p.kind == "stream" || p.msg.Get || p.msg.Bytes <= c.Bytes("hardware.pcie.mps") {
			return
		}
		flag = data
		what = "the last TLP of data written with relaxed ordering may pass those before it, and the poller looks at the last word"
	case path.SignalAtomic:
		if c.Enum("hardware.nic.atomics") == "rmw" {
			return // the NIC's read pushes what was written before it
		}
		flag.Kind = pcie.AtomicRequest
		what = "a PCIe atomic with relaxed ordering may pass the data written before it"
	case path.SignalImmediate:
		return // the CQE is the NIC's own and strictly ordered
	case path.SignalWrite:
	}
	if pcie.MayPass(flag, data) {
		find.add(0, stage.Hazard{Finding: stage.FlagBeforeData, Grade: stage.Possible, Node: 1, Queue: -1, Index: -1, Cause: what})
	}
}

// rerouted asks the same of the way through the network: with adaptive routing the
// packets of one connection may overtake each other, and writes are placed as
// they come. What the responder executes is executed behind what came before it.
func (r *runner) rerouted(p *plan, find *findings) {
	c := r.cfg
	if !c.Bool("cluster.fabric.adaptive_routing") || p.kind == "stream" || p.msg.Get {
		return
	}
	if p.msg.Signal == path.SignalWrite || p.msg.Signal == path.SignalNone && p.msg.Bytes > c.Bytes("hardware.nic.mtu") {
		find.add(0, stage.Hazard{
			Finding: stage.FlagBeforeData, Grade: stage.Possible, Node: 1, Queue: -1, Index: -1,
			Cause: "what tells of the data may take another way through the network than the data and arrive first: adaptive routing",
			Avoid: "a flag that the responder executes behind what came before it (signal: atomic), or adaptive routing off",
		})
	}
}

package path

import (
	"cmp"
	"math"

	"gdisim/model/nic"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// Faults are what goes wrong with the software of a node.
type Faults struct {
	DropFence    sim.Triggers // chance: a fence before a doorbell or descriptor
	Reorder      sim.Triggers // chance: a doorbell, which leaves before its WQEs are stored
	SkipDoorbell sim.Triggers // chance: a doorbell
	Stalls       sim.Triggers // windows in which the CPU threads that read for others do nothing
	// TwoProducers: threads that share a send queue ring for all slots up to
	// their own, whether the others' are filled or not.
	TwoProducers bool
	Producers    sim.Triggers // strikes where one did not wait
}

// never is when what is not written becomes visible.
const never = sim.Time(math.MaxInt64)

// ring sends the posted write that rings for a queue, unless a fault leaves it
// out.
func (n *Node) ring(env *Env, from pcie.Unit, q *nic.QP, bytes int64, c sim.Cause, k sim.Kind, sink sim.Sink, head uint32) {
	if n.Faults.SkipDoorbell.Strikes(env.Eng.Now()) {
		env.find(n, stage.LostDoorbell, stage.Possible, q.ID(), "a fault left a doorbell out: its WQEs wait until a later one covers them")
		return
	}
	n.Bus.Write(from, pcie.NIC, bytes, c, k, sink, head)
}

// stalled returns until when a CPU thread of the node does nothing now, never
// for one that never does anything again, and 0 for one that works.
func (n *Node) stalled(now sim.Time) sim.Time {
	for _, s := range n.Faults.Stalls {
		if s.Strikes(now) {
			return cmp.Or(s.Until, never)
		}
	}
	return 0
}

// find reports a hazard of a queue of the node.
func (e *Env) find(n *Node, f stage.Finding, g stage.Grade, queue int, cause string) {
	if e.Find != nil {
		e.Find(e.Eng.Now(), stage.Hazard{Finding: f, Grade: g, Node: n.Index, Queue: queue, Index: -1, Cause: cause})
	}
}

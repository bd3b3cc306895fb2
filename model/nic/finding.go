package nic

import (
	"gdisim/sim"
	"gdisim/stage"
)

// find tells of what occurred to a WQE of the queue.
func (n *NIC) find(at sim.Time, q *QP, index uint32, f stage.Finding, cause string) {
	if n.Find != nil {
		n.Find(at, stage.Hazard{Finding: f, Grade: stage.Occurred, Node: n.node, Queue: q.id, Index: int(index), Cause: cause})
	}
}

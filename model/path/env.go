package path

import (
	"math/rand/v2"

	"gdisim/model/cpu"
	"gdisim/model/gpu"
	"gdisim/model/nic"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// Node is one machine as a path sees it.
type Node struct {
	Index int
	Bus   *pcie.Fabric
	NIC   *nic.NIC
	GPU   *gpu.Config
	// Core returns the core of the node's proxy worker i.
	Core  func(i int) *cpu.Core
	reads hostReads // of the GPU's threads
	// Faults of the node's software; none by default.
	Faults Faults
	gate   *gate   // nil until a GPU thread of the node may ring
	ringer *ringer // nil until a CPU thread of the node is to ring
	// Rand serves the GPU threads' prices that are distributions.
	Rand *rand.Rand
}

// Env is what all agents of a run share.
type Env struct {
	Eng         *sim.Engine
	Rec         *sim.Recorder
	Nodes       []*Node
	InlineLimit int64
	BlueFlame   int64 // largest WQE that the NIC's BlueFlame buffer takes
	// Find reports a finding; nil if nobody asks.
	Find func(at sim.Time, h stage.Hazard)
}

// Client is told what a Thread has finished, at the moment it has.
type Client interface {
	Posted(c sim.Cause)
	Completed(c sim.Cause)
	Observed(c sim.Cause)
}

// kinds of the spans that agents of a node record.
type kindTable [stage.Count]sim.Kind

func newKinds(node int) *kindTable {
	var k kindTable
	for s := range stage.Count {
		k[s] = sim.Kind{Stage: uint8(s), Lane: uint8(s.Lane()), Node: uint8(node)}
	}
	return &k
}

// join returns the cause of work that goes on in own after other: the later of
// the two in one operation; an operation that waited for another one's work
// waited in stage k.
func join(rec *sim.Recorder, own, other sim.Cause, k sim.Kind, now sim.Time) sim.Cause {
	if own.Op > 0 && other.Op != own.Op {
		return rec.Span(own, k, now, now, other.Op)
	}
	return rec.Later(own, other)
}

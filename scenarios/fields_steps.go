package scenarios

import "slices"

// messageKinds send messages over the scenario's paths; stepKinds repeat one
// step or exchange on one node, without a NIC.
var (
	messageKinds = []string{"put", "put-signal", "get", "ping-pong", "stream"}
	stepKinds    = []string{"fence", "dma"}
	anyKind      = slices.Concat(messageKinds, stepKinds)

	// sizedKinds are the steps that move or cover a number of bytes.
	sizedKinds = []string{"dma"}

	// loadedKinds are the steps that may be measured beside a load on the GPU's
	// link and memory, and backgroundKinds those loads.
	loadedKinds     = []string{"fence"}
	backgroundKinds = []string{}

	// stackKinds are steps of a stack's own code, and so of the scenario's paths.
	stackKinds = []string{}
)

// stepFields are the keys of workloads that repeat one step.
var stepFields = []Field{
	{Key: "workload.scope", Kind: Enum, Enum: []string{"block", "gpu", "system"}, Default: "system", Kinds: []string{"fence"}, Text: "reach of the fence", Used: "model/gpu"},
	{Key: "workload.pause", Kind: Duration, Default: "2us", Max: "1s", Dist: true, Kinds: stepKinds, Text: "from the end of one step until its initiator begins the next", Used: "workload"},
	{Key: "workload.stores", Kind: Count, Default: "0", Max: "4096", Kinds: []string{"fence"}, Text: "stores of 8 bytes that the thread issues before the fence, each to a line of its own", Used: "model/gpu"},
	{Key: "workload.memory", Kind: Enum, Enum: []string{"gpu", "host"}, Default: "gpu", Kinds: []string{"fence", "dma"}, Text: "where the lines live that the step stores to or loads from", Used: "testbed"},
}

// IsStep reports whether a workload kind repeats a step instead of sending
// messages.
func IsStep(kind string) bool { return slices.Contains(stepKinds, kind) }

// usedBy reports whether a workload of that kind reads the field.
func (f *Field) usedBy(kind string) bool {
	if f.Kinds == nil {
		return slices.Contains(messageKinds, kind)
	}
	return slices.Contains(f.Kinds, kind)
}

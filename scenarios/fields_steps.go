package scenarios

import (
	"maps"
	"slices"
)

// messageKinds send messages over the scenario's paths; stepKinds repeat one
// step or exchange on one node, without a NIC.
var (
	messageKinds = []string{"put", "put-signal", "get", "ping-pong", "stream"}
	stepKinds    = []string{
		"fence", "store", "load", "atomic", "poll", "flag-echo", "dma", "mmio", "register", "wake",
		"proxy-echo", "post", "launch", "notice", "copy",
	}
	anyKind = slices.Concat(messageKinds, stepKinds)

	// sizedKinds are the steps that move or cover a number of bytes.
	sizedKinds = []string{"store", "copy", "dma", "mmio", "register"}

	// loadedKinds are the steps that may be measured beside a load on the GPU's
	// link and memory, and backgroundKinds those loads.
	loadedKinds     = []string{"fence", "store", "load", "atomic", "flag-echo"}
	backgroundKinds = []string{"copy-to-host", "copy-to-gpu", "copy-both", "store-host", "load-host", "store-gpu", "poll-words", "poll-line"}

	// stackKinds are steps of a stack's own code, and so of the scenario's paths.
	stackKinds = []string{"post"}
)

// ways are the words of workload.by, which each kind has of its own; the first is
// the default.
var ways = map[string][]string{
	"notice":   {"stream-sync", "event-sync", "event-query", "next-kernel", "stream-write", "copy", "blocking-event", "host-callback"},
	"register": {"nic", "gpu", "dma-buf"},
	"wake":     {"futex", "eventfd", "epoll", "condvar", "pipe", "yield", "nanosleep"},
}

// ops are the words of workload.op, likewise, and none is a default.
var ops = map[string][]string{
	"dma":      {"read", "write", "write-read", "read-write"},
	"mmio":     {"store", "load"},
	"register": {"register", "unregister", "pin", "map", "unmap", "unpin"},
}

// words are those of all kinds.
func words(of map[string][]string) []string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		for _, w := range of[kind] {
			if !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out
}

// stepFields are the keys of workloads that repeat one step.
var stepFields = []Field{
	{Key: "workload.scope", Kind: Enum, Enum: []string{"block", "gpu", "system"}, Default: "system", Kinds: []string{"fence", "poll"}, Text: "reach of the fence, or of the poller's loads (gpu or system)", Used: "model/gpu"},
	{Key: "workload.pause", Kind: Duration, Default: "2us", Max: "1s", Dist: true, Kinds: stepKinds, Text: "from the end of one step until its initiator begins the next", Used: "workload"},
	{Key: "workload.by", Kind: Enum, Optional: true, Enum: words(ways), Kinds: slices.Sorted(maps.Keys(ways)), Text: "how the step is done, or for whom, in words of its kind; absent: by the first that the kind has (wake: futex; register: nic, beside gpu for a CPU that maps GPU memory, as GDRCopy does, and dma-buf for memory that the GPU's driver has pinned)", Used: "testbed"},
	{Key: "workload.asleep", Kind: Duration, Default: "100us", Max: "10s", Kinds: []string{"wake"}, Text: "how long the thread has slept when it is woken, or how long its nanosleep asks for", Used: "testbed"},
	{Key: "workload.cpu", Kind: Enum, Enum: []string{"same", "other"}, Default: "other", Kinds: []string{"wake"}, Text: "where the waker runs: on the sleeper's core, or another", Used: "testbed"},
	{Key: "workload.stores", Kind: Count, Default: "0", Max: "4096", Kinds: []string{"fence"}, Text: "stores of 8 bytes that the thread issues before the fence, each to a line of its own", Used: "model/gpu"},
	{Key: "workload.background.ctas", Kind: Count, Default: "1", Min: "1", Max: "1024", Kinds: loadedKinds, Text: "SMs that make a background of stores, loads or polls (store-host, load-host, store-gpu; one thread each: poll-words, poll-line)", Used: "model/gpu"},
	{Key: "workload.from", Kind: Enum, Enum: []string{"gpu", "cpu"}, Default: "gpu", Kinds: []string{"flag-echo"}, Text: "who asks; the other polls a flag in host memory and answers", Used: "testbed"},
	{Key: "workload.release", Kind: Enum, Enum: []string{"none", "system"}, Default: "none", Kinds: []string{"flag-echo"}, Text: "what the GPU thread orders before it stores its flag", Used: "model/gpu"},
	{Key: "workload.look_after", Kind: Duration, Default: "0s", Max: "1s", Kinds: []string{"flag-echo"}, Text: "the GPU thread first looks for the answer so long after its flag", Used: "testbed"},
	{Key: "workload.queue", Kind: Enum, Enum: []string{"own", "shared"}, Default: "own", Kinds: []string{"post"}, Text: "every CTA posts to a queue of its own, or all to one whose doorbells go in order", Used: "testbed"},
	{Key: "workload.descriptor", Kind: Enum, Enum: []string{"lanes", "flag", "thread"}, Default: "lanes", Kinds: []string{"proxy-echo"}, Text: "how a CTA writes 64 bytes into its ring: four lanes at once, body and flag with a release between, or four stores by one thread", Used: "testbed"},
	{Key: "workload.until", Kind: Enum, Enum: []string{"first-store", "stream-sync", "blocking-sync"}, Default: "first-store", Kinds: []string{"launch"}, Text: "what ends a launch: a store of the kernel seen by the CPU, or the end of an empty kernel known by a sync that spins or sleeps", Used: "testbed"},
	{Key: "workload.graph", Kind: Count, Default: "0", Max: "4096", Kinds: []string{"launch"}, Text: "kernels of the graph that is launched; 0: a kernel by itself", Used: "testbed"},
	{Key: "workload.after", Kind: Duration, Default: "20us", Max: "1s", Kinds: []string{"notice"}, Text: "length of the kernel whose end is to be known", Used: "testbed"},
	{Key: "workload.seen_by", Kind: Enum, Enum: []string{"sync", "poll"}, Default: "sync", Kinds: []string{"copy"}, Text: "how the CPU knows of a copy's end: stream sync, or the last byte, which it has written just before and polls", Used: "testbed"},
	{Key: "workload.line", Kind: Enum, Enum: []string{"shared", "own"}, Default: "shared", Kinds: []string{"poll"}, Text: "pollers look at one line, or each at its own", Used: "model/gpu"},
	{Key: "workload.memory", Kind: Enum, Enum: []string{"gpu", "host"}, Default: "gpu", Kinds: []string{"fence", "store", "load", "atomic", "poll", "dma", "register"}, Text: "where the memory is that the step reaches", Used: "model/gpu"},
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

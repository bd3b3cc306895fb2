package scenarios

import (
	"slices"
	"strings"
	"sync"
)

// Field is a row of the field table: one thing that a scenario can set.
type Field struct {
	Key  string // "hardware.gpu.sm_clock", "host.clock", "path.fence", "workload.bytes"
	Kind Kind
	Alt  Kind // a second notation that the value may have; 0 for none
	// Default as written in YAML. Empty: the profile (hardware.*) or the stack
	// (path.*) must give the value, or the scenario (the rest), unless Optional.
	Default  string
	Optional bool // may have no value at all; see Config.Has
	Enum     []string
	Later    []string // words of the notation that the simulator cannot do yet
	Min, Max string   // "" for the kind's own range
	Pow2     bool     // a power of two (Bytes)
	Dist     bool     // may be a distribution (Duration and Cost)
	List     bool     // one, a list, or {from, to, factor}: makes points
	Kinds    []string // workload kinds that use it (workload.*); nil: those that send messages
	Text     string   // one line: what it is
	Used     string   // who uses it: "model/gpu"
}

// scenarioFields are the keys of a scenario's own sections.
var scenarioFields = []Field{
	{Key: "cluster.nodes", Kind: Count, Default: "2", Min: "2", Max: "64", Text: "nodes of the cluster; more than 2 with workload.connections", Used: "testbed"},
	{Key: "cluster.gpus_per_node", Kind: Count, Default: "1", Min: "1", Max: "1", Text: "GPUs of each node", Used: "testbed"},
	{Key: "cluster.nics_per_gpu", Kind: Count, Default: "1", Min: "1", Max: "1", Text: "NICs beside each GPU", Used: "testbed"},
	{
		Key: "cluster.fabric.kind", Kind: Enum, Default: "switch", Enum: []string{"back-to-back", "switch"}, Later: []string{"leaf-spine", "fat-tree", "rail"},
		Text: "what stands between the NICs", Used: "model/fabric",
	},

	{
		Key: "workload.kind", Kind: Enum, Enum: slices.Concat(messageKinds, stepKinds), Kinds: anyKind,
		Later: []string{"allreduce", "allgather", "reduce-scatter", "alltoall", "broadcast", "moe-dispatch", "moe-combine", "training-step", "inference", "kv-fetch", "halo"},
		Text:  "what the GPUs do: send messages over paths, or one step over and over (no NIC)", Used: "workload",
	},
	{Key: "workload.bytes", Kind: Bytes, Min: "1B", Max: "1GiB", List: true, Kinds: slices.Concat(messageKinds, sizedKinds), Text: "payload of a message, or bytes of a step", Used: "workload"},
	{Key: "workload.initiators.ctas", Kind: Count, Kinds: slices.Concat(messageKinds, []string{"poll", "post", "proxy-echo"}), Default: "1", Min: "1", Max: "1024", Text: "CTAs that post or poll, each on an SM of its own as far as there are SMs", Used: "workload"},
	{Key: "workload.initiators.threads", Kind: Count, Default: "1", Min: "1", Max: "1024", Text: "threads of each CTA that post", Used: "workload"},
	{Key: "workload.outstanding", Kind: Count, Default: "1", Min: "1", Max: "65536", Kinds: slices.Concat(messageKinds, []string{"dma", "proxy-echo"}), Text: "messages or steps in flight for each initiator", Used: "workload"},
	{Key: "workload.wqes_per_doorbell", Kind: Count, Kinds: slices.Concat(messageKinds, stackKinds), Default: "1", Min: "1", Max: "4096", Text: "WQEs that one doorbell announces", Used: "workload"},
	{Key: "workload.iterations", Kind: Count, Kinds: anyKind, Default: "1000", Min: "1", Max: "100000000", Text: "measured messages or steps of each initiator", Used: "workload"},
	{Key: "workload.warmup", Kind: Count, Kinds: anyKind, Default: "100", Max: "100000000", Text: "messages or steps of each initiator before measuring", Used: "workload"},
	{Key: "workload.connections", Kind: Count, Optional: true, Min: "1", Max: "131072", Text: "active connections of a sending NIC, which its initiators share out and visit in turn; absent: a queue stays with its thread", Used: "testbed"},
	{Key: "workload.writes_per_visit", Kind: Count, Default: "32", Min: "1", Max: "1048576", Text: "messages to one connection before the next is visited", Used: "workload"},
	{Key: "workload.direction", Kind: Enum, Enum: []string{"send", "receive", "both", "to-host", "to-gpu"}, Default: "send", Kinds: slices.Concat(messageKinds, []string{"copy"}), Text: "with connections: node 0 sends to all others, all others send to it, or every node sends to every other; of a copy, to-host (also where absent) or to-gpu", Used: "testbed"},
	{Key: "workload.background.kind", Kind: Enum, Optional: true, Enum: slices.Concat([]string{"stream"}, backgroundKinds), Kinds: slices.Concat(messageKinds, loadedKinds), Text: "load beside what is measured; stream beside messages, the others beside steps, of which poll-words and poll-line reach a fence at system scope only; none where absent", Used: "workload"},
	{Key: "workload.background.bytes", Kind: Bytes, Optional: true, Min: "1B", Max: "1GiB", Text: "payload of a background message; absent: as the measured messages", Used: "workload"},
	{Key: "workload.background.initiators.ctas", Kind: Count, Default: "1", Min: "1", Max: "1024", Text: "CTAs of the background load", Used: "workload"},
	{Key: "workload.background.initiators.threads", Kind: Count, Default: "1", Min: "1", Max: "1024", Text: "threads of each background CTA", Used: "workload"},
	{Key: "workload.background.outstanding", Kind: Count, Default: "16", Min: "1", Max: "65536", Text: "messages in flight for each background thread", Used: "workload"},
	{
		Key: "workload.background.queue", Kind: Enum, Default: "shared", Enum: []string{"shared", "reserved"},
		Text: "whether the measured messages share the background's queues or have one reserved", Used: "workload",
	},
}

type table struct {
	fields   []Field // in key order
	byKey    map[string]*Field
	defaults map[string]value
	min, max map[string]value
}

// fieldTable builds the table once. It is never changed afterwards.
var fieldTable = sync.OnceValue(func() *table {
	t := &table{byKey: map[string]*Field{}, defaults: map[string]value{}, min: map[string]value{}, max: map[string]value{}}
	t.fields = slices.Concat(scenarioFields, hostFields, stepFields, busFields, pcieFields, modelFields, qpFields, faultFields)
	slices.SortFunc(t.fields, func(a, b Field) int { return strings.Compare(a.Key, b.Key) })
	for i := range t.fields {
		f := &t.fields[i]
		if t.byKey[f.Key] != nil {
			panic("scenarios: field " + f.Key + " is there twice")
		}
		t.byKey[f.Key] = f
		bound := func(m map[string]value, text string) {
			if text == "" {
				return
			}
			v, err := parse(f.Kind, text)
			if err != nil {
				panic("scenarios: bound of " + f.Key + ": " + err.Error())
			}
			m[f.Key] = v
		}
		bound(t.min, f.Min)
		bound(t.max, f.Max)
	}
	for i := range t.fields {
		f := &t.fields[i]
		if f.Default == "" {
			continue
		}
		v, err := t.parse(f, f.Default)
		if err != nil {
			panic("scenarios: default of " + f.Key + ": " + err.Error())
		}
		v.source, v.origin = "default", "default"
		t.defaults[f.Key] = v
	}
	return t
})

// Fields returns the whole field table in key order.
func Fields() []Field { return slices.Clone(fieldTable().fields) }

// FieldOf returns the field of that full key; ok is false for an unknown one.
func FieldOf(key string) (f Field, ok bool) {
	if p := fieldTable().byKey[key]; p != nil {
		return *p, true
	}
	return Field{}, false
}

// Section is the key's first part: hardware, cluster, host, path, workload or fault.
func (f *Field) Section() string {
	s, _, _ := strings.Cut(f.Key, ".")
	return s
}

// want says what the field's value should look like.
func (f *Field) want() string {
	w := kinds[f.Kind].want
	if f.Kind == Enum {
		w = strings.Join(f.Enum, ", ")
	}
	if f.Alt != 0 {
		w += ", or " + kinds[f.Alt].want
	}
	return w
}

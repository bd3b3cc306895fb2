package scenarios

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gdisim/stage"
)

const referenceHead = `# Scenario files

<!-- Made from the field table: go test ./scenarios -update -->

A scenario is one YAML document. It is read strictly: an unknown or repeated key, a quantity without its unit, an anchor or a
second document is an error with file, line and column, and all errors are reported at once.

` + "```yaml" + `
gdisim: v1
hardware: h200-cx7-ib200          # a profile's name or file, or {profile: NAME, set: {KEY: VALUE}}
paths: [mini-gda, mini-proxy]     # stacks' names or files, or {name: NAME, stack: STACK, set: {KEY: VALUE}}
workload: {kind: put, bytes: 8B}
` + "```" + `

## Keys of the file

| key | what it is |
|---|---|
| ` + "`gdisim`" + ` | version of the notation: ` + "`v1`" + ` |
| ` + "`name`, `title`" + ` | of the scenario; the name is the file's where absent |
| ` + "`hardware`" + ` | the platform's profile, and changes of it in ` + "`set`" + ` |
| ` + "`cluster`, `host`, `workload`" + ` | sections, below |
| ` + "`paths`" + ` | the stacks to compare, each with changes of its own in ` + "`set`" + `; none for a step that no stack takes part in |
| ` + "`sweep`" + ` | keys with lists of values; every combination is a point, the first key slowest |
| ` + "`faults`" + ` | what goes wrong: a list of ` + "`{kind: KIND, ...}`" + `, below |
| ` + "`expect`" + ` | what must come out; makes the file a test |
| ` + "`seed`" + ` | of the random streams, 1 where absent |

Keys are nested (` + "`proxy: {core: shared}`" + `) or dotted (` + "`proxy.core: shared`" + `) inside a section or ` + "`set`" + `. In ` + "`sweep`, `at` and `--set`" + ` a key is
written in full: ` + "`hardware.KEY`, `cluster.KEY`, `host.KEY`, `workload.KEY`, `paths.NAME.KEY`, or `paths.*.KEY`" + ` for all paths, ` + "`faults.NAME.KEY`" + `.

What holds when a key is given more than once: the default, then the profile or stack, then the scenario, then the sweep, then ` + "`--set`" + `.
A ` + "`--set`" + ` of a swept key drops that sweep and says so.

What hardware takes has no default: a profile gives each number with its unit, kind and source, in itself or in the profiles that it includes. A profile of
your own had best include the parts that the built-in ones are made of, and give what differs. With a GPU's, a NIC's, a PCIe tree's and a host's, only the
links, the distance of GPU and NIC and the fabric are left to say:

` + "```yaml" + `
gdisim-profile: v1
name: mine
title: "our H200 machines"
include: [gpu-h200, nic-cx7, pcie-gen5, cpu-xeon]
sources: {lab: "our own measurement"}
parameters:
  pcie:
    path.gpu_nic: {value: PIX, kind: measured, source: lab, where: "nvidia-smi topo -m"}
    gpu_link: {value: 32GT/s x16, kind: measured, source: lab, where: "lspci -vv"}
    nic_link: {value: 32GT/s x16, kind: measured, source: lab, where: "lspci -vv"}
    up_link: {value: 32GT/s x16, kind: measured, source: lab, where: "lspci -vv"}
  fabric:
    transport: {value: infiniband, kind: measured, source: lab}
    rate: {value: 400Gb/s, kind: measured, source: lab}
    cable: {value: 20ns, kind: assumed, source: lab, where: "3 m"}
    switch: {value: 130ns, kind: assumed, source: lab}
` + "```" + `

## Notation of values

| kind | written |
|---|---|
`

const referenceExpect = `
A number without a unit is accepted only where the kind is count, and ` + "`0`" + ` for a duration. A field marked *dist* takes a distribution of
durations in place of a value:

` + "```yaml" + `
{dist: uniform, low: 1us, high: 2us}
{dist: exponential, mean: 1us}
{dist: lognormal, median: 1.2us, p99: 4us}
{dist: normal, mean: 1us, sd: 100ns}     # cut at 0
{dist: empirical, file: wake.csv}        # one duration a line, file beside the scenario
` + "```" + `

A list in ` + "`sweep`" + ` (and ` + "`workload.bytes`" + `) may be a range, ` + "`{from: 8B, to: 1MiB, factor: 2}`" + `.

## Expectations

` + "```yaml" + `
expect:
  - {path: mini-gda, metric: put+completion.p50, value: 4.03us, within: 5%}
  - {path: mini-gda, metric: rtt, at: {workload.bytes: 64B}, min: 6us, max: 8us}
  - {path: mini-gda, metric: issue.p50, minus: {path: mini-gda-unordered}, value: 0.51us, within: 10%}
  - {path: mini-gda, metric: rtt, at: {workload.bytes: 1KiB}, over: {at: {workload.bytes: 8B}}, max: 1.2x}
  - {path: mini-gda, finding: stale-descriptor, is: absent}
  - {metric: rtt, order: [mini-proxy-tuned, mini-gda]}
` + "```" + `

A metric of time takes ` + "`.p50` (the default), `.p99`, `.p99.9`, `.max`, `.min` or `.mean`; `METRIC/STAGE` is a stage's time and `METRIC/STAGE.share`" + ` its
part. ` + "`minus` takes another path's or metric's value off; `over`" + ` makes a ratio, through another path, metric or point. ` + "`within`" + ` is relative (` + "`5%`) or absolute (`0.2us`). `source`, `use: fitted|checked` and `note`" + ` say where an expectation comes from;
` + "`known_miss`" + ` says why a figure is not reached, and keeps the miss from failing the file. ` + "`fits: [hardware.nic.ack]`" + ` names what a fitted figure
determined; the profile or stack gives the parameter's bounds beside its value, ` + "`{value: 404ns, min: 200ns, max: 800ns, ...}`" + `, and
` + "`gdisim check --cross-validate`" + ` fits it again without the figure's table.

| metric | unit | what it is |
|---|---|---|
`

const referenceScopes = `
### What a completion covers

| ` + "`completion`" + ` | who has it | what the initiator waits for |
|---|---|---|
| ` + "`used-qp`" + ` | all | the QP or ring that it used: NVSHMEM's internal quiet and its quiet of named QPs, flushAsync and wait for one peer (GIN), a ring's progress, an answer of the ring's worker |
| ` + "`all-qps`" + ` | ` + "`post: nvshmem`" + ` | every DCI and every QP to each PE: the public quiet |
| ` + "`context`" + ` | ` + "`post: doca`" + `, proxies | every peer of the context: GIN's flush. A proxy with a ring to each peer: each ring's progress; with ` + "`proxy.quiet: entry`" + `: an entry to each worker. A quiet request drains all queues in any case |
| ` + "`signal`" + ` | all whose threads run on | the peer's answer: the destination's thread sees the message by the stack's ` + "`notify`" + ` (or ` + "`signal`" + `, of kind put-signal) and sends one of that kind back |
| ` + "`immediate`" + ` | ` + "`post: bare`" + `, proxies, CPU threads | the same with ` + "`notify: immediate`" + ` |

A context is what GIN calls so: a QP, or a ring of a proxy, to each of ` + "`peers.count`" + ` peers, which the threads of a CTA share where the GPU rings. Messages go to one of them; the others
have nothing outstanding. ` + "`peers.used`" + ` were sent to before, so that a flush asks for their last CQE: a load, what ends the wait and an atomic more than the three loads
of a peer never sent to. ` + "`peers.before`" + ` are visited ahead of the messages' peer, while the NIC works, and ` + "`peers.lanes`" + ` lanes share out the visits.

Libraries have no completion by signal at the initiator: a put with signal tells the receiver, and an initiator that must know waits for a signal of the receiver's. So
does ` + "`completion: signal`" + `. It says more than a CQE, that the peer has seen the message, and ` + "`put+completion`" + ` ends when the answer has been seen; a
round trip differs from it by the reply's payload. An immediate is counted at the receiver in every library too: with GPU threads a CPU thread takes its receive CQE, posts the
receive anew, counts, and stores the count into GPU memory through BAR1, where the GPU thread polls. That CPU thread is the proxy's worker or, by ` + "`proxy.receiver: thread`" + ` and where
GPU threads ring, one of its own. The libraries behind ` + "`post: doca`, `nvshmem` and `deepep`" + ` post no receives.
`

const referenceConnections = `
### Connections and DC initiators

With ` + "`workload.connections`" + ` each connection is a QP of its own, or over DC a pair of initiator and target. A stack's own ` + "`qps_per_peer`" + ` does not count then (one that
the scenario sets is an error), nor does its library choose QPs. An initiating thread visits its connections in turn, ` + "`workload.writes_per_visit`" + ` messages each.

Over DC thread ` + "`a` of `n`" + ` has the initiators ` + "`a`, `a+n`, `a+2n`" + ` and so on of the ` + "`dcis`" + ` to itself. Its pairs, target by target, take them in turn: with as many initiators as
connections each keeps to one target and connects once, with fewer they go from target to target, and beyond them some do nothing, which a notice says.
`

const referenceFaults = `
## Faults

` + "```yaml" + `
faults:
  - {kind: loss, rate: 0.1%}                       # swept and set as faults.loss.rate
  - {name: flap, kind: link-down, at: 2ms, for: 500us}
  - {kind: drop-fence, path: mini-gda}             # of one path only
` + "```" + `

A fault has the name of its kind where it has none, and strikes each path, or the one that it names. A chance that lies in its time strikes at ` + "`rate`" + `, up
to ` + "`count`" + ` times. One that never struck, or only during the warm-up, is told in a notice.

| kind | what goes wrong | keys |
|---|---|---|
`

// Reference returns docs/scenario.md: the notation and the whole field table.
func Reference() []byte {
	var b bytes.Buffer
	b.WriteString(referenceHead)
	for k := Duration; k <= Text; k++ {
		fmt.Fprintf(&b, "| %s | %s |\n", k, kinds[k].want)
	}
	b.WriteString(referenceExpect)
	for m := stage.Metric(1); m < stage.MetricCount; m++ {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m, m.Unit(), m.Text())
	}
	for _, s := range []struct{ section, head string }{
		{"cluster", "Section `cluster`"},
		{"host", "Section `host`"},
		{"workload", "Section `workload`"},
		{"path", "Keys of a path (`set` of a path; from its stack)"},
		{"hardware", "Keys of the hardware (`set` of the hardware; from its profile)"},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n| key | value | default | what it is | used by |\n|---|---|---|---|---|\n", s.head)
		for _, f := range fieldTable().fields {
			if f.Section() == s.section {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", strings.TrimPrefix(f.Key, s.section+"."), f.notation(), f.fallback(), f.Text+f.onlyFor(), f.Used)
			}
		}
		if s.section == "path" {
			b.WriteString(referenceScopes + referenceConnections)
		}
	}
	b.WriteString(referenceFaults)
	for _, k := range faultKinds {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.name, k.text, strings.Join(strings.Fields(k.all())[1:], ", "))
	}
	b.WriteString("\n| key | value | default | what it is | used by |\n|---|---|---|---|---|\n")
	for _, f := range faultFields {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", strings.TrimPrefix(f.Key, "fault."), f.notation(), f.fallback(), f.Text, f.Used)
	}
	b.WriteString("\n## Known, but not available yet\n\nThese are errors that say so.\n\n")
	for _, f := range fieldTable().fields {
		if len(f.Later) > 0 {
			fmt.Fprintf(&b, "- `%s`: `%s`\n", f.Key, strings.Join(f.Later, "`, `"))
		}
	}
	fmt.Fprintf(&b, "- the metrics `%s`\n", strings.Join(laterMetrics, "`, `"))
	return b.Bytes()
}

// notation says in a few words what the field's value may be.
func (f *Field) notation() string {
	s := f.Kind.String()
	if f.Kind == Enum {
		s = "`" + strings.Join(f.Enum, "`, `") + "`"
	}
	if f.Alt != 0 {
		s += " or " + f.Alt.String()
	}
	switch {
	case f.Min != "" && f.Max != "" && f.Min == f.Max:
		s += ", only " + f.Min
	case f.Min != "" && f.Max != "":
		s += ", " + f.Min + " to " + f.Max
	case f.Min != "":
		s += ", from " + f.Min
	case f.Max != "":
		s += ", to " + f.Max
	}
	if f.Dist {
		s += ", *dist*"
	}
	if f.List {
		s += ", list or range"
	}
	return s
}

// fallback says what holds where the scenario is silent.
func (f *Field) fallback() string {
	switch {
	case f.Default != "":
		return "`" + f.Default + "`"
	case f.Optional:
		return "none"
	case f.Section() == "hardware":
		return "profile"
	case f.Section() == "path":
		return "stack"
	}
	if f.Section() == "workload" && f.Kinds == nil {
		return "required for messages"
	}
	return "required"
}

// onlyFor names the workload kinds that use the field, where it is not for
// messages.
func (f *Field) onlyFor() string {
	if f.Kinds == nil || slices.Equal(f.Kinds, anyKind) {
		return ""
	}
	return " (kind `" + strings.Join(f.Kinds, "`, `") + "`)"
}

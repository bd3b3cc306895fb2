package hw

import (
	"errors"
	"fmt"
	"strings"

	"gdisim/hw/verbs"
	"gdisim/scenarios"
	"gdisim/stage"
)

// errOtherBackend is why a path is not measured: no CPU thread on libibverbs can
// do it, nor a part of it.
var errOtherBackend = errors.New("nothing of it runs from a CPU thread through libibverbs")

// work is what a scenario asks for, as far as a CPU thread on libibverbs can obey.
type work struct {
	kind               string
	bytes, n, warmup   int
	window, chain, qps int
	every              int // messages of a stream per CQE
	inline             bool
	event              bool // the thread sleeps until an event tells of the CQE
	noBlueFlame        bool
	signal             verbs.Signal

	instead string        // what stands in for what; "" where the path itself runs
	unseen  []stage.Stage // stages of the path that nobody did
}

// read takes from a path what a CPU thread can do of it. The error wraps
// errOtherBackend and says why that is nothing.
func read(c *scenarios.Config) (work, error) {
	if kind := c.Enum("workload.kind"); scenarios.IsStep(kind) {
		return work{}, fmt.Errorf("%w: workload %s sends no message", errOtherBackend, kind)
	}
	w := work{
		kind: c.Enum("workload.kind"), bytes: int(c.Bytes("workload.bytes")), n: c.Count("workload.iterations"), warmup: c.Count("workload.warmup"),
		window: c.Count("workload.outstanding"), chain: 1, qps: 1, every: 1,
	}
	switch c.Enum("path.protocol") {
	case "cpu-verbs":
		if c.Count("path.steps.front_ops") > 0 {
			return w, fmt.Errorf("%w: a GPU stream rings what the CPU has built, and libibverbs rings at once", errOtherBackend)
		}
		w.verbs(c)
	case "cpu-proxy":
		w.proxy(c)
	default:
		return w, fmt.Errorf("%w: the GPU builds the WQE or rings the doorbell", errOtherBackend)
	}
	w.noBlueFlame = !c.Bool("path.blueflame")
	if c.Enum("path.payload_in") != "host" {
		w.add("payload in host memory, not in the GPU's")
	}
	if w.kind == "put-signal" {
		w.signal = verbs.SignalWrite
		if c.Enum("path.signal") == "atomic" {
			w.signal = verbs.SignalAtomic
		}
	}
	if c.Has("path.qps_per_peer") {
		w.qps = c.Count("path.qps_per_peer")
	}
	w.qps, w.chain = min(w.qps, 64), min(w.chain, 64)
	w.window = max(w.window, w.chain)
	return w, nil
}

func (w *work) add(instead string) {
	if w.instead != "" {
		w.instead += "; "
	}
	w.instead += instead
}

// verbs reads a path that CPU threads initiate: all of it runs, but for copies by
// the GPU and hand-overs between threads.
func (w *work) verbs(c *scenarios.Config) {
	w.inline = c.Bool("path.inline")
	w.chain = c.Count("workload.wqes_per_doorbell")
	if w.kind == "stream" {
		if w.chain == 1 {
			w.chain = c.Count("path.cpu.chain")
		}
		w.every = c.Count("path.cpu.cqe_every")
	}
	w.workers(c)
	if c.Bool("path.staged") {
		w.add("the CPU thread's write between the staging buffers, without the copies")
		w.unseen = append(w.unseen, stage.GPUKernelExit, stage.GPUCopy, stage.GPULaunch)
	}
	if c.Count("path.cpu.hops") > 0 || c.Count("path.cpu.reply_hops") > 0 {
		w.add("one thread, without hand-overs to others")
		w.unseen = append(w.unseen, stage.CPUWait)
	}
}

// proxy reads a path with a proxy: what its worker posts runs, by a thread that
// has the descriptor already.
func (w *work) proxy(c *scenarios.Config) {
	w.add("a CPU thread posts what the proxy's worker would, with no GPU and no descriptor")
	w.unseen = append(w.unseen, stage.GPUReserve, stage.GPUBuild, stage.GPUFence, stage.GPURing, stage.PCIeNotify, stage.CPUWait, stage.CPUDequeue, stage.CPUPublish, stage.GPUPoll, stage.GPUObserve)
	w.inline = c.Bool("path.inline") && int64(w.bytes) <= c.Bytes("path.proxy.value")
	if w.kind == "stream" {
		w.chain = c.Count("path.proxy.chain")
	}
	wait := c.Enum("host.proxy.wait")
	if wait == "auto" {
		wait = c.Enum("path.proxy.wait")
	}
	w.event = wait == "interrupt"
	w.workers(c)
}

// workers are queue pairs of one thread here.
func (w *work) workers(c *scenarios.Config) {
	n := c.Count("host.proxy.threads")
	if c.Has("path.proxy.workers") {
		n = c.Count("path.proxy.workers")
	}
	if w.qps = n; n > 1 {
		w.add(fmt.Sprintf("one thread on %d queue pairs for as many workers", n))
	}
}

// notice says what ran in place of a path; "" where the path itself did.
func (w *work) notice(path string) string {
	if w.instead == "" {
		return ""
	}
	s := path + ": " + w.instead
	if len(w.unseen) > 0 {
		var names []string
		for _, u := range w.unseen {
			names = append(names, u.String())
		}
		s += "; not seen: " + strings.Join(names, ", ")
	}
	return s
}

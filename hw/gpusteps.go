package hw

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gdisim/hw/cuda"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// gpuStep is how a workload kind runs on a GPU: what it is, and the experiment
// whose samples are the metric.
type gpuStep struct {
	title  string
	metric stage.Metric
	e      cuda.Experiment
}

// maxSamples that a kernel keeps on its SM.
const maxSamples = 4000

// path fills a path at a point.
func (g *gpu) path(ctx context.Context, c *scenarios.Config, p *result.Path) error {
	n := min(c.Count("workload.iterations"), maxSamples)
	kind := c.Enum("workload.kind")
	if !scenarios.IsStep(kind) {
		switch protocol := c.Enum("path.protocol"); protocol {
		case "gpu-doorbell":
			return g.posts(ctx, c, p, n)
		case "cpu-proxy":
			return g.proxied(ctx, c, p, n)
		default:
			return fmt.Errorf("%w: of protocol %s no part is without a NIC", ErrNothingRuns, protocol)
		}
	}
	if load := "workload.background.kind"; c.Has(load) && !slices.Contains(cuda.Backgrounds, c.Enum(load)) {
		return fmt.Errorf("%w: no kernel of this program makes a background of %s", ErrNothingRuns, c.Enum(load))
	}
	var s gpuStep
	switch kind {
	case "fence":
		s = g.fence(c, n)
	case "store", "load", "atomic":
		s = g.access(c, kind, n)
	case "poll":
		s = g.poll(c, n)
	case "flag-echo":
		s = g.echo(c, n)
	case "post":
		return g.postStep(ctx, c, p, n)
	case "proxy-echo":
		return g.proxyEcho(ctx, c, p, n)
	case "launch":
		s = g.launch(c, n)
	case "notice":
		s = g.notice(c, n)
	case "copy":
		s = g.copying(c, n)
	default:
		return fmt.Errorf("%w: no GPU shows %s", ErrNothingRuns, kind)
	}
	p.Workload = s.title
	t, _, err := g.run(ctx, s.e)
	if err != nil {
		return err
	}
	addMetric(p, s.metric, t.Each)
	if s.e.Kind == cuda.Copy && t.Messages > 0 {
		perSecond := float64(t.Messages) * float64(s.e.Bytes) / t.Elapsed.Seconds()
		p.Metrics = append(p.Metrics, result.Metric{Metric: stage.Goodput, Value: perSecond / 1e9})
	}
	p.Cost = result.Cost{Messages: len(t.Each), SMs: max(s.e.Blocks, 1)}
	return nil
}

func memory(c *scenarios.Config) cuda.Memory {
	if c.Enum("workload.memory") == "host" {
		return cuda.Host
	}
	return cuda.GPU
}

// half is where GPU memory of an experiment lies: in the half of the L2 that the
// profile says.
func (g *gpu) half(c *scenarios.Config, m cuda.Memory) int64 {
	if m != cuda.GPU {
		return 0
	}
	return g.place.Offset(c.Enum("hardware.gpu.placement"))
}

// beside is the traffic that the scenario wants beside a step.
func (g *gpu) beside(c *scenarios.Config, e *cuda.Experiment) {
	if !c.Has("workload.background.kind") {
		return
	}
	for i, word := range cuda.Backgrounds {
		if word == c.Enum("workload.background.kind") {
			e.Background = cuda.Background(i)
		}
	}
	if e.Background >= cuda.StoreHost {
		e.CTAs = min(c.Count("workload.background.ctas"), g.d.SMs()-1)
	}
	if e.Background == cuda.StoreHost && e.CTAs > 1 {
		e.N = min(e.N, 500) // each waits for megabytes
	}
}

func (g *gpu) fence(c *scenarios.Config, n int) gpuStep {
	scope, stores := c.Enum("workload.scope"), c.Count("workload.stores")
	e := cuda.Fence(scope, memory(c), stores, n, cuda.Quiet, 0)
	e.Offset = g.half(c, e.Memory)
	g.beside(c, &e)
	return gpuStep{fmt.Sprintf("fence at %s scope after %d stores to %s memory", scope, stores, c.Enum("workload.memory")), stage.Latency, e}
}

// access is one store, load or atomic at a time. A store has no end that its thread
// sees: its time is that of one of many, back to back.
func (g *gpu) access(c *scenarios.Config, kind string, n int) gpuStep {
	e := cuda.Experiment{Kind: cuda.Samples, Memory: memory(c), N: n, Gap: 6000, Offset: g.half(c, memory(c))}
	title := kind + ", " + c.Enum("workload.memory") + " memory"
	switch kind {
	case "store":
		e.Count, e.Kernel = 256, "store_64"
		switch b := c.Bytes("workload.bytes"); {
		case b <= 4:
			e.Kernel = "store_4"
		case b <= 8:
			e.Kernel = "store_8"
		case b <= 16:
			e.Kernel = "store_16"
		}
		title += ", 256 back to back"
	case "load":
		e.Kernel = "load_volatile"
		if e.Memory == cuda.GPU {
			e.Count = 1 // what a thread loads there to communicate, somebody has stored
		}
	default:
		e.Kernel = "atomic_cas_system"
		title += ", compare and swap"
	}
	g.beside(c, &e)
	return gpuStep{title, stage.Latency, e}
}

func (g *gpu) poll(c *scenarios.Config, n int) gpuStep {
	scope := "system"
	if c.Enum("workload.scope") == "gpu" {
		scope = "gpu"
	}
	blocks := min(c.Count("workload.initiators.ctas"), g.d.SMs())
	e := cuda.Experiment{Kind: cuda.Polls, Kernel: "poll_" + scope, Memory: memory(c), Blocks: blocks, N: min(n, 200), Own: c.Enum("workload.line") == "own", Offset: g.half(c, memory(c))}
	return gpuStep{fmt.Sprintf("%d CTAs poll, %s memory", blocks, c.Enum("workload.memory")), stage.Latency, e}
}

func (g *gpu) echo(c *scenarios.Config, n int) gpuStep {
	fenced := c.Enum("workload.release") == "system"
	title := "flags between GPU and CPU, the GPU asks"
	e := cuda.Experiment{Kind: cuda.Ask, Kernel: "ask", N: n, Gap: 3000, Delay: time.Duration(c.Duration("workload.look_after") / sim.Nanosecond)}
	if c.Enum("workload.from") == "cpu" {
		title = "flags between GPU and CPU, the CPU asks"
		e = cuda.Experiment{Kind: cuda.Answer, Kernel: "answer", N: n, How: cuda.ByStore}
	} else {
		g.beside(c, &e)
	}
	if fenced {
		e.Kernel += "_fenced"
		title += ", the GPU fences before its flag"
	}
	return gpuStep{title, stage.RTT, e}
}

// order is what a stack of the bare sequence puts before record and doorbell; the
// error says why this program's kernels do not post as the path does.
func order(c *scenarios.Config) (fence, kernel string, record, bare bool, err error) {
	if post := c.Enum("path.post"); post != "bare" {
		return "", "", false, false, fmt.Errorf("%w: the sequence of %s is not one of this program's kernels, which post as the bare path does", ErrNothingRuns, post)
	}
	if c.Enum("path.payload_in") == "host" {
		return "", "", false, false, fmt.Errorf("%w: a payload in host memory; this program's kernels copy it from GPU memory or a register", ErrNothingRuns)
	}
	fence = "none"
	if c.Has("path.fence") {
		fence = c.Enum("path.fence")
	}
	kernel, record = cuda.PostOrder(fence, c.Enum("path.record"))
	bare = c.Enum("path.payload_in") == "register" && c.Count("path.steps.state_loads") == 0
	return fence, kernel, record, bare, nil
}

// postStep measures posts that no NIC serves: the rate of all CTAs back to back,
// and of one CTA the post by itself.
func (g *gpu) postStep(ctx context.Context, c *scenarios.Config, p *result.Path, n int) error {
	fence, kernel, record, bare, err := order(c)
	if err != nil {
		return err
	}
	ctas, wqes := min(c.Count("workload.initiators.ctas"), g.d.SMs()), c.Count("workload.wqes_per_doorbell")
	form, whose := "stream", "own queues"
	if c.Enum("workload.queue") == "shared" {
		form, whose = "shared", "one queue"
		if kernel != "device" && kernel != "system" || wqes > 1 {
			return fmt.Errorf("%w: on a shared queue this program posts one WQE a doorbell, with fence device or system", ErrNothingRuns)
		}
	}
	p.Workload = fmt.Sprintf("%d CTAs post %d WQEs a doorbell, %s, no NIC; fence %s", ctas, wqes, whose, fence)
	e := cuda.Experiment{Kind: cuda.Rate, Kernel: cuda.PostKernel(form, kernel, record, bare), Blocks: ctas, N: min(max(n, 200), 4000), Count: wqes, Offset: g.half(c, cuda.GPU)}
	each, err := g.rates(ctx, e, 3)
	if err != nil {
		return err
	}
	p.Metrics = append(p.Metrics, result.Metric{Metric: stage.MessageRate, Value: 1e6 / float64(median(each).value)})
	p.Measured = append(p.Measured, result.Measure("post-rate", "time per WQE of all CTAs, of each repetition", 0, each))
	p.Cost = result.Cost{Messages: ctas * e.N * wqes, Doorbells: ctas * e.N, SMs: ctas}
	if ctas > 1 || wqes > 1 || form == "shared" {
		return nil
	}
	t, _, err := g.run(ctx, cuda.Experiment{Kind: cuda.Samples, Kernel: cuda.PostKernel("post", kernel, record, bare), N: n, Gap: 6000, Offset: e.Offset})
	if err == nil {
		addMetric(p, stage.Issue, t.Each)
	}
	return err
}

// posts measures what a GPU thread that rings the doorbell itself pays: the post,
// after the acquire by which it has seen its last completion, and in a stream the
// posts' rate.
func (g *gpu) posts(ctx context.Context, c *scenarios.Config, p *result.Path, n int) error {
	fence, kernel, record, _, err := order(c)
	if err != nil {
		return err
	}
	kind := c.Enum("workload.kind")
	p.Workload = fmt.Sprintf("%s of 8 B inline as far as the doorbell, to a host page; fence %s", kind, fence)
	if kind == "stream" {
		e := cuda.Experiment{
			Kind: cuda.Rate, Kernel: cuda.PostKernel("stream", kernel, record, false), Blocks: min(c.Count("workload.initiators.ctas"), g.d.SMs()), N: n,
			Count: c.Count("workload.wqes_per_doorbell"),
		}
		each, err := g.rates(ctx, e, 3)
		if err != nil {
			return err
		}
		m := result.Measure("post-rate", fmt.Sprintf("posts back to back without a NIC, %d queues, %d WQEs a doorbell: time per WQE of all", e.Blocks, e.Count), 0, each)
		p.Measured = append(p.Measured, m)
		return nil
	}
	// What ends a plain wait leaves the L1 as it was.
	acquires := 0
	if !strings.HasPrefix(fence, "none") {
		acquires = 1
	}
	post := cuda.Experiment{Kind: cuda.Samples, Kernel: cuda.PostKernel("post", kernel, record, false), N: n, Count: acquires, Gap: 6000, Offset: g.half(c, cuda.GPU)}
	t, _, err := g.run(ctx, post)
	if err != nil {
		return err
	}
	addMetric(p, stage.Issue, t.Each)
	p.Cost = result.Cost{Messages: len(t.Each), Doorbells: len(t.Each), SMs: 1}
	if kernel == "none" {
		return nil
	}
	post.Kernel = cuda.PostKernel("post", "none", false, false)
	plain, _, err := g.run(ctx, post)
	if err != nil {
		return err
	}
	// No stage: behind a full fence the fields are fetched again, and that is in it.
	d := median(t.Each).minus(median(plain.Each))
	p.Measured = append(p.Measured, result.Measured{
		Name: "difference.fences", Method: "the post less the same without fences and record; difference of medians, min and max are its 95 % interval", N: d.n,
		P50: d.value, P99: d.value + d.spread, P999: d.value + d.spread, Max: d.value + d.spread, Min: d.value - d.spread, Mean: d.value,
	})
	return nil
}

func (g *gpu) launch(c *scenarios.Config, n int) gpuStep {
	until, graph := c.Enum("workload.until"), c.Count("workload.graph")
	e := cuda.Experiment{Kind: cuda.Launch, How: cuda.FirstStore, N: n, Count: graph, Blocking: until == "blocking-sync"}
	if until != "first-store" {
		e.How = cuda.Sync
	}
	if graph > 0 {
		e.How += cuda.GraphStore // the same two, of a graph
	}
	return gpuStep{fmt.Sprintf("launch until %s, graph of %d", until, graph), stage.Latency, e}
}

func (g *gpu) notice(c *scenarios.Config, n int) gpuStep {
	by := "stream-sync"
	if c.Has("workload.by") {
		by = c.Enum("workload.by")
	}
	after := time.Duration(c.Duration("workload.after") / sim.Nanosecond)
	e := cuda.Experiment{Kind: cuda.Notice, How: slices.Index(cuda.NoticeBy, by), N: min(n, 1000), Delay: min(after, time.Second)}
	return gpuStep{fmt.Sprintf("notice of a kernel's end by %s", by), stage.Latency, e}
}

func (g *gpu) copying(c *scenarios.Config, n int) gpuStep {
	e := cuda.Experiment{Kind: cuda.Copy, How: cuda.ToHost, Bytes: c.Bytes("workload.bytes"), N: min(n, 500)}
	title := "copy to the host"
	if c.Enum("workload.direction") == "to-gpu" {
		e.How, title = cuda.ToGPU, "copy to the GPU"
	}
	if c.Enum("workload.seen_by") == "poll" && e.How == cuda.ToHost {
		e.Wait = 1
	}
	return gpuStep{title, stage.Latency, e}
}

// proxyEcho measures descriptors to proxy threads and their completions back: one
// by one the round trip, with more under way the rate.
func (g *gpu) proxyEcho(ctx context.Context, c *scenarios.Config, p *result.Path, n int) error {
	e, word, err := g.ring(c)
	if err != nil {
		return err
	}
	e.Kernel, e.Window = "ring_"+c.Enum("workload.descriptor"), min(c.Count("workload.outstanding"), 64)
	p.Workload = fmt.Sprintf("%d CTAs hand descriptors to %d workers (%s) that wait by %s, %d outstanding", e.Blocks, e.Proxies, c.Enum("workload.descriptor"), word, e.Window)
	p.Cost = result.Cost{CPUCores: float64(e.Proxies), SMs: e.Blocks}
	if e.Window > 1 {
		e.N = min(10*n, 4000)
		each, err := g.rates(ctx, e, 3)
		if err == nil {
			p.Metrics = append(p.Metrics, result.Metric{Metric: stage.MessageRate, Value: 1e6 / float64(median(each).value)})
			p.Cost.Messages = e.N * e.Blocks
		}
		return err
	}
	e.N = max(min(n, 60_000/e.Blocks), 1)
	t, _, err := g.run(ctx, e)
	if err != nil {
		return err
	}
	addMetric(p, stage.RTT, t.Each)
	p.Cost.Messages = len(t.Each)
	return nil
}

// waits are the words for how a proxy's thread waits that a thread here can do.
var waits = map[string]int{"poll": cuda.WaitPoll, "poll-yield": cuda.WaitYield, "sleep-poll": cuda.WaitSleep1us, "interrupt": cuda.WaitEventfd}

// ring is what the scenario says of blocks and proxy threads, and how these wait.
func (g *gpu) ring(c *scenarios.Config) (cuda.Experiment, string, error) {
	e := cuda.Experiment{
		Kind: cuda.Proxy, Blocks: min(c.Count("workload.initiators.ctas"), g.d.SMs()), Proxies: min(c.Count("host.proxy.threads"), 8), Window: 1, Gap: 2000,
		Competing: min(c.Count("host.competing.threads"), 4),
	}
	word := c.Enum("host.proxy.wait")
	if word == "auto" {
		word = "poll"
		if c.Has("path.proxy.wait") {
			word = c.Enum("path.proxy.wait")
		}
	}
	wait, ok := waits[word]
	if !ok || wait == cuda.WaitEventfd && e.Blocks > 1 {
		return e, word, fmt.Errorf("%w: no thread of this program waits for %d rings by %s", ErrNothingRuns, e.Blocks, word)
	}
	e.Wait = wait
	return e, word, nil
}

// proxied measures a proxy path as far as the proxy: a descriptor's way to the
// thread and its completion's way back, with a doorbell that nobody hears.
func (g *gpu) proxied(ctx context.Context, c *scenarios.Config, p *result.Path, n int) error {
	e, word, err := g.ring(c)
	if err != nil {
		return err
	}
	e.Kernel, e.N = "ring_lanes", max(min(n, 60_000/e.Blocks), 1)
	t, off, err := g.run(ctx, e)
	if err != nil {
		return err
	}
	p.Workload = fmt.Sprintf("%s as far as the proxy thread and back, 64 B descriptor by four lanes, %d blocks, %d proxies that wait by %s", c.Enum("workload.kind"), e.Blocks, e.Proxies, word)
	p.Measured = append(p.Measured, result.Measure("proxy-round-trip", "a GPU thread's descriptor to the proxy, its doorbell to memory, its completion word back to the GPU thread", off, t.Each))
	p.Cost = result.Cost{Messages: len(t.Each), CPUCores: float64(e.Proxies), SMs: e.Blocks}
	return nil
}

func addMetric(p *result.Path, metric stage.Metric, each []sim.Duration) {
	m := result.Summarise(each)
	m.Metric = metric
	p.Metrics = append(p.Metrics, m)
}

package hw

import (
	"context"
	"fmt"

	"gdisim/hw/cuda"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// gpuStep is how a workload kind runs on a GPU: a title as the simulator has it, and
// what to run for its numbers.
type gpuStep struct {
	title  string
	metric stage.Metric // of the experiment's samples
	e      cuda.Experiment
}

// path fills a path at a point.
func (g *gpu) path(ctx context.Context, c *scenarios.Config, p *result.Path) error {
	n := min(c.Count("workload.iterations"), maxSamples)
	var s gpuStep
	var err error
	switch kind := c.Enum("workload.kind"); {
	case kind == "fence":
		s = g.fence(c, n)
	case scenarios.IsStep(kind):
		err = fmt.Errorf("%w: a GPU runs no %s here yet", ErrNothingRuns, kind)
	case c.Enum("path.protocol") == "gpu-doorbell":
		return g.posts(ctx, c, p, n)
	case c.Enum("path.protocol") == "cpu-proxy":
		return g.proxied(ctx, c, p, n)
	default:
		err = fmt.Errorf("%w: protocol %s", ErrNothingRuns, c.Enum("path.protocol"))
	}
	if err != nil {
		return err
	}
	p.Workload = s.title
	t, _, err := g.run(ctx, s.e)
	if err != nil {
		return err
	}
	addMetric(p, s.metric, t.Each)
	p.Cost = result.Cost{Messages: len(t.Each), SMs: max(s.e.Blocks, 1)}
	return nil
}

// maxSamples that a kernel keeps on its SM.
const maxSamples = 4000

func memory(c *scenarios.Config) cuda.Memory {
	if c.Enum("workload.memory") == "host" {
		return cuda.Host
	}
	return cuda.GPU
}

func (g *gpu) fence(c *scenarios.Config, n int) gpuStep {
	scope, stores := c.Enum("workload.scope"), c.Count("workload.stores")
	e := cuda.Fence(scope, memory(c), stores, n, cuda.Quiet, 0)
	e.Offset = g.offset(c)
	return gpuStep{
		title:  fmt.Sprintf("fence at %s scope after %d stores to %s memory", scope, stores, c.Enum("workload.memory")),
		metric: stage.Latency, e: e,
	}
}

// offset of GPU memory in the half of the L2 that the profile says.
func (g *gpu) offset(c *scenarios.Config) int64 {
	return g.place.Offset(c.Enum("hardware.gpu.placement"))
}

// posts measures what a GPU thread that rings the doorbell itself pays: the post,
// after the acquire by which it has seen its last completion, and in a stream the
// posts' rate.
func (g *gpu) posts(ctx context.Context, c *scenarios.Config, p *result.Path, n int) error {
	if post := c.Enum("path.post"); post != "bare" {
		return fmt.Errorf("%w: the sequence of %s is not one of this program's kernels, which post as the bare path does", ErrNothingRuns, post)
	}
	fence := "none"
	if c.Has("path.fence") {
		fence = c.Enum("path.fence")
	}
	order, record := cuda.PostOrder(fence, c.Enum("path.record"))
	p.Workload = fmt.Sprintf("%s of 8 B inline as far as the doorbell, to a host page; fence %s", c.Enum("workload.kind"), fence)
	if c.Enum("workload.kind") == "stream" {
		e := cuda.Experiment{
			Kind: cuda.Rate, Kernel: cuda.PostKernel("stream", order, record), Blocks: min(c.Count("workload.initiators.ctas"), g.d.SMs()), N: n,
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
	post := cuda.Experiment{Kind: cuda.Samples, Kernel: cuda.PostKernel("post", order, record), N: n, Count: 1, Gap: 6000, Offset: g.offset(c)}
	t, _, err := g.run(ctx, post)
	if err != nil {
		return err
	}
	addMetric(p, stage.Issue, t.Each)
	p.Cost = result.Cost{Messages: len(t.Each), Doorbells: len(t.Each), SMs: 1}
	if order == "none" {
		return nil
	}
	post.Kernel = cuda.PostKernel("post", "none", false)
	plain, _, err := g.run(ctx, post)
	if err != nil {
		return err
	}
	whole, rest := median(t.Each), median(plain.Each)
	b := result.Breakdown{Metric: stage.Issue, Total: whole.value, MeanTotal: mean(t.Each)}
	if d := whole.minus(rest); d.clear() {
		b.Stages = append(b.Stages,
			result.StageTime{Stage: stage.GPUFence, Lane: stage.GPUFence.Lane(), Time: d.value, Mean: d.value, N: 1, Method: "median with the fences less the median of the same post without", Spread: d.spread},
			result.StageTime{Stage: stage.Unresolved, Time: whole.value - d.value, Mean: b.MeanTotal - d.value, N: 1, Method: "the rest of the post", Spread: d.spread})
		p.Breakdowns = append(p.Breakdowns, b)
	}
	return nil
}

func mean(each []sim.Duration) sim.Duration {
	m := result.Summarise(each)
	return m.Mean
}

// proxied measures a proxy path as far as the proxy: a descriptor's way to the
// thread and its completion's way back, with a doorbell that nobody hears.
func (g *gpu) proxied(ctx context.Context, c *scenarios.Config, p *result.Path, n int) error {
	e := cuda.Experiment{
		Kind: cuda.Proxy, Kernel: "ring_lanes", Blocks: min(c.Count("workload.initiators.ctas"), g.d.SMs()), Proxies: c.Count("host.proxy.threads"), N: n, Window: 1, Gap: 2000,
		Competing: c.Count("host.competing.threads"),
	}
	if w := c.Enum("host.proxy.wait"); w == "interrupt" || w == "auto" && c.Enum("path.proxy.wait") == "interrupt" {
		e.Wait = cuda.WaitEventfd
	}
	e.N = max(min(n, 60_000/e.Blocks), 1)
	t, off, err := g.run(ctx, e)
	if err != nil {
		return err
	}
	p.Workload = fmt.Sprintf("%s as far as the proxy thread and back, 64 B descriptor by four lanes, %d blocks, %d proxies", c.Enum("workload.kind"), e.Blocks, e.Proxies)
	p.Measured = append(p.Measured, result.Measure("proxy-round-trip", "a GPU thread's descriptor to the proxy, its doorbell to memory, its completion word back to the GPU thread", off, t.Each))
	p.Cost = result.Cost{Messages: len(t.Each), CPUCores: float64(e.Proxies), SMs: e.Blocks}
	return nil
}

func addMetric(p *result.Path, metric stage.Metric, each []sim.Duration) {
	m := result.Summarise(each)
	m.Metric = metric
	p.Metrics = append(p.Metrics, m)
}

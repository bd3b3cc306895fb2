package hw

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"strings"
	"time"

	"gdisim/hw/mlx5"
	"gdisim/hw/verbs"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// GPUDoorbell has a GPU build WQEs and ring a mlx5 device's doorbell.
type GPUDoorbell struct {
	GPU *mlx5.GPU // nil: a CPU thread does in its place
}

// cpuDoorbell is the name of what runs where a CPU thread takes the GPU's place. A
// GPU does what the path's own stack does.
const cpuDoorbell = "mlx5-cpu"

// Untested is said in every result of the GPU doorbell.
const Untested = "untested on hardware: this backend has driven memory images and libraries of software, and no HCA yet"

// doorbellWork is what a scenario asks of it.
type doorbellWork struct {
	kind    string
	end     mlx5.Config
	program mlx5.Program
	ignored []string // what it cannot obey, for a notice
}

// readDoorbell takes from a path what the poster can do. The error wraps
// errNoDoorbell and says what it cannot.
func readDoorbell(c *scenarios.Config) (w doorbellWork, err error) {
	no := func(why string) (doorbellWork, error) { return w, fmt.Errorf("%w: %s", errNoDoorbell, why) }
	w.kind = c.Enum("workload.kind")
	if scenarios.IsStep(w.kind) {
		return no("workload " + w.kind + " sends no message")
	}
	switch p, post := c.Enum("path.protocol"), c.Enum("path.post"); {
	case p != "gpu-doorbell":
		return no("a CPU posts on this path, which --backend verbs runs")
	case post != "bare":
		return no("its sequence of steps is that of another library (post " + post + "), and this poster's is the bare one")
	case c.Enum("path.posting") != "single":
		return no("several threads share a queue")
	case w.kind != "put" && w.kind != "stream":
		return no("workload " + w.kind + " needs a GPU at the other end too")
	case c.Enum("path.transport") != "rc":
		return no("it is not reliably connected")
	}
	order, record, err := mlx5.ParseFence(c.Enum("path.fence"))
	if err != nil {
		return no(err.Error())
	}
	if r := c.Enum("path.record"); r != "auto" {
		record = r == "true"
	}
	bytes := int(c.Bytes("workload.bytes"))
	shape := mlx5.Shape{Op: mlx5.RDMAWrite, Bytes: bytes, Inline: c.Bool("path.inline") && bytes <= mostInline}
	p := mlx5.Program{
		Shapes: []mlx5.Shape{shape}, N: c.Count("workload.iterations"), Warmup: c.Count("workload.warmup"), Chain: 1, Window: 1, SignalEvery: 1,
		Order: order, Record: record, CPURings: c.Enum("path.rings_by") == "host",
	}
	if w.kind == "stream" {
		p.Chain = min(c.Count("workload.wqes_per_doorbell"), 64)
		p.Window = max(c.Count("workload.outstanding"), 2*p.Chain)
		p.SignalEvery = p.Chain
		p.N *= p.Window
	} else if c.Count("workload.outstanding") > 1 {
		w.ignored = append(w.ignored, "workload.outstanding of a put: one message at a time")
	}
	if c.Has("path.qps_per_peer") && c.Count("path.qps_per_peer") > 1 {
		w.ignored = append(w.ignored, "path.qps_per_peer: one queue pair")
	}
	if c.Enum("path.payload_in") == "register" {
		w.ignored = append(w.ignored, "path.payload_in register: the payload is loaded from GPU memory")
	}
	depth := power(max(64, 2*p.Window*shape.WQEBBs()))
	w.program = p
	w.end = mlx5.Config{
		Bytes: max(bytes, 8), Depth: depth, CQEs: power(max(64, 2*p.Window)), Samples: max(p.N, few),
		QueuesInGPU: c.Enum("path.queues_in") == "gpu", PayloadInGPU: c.Enum("path.payload_in") != "host", CPURings: p.CPURings,
	}
	if p.Window > 1 {
		w.end.Samples = few
	}
	return w, nil
}

// mostInline is the payload that two WQEBBs take in.
const mostInline = 92

func power(n int) int { return 1 << bits.Len(uint(n-1)) }

// errNoDoorbell is why a path is not measured by a GPU that rings.
var errNoDoorbell = errors.New("not by this GPU poster")

// doorbell measures one path by the GPU's doorbell.
func (b *bench) doorbell(ctx context.Context, ref scenarios.PathRef, c *scenarios.Config) (p result.Path, err error) {
	name := ref.Name
	p.Stack = ref.Stack
	w, err := readDoorbell(c)
	if err != nil {
		return p, err
	}
	b.once(Untested)
	who := "a CPU thread in the GPU's place"
	if g := b.o.Doorbell.GPU; g != nil {
		who, w.end.GPU = g.Name, g
	} else {
		p.Stack = cpuDoorbell
		w.ignored = append(w.ignored, "memory of a GPU: all is in host memory")
		w.end.QueuesInGPU, w.end.PayloadInGPU = false, false
	}
	for _, i := range w.ignored {
		b.once(name + ": not obeyed, " + i)
	}
	w.program.Budget = b.o.Timeout
	w.end.Device, w.end.GID, w.end.Port = b.o.Device, b.o.GID, b.o.Port
	p.Workload = fmt.Sprintf("%s %d B by %s on mlx5, host memory at the target, %d outstanding", w.kind, w.program.Shapes[0].Bytes, who, w.program.Window)
	e, err := mlx5.Open(w.end)
	if err != nil {
		return p, err
	}
	defer e.Close()
	defer b.t.leave()
	addr, err := b.t.join(verbs.Config{Device: b.o.Device, QPs: 1, Depth: 1, Bytes: w.end.Bytes}, e.Address())
	if err == nil {
		err = e.Connect(addr)
	}
	if err != nil {
		return p, err
	}
	info := e.Info()
	if info.Emulated == "" && !hasPCI(os.DirFS("/sys"), info.Device) {
		info.Emulated = "a library of software (" + info.Device + " is no PCI device of this machine)"
	}
	b.describe(info)
	b.once(name + ": " + strings.Join(e.How(), ", "))
	for _, q := range c.Used() {
		p.Params = append(p.Params, result.Param{Key: q.Key, Value: q.Value, Unit: q.Unit, Source: q.Source, Kind: q.Kind})
	}
	d := doorbellRun{bench: b, ctx: ctx, e: e, p: &p}
	if w.kind == "stream" {
		return p, d.stream(&w)
	}
	return p, d.put(&w)
}

// hasPCI reports whether an RDMA device stands on a bus: a doorbell of one that does
// not is memory.
func hasPCI(sys fs.FS, device string) bool {
	_, err := fs.Stat(sys, "class/infiniband/"+device+"/device/vendor")
	return err == nil
}

// doorbellRun is one path at one point.
type doorbellRun struct {
	*bench
	ctx  context.Context
	e    *mlx5.Endpoint
	p    *result.Path
	seed byte
}

// run runs a program, and has the target compare what arrived.
func (d *doorbellRun) run(p mlx5.Program) (mlx5.Report, error) {
	d.seed += 17
	b := verbs.Batch{
		Op: verbs.Write, N: p.N, Warmup: p.Warmup, Bytes: p.Shapes[0].Bytes, Chain: 1, QPs: 1, Timeout: d.o.Timeout, Seed: d.seed, Peer: d.t.endpoint(),
	}
	if p.Window > 1 {
		b.Loop = verbs.Rate
	}
	if err := errors.Join(d.e.Prepare(b), d.t.prepare(b)); err != nil {
		return mlx5.Report{}, err
	}
	r, err := d.e.Post(d.ctx, p)
	if err != nil {
		return r, err
	}
	if err := d.t.verify(b); err != nil {
		if p.Order == mlx5.NoOrder {
			err = fmt.Errorf("with nothing to order the doorbell, %w", err)
		}
		return r, err
	}
	return r, nil
}

func durations(ns []int64) []sim.Duration {
	out := make([]sim.Duration, len(ns))
	for i, v := range ns {
		out[i] = sim.Duration(v) * sim.Nanosecond
	}
	return out
}

func (d *doorbellRun) metric(k stage.Metric, samples []sim.Duration) {
	if len(samples) > 0 {
		x := result.Summarise(samples)
		x.Metric = k
		d.p.Metrics = append(d.p.Metrics, x)
	}
}

func (d *doorbellRun) cost(r mlx5.Report) {
	d.p.Cost = result.Cost{Messages: r.Completed, Doorbells: r.Rings, Window: sim.Duration(r.Elapsed) * sim.Nanosecond}
	if d.o.Doorbell.GPU != nil {
		d.p.Cost.SMs = 1
	} else {
		d.p.Cost.CPUCores = 1
	}
}

// put measures messages one at a time, and the same without order and with the
// payload fetched, for what differences tell of stages.
func (d *doorbellRun) put(w *doorbellWork) error {
	r, err := d.run(w.program)
	issue, done := durations(r.Issue), durations(r.Done)
	d.metric(stage.Issue, issue)
	d.metric(stage.PutCompletion, done)
	d.cost(r)
	if err != nil {
		return err
	}
	const inside = ", by the GPU's clock, until the doorbell's store was issued"
	own, fence, payload := median(issue), estimate{}, estimate{}
	beside := w.program
	beside.N, beside.Warmup = min(beside.N, few), min(beside.Warmup, few/10)
	if w.program.Order != mlx5.NoOrder {
		v := beside
		v.Order = mlx5.NoOrder
		if r, err := d.run(v); err == nil {
			d.p.Measured = append(d.p.Measured, result.Measure("op.write-unordered.post", "the same with no order before record and doorbell"+inside, 0, durations(r.Issue)))
			fence = own.minus(median(durations(r.Issue)))
		} else if !errors.Is(err, verbs.ErrBadData) {
			return err
		} else {
			d.once("without order the data that arrived was wrong: " + err.Error())
		}
	}
	if s := w.program.Shapes[0]; s.Inline {
		v := beside
		v.Shapes = []mlx5.Shape{{Op: s.Op, Bytes: s.Bytes}}
		r, err := d.run(v)
		if err != nil {
			return err
		}
		d.p.Measured = append(d.p.Measured, result.Measure("op.write-fetched", "the same with the payload fetched by the NIC, until the CQE", 0, durations(r.Done)))
		payload = median(durations(r.Done)).minus(median(done))
	}
	d.p.Breakdowns = append(d.p.Breakdowns, doorbellStages(issue, done, fence))
	if payload.n > 0 {
		d.p.Measured = append(d.p.Measured, result.Measured{
			Name: "difference.fetched-minus-inline", N: payload.n, P50: payload.value, Mean: payload.value, Min: payload.value - payload.spread, Max: payload.value + payload.spread,
			P99: payload.value + payload.spread, P999: payload.value + payload.spread,
			Method: "the NIC's read of the payload, less what the poster takes to copy it; difference of medians; min and max are its 95 % interval",
		})
	}
	return d.ctx.Err()
}

// doorbellStages cuts a message's way where the poster's clock saw it: what order
// costs, and where that is not clear the whole post, is no guess but a difference.
func doorbellStages(issue, done []sim.Duration, fence estimate) result.Breakdown {
	x := result.Summarise(done)
	b := result.Breakdown{Metric: stage.PutCompletion, Total: x.P50, MeanTotal: x.Mean}
	rest, restMean := x.P50, x.Mean
	if fence.clear() && fence.value <= min(rest, restMean) {
		b.Stages = append(b.Stages, result.StageTime{
			Stage: stage.GPUFence, Lane: stage.GPUFence.Lane(), Time: fence.value, Mean: fence.value, N: 1, Spread: fence.spread,
			Method: "median of the post, less that of the same with no order before record and doorbell",
		})
		rest, restMean = rest-fence.value, restMean-fence.value
	}
	b.Stages = append(b.Stages, result.StageTime{
		Stage: stage.Unresolved, Lane: stage.Unresolved.Lane(), Time: rest, Mean: restMean, N: 1, Spread: median(done).spread,
		Method: "the rest: building, the store to the doorbell, NICs, wire, acknowledgement and completion",
	})
	return b
}

func (d *doorbellRun) stream(w *doorbellWork) error {
	r, err := d.run(w.program)
	d.cost(r)
	if n := r.Completed - w.program.Warmup; err == nil && r.Elapsed > 0 && n > 0 {
		perSecond := float64(n) / (float64(r.Elapsed) / float64(time.Second))
		d.p.Metrics = append(d.p.Metrics, result.Metric{Metric: stage.MessageRate, Value: perSecond / 1e6},
			result.Metric{Metric: stage.Goodput, Value: perSecond * float64(w.program.Shapes[0].Bytes) / 1e9})
	}
	return err
}

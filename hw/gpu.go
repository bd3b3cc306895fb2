package hw

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gdisim/hw/cuda"
	"gdisim/hw/host"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// gpu measures on a device and keeps the clocks that its numbers were taken at.
type gpu struct {
	o          *Options
	d          cuda.Device
	r          *result.Result
	clock      sim.Duration // of two reads of the SM's clock, in every sample of a kernel
	hostClock  sim.Duration
	place      cuda.Placement
	slow, fast int64 // SM clock, the lowest and highest while something ran
}

// openGPU takes the GPU and notes what it is, measures the host, and brings the
// GPU's clock up. On error nothing is held, and the result has what was measured.
func (o *Options) openGPU(ctx context.Context, r *result.Result) (*gpu, error) {
	if o.OpenGPU == nil {
		o.OpenGPU = cuda.Open
	}
	cores := o.gpuCores()
	d, err := o.OpenGPU(cuda.Options{GPU: o.GPU, Cores: cores})
	if err != nil {
		return nil, err
	}
	for _, f := range d.Facts() {
		r.Machine = append(r.Machine, result.Setting(f))
	}
	r.Machine = append(r.Machine, result.Setting{Key: "gpu.cores-of-threads", Value: strings.Trim(fmt.Sprint(cores), "[]")})
	g := &gpu{o: o, d: d, r: r}
	if !o.SkipHost {
		if o.Host.Cores != nil {
			o.Host.Cores = o.Host.Cores[:min(2, len(o.Host.Cores))]
		}
		err = o.host(ctx, r)
		g.hostClock = clockCost(r.Measured)
	}
	for range 3 {
		if err == nil {
			err = g.smClock(ctx, "gpu.sm-clock.before")
		}
	}
	if err == nil {
		var t cuda.Times
		if t, err = d.Run(ctx, cuda.ClockRow(1000).Experiment); err == nil {
			g.clock = median(t.Each).value
			g.place, err = cuda.Place(ctx, d)
		}
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return g, nil
}

// smClock notes the clock of a busy SM under the key, in the place of an earlier note.
func (g *gpu) smClock(ctx context.Context, key string) error {
	t, err := g.d.Run(ctx, cuda.Busy(100*time.Millisecond))
	if err != nil {
		return err
	}
	g.r.Machine = slices.DeleteFunc(g.r.Machine, func(s result.Setting) bool { return s.Key == key })
	g.r.Machine = append(g.r.Machine, result.Setting{Key: key, Value: megahertz(t.Hz)})
	return nil
}

func megahertz(hz int64) string { return fmt.Sprintf("%.1f MHz", float64(hz)/1e6) }

// close notes the clocks and gives the GPU back.
func (g *gpu) close(ctx context.Context) {
	if ctx.Err() == nil && g.smClock(ctx, "gpu.sm-clock.after") == nil && g.fast > 0 {
		g.r.Machine = append(g.r.Machine, result.Setting{Key: "gpu.sm-clock.during", Value: megahertz(g.slow) + " to " + megahertz(g.fast)})
	}
	g.d.Close()
}

// gpuCores are the cores of the calling thread, four proxies and a watcher: each
// second one where there are many, since neighbours are often threads of one core.
func (o *Options) gpuCores() []int {
	const want = 6
	may, err := host.Allowed()
	if err != nil || len(o.Host.Cores) > 0 {
		return o.Host.Cores
	}
	if len(may) < 2*want+2 {
		return may[:min(want, len(may))]
	}
	var out []int
	for i := range want {
		out = append(out, may[2+2*i])
	}
	return out
}

// run runs an experiment, on several pages of host memory where that matters, and
// takes the clock's own cost off its samples.
func (g *gpu) run(ctx context.Context, e cuda.Experiment) (cuda.Times, sim.Duration, error) {
	var t cuda.Times
	for _, part := range cuda.Spread(e, g.d.SMs()) {
		x, err := g.d.Run(ctx, part)
		if err != nil {
			return t, 0, err
		}
		x.Each, x.Second = append(t.Each, x.Each...), append(t.Second, x.Second...)
		x.Hits += t.Hits
		t = x
	}
	if t.Hz > 0 {
		g.fast = max(g.fast, t.Hz)
		if g.slow == 0 || t.Hz < g.slow {
			g.slow = t.Hz
		}
	}
	var off sim.Duration
	switch e.Kind {
	case cuda.Samples, cuda.Ask, cuda.PeerEcho, cuda.Proxy:
		off = g.clock
		if strings.HasPrefix(e.Kernel, "store_") {
			off /= sim.Duration(max(e.Count, 1))
		}
		if e.Kernel == "clock_pair" {
			off = 0
		}
	case cuda.Polls:
		off = g.clock / cuda.Batch
	case cuda.Answer, cuda.Launch, cuda.Copy, cuda.Register, cuda.Export:
		off = g.hostClock
	}
	for _, s := range [][]sim.Duration{t.Each, t.Second} {
		for i := range s {
			s[i] = max(0, s[i]-off)
		}
	}
	return t, off, nil
}

// rates runs a Rate so often; a sample is the time for one message of all.
func (g *gpu) rates(ctx context.Context, e cuda.Experiment, repeat int) ([]sim.Duration, error) {
	var each []sim.Duration
	for i := range repeat + 1 {
		t, _, err := g.run(ctx, e)
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first finds the kernel's code cold
			each = append(each, t.Elapsed/sim.Duration(max(t.Messages, 1)))
		}
	}
	return each, nil
}

// BenchGPU measures everything that the GPU's experiments show, whatever the
// scenario, beside the costs of the host. A ctx that ends, or a GPU that is lost,
// leaves what was measured, Partial, beside its error.
func BenchGPU(ctx context.Context, o Options) (*result.Result, error) {
	o.complete(&scenarios.Scenario{})
	r := &result.Result{
		Schema: result.Schema, Tool: o.Tool, Backend: "hw", Name: "bench-cuda", Title: "What this machine's GPU costs, alone and with its host",
		Machine: Probe(os.DirFS("/"), true).Facts,
	}
	g, err := o.openGPU(ctx, r)
	if err != nil {
		return nil, err
	}
	defer g.close(ctx)
	rows := cuda.Matrix(g.d.SMs(), o.Host.Samples, g.place)
	for i := range rows {
		if i%25 == 0 {
			o.Tell(fmt.Sprintf("GPU, %d of %d: %s", i, len(rows), rows[i].Name))
		}
		ms, err := g.row(ctx, &rows[i])
		r.Measured = append(r.Measured, ms...)
		if err != nil {
			r.Partial = true
			return r, err
		}
	}
	return r, nil
}

// row measures one row; an error that it returns ends the run.
func (g *gpu) row(ctx context.Context, row *cuda.Row) ([]result.Measured, error) {
	if row.Memory == cuda.Peer || row.Kind == cuda.PeerEcho || row.Kind == cuda.PeerCopy {
		if err := g.d.Peer(); err != nil {
			return []result.Measured{{Name: row.Name, Method: row.Method, Err: err.Error()}}, nil
		}
	}
	var out []result.Measured
	var err error
	if row.Repeat > 0 {
		var each []sim.Duration
		if each, err = g.rates(ctx, row.Experiment, row.Repeat); err == nil {
			out = append(out, result.Measure(row.Name, row.Method, 0, each))
		}
	} else {
		e := row.Experiment
		e.Second = row.SecondName != ""
		var t cuda.Times
		var off sim.Duration
		if t, off, err = g.run(ctx, e); err == nil {
			method := row.Method
			if e.Delay > 0 && e.Kind == cuda.Ask {
				method += fmt.Sprintf("; the first look found %d of %d", t.Hits, len(t.Each))
			}
			out = append(out, result.Measure(row.Name, method, off, t.Each))
			if row.SecondName != "" {
				out = append(out, result.Measure(row.SecondName, "the other part: "+row.Method, off, t.Second))
			}
			if e.Kind == cuda.Copy && t.Messages > 0 {
				out = append(out, result.Measure(row.Name+".queued", "the same, one of many that are queued at once", 0, []sim.Duration{t.Elapsed / sim.Duration(t.Messages)}))
			}
		}
	}
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	out = []result.Measured{{Name: row.Name, Method: row.Method, Err: err.Error()}}
	if cuda.Ends(err) {
		return out, fmt.Errorf("%s: %w", row.Name, err)
	}
	return out, nil
}

// RunGPU runs the part of a scenario that a GPU and its host show without a NIC:
// steps as they are, of messages what a thread posts and how a proxy hears of it.
func RunGPU(ctx context.Context, s *scenarios.Scenario, o Options) (*result.Result, error) {
	o.complete(s)
	r := newResult(s, &o)
	g, err := o.openGPU(ctx, r)
	if err != nil {
		return nil, err
	}
	defer g.close(ctx)
	ran, ignored := false, map[string]bool{}
	for i, pt := range s.Points() {
		out := result.Point{Index: pt.Index}
		for _, at := range pt.At {
			out.At = append(out.At, result.Setting(at))
		}
		for j, ref := range s.Paths {
			c := s.Config(i, j)
			o.Tell(fmt.Sprintf("point %d of %d, %s", i+1, len(s.Points()), ref.Name))
			p := result.Path{Name: ref.Name, Stack: ref.Stack, Hardware: s.Hardware}
			err := g.path(ctx, c, &p)
			for _, key := range c.Ignored() {
				ignored[key] = true
			}
			p.Params = used(c)
			if ran = ran || !errors.Is(err, ErrNothingRuns); err != nil && ctx.Err() == nil {
				p.Err = err.Error()
			}
			out.Paths = append(out.Paths, p)
			if ctx.Err() != nil || cuda.Ends(err) {
				r.Partial = true
				r.Points = append(r.Points, out)
				return r, errors.Join(ctx.Err(), err)
			}
		}
		r.Points = append(r.Points, out)
	}
	if !ran {
		return nil, fmt.Errorf("%w; %s", ErrNothingRuns, r.Points[0].Paths[0].Err)
	}
	r.Notices = append(r.Notices, notices(ignored)...)
	r.Notices = append(r.Notices, unseen(s)...)
	return r, nil
}

// unseen names the stages of messages that nothing shows without a NIC; nothing
// for steps, which have none.
func unseen(s *scenarios.Scenario) []string {
	if scenarios.IsStep(s.Config(0, 0).Enum("workload.kind")) {
		return nil
	}
	var names []string
	for st := stage.None + 1; st < stage.Count; st++ {
		switch st.Lane() {
		case stage.LaneNICTx, stage.LaneFabric, stage.LaneNICRx, stage.LanePCIeDst, stage.LaneGPUDst, stage.LaneCPUDst:
			names = append(names, st.String())
		}
	}
	return []string{"there is no NIC in this run, so these stages are not in it: " + stage.PCIeDoorbell.String() + ", " + strings.Join(names, ", ")}
}

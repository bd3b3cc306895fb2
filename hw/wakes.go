package hw

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gdisim/hw/host"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// steps measures the points of a scenario whose workload is a step that this
// machine's CPU takes by itself. Others are named.
func (o *Options) steps(ctx context.Context, s *scenarios.Scenario, r *result.Result) error {
	ignored := map[string]bool{}
	for i, pt := range s.Points() {
		out := result.Point{Index: pt.Index}
		for _, at := range pt.At {
			out.At = append(out.At, result.Setting(at))
		}
		for j := range s.Paths {
			c := s.Config(i, j)
			kind := c.Enum("workload.kind")
			if kind != "wake" {
				if scenarios.IsStep(kind) {
					note(r, "not measured: workload "+kind+" needs more than this machine's CPU")
				}
				continue
			}
			o.Tell(fmt.Sprintf("point %d of %d, path %s", i+1, len(s.Points()), s.Paths[j].Name))
			p, err := o.wake(ctx, c)
			p.Name, p.Stack, p.Hardware = s.Paths[j].Name, s.Paths[j].Stack, s.Hardware
			p.Params = used(c)
			if err != nil && ctx.Err() == nil {
				p.Err, err = err.Error(), nil
			}
			for _, key := range c.Ignored() {
				ignored[key] = true
			}
			out.Paths = append(out.Paths, p)
			if err != nil {
				r.Points = append(r.Points, out)
				r.Partial = true
				return err
			}
		}
		if len(out.Paths) > 0 {
			r.Points = append(r.Points, out)
		}
	}
	r.Notices = append(r.Notices, notices(ignored)...)
	return nil
}

// wake measures one way to wake a thread. On error, what was measured until then
// is returned.
func (o *Options) wake(ctx context.Context, c *scenarios.Config) (result.Path, error) {
	w := host.Wake{
		By: "futex", Asleep: nanoseconds(c.Duration("workload.asleep")), Same: c.Enum("workload.cpu") == "same", N: c.Count("workload.iterations"), Warmup: c.Count("workload.warmup"),
	}
	if c.Has("workload.by") {
		w.By = c.Enum("workload.by")
	}
	if w.By == "nanosleep" {
		w.Slack = nanoseconds(c.Duration("host.proxy.timer_slack"))
	}
	p := result.Path{Workload: fmt.Sprintf("wake-up by %s after %v, on pinned cores of this machine", w.By, w.Asleep)}
	samples, overhead, err := host.MeasureWake(ctx, o.Host, w)
	if len(samples) > 0 {
		m := result.Summarise(samples)
		m.Metric = stage.Latency
		p.Metrics = append(p.Metrics, m)
		p.Measured = append(p.Measured, result.Measured{Name: "clock", Method: "two reads of the monotonic clock, subtracted from each sample", N: 1, P50: overhead, P99: overhead, P999: overhead, Max: overhead, Min: overhead, Mean: overhead})
		p.Cost = result.Cost{Messages: len(samples), CPUCores: 1}
	}
	if err == nil && len(samples) == 0 {
		err = errors.New("no wake-up was measured")
	}
	return p, err
}

// nanoseconds is a duration by the clock of the operating system.
func nanoseconds(d sim.Duration) time.Duration { return time.Duration(d / sim.Nanosecond) }

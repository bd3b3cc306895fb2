package hw

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/golang/mock/gomock"

	"gdisim/hw/cuda"
	"gdisim/hw/cuda/mock"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

const ns = sim.Nanosecond

// fakeGPU is a device on which a clock pair costs 10 ns, a fence 520 ns, a post
// 200 ns without fences and 700 ns with, and everything else 1 us, unless fails
// says otherwise. It must be closed once.
func fakeGPU(t *testing.T, fails func(e cuda.Experiment) error) Options {
	d := mock.NewMockDevice(gomock.NewController(t))
	d.EXPECT().Facts().Return([]cuda.Fact{{Key: "gpu", Value: "mocked"}}).AnyTimes()
	d.EXPECT().SMs().Return(4).AnyTimes()
	d.EXPECT().Peer().Return(fmt.Errorf("%w: this machine has one GPU", cuda.ErrRefused)).AnyTimes()
	d.EXPECT().Close().Times(1)
	d.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, e cuda.Experiment) (cuda.Times, error) {
		if fails != nil {
			if err := fails(e); err != nil {
				return cuda.Times{}, err
			}
		}
		x := cuda.Times{Hz: 1_980_000_000}
		v := sim.Microsecond
		switch {
		case e.Kind == cuda.Spin:
			return x, nil
		case e.Kind == cuda.Rate || e.Kind == cuda.Proxy && e.Window > 1:
			x.Elapsed, x.Messages = sim.Millisecond, 2000
			return x, nil
		case e.Kernel == "clock_pair":
			v = 10 * ns
		case strings.HasPrefix(e.Kernel, "fence_"):
			v = 520 * ns
		case e.Kernel == "post_none":
			v = 200 * ns
		case strings.HasPrefix(e.Kernel, "post_"):
			v = 700 * ns
		}
		n := e.N
		if e.Kind == cuda.Polls || e.Kind == cuda.Proxy {
			n *= max(e.Blocks, 1)
		}
		for range n {
			x.Each = append(x.Each, v)
		}
		if e.Second {
			x.Second = slices.Clone(x.Each)
		}
		return x, nil
	}).AnyTimes()
	return Options{Tool: "test", SkipHost: true, OpenGPU: func(cuda.Options) (cuda.Device, error) { return d, nil }}
}

func parse(t *testing.T, text string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("gpu.yaml", []byte("gdisim: v1\nname: gpu\nhardware: h200-vm\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGPUStep(t *testing.T) {
	r, err := RunGPU(t.Context(), parse(t, "workload: {kind: fence, stores: 1, iterations: 20}\nsweep: {workload.scope: [gpu, system]}\n"), fakeGPU(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Points) != 2 || r.Backend != "hw" || r.Digest == "" || r.Partial {
		t.Fatalf("%+v", r)
	}
	for _, pt := range r.Points {
		p := &pt.Paths[0]
		if m := p.Metric(stage.Latency); p.Name != "fence" || m == nil || m.N != 20 || m.P50 != 510*ns {
			t.Errorf("%v: %+v", pt.At, p)
		}
	}
	for _, want := range []result.Setting{{Key: "gpu", Value: "mocked"}, {Key: "gpu.sm-clock.before", Value: "1980.0 MHz"}, {Key: "gpu.sm-clock.after", Value: "1980.0 MHz"}, {Key: "gpu.sm-clock.during", Value: "1980.0 MHz to 1980.0 MHz"}} {
		if n := len(slices.DeleteFunc(slices.Clone(r.Machine), func(s result.Setting) bool { return s != want })); n != 1 {
			t.Errorf("%v is there %d times", want, n)
		}
	}
}

// Of messages, what exists without a NIC is measured, and the rest is named.
func TestGPUMessages(t *testing.T) {
	s := parse(t, "paths: [mini-gda, {name: unfenced, stack: mini-gda, set: {fence: none}}, mini-proxy, gin-gdaki]\nworkload: {kind: put, bytes: 8B, iterations: 20}\n")
	r, err := RunGPU(t.Context(), s, fakeGPU(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	ps := r.Points[0].Paths
	if m := ps[0].Metric(stage.Issue); m == nil || m.P50 != 690*ns || ps[0].Stack != "mini-gda" {
		t.Errorf("%+v", ps[0])
	}
	if ms := ps[0].Measured; len(ms) != 1 || ms[0].Name != "difference.fences" || ms[0].P50 != 500*ns {
		t.Errorf("%+v", ms)
	}
	if m := ps[1].Metric(stage.Issue); m == nil || m.P50 != 190*ns || len(ps[1].Measured) != 0 {
		t.Errorf("%+v", ps[1])
	}
	if len(ps[2].Metrics) != 0 || len(ps[2].Measured) != 1 || ps[2].Measured[0].Name != "proxy-round-trip" || ps[2].Measured[0].P50 != 990*ns {
		t.Errorf("%+v", ps[2])
	}
	if !strings.Contains(ps[3].Err, "sequence of doca") {
		t.Errorf("%q", ps[3].Err)
	}
	if !slices.ContainsFunc(r.Notices, func(n string) bool {
		return strings.Contains(n, "no NIC") && strings.Contains(n, "nic.wqe-fetch") && strings.Contains(n, "pcie.doorbell") && !strings.Contains(n, "gpu.fence")
	}) {
		t.Errorf("%q", r.Notices)
	}
}

func TestGPUFailures(t *testing.T) {
	fence := "workload: {kind: fence, iterations: 20}\nsweep: {workload.stores: [0, 1, 8]}\n"
	at := func(k int, err error) func(cuda.Experiment) error {
		return func(e cuda.Experiment) error {
			if strings.HasPrefix(e.Kernel, "fence_") && e.Count == k {
				return err
			}
			return nil
		}
	}
	// An experiment that fails takes no other with it.
	r, err := RunGPU(t.Context(), parse(t, fence), fakeGPU(t, at(1, fmt.Errorf("%w: so it is", cuda.ErrMemory))))
	if err != nil || r.Partial || len(r.Points) != 3 || r.Points[1].Paths[0].Err != "out of memory: so it is" || r.Points[2].Paths[0].Err != "" {
		t.Errorf("%v, %+v", err, r)
	}
	// A lost GPU ends the run, with what was measured.
	lost := fmt.Errorf("%w: so it is", cuda.ErrLost)
	r, err = RunGPU(t.Context(), parse(t, fence), fakeGPU(t, at(1, lost)))
	if !errors.Is(err, cuda.ErrLost) || !r.Partial || len(r.Points) != 2 || r.Points[0].Paths[0].Err != "" {
		t.Errorf("%v, %+v", err, r)
	}
	// A run in which nothing can run says why.
	r, err = RunGPU(t.Context(), parse(t, "paths: [gin-gdaki]\nworkload: {kind: put, bytes: 8B}\n"), fakeGPU(t, nil))
	if r != nil || !errors.Is(err, ErrNothingRuns) || !strings.Contains(err.Error(), "doca") {
		t.Errorf("%v", err)
	}
	// One that is interrupted ends at once.
	ctx, cancel := context.WithCancel(t.Context())
	r, err = RunGPU(ctx, parse(t, fence), fakeGPU(t, func(e cuda.Experiment) error {
		if strings.HasPrefix(e.Kernel, "fence_") {
			cancel()
		}
		return ctx.Err()
	}))
	if !errors.Is(err, context.Canceled) || !r.Partial || len(r.Points) != 1 {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := RunGPU(t.Context(), parse(t, fence), Options{OpenGPU: func(cuda.Options) (cuda.Device, error) { return nil, cuda.ErrAbsent }}); !errors.Is(err, cuda.ErrAbsent) {
		t.Errorf("%v", err)
	}
}

func TestGPUBench(t *testing.T) {
	o := fakeGPU(t, func(e cuda.Experiment) error {
		if e.Kind == cuda.Export {
			return fmt.Errorf("%w: dma-buf refused", cuda.ErrRefused)
		}
		return nil
	})
	o.Host.Samples = 40
	r, err := BenchGPU(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]*result.Measured{}
	for i := range r.Measured {
		m := &r.Measured[i]
		if of[m.Name] != nil {
			t.Errorf("%s: twice", m.Name)
		}
		of[m.Name] = m
	}
	for name, want := range map[string]sim.Duration{
		"gpu.clock": 10 * ns, "gpu.fence.system.gpu.0-stores.near": 510 * ns, "post.system.far": 690 * ns, "post-rate.system.4-queues.1-wqes": 500 * ns,
		"notice.stream-sync.after-20us": sim.Microsecond, "copy.to-host.8B": sim.Microsecond, "proxy.lanes.1-blocks.1-proxies": 990 * ns,
	} {
		if m := of[name]; m == nil || m.P50 != want || m.Err != "" || m.N == 0 {
			t.Errorf("%s: %+v, want %v", name, m, want)
		}
	}
	for name, want := range map[string]string{"gpu.export.2MiB": "dma-buf refused", "echo.peer.none": "one GPU"} {
		if m := of[name]; m == nil || !strings.Contains(m.Err, want) || m.N != 0 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	r, err = BenchGPU(t.Context(), func() Options {
		o := fakeGPU(t, func(e cuda.Experiment) error {
			if e.Kind == cuda.Polls {
				return cuda.ErrLost
			}
			return nil
		})
		o.Host.Samples = 40
		return o
	}())
	if !errors.Is(err, cuda.ErrLost) || !r.Partial || len(r.Measured) < 20 || r.Measured[len(r.Measured)-1].Err == "" {
		t.Errorf("%v, %d measured", err, len(r.Measured))
	}
}

// Every kind of step that a GPU shows gets its metric.
func TestGPUKinds(t *testing.T) {
	for _, c := range []struct {
		workload string
		metric   stage.Metric
		want     float64 // ps, or the rate
	}{
		{"{kind: load, memory: host}", stage.Latency, 990e3},
		{"{kind: store, bytes: 16B}", stage.Latency, 1e6 - 39},
		{"{kind: atomic}", stage.Latency, 990e3},
		{"{kind: poll, initiators.ctas: 4}", stage.Latency, 1e6 - 625},
		{"{kind: flag-echo, from: gpu, look_after: 200ns}", stage.RTT, 990e3},
		{"{kind: flag-echo, from: cpu, release: system}", stage.RTT, 1e6},
		{"{kind: proxy-echo, descriptor: flag}", stage.RTT, 990e3},
		{"{kind: proxy-echo, outstanding: 64}", stage.MessageRate, 2},
		{"{kind: launch, until: blocking-sync, graph: 3}", stage.Latency, 1e6},
		{"{kind: notice, by: host-callback}", stage.Latency, 1e6},
		{"{kind: copy, bytes: 4KiB, direction: to-gpu}", stage.Latency, 1e6},
	} {
		text := "workload: " + strings.Replace(c.workload, "}", ", iterations: 24}", 1) + "\n"
		r, err := RunGPU(t.Context(), parse(t, text), fakeGPU(t, nil))
		if err != nil {
			t.Errorf("%s: %v", c.workload, err)
			continue
		}
		p := &r.Points[0].Paths[0]
		m := p.Metric(c.metric)
		if m == nil || c.metric.IsTime() && m.P50 != sim.Duration(c.want) || !c.metric.IsTime() && m.Value != c.want {
			t.Errorf("%s: %+v, %+v", c.workload, m, p)
		}
	}
	post := "paths: [{name: p, stack: mini-gda, set: {fence: system}}]\nworkload: {kind: post, queue: own}\n"
	r, err := RunGPU(t.Context(), parse(t, post), fakeGPU(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Points[0].Paths[0].Metric(stage.MessageRate); m == nil || m.Value != 2 {
		t.Errorf("post: %+v", m)
	}
}

package hw

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"gdisim/hw/cuda"
	"gdisim/hw/host"
	"gdisim/hw/pair"
	"gdisim/hw/verbs"
	"gdisim/result"
	"gdisim/scenarios"
)

// Stack is the name of what runs on hardware: a CPU thread that posts through
// libibverbs, host memory at both ends.
const Stack = "verbs-cpu"

// ErrNothingRuns means that no path of the scenario can be run on this machine.
var ErrNothingRuns = errors.New("no path of this scenario can be run here")

// Options say what to run on, and how long to wait.
type Options struct {
	Tool string // name and version of the program

	Device, PeerDevice string // "" for the first with an active port; PeerDevice in this process
	GID, PeerGID       string // by value
	Port               int    // 0 for 1

	Timeout time.Duration // for a message to make progress
	Pair    pair.Options  // Digest and Tool are filled in

	GPU int // ordinal, with a CUDA device

	Host     host.Options // of the costs of this machine
	SkipHost bool

	// Doorbell, if not nil, measures paths on which a GPU rings; else a CPU thread
	// on libibverbs posts.
	Doorbell *GPUDoorbell

	// Open opens an endpoint; nil for verbs.Open.
	Open func(verbs.Config) (verbs.Endpoint, error)
	// OpenGPU opens a GPU; nil for cuda.Open.
	OpenGPU func(cuda.Options) (cuda.Device, error)
	// Tell is told what is going on, a line each; may be nil.
	Tell func(string)
}

func (o *Options) complete(s *scenarios.Scenario) {
	if o.Open == nil {
		o.Open = verbs.Open
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	o.Pair.Digest, o.Pair.Tool = s.Digest, o.Tool
	if o.Pair.Meet <= 0 {
		o.Pair.Meet = time.Minute
	}
	if o.Pair.Answer <= 0 {
		o.Pair.Answer = 30 * time.Second
	}
}

func newResult(s *scenarios.Scenario, o *Options) *result.Result {
	return &result.Result{
		Schema: result.Schema, Tool: o.Tool, Backend: "hw", Name: s.Name, Title: s.Title, Source: s.File, Digest: s.Digest, Seed: s.Seed,
		Notices: slices.Clone(s.Notices), Machine: Probe(os.DirFS("/"), true).Facts,
	}
}

// RunHost measures what this machine itself costs, and the scenario where its
// workload is a step of the CPU alone. A ctx that ends leaves what was measured,
// Partial, beside its error.
func RunHost(ctx context.Context, s *scenarios.Scenario, o Options) (*result.Result, error) {
	o.complete(s)
	r := newResult(s, &o)
	if !o.SkipHost {
		if err := o.host(ctx, r); err != nil {
			return r, err
		}
	}
	err := o.steps(ctx, s, r)
	if err == nil && len(r.Points) == 0 && len(r.Measured) == 0 {
		return nil, fmt.Errorf("%w: the costs of the host are left out, and no step of the CPU is asked for", ErrNothingRuns)
	}
	return r, err
}

func (o *Options) host(ctx context.Context, r *result.Result) (err error) {
	if c, e := host.Pick(o.Host.Cores); e == nil && c[0] == c[1] {
		note(r, fmt.Sprintf("one core only (%d): what happens between two cores cannot be measured, and those costs are missing", c[0]))
	}
	r.Measured, err = host.Measure(ctx, o.Host)
	r.Partial = r.Partial || err != nil
	return err
}

// Loopback runs the scenario with both ends in this process.
func Loopback(ctx context.Context, s *scenarios.Scenario, o Options) (*result.Result, error) {
	o.complete(s)
	return o.initiate(ctx, s, &local{open: o.Open, device: o.PeerDevice, gid: o.PeerGID, port: o.Port})
}

// Dial runs the scenario against a process that serves at addr.
func Dial(ctx context.Context, s *scenarios.Scenario, addr string, o Options) (*result.Result, error) {
	o.complete(s)
	c, err := pair.Dial(ctx, addr, o.Pair)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return o.initiate(ctx, s, &remote{c: c})
}

// initiate runs every path at every point against t. An error in mid-run ends
// it: what was measured is there, Partial, with the error at its path.
func (o *Options) initiate(ctx context.Context, s *scenarios.Scenario, t target) (*result.Result, error) {
	defer t.bye()
	r := newResult(s, o)
	if !o.SkipHost {
		if err := o.host(ctx, r); ctx.Err() != nil {
			return r, ctx.Err()
		} else if err != nil {
			r.Notices = append(r.Notices, "costs of the host are not in this result: "+err.Error())
		}
		r.Partial = false
	}
	b := bench{o: o, t: t, r: r, overhead: clockCost(r.Measured)}
	before := counters(os.DirFS("/"))
	defer func() { r.Notices = append(r.Notices, moved(before, counters(os.DirFS("/")))...) }()
	ran := 0
	why := errOtherBackend
	ignored := map[string]bool{}
	for i, pt := range s.Points() {
		out := result.Point{Index: pt.Index}
		for _, at := range pt.At {
			out.At = append(out.At, result.Setting(at))
		}
		for j := range s.Paths {
			cfg := s.Config(i, j)
			o.Tell(fmt.Sprintf("point %d of %d, path %s", i+1, len(s.Points()), s.Paths[j].Name))
			name := s.Paths[j].Name
			measure := func() (result.Path, error) { return b.path(ctx, name, cfg) }
			if o.Doorbell != nil {
				measure = func() (result.Path, error) { return b.doorbell(ctx, s.Paths[j], cfg) }
			}
			p, err := measure()
			if errors.Is(err, errOtherBackend) || errors.Is(err, errNoDoorbell) {
				why = fmt.Errorf("%s: %w", name, err)
				b.once("not measured: " + why.Error())
				continue
			}
			ran++
			p.Name, p.Hardware = name, s.Hardware
			for _, key := range cfg.Ignored() {
				ignored[key] = true
			}
			if err != nil && ctx.Err() == nil {
				p.Err = err.Error()
				if f := verbs.Finding(err); f != 0 {
					p.Findings = append(p.Findings, occurred(f, err))
				}
			}
			out.Paths = append(out.Paths, p)
			if err != nil {
				r.Partial = true
				r.Points = append(r.Points, out)
				return r, err
			}
		}
		if len(out.Paths) > 0 {
			r.Points = append(r.Points, out)
		}
	}
	if ran == 0 {
		return nil, fmt.Errorf("%w: %w", ErrNothingRuns, why)
	}
	r.Notices = append(r.Notices, notices(ignored)...)
	return r, nil
}

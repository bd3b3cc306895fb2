package testbed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"gdisim/result"
	"gdisim/scenarios"
)

// Options say how a scenario is run.
type Options struct {
	Breakdown bool                  // record spans
	Workers   int                   // points at the same time; 0: all cores
	Progress  func(done, total int) // called from one goroutine at a time; may be nil
	// Trace gives the sink that takes the spans of a pass (what it simulates:
	// "put", "ping-pong", ...) of a path at a point, an index of Points; nil, or
	// nil returned: none. Without Breakdown there is nothing to trace. Passes of
	// different points may run at the same time unless Workers is 1.
	Trace func(point int, path, pass string) result.TraceSink
	// Shard is which points are run; the zero value: all.
	Shard Shard
	// Done are points of an earlier part of this very sweep (see Digest): they are
	// taken as they are.
	Done []result.Point
}

// Shard is the points whose index has the remainder K when divided by N.
type Shard struct{ K, N int }

// Of returns how many of n points are the shard's.
func (s Shard) Of(n int) int {
	if s.N == 0 {
		return n
	}
	return (n - s.K + s.N - 1) / s.N
}

// Has reports whether the point of that index is the shard's.
func (s Shard) Has(i int) bool { return s.N == 0 || i%s.N == s.K }

// Digest names all that a sweep's results come from but the program itself.
func Digest(s *scenarios.Scenario, o Options) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s breakdown %t", s.Expanded(), o.Breakdown))
	return hex.EncodeToString(sum[:])
}

// graphPoints is at how many points the recorded operations are kept: they are
// most of a result, and a wide sweep is not looked at span by span.
const graphPoints = 50

// Run runs the points of the scenario. The result of a shard is Partial. When ctx
// ends early, it holds the finished points and is Partial too, and the error is
// ctx's. Other errors are what the scenario combines in a way that no machine
// could: all of it, found before the first point runs. The result is nil then.
func Run(ctx context.Context, s *scenarios.Scenario, o Options) (*result.Result, error) {
	points := s.Points()
	res := &result.Result{Schema: result.Schema, Backend: "sim", Name: s.Name, Title: s.Title, Source: s.File, Digest: s.Digest, Seed: s.Seed, Notices: append([]string(nil), s.Notices...)}
	if o.Breakdown && len(points) > graphPoints {
		res.Notices = append(res.Notices, fmt.Sprintf("operations are kept span by span at the first %d of %d points", graphPoints, len(points)))
	}
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	type done struct {
		point int
		out   result.Point
		errs  []error
		cut   bool // interrupted before all paths had run
	}
	finished := make([]*done, len(points))
	for _, p := range o.Done {
		finished[p.Index] = &done{point: p.Index, out: p}
	}
	var todo, unknown []int // of the shard; of all
	for i := range points {
		if finished[i] == nil {
			unknown = append(unknown, i)
			if o.Shard.Has(i) {
				todo = append(todo, i)
			}
		}
	}
	if err := refused(ctx, s, unknown, workers); err != nil {
		return nil, err
	}
	jobs := make(chan int)
	results := make(chan done)
	var wg sync.WaitGroup
	for range min(workers, len(todo)) {
		wg.Go(func() {
			for i := range jobs {
				d := done{point: i, out: result.Point{Index: points[i].Index}}
				for _, a := range points[i].At {
					d.out.At = append(d.out.At, result.Setting{Key: a.Key, Value: a.Value})
				}
				for p := range s.Paths {
					r := &runner{ctx: ctx, cfg: s.Config(i, p), name: s.Paths[p].Name, seed: s.Seed, point: uint64(i), breakdown: o.Breakdown}
					if o.Trace != nil {
						r.trace = func(pass string) result.TraceSink { return o.Trace(i, s.Paths[p].Name, pass) }
					}
					out, err := r.safely()
					if errors.Is(err, ctx.Err()) && err != nil {
						d.cut = true
						break
					}
					if err != nil {
						d.errs = append(d.errs, fmt.Errorf("paths.%s: %w", s.Paths[p].Name, err))
						continue
					}
					out.Name, out.Stack, out.Hardware = s.Paths[p].Name, s.Paths[p].Stack, s.Hardware
					if i >= graphPoints {
						out.Graphs = nil
					}
					d.out.Paths = append(d.out.Paths, out)
					d.out.Add(r.counts)
				}
				results <- d
			}
		})
	}
	go func() {
		defer close(jobs)
		for _, i := range todo {
			select {
			case jobs <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() {
		wg.Wait()
		close(results)
	}()

	n := 0
	for d := range results {
		if d.cut {
			continue
		}
		finished[d.point] = &d
		n++
		if o.Progress != nil {
			o.Progress(n, len(todo))
		}
	}
	var errs []error
	var there []result.Point
	seen := map[string]bool{}
	for _, d := range finished {
		if d == nil {
			continue
		}
		for _, e := range d.errs {
			if !seen[e.Error()] {
				seen[e.Error()] = true
				errs = append(errs, e)
			}
		}
		there = append(there, d.out)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	of := ""
	if len(there) < len(points) {
		of = Digest(s, o)
	}
	res.Gather(of, len(points), there)
	if n < len(todo) {
		return res, ctx.Err()
	}
	return res, nil
}

// Points are looked at in portions of so many, until one of them has that many
// refusals: what comes then says little new, and a sweep may have many points.
const (
	refusedAtOnce = 256
	refusedEnough = 64
)

// refused sets up every path at each of the points and returns what none of them
// could run, as scenarios.Problems.
func refused(ctx context.Context, s *scenarios.Scenario, points []int, workers int) error {
	var all []*scenarios.Refusal
	for portion := range slices.Chunk(points, refusedAtOnce) {
		found, err := refusals(ctx, s, portion, workers)
		if err != nil {
			return err
		}
		if all = append(all, found...); len(all) >= refusedEnough {
			break
		}
	}
	return s.Refused(all)
}

// refusals are those of the points, in their order; an error is a Fault.
func refusals(ctx context.Context, s *scenarios.Scenario, points []int, workers int) ([]*scenarios.Refusal, error) {
	found := make([][]error, len(points))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, len(points)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(points) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				for p := range s.Paths {
					r := &runner{ctx: ctx, cfg: s.Config(points[i], p), name: s.Paths[p].Name, seed: s.Seed, point: uint64(points[i]), dry: true}
					if _, err := r.safely(); err != nil {
						found[i] = append(found[i], refusalOf(err, s, points[i], p))
					}
				}
			}
		})
	}
	wg.Wait()
	var all []*scenarios.Refusal
	for _, errs := range found {
		for _, err := range errs {
			var x *scenarios.Refusal
			if !errors.As(err, &x) {
				return nil, err // a Fault
			}
			all = append(all, x)
		}
	}
	return all, nil
}

// refusalOf says where an error was found; one of a model, which knows no keys, is
// a refusal too. A Fault is none.
func refusalOf(err error, s *scenarios.Scenario, point, path int) error {
	var f *Fault
	if errors.As(err, &f) {
		return fmt.Errorf("paths.%s: %w", s.Paths[path].Name, err)
	}
	x := &scenarios.Refusal{What: err.Error()}
	var r *scenarios.Refusal
	if errors.As(err, &r) {
		x = r
	}
	x.Point, x.Path = point, path
	return x
}

// safely runs one path at one point; a broken invariant of a model becomes an
// error with its stack instead of ending a whole sweep.
func (r *runner) safely() (out result.Path, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = &Fault{Value: x, Stack: debug.Stack()}
		}
	}()
	return r.run()
}

// Fault is a broken invariant of a model: our mistake, not the scenario's.
type Fault struct {
	Value any
	Stack []byte
}

// Error says what broke and where.
func (f *Fault) Error() string {
	return fmt.Sprintf("broken invariant of gdisim, please report it with the scenario: %v\n%s", f.Value, f.Stack)
}

package calibrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

const text = `gdisim: v1
name: synthetic
hardware: h200-cx7-ib200
paths: [mini-gda, mini-proxy]
workload: {kind: put, bytes: [8B, 4KiB], iterations: 100, warmup: 10}
`

func load(t testing.TB, sets ...string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("synthetic.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(sets); err != nil {
		t.Fatal(err)
	}
	return s
}

func simulate(t testing.TB, sets ...string) *result.Result {
	t.Helper()
	r, err := testbed.Run(t.Context(), load(t, sets...), testbed.Options{Breakdown: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// noisy is a result whose every metric is off by its own random part: what a
// machine that differs a little from the model measures.
func noisy(r *result.Result, seed uint64, share float64) *result.Result {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := *r
	out.Points = slices.Clone(r.Points)
	for i := range out.Points {
		out.Points[i].Paths = slices.Clone(r.Points[i].Paths)
		for j := range out.Points[i].Paths {
			p := &out.Points[i].Paths[j]
			p.Metrics = slices.Clone(p.Metrics)
			for k := range p.Metrics {
				m := &p.Metrics[k]
				m.P50 = sim.Duration(float64(m.P50) * (1 + share*rng.NormFloat64()))
				m.Quantiles = nil
			}
		}
	}
	return &out
}

// remembered keeps the simulator's results, since many fits begin alike.
func remembered() func(context.Context, *scenarios.Scenario, testbed.Options) (*result.Result, error) {
	var mu sync.Mutex
	seen := map[string]*result.Result{}
	return func(ctx context.Context, s *scenarios.Scenario, o testbed.Options) (*result.Result, error) {
		c := s.Config(0, 0)
		key := fmt.Sprint(c.Delay("hardware.nic.tx"), c.Delay("hardware.nic.ack"), c.Cost("hardware.cpu.flush"))
		mu.Lock()
		r := seen[key]
		mu.Unlock()
		if r != nil {
			return r, nil
		}
		r, err := testbed.Run(ctx, s, o)
		if err == nil {
			mu.Lock()
			seen[key] = r
			mu.Unlock()
		}
		return r, err
	}
}

// Results made with known parameters and noise: the fit must find them again
// within the intervals that it states, all of them at once, for 95 of 100 seeds.
func TestRecovers(t *testing.T) {
	truth := map[string]float64{"hardware.nic.tx": 1.25, "hardware.nic.ack": 0.7, "hardware.cpu.flush": 2}
	s := load(t)
	m, err := newModel(t.Context(), []Set{{Scenario: s}}, Options{Iterations: 40})
	if err != nil {
		t.Fatal(err)
	}
	var sets []string
	for key, x := range truth {
		sets = append(sets, key+"="+m.params[key].text(x))
	}
	clean := simulate(t, sets...)
	o := Options{Fit: []string{"hardware.nic.tx", "hardware.nic.ack", "hardware.cpu.flush"}, Simulate: remembered()}
	const seeds = 100
	var good [seeds]bool
	var wg sync.WaitGroup
	limit := make(chan struct{}, 2)
	for seed := range seeds {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			o := o
			o.Seed = uint64(seed)
			f, err := Run(t.Context(), []Set{{s, []*result.Result{noisy(clean, uint64(seed), 0.01)}}}, o)
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
				return
			}
			good[seed] = true
			for _, p := range f.Params {
				x, known := truth[p.Key]
				switch {
				case known && !p.Fitted:
					t.Errorf("seed %d: %s is left: %s", seed, p.Key, p.Why)
				case known && (x < p.Low || x > p.High):
					good[seed] = false
					t.Logf("seed %d: %s is %.3f, found %.3f (%.3f to %.3f)", seed, p.Key, x, p.Scale, p.Low, p.High)
				}
			}
			if f.After > f.Before {
				t.Errorf("seed %d: error %v before and %v after", seed, f.Before, f.After)
			}
		})
	}
	wg.Wait()
	n := 0
	for _, ok := range good {
		if ok {
			n++
		}
	}
	t.Logf("%d of %d", n, seeds)
	if n < 95 {
		t.Errorf("recovered in %d of %d seeds", n, seeds)
	}
}

func TestExactRecovery(t *testing.T) {
	s := load(t)
	f, err := Run(t.Context(), []Set{{s, []*result.Result{simulate(t, "hardware.nic.ack=500ns")}}}, Options{Fit: []string{"hardware.nic.ack"}})
	if err != nil {
		t.Fatal(err)
	}
	p := f.Params[0]
	if want := 500.0 / 404; !p.Fitted || math.Abs(p.Scale-want) > 0.02 || p.Low > want || p.High < want {
		t.Errorf("%+v, want %.4f", p, want)
	}
	if f.After > 0.003 || f.HeldAfter > 0.003 {
		t.Errorf("errors %v and %v", f.After, f.HeldAfter)
	}
	held := 0
	for _, r := range f.Rows {
		if r.HeldOut {
			held++
		}
	}
	if held == 0 || held > len(f.Rows)/3 {
		t.Errorf("%d of %d rows held out", held, len(f.Rows))
	}
}

func TestIdentifies(t *testing.T) {
	s := load(t)
	f, err := Run(t.Context(), []Set{{s, []*result.Result{simulate(t)}}}, Options{Fit: []string{"hardware.nic.tx", "hardware.nic.rx", "hardware.fabric.cable", "hardware.nic.tx_message", "hardware.pcie.mesh_latency"}})
	if err != nil {
		t.Fatal(err)
	}
	fitted := 0
	for _, p := range f.Params {
		if p.Fitted {
			fitted++
		}
		switch {
		case p.Fitted:
		case p.Why == "":
			t.Errorf("%s is left without a reason", p.Key)
		case p.Key == "hardware.pcie.mesh_latency" && !strings.Contains(p.Why, "no path") && !strings.Contains(p.Why, "no number"):
			t.Errorf("%s: %s", p.Key, p.Why)
		case p.Key == "hardware.fabric.cable" && !strings.Contains(p.Why, "together") && !strings.Contains(p.Why, "less than"):
			t.Errorf("%s: %s", p.Key, p.Why)
		}
	}
	if fitted == 0 || len(f.Params) != 5 {
		t.Errorf("%d of %d fitted", fitted, len(f.Params))
	}
	for _, p := range f.Params {
		if p.Fitted && (p.Low > 1 || p.High < 1) {
			t.Errorf("%s: nothing was changed, found %.3f to %.3f", p.Key, p.Low, p.High)
		}
	}
}

func TestRefuses(t *testing.T) {
	s := load(t)
	r := simulate(t)
	r.Emulated = "soft-RoCE (rxe0)"
	if _, err := Run(t.Context(), []Set{{s, []*result.Result{r}}}, Options{}); !errors.Is(err, ErrEmulated) {
		t.Errorf("emulated: %v", err)
	}
	f, err := Run(t.Context(), []Set{{s, []*result.Result{r}}}, Options{AllowEmulated: true, Fit: []string{"hardware.nic.ack"}})
	if err != nil {
		t.Fatal(err)
	}
	var profile, report bytes.Buffer
	if err := errors.Join(f.Profile(&profile, "soft", "h200-cx7-ib200"), f.Text(&report, true)); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*bytes.Buffer{&profile, &report} {
		if !strings.Contains(b.String(), "EMULATED") {
			t.Errorf("does not say that it is emulated:\n%s", b)
		}
	}
	if _, err := Run(t.Context(), []Set{{s, []*result.Result{simulate(t)}}}, Options{Fit: []string{"hardware.nic.nothing"}}); err == nil {
		t.Error("an unknown parameter was accepted")
	}
}

// What hardware cannot separate, and totals of another stack, are no rows.
func TestRowsOfHardware(t *testing.T) {
	of := simulate(t)
	hw := simulate(t)
	hw.Backend = "hw"
	for i := range hw.Points {
		for j := range hw.Points[i].Paths {
			p := &hw.Points[i].Paths[j]
			p.Stack = "verbs-cpu"
			p.Breakdowns = []result.Breakdown{{Metric: stage.PutCompletion, Stages: []result.StageTime{
				{Stage: stage.CPUPost, Time: 300 * sim.Nanosecond, Method: "clock"}, {Stage: stage.Unresolved, Time: sim.Microsecond, Method: "rest"},
			}}}
		}
	}
	got, notices := rows(hw, of)
	if len(got) != 2 { // mini-gda has no cpu.post
		t.Errorf("%d rows, want one for each size of the proxy path", len(got))
	}
	for _, r := range got {
		v, ok := r.of(of)
		p := &of.Points[r.point].Paths[r.path]
		post, _ := p.Lookup("put+completion/cpu.post")
		ring, _ := p.Lookup("put+completion/cpu.ring")
		if !ok || v != post.Time+ring.Time || ring.Time == 0 {
			t.Errorf("%s is %v, want post %v and ring %v", r.What, v, post.Time, ring.Time)
		}
	}
	if len(notices) != 1 || !strings.Contains(notices[0], "another stack") {
		t.Errorf("%q", notices)
	}
}

// A profile that was written is one that loads, and gives what was fitted.
func TestProfileLoads(t *testing.T) {
	s := load(t)
	host := &result.Result{Backend: "hw", Name: "host", Measured: []result.Measured{
		result.Measure("line.cross-core", "", 0, []sim.Duration{80 * sim.Nanosecond, 90 * sim.Nanosecond, 90 * sim.Nanosecond, 100 * sim.Nanosecond}),
	}}
	f, err := Run(t.Context(), []Set{{s, []*result.Result{simulate(t, "hardware.nic.ack=500ns"), host}}}, Options{Fit: []string{"hardware.nic.ack", "hardware.cpu.miss"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var b bytes.Buffer
	if err := f.Profile(&b, "mine", "h200-cx7-ib200"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	ps, err := scenarios.ProfileParams(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	want := map[string]string{"hardware.nic.ack": "derived", "hardware.cpu.miss": "measured"}
	for _, p := range ps {
		if kind, ok := want[p.Key]; ok {
			if p.Kind != kind || !strings.Contains(p.Source, "99 %") {
				t.Errorf("%+v", p)
			}
			if p.Key == "hardware.cpu.miss" && p.Value != "90ns" {
				t.Errorf("cpu.miss is %s", p.Value)
			}
			delete(want, p.Key)
		}
	}
	if len(want) > 0 {
		t.Errorf("not in the profile: %v\n%s", want, b.String())
	}
}

func TestNothing(t *testing.T) {
	f, err := Run(t.Context(), []Set{{load(t), nil}}, Options{Fit: []string{"hardware.nic.ack"}})
	if err != nil {
		t.Fatal(err)
	}
	if f.Params[0].Fitted || len(f.Notices) == 0 || !math.IsNaN(f.After) {
		t.Errorf("%+v", f)
	}
	var b bytes.Buffer
	if err := errors.Join(f.Text(&b, true), f.JSON(&b), f.Profile(&b, "p", "h200-cx7-ib200")); err != nil {
		t.Error(err)
	}
}

func TestBounded(t *testing.T) {
	m, err := newModel(t.Context(), []Set{{Scenario: load(t)}}, Options{Iterations: 40})
	if err != nil {
		t.Fatal(err)
	}
	// A measurement that no allowed value explains ends at the bound, and says so.
	s := load(t)
	r := simulate(t, "hardware.nic.ack=20us")
	f, err := Run(t.Context(), []Set{{s, []*result.Result{r}}}, Options{Fit: []string{"hardware.nic.ack"}})
	if err != nil {
		t.Fatal(err)
	}
	if p := f.Params[0]; !p.AtBound || p.Scale > highest || p.Scale < highest*0.99 || p.Why == "" {
		t.Errorf("%+v (prior %s)", p, m.params["hardware.nic.ack"].text(1))
	}
}

// Two scenarios, each of which tells one parameter, tell both together; a rate is a
// number as good as a time.
func TestSeveralScenarios(t *testing.T) {
	text := func(name, workload string) *scenarios.Scenario {
		s, err := scenarios.Parse(name+".yaml", []byte("gdisim: v1\nname: "+name+"\nhardware: h200-vm\nworkload: "+workload+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	var sets []Set
	for _, s := range []*scenarios.Scenario{
		text("system", "{kind: fence, scope: system, stores: 0, iterations: 40}"), text("gpu", "{kind: fence, scope: gpu, stores: 0, iterations: 40}"),
	} {
		truth := *s
		if err := truth.Apply([]string{"hardware.gpu.fence.release_system=600ns", "hardware.gpu.fence.idle=300cy"}); err != nil {
			t.Fatal(err)
		}
		r, err := testbed.Run(t.Context(), &truth, testbed.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, Set{s, []*result.Result{r, r, r}})
	}
	f, err := Run(t.Context(), sets, Options{Fit: []string{"hardware.gpu.fence.release_system", "hardware.gpu.fence.idle"}})
	if err != nil {
		t.Fatal(err)
	}
	if f.Scenario != "system, gpu" || len(f.Rows) != 6 || !strings.HasPrefix(f.Rows[5].What, "gpu fence latency") {
		t.Errorf("%q, rows %+v", f.Scenario, f.Rows)
	}
	want := map[string]float64{"hardware.gpu.fence.release_system": 600. / 475, "hardware.gpu.fence.idle": 300. / 184}
	for _, p := range f.Params {
		if !p.Fitted || math.Abs(p.Scale/want[p.Key]-1) > 0.001 {
			t.Errorf("%+v", p)
		}
	}
	other := load(t)
	if _, err := Run(t.Context(), append(sets, Set{other, nil}), Options{}); err == nil || !strings.Contains(err.Error(), "one profile is fitted at a time") {
		t.Errorf("%v", err)
	}
}

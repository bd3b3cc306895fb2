package calibrate

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

// truth of a host, in ns, and what a measurement of it sees.
var truth = map[string]float64{"syscall": 150, "yield": 330, "switch": 900, "wake_up": 700, "object": 420, "interrupt": 1700, "line": 80, "tick.length": 1500}

// measuredHost is a noisy measurement of truth, a sample each by its own sequence.
func measuredHost(seed uint64) *result.Result {
	rng := rand.New(rand.NewPCG(seed, 7))
	cost := func(name string, ns float64) result.Measured {
		var s []sim.Duration
		for range 100 {
			s = append(s, sim.Duration((ns*(1+0.05*rng.NormFloat64()))*float64(sim.Nanosecond)))
		}
		return result.Measure(name, "", 0, s)
	}
	t := truth
	same := t["wake_up"] + 2*t["syscall"] + t["switch"]
	event := t["interrupt"] + t["wake_up"] + t["switch"]
	off := sim.Duration(20 * rng.NormFloat64() * float64(sim.Nanosecond))
	diff := result.Measured{Name: "difference.event-minus-poll", N: 200, P50: sim.Duration(event)*sim.Nanosecond + off}
	diff.Min, diff.Max = diff.P50-sim.Duration(1.96*20*float64(sim.Nanosecond)), diff.P50+sim.Duration(1.96*20*float64(sim.Nanosecond))
	return &result.Result{
		Schema: result.Schema, Backend: "hw", Name: "host", Measured: []result.Measured{
			cost("syscall", t["syscall"]), cost("sched-yield", t["yield"]), cost("switch.yield", 2*(t["switch"]+t["syscall"])), cost("wake.futex.same-core", same),
			cost("wake.eventfd.same-core", same+t["object"]), cost("line.cross-core", t["line"]), cost("gap", t["tick.length"]),
		},
		Points: []result.Point{{At: []result.Setting{{Key: "other", Value: "point"}}, Paths: []result.Path{{Name: "x", Measured: []result.Measured{diff}}}}},
	}
}

// Costs of the host become parameters, by the sums that undo the simulator's own
// sequence of the same step: within the stated interval for 95 of 100 seeds.
func TestHostCostsAreRecovered(t *testing.T) {
	s := load(t)
	inside, all := map[string]int{}, 0
	const seeds = 100
	for seed := range uint64(seeds) {
		m, err := newModel(t.Context(), []Set{{Scenario: s}}, Options{Iterations: 10})
		if err != nil {
			t.Fatal(err)
		}
		f := &Fit{}
		taken := f.host(m, []*result.Result{measuredHost(seed)}, Options{Bootstrap: 150, Seed: seed})
		for key, want := range truth {
			key = "hardware.cpu." + key
			if !taken[key] {
				t.Fatalf("%s was not taken", key)
			}
			for _, p := range f.Params {
				if p.Key == key {
					lo, hi := parse(t, p.LowValue), parse(t, p.HighValue)
					if v := sim.Duration(want * float64(sim.Nanosecond)); lo <= v && v <= hi {
						inside[key]++
					}
					all++
				}
			}
		}
	}
	if all != seeds*len(truth) {
		t.Fatalf("%d parameters, want %d", all, seeds*len(truth))
	}
	for key, n := range inside {
		t.Logf("%s: true value inside for %d of %d seeds", key, n, seeds)
		if n < 95 {
			t.Errorf("%s: inside for %d of %d seeds only", key, n, seeds)
		}
	}
}

// parse reads what Duration.String wrote.
func parse(t *testing.T, text string) sim.Duration {
	t.Helper()
	for _, u := range []struct {
		name string
		d    sim.Duration
	}{{"ps", sim.Picosecond}, {"ns", sim.Nanosecond}, {"us", sim.Microsecond}, {"ms", sim.Millisecond}} {
		if num, ok := strings.CutSuffix(text, u.name); ok {
			v, err := strconv.ParseFloat(num, 64)
			if err != nil {
				t.Fatal(err)
			}
			return sim.Duration(v * float64(u.d))
		}
	}
	t.Fatalf("%q is no duration", text)
	return 0
}

// What measured costs said holds in every trial of the fit.
func TestTakenCostsAreSimulated(t *testing.T) {
	s := load(t)
	ok := false
	_, err := Run(t.Context(), []Set{{s, []*result.Result{measuredHost(1)}}}, Options{
		Iterations: 10, Bootstrap: 10, Fit: []string{"hardware.cpu.syscall"},
		Simulate: func(ctx context.Context, s *scenarios.Scenario, o testbed.Options) (*result.Result, error) {
			d := s.Config(0, 0).Delay("hardware.cpu.syscall").Mean()
			ok = d > 140*sim.Nanosecond && d < 160*sim.Nanosecond
			return testbed.Run(ctx, s, o)
		},
	})
	if err != nil || !ok {
		t.Errorf("%v; the trial did not have what was measured", err)
	}
}

func TestCostsThatMakeNoSense(t *testing.T) {
	s := load(t)
	r := measuredHost(1)
	for i := range r.Measured {
		if r.Measured[i].Name == "switch.yield" {
			r.Measured[i] = result.Measure("switch.yield", "", 0, []sim.Duration{1, 2, 3})
		}
	}
	m, err := newModel(t.Context(), []Set{{Scenario: s}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &Fit{}
	if taken := f.host(m, []*result.Result{r}, Options{Bootstrap: 10}); taken["hardware.cpu.switch"] || !strings.Contains(strings.Join(f.Notices, ""), "hardware.cpu.switch stays at its prior: switch.yield/2 - syscall is not above 0") {
		t.Errorf("%v, %q", taken, f.Notices)
	}
}

// What a device's time stamps tell of a CQE has the poll in it, on both sides.
func TestStampedCQEIsARow(t *testing.T) {
	s, err := scenarios.Parse("v.yaml", []byte("gdisim: v1\nhardware: h200-cx7-ib200\npaths: [verbs-cpu]\nworkload: {kind: put, bytes: 8B, iterations: 20, warmup: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	of, err := testbed.Run(t.Context(), s, testbed.Options{Breakdown: true})
	if err != nil {
		t.Fatal(err)
	}
	measured := &result.Result{Backend: "hw", Points: []result.Point{{Paths: []result.Path{{Name: "verbs-cpu", Stack: "verbs-cpu", Breakdowns: []result.Breakdown{{
		Metric: stage.PutCompletion, Total: sim.Microsecond, Stages: []result.StageTime{{Stage: stage.NICCQE, Time: 500 * sim.Nanosecond, Method: "by stamps"}},
	}}}}}}}
	got, _ := rows(measured, of)
	if len(got) != 1 {
		t.Fatalf("%d rows", len(got))
	}
	v, ok := got[0].of(of)
	p := &of.Points[0].Paths[0]
	cqe, _ := p.Lookup("put+completion/nic.cqe")
	poll, _ := p.Lookup("put+completion/cpu.poll")
	if !ok || v != cqe.Time+poll.Time || poll.Time == 0 {
		t.Errorf("%v, want %v and %v", v, cqe.Time, poll.Time)
	}
}

// A prior that is a distribution is scaled and keeps its shape.
func TestDistributionIsScaled(t *testing.T) {
	s, err := scenarios.Parse("d.yaml", []byte("gdisim: v1\nhardware: {profile: h200-cx7-ib200, set: {nic.ack: {dist: lognormal, median: 400ns, p99: 1.5us}}}\npaths: [mini-gda]\nworkload: {kind: put, bytes: 8B, iterations: 400, warmup: 10}\n"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := newModel(t.Context(), []Set{{Scenario: s}}, Options{Iterations: 400, Simulate: testbed.Run})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.params["hardware.nic.ack"].text(2); got != "{dist: lognormal, median: 800ns, p99: 3us}" {
		t.Fatal(got)
	}
	true2, err := m.simulate(map[string]float64{"hardware.nic.ack": 2})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Run(t.Context(), []Set{{s, []*result.Result{true2}}}, Options{Fit: []string{"hardware.nic.ack"}, Iterations: 400})
	if err != nil {
		t.Fatal(err)
	}
	if p := f.Params[0]; !p.Fitted || p.Scale < 1.99 || p.Scale > 2.01 {
		t.Errorf("%+v", p)
	}
	var b bytes.Buffer
	if err := f.Profile(&b, "mine", "h200-cx7-ib200"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := scenarios.ProfileParams(file); err != nil {
		t.Errorf("%v\n%s", err, b.String())
	}
}

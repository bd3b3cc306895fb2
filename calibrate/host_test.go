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

// Several results of a host are pooled: the value is their mean, the interval has
// the spread between them, and those that cannot both be right are named.
func TestHostResultsArePooled(t *testing.T) {
	s := load(t)
	host := func(seed uint64, syscall sim.Duration) *result.Result {
		r := measuredHost(seed)
		for i := range r.Measured {
			if m := &r.Measured[i]; m.Name == "syscall" {
				shift := syscall - m.P50
				m.P50 += shift
				for k := range m.Quantiles {
					m.Quantiles[k] += shift
				}
			}
		}
		r.Machine = []result.Setting{{Key: "cpu.virtual", Value: "virtual: with the hypervisor's part"}}
		return r
	}
	const ns = sim.Nanosecond
	for _, c := range []struct {
		name      string
		syscalls  []sim.Duration
		want      sim.Duration
		spread    string
		notice    string // "" for no contradiction
		atLeast   sim.Duration
		atMost    sim.Duration
		inProfile string
	}{
		{"one", []sim.Duration{150 * ns}, 150 * ns, "within one run", "", 0, 10 * ns, "99 %, within one run"},
		{"two that agree", []sim.Duration{150 * ns, 151 * ns}, 150*ns + 500, "2 runs", "", 0, 15 * ns, "99 %, of 2 runs"},
		{"two that do not", []sim.Duration{150 * ns, 300 * ns}, 225 * ns, "2 runs", "CONTRADICTION: syscall of hardware.cpu.syscall: r1 has 150ns", 150 * ns, 300 * ns, "99 %, of 2 runs"},
		{"three, the last off", []sim.Duration{150 * ns, 150 * ns, 300 * ns}, 200 * ns, "3 runs", "r3 has 300ns", 90 * ns, 250 * ns, "99 %, of 3 runs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var rs []*result.Result
			for i, v := range c.syscalls {
				rs = append(rs, host(uint64(i), v))
			}
			f, err := Run(t.Context(), []Set{{s, rs}}, Options{Iterations: 10, Bootstrap: 400, Fit: []string{"hardware.cpu.syscall"}})
			if err != nil {
				t.Fatal(err)
			}
			p := f.Params[0]
			lo, hi := parse(t, p.LowValue), parse(t, p.HighValue)
			if got := parse(t, p.Value); got != c.want || p.Runs != len(rs) {
				t.Errorf("%v of %d runs, want %v", got, p.Runs, c.want)
			}
			if w := hi - lo; w < c.atLeast || w > c.atMost || lo > c.want || hi < c.want {
				t.Errorf("interval %v to %v, want it %v to %v wide", lo, hi, c.atLeast, c.atMost)
			}
			notices := strings.Join(f.Notices, "\n")
			if got := strings.Contains(notices, "CONTRADICTION"); got != (c.notice != "") || !strings.Contains(notices, c.notice) {
				t.Errorf("want %q in\n%s", c.notice, notices)
			}
			var text, profile bytes.Buffer
			if err := f.Text(&text, false); err != nil {
				t.Fatal(err)
			}
			if err := f.Profile(&profile, "x", "y"); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{c.spread, "a virtual machine's (r1"} {
				if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
					t.Errorf("no %q in\n%s", want, text.String())
				}
			}
			for _, want := range []string{c.inProfile, "of a virtual machine"} {
				if !strings.Contains(profile.String(), want) {
					t.Errorf("no %q in\n%s", want, profile.String())
				}
			}
		})
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

// What a reader must not miss about a fit is a notice.
func TestNotices(t *testing.T) {
	s, err := scenarios.Parse("n.yaml", []byte("gdisim: v1\nhardware: h200-cx7-ib200\npaths: [mini-proxy]\nworkload: {kind: put, bytes: 8B, iterations: 20, warmup: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	base, err := testbed.Run(t.Context(), s, testbed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	scaled := func(by float64, partial bool) *result.Result {
		r := *base
		r.Partial = partial
		r.Points = []result.Point{base.Points[0]}
		p := base.Points[0].Paths[0]
		p.Metrics = nil
		for _, m := range base.Points[0].Paths[0].Metrics {
			if m.Metric == stage.PutCompletion || m.Metric == stage.OneWay {
				x := result.Summarise([]sim.Duration{sim.Duration(by * float64(m.P50))})
				x.Metric = m.Metric
				p.Metrics = append(p.Metrics, x)
			}
		}
		r.Points[0].Paths = []result.Path{p}
		return &r
	}
	const contradiction, bound, held, incomplete = "CONTRADICTION: mini-proxy put+completion.p50 is ", "AT ITS BOUND: hardware.nic.ack", "nothing is held out", "r2 is incomplete"
	for _, c := range []struct {
		name       string
		rs         []*result.Result
		want, none []string
	}{
		{"one", []*result.Result{scaled(1, false)}, []string{held}, []string{contradiction, bound, incomplete}},
		{"twice the same", []*result.Result{scaled(1, false), scaled(1, false)}, []string{held}, []string{contradiction, bound}},
		{"twice", []*result.Result{scaled(1, false), scaled(3, true)}, []string{contradiction, bound, "in r1", "in r2", incomplete}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Run(t.Context(), []Set{{s, c.rs}}, Options{Iterations: 20, Bootstrap: 10, Fit: []string{"hardware.nic.ack"}})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(f.Notices, "\n")
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("no %q in\n%s", w, got)
				}
			}
			for _, w := range c.none {
				if strings.Contains(got, w) {
					t.Errorf("%q in\n%s", w, got)
				}
			}
		})
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

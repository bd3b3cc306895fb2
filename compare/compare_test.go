package compare

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

const us = sim.Microsecond

// samples are n durations around a median, spread wide on both sides of it.
func samples(median, spread sim.Duration, n int) []sim.Duration {
	var out []sim.Duration
	for i := range n {
		out = append(out, median+spread*sim.Duration(2*i-n)/sim.Duration(n))
	}
	return out
}

func metric(m stage.Metric, s []sim.Duration) result.Metric {
	x := result.Summarise(s)
	x.Metric = m
	return x
}

func one(backend, stack string, p result.Path) *result.Result {
	p.Name, p.Stack = "x", stack
	return &result.Result{Schema: result.Schema, Backend: backend, Name: "t", Points: []result.Point{{At: []result.Setting{{Key: "workload.bytes", Value: "8B"}}, Paths: []result.Path{p}}}}
}

func row(t *testing.T, c *Comparison, what string) *Row {
	t.Helper()
	for i := range c.Rows {
		if c.Rows[i].What == what {
			return &c.Rows[i]
		}
	}
	t.Fatalf("no row %s", what)
	return nil
}

func TestVerdicts(t *testing.T) {
	rtt := func(median, spread sim.Duration, n int) result.Path {
		return result.Path{Metrics: []result.Metric{metric(stage.RTT, samples(median, spread, n))}}
	}
	for _, c := range []struct {
		name  string
		a, b  result.Path
		stack string // of b; a's is s
		want  Verdict
	}{
		{"equal", rtt(5*us, 1*us, 1000), rtt(5*us, 1*us, 1000), "s", Same},
		{"within the noise", rtt(5*us, 1*us, 100), rtt(5*us+us/20, 1*us, 100), "s", Same},
		{"the same difference with more samples", rtt(5*us, 1*us, 100000), rtt(5*us+us/20, 1*us, 100000), "s", Higher},
		{"lower", rtt(5*us, 1*us, 100), rtt(4*us, 1*us, 100), "s", Lower},
		{"another stack", rtt(5*us, 1*us, 100), rtt(4*us, 1*us, 100), "verbs-cpu", OtherStack},
		{"gone", rtt(5*us, 1*us, 100), result.Path{}, "s", OnlyA},
		{"new", result.Path{}, rtt(5*us, 1*us, 100), "s", OnlyB},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := row(t, Results("a", "b", one("sim", "s", c.a), one("sim", c.stack, c.b)), "rtt")
			if r.Verdict != c.want {
				t.Errorf("%v (%v against %v, +- %v), want %v", r.Verdict, r.A, r.B, r.Half, c.want)
			}
		})
	}
}

// A side without samples gives no interval, and so no verdict; a simulated stage
// is exact.
func TestOneSidedIntervals(t *testing.T) {
	sampled := result.Path{Metrics: []result.Metric{metric(stage.RTT, samples(5*us, us, 1000))}}
	mean := result.Path{Metrics: []result.Metric{metric(stage.RTT, []sim.Duration{6 * us})}}
	equal := result.Path{Metrics: []result.Metric{metric(stage.RTT, []sim.Duration{sampled.Metrics[0].P50})}}
	rate := func(v float64) result.Path {
		return result.Path{Metrics: []result.Metric{{Metric: stage.MessageRate, Value: v}}}
	}
	for _, c := range []struct {
		name, backend string // of b
		a, b          result.Path
		what          string
		want          Verdict
	}{
		{"a mean", "import", sampled, mean, "rtt", NoInterval},
		{"a mean at A", "import", mean, sampled, "rtt", NoInterval},
		{"two means", "import", mean, result.Path{Metrics: []result.Metric{metric(stage.RTT, []sim.Duration{us})}}, "rtt", NoInterval},
		{"the same number", "import", sampled, equal, "rtt", Same},
		{"a measured rate", "hw", rate(2), rate(1), "message-rate", NoInterval},
		{"simulated rates", "sim", rate(2), rate(1), "message-rate", Lower},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := row(t, Results("a", "b", one("sim", "s", c.a), one(c.backend, "s", c.b)), c.what)
			if r.Verdict != c.want || r.Known || r.Half != 0 && r.Verdict == NoInterval {
				t.Errorf("%v, +- %v, known %v; want %v", r.Verdict, r.Half, r.Known, c.want)
			}
		})
	}
}

// What only one has is counted in a brief text, and shown otherwise.
func TestBrief(t *testing.T) {
	a := one("sim", "s", result.Path{Metrics: []result.Metric{metric(stage.RTT, samples(5*us, us, 100)), metric(stage.Issue, samples(us, us, 100))}})
	b := one("sim", "s", result.Path{Metrics: []result.Metric{metric(stage.RTT, samples(5*us, us, 100))}})
	for _, brief := range []bool{true, false} {
		c := Results("a", "b", a, b)
		c.Brief = brief
		var text, md bytes.Buffer
		if err := Text(&text, c); err != nil {
			t.Fatal(err)
		}
		if err := Markdown(&md, c); err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{text.String(), md.String()} {
			if strings.Contains(s, "issue") == brief || strings.Contains(s, "1 numbers that only A has, 0 that only B has") != brief {
				t.Errorf("brief %v:\n%s", brief, s)
			}
		}
		if n := c.Common(); n != 1 {
			t.Errorf("%d in common", n)
		}
	}
}

func TestStages(t *testing.T) {
	stages := func(ss ...result.StageTime) result.Path {
		return result.Path{Breakdowns: []result.Breakdown{{Metric: stage.PutCompletion, Stages: ss}}}
	}
	a := one("sim", "s", stages(
		result.StageTime{Stage: stage.GPURing, Time: us}, result.StageTime{Stage: stage.CPUPost, Time: 60 * sim.Nanosecond}, result.StageTime{Stage: stage.CPURing, Time: 40 * sim.Nanosecond},
		result.StageTime{Stage: stage.NICTx, Time: us}, result.StageTime{Stage: stage.NICAck, Time: us}, result.StageTime{Stage: stage.CPUDequeue, Time: us}))
	b := one("hw", "verbs-cpu", stages(
		result.StageTime{Stage: stage.CPUPost, Time: 130 * sim.Nanosecond, Spread: 10 * sim.Nanosecond, Method: "clock"},
		result.StageTime{Stage: stage.Unresolved, Time: 2 * us, Spread: 1, Method: "rest"}, result.StageTime{Stage: stage.NICAck, Time: us, Method: "clock"}))
	b.Emulated = "soft"
	c := Results("sim.json", "hw.json", a, b)
	if r := row(t, c, "put+completion/cpu.post"); r.Verdict != Higher || r.A != float64(100*sim.Nanosecond) || r.Half != float64(10*sim.Nanosecond) || !r.Known {
		t.Errorf("a stage that both have: %+v", r)
	}
	if r := row(t, c, "put+completion/nic.tx"); r.Verdict != Unmeasured {
		t.Errorf("a stage that hardware cannot see: %+v", r)
	}
	for _, name := range []string{"gpu.ring", "cpu.dequeue"} {
		if r := row(t, c, "put+completion/"+name); r.Verdict != OnlyA {
			t.Errorf("a stage that did not happen: %+v", r)
		}
	}
	if r := row(t, c, "put+completion/nic.ack"); r.Verdict != OtherExtent {
		t.Errorf("a stage that ends elsewhere: %+v", r)
	}
	if r := row(t, c, "put+completion/unresolved"); r.Verdict != OnlyB {
		t.Errorf("the lump: %+v", r)
	}
	if !strings.Contains(strings.Join(c.Notices, "\n"), "soft") {
		t.Errorf("no word of the emulation: %q", c.Notices)
	}
}

// Where a device's time stamps tell the CQE, the poll is in it on both sides; a
// metric that hardware did not split has no lump that a stage could be in.
func TestStampedCQE(t *testing.T) {
	const ns = sim.Nanosecond
	sim := one("sim", "verbs-cpu", result.Path{Breakdowns: []result.Breakdown{
		{Metric: stage.PutCompletion, Stages: []result.StageTime{{Stage: stage.NICCQE, Time: 300 * ns}, {Stage: stage.CPUPoll, Time: 100 * ns}}},
		{Metric: stage.RTT, Stages: []result.StageTime{{Stage: stage.CPUPoll, Time: 100 * ns}}},
	}})
	hw := func(ss ...result.StageTime) *result.Result {
		return one("hw", "verbs-cpu", result.Path{Breakdowns: []result.Breakdown{{Metric: stage.PutCompletion, Stages: ss}}})
	}
	lump := result.StageTime{Stage: stage.Unresolved, Time: us, Method: "rest"}
	c := Results("a", "b", sim, hw(lump, result.StageTime{Stage: stage.NICCQE, Time: 410 * ns, Spread: 20 * ns, Method: "stamps"}))
	if r := row(t, c, "put+completion/nic.cqe"); r.A != float64(400*ns) || r.Verdict != Same {
		t.Errorf("%+v", r)
	}
	if r := row(t, c, "rtt/cpu.poll"); r.Verdict != OnlyA {
		t.Errorf("in a lump that is not there: %+v", r)
	}
	c = Results("a", "b", sim, hw(lump))
	if r := row(t, c, "put+completion/cpu.poll"); r.A != float64(100*ns) || r.Verdict != Unmeasured {
		t.Errorf("without time stamps: %+v", r)
	}
}

// What an imported result says of itself stands beside its numbers.
func TestImportedNotices(t *testing.T) {
	b := one("import", "verbs-cpu", result.Path{})
	b.Notices = []string{"the benchmark had queue pairs: 4"}
	if got := strings.Join(Results("a", "b", one("sim", "verbs-cpu", result.Path{}), b).Notices, "\n"); !strings.Contains(got, "B b: the benchmark had") || !strings.Contains(got, "imported from") {
		t.Error(got)
	}
}

func TestMeasured(t *testing.T) {
	a, b := &result.Result{}, &result.Result{}
	a.Measured = []result.Measured{result.Measure("syscall", "", 0, samples(100*sim.Nanosecond, 5*sim.Nanosecond, 100)), {Name: "gone", Err: "no"}}
	b.Measured = []result.Measured{result.Measure("syscall", "", 0, samples(300*sim.Nanosecond, 5*sim.Nanosecond, 100))}
	c := Results("a", "b", a, b)
	if len(c.Rows) != 1 || c.Rows[0].Verdict != Higher {
		t.Errorf("%+v", c.Rows)
	}
	d := result.Measured{Name: "difference", N: 10, P50: -us, Min: -3 * us, Max: us}
	c = Results("a", "b", &result.Result{Measured: []result.Measured{d}}, &result.Result{Measured: []result.Measured{{Name: "difference", N: 10, P50: us, Min: us - 10, Max: us + 10}}})
	if r := c.Rows[0]; r.Verdict != Same || !r.Known || r.Half < float64(2*us) || r.Half > float64(2*us+1) {
		t.Errorf("an interval that contains the other: %+v", r)
	}
}

func TestForms(t *testing.T) {
	p := result.Path{Metrics: []result.Metric{metric(stage.RTT, samples(5*us, us, 100)), {Metric: stage.MessageRate, Value: 2}}}
	q := result.Path{Metrics: []result.Metric{metric(stage.RTT, samples(7*us, us, 100)), {Metric: stage.MessageRate, Value: 1}}}
	c := Results("a.json", "b.json", one("sim", "s", p), one("hw", "s", q))
	var text, md, js bytes.Buffer
	for _, err := range []error{Text(&text, c), Markdown(&md, c), JSON(&js, c)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"x at workload.bytes=8B", "+2.000", "1.40", "B higher", "message-rate Mmsg/s", "no interval"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(md.String(), want) {
			t.Errorf("no %q in\n%s\n%s", want, text.String(), md.String())
		}
	}
	for line := range strings.Lines(text.String()) {
		if len([]rune(line)) > width+1 {
			t.Errorf("too wide: %q", line)
		}
	}
	var got struct {
		Rows []struct {
			What       string
			A, B       *float64
			Difference *float64
			Verdict    string
		}
	}
	if err := json.Unmarshal(js.Bytes(), &got); err != nil || len(got.Rows) != 2 || *got.Rows[0].Difference != float64(2*us) || got.Rows[0].Verdict != "B higher" {
		t.Errorf("%v: %s", err, js.String())
	}
}

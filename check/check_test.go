package check

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

func path(name string, rtt sim.Duration, rate float64) result.Path {
	return result.Path{
		Name:       name,
		Metrics:    []result.Metric{{Metric: stage.RTT, N: 1, P50: rtt, P99: 2 * rtt}, {Metric: stage.MessageRate, Value: rate}},
		Breakdowns: []result.Breakdown{{Metric: stage.RTT, Total: 4, Stages: []result.StageTime{{Stage: stage.NICTx, Time: 1}, {Stage: stage.NICRx, Time: 3}}}},
	}
}

func ps(v float64) *scenarios.Quantity { return &scenarios.Quantity{Text: "T", Value: v, Unit: "ps"} }

func share(v float64) *scenarios.Quantity {
	return &scenarios.Quantity{Text: "S", Value: v, Unit: "ratio"}
}

func rate(v float64) *scenarios.Quantity {
	return &scenarios.Quantity{Text: "R", Value: v, Unit: "Mmsg/s"}
}

func TestRun(t *testing.T) {
	a := path("a", 1000*sim.Nanosecond, 10)
	a.Findings = []result.Finding{{Finding: stage.StaleDescriptor, Grade: stage.Possible}}
	b := path("b", 2000*sim.Nanosecond, 20)
	hung := result.Path{Name: "hung", Err: "deadlock", Findings: []result.Finding{{Finding: stage.Deadlock, Grade: stage.Occurred}}}
	r := &result.Result{Points: []result.Point{{Paths: []result.Path{a, b, hung}}}}
	value := func(path, metric string, v, within *scenarios.Quantity) scenarios.Expect {
		return scenarios.Expect{Path: path, Metric: metric, Value: v, Within: within}
	}
	for _, c := range []struct {
		name  string
		e     scenarios.Expect
		holds bool
		err   float64
		got   string
	}{
		{"exact", value("a", "rtt", ps(1e6), share(0)), true, 0, "1.000 us"},
		{"relative at the edge", value("a", "rtt", ps(1.25e6), share(0.2)), true, -0.2, "1.000 us"},
		{"relative beyond", value("a", "rtt", ps(1.26e6), share(0.2)), false, -26.0 / 126, "1.000 us"},
		{"absolute at the edge", value("a", "rtt", ps(0.9e6), ps(1e5)), true, 1.0 / 9, "1.000 us"},
		{"absolute beyond", value("a", "rtt", ps(0.9e6), ps(99999)), false, 1.0 / 9, "1.000 us"},
		{"p99", value("a", "rtt.p99", ps(2e6), share(0)), true, 0, "2.000 us"},
		{"rate", value("b", "message-rate", rate(25), share(0.1)), false, -0.2, "20.00 Mmsg/s"},
		{"share", value("a", "rtt/nic.tx.share", share(0.25), share(0.01)), true, 0, "25.00 %"},
		{"zero", value("a", "rtt/nic.ack", ps(0), ps(1)), true, math.NaN(), "0.000 us"},
		{"difference of paths", scenarios.Expect{Path: "b", Metric: "rtt", MinusPath: "a", MinusMetric: "rtt", Value: ps(1.25e6), Within: share(0.2)}, true, -0.2, "1.000 us"},
		{"difference below zero", scenarios.Expect{Path: "a", Metric: "rtt", MinusPath: "b", MinusMetric: "rtt", Value: ps(1e6), Within: share(0.2)}, false, -2, "-1.000 us"},
		{"ratio of paths", scenarios.Expect{Path: "b", Metric: "message-rate", Over: &scenarios.Base{Path: "a", Metric: "message-rate"}, Value: share(2.5), Within: share(0.2)}, true, -0.2, "200.0 %"},
		{"ratio written with x", scenarios.Expect{Path: "b", Metric: "rtt", Over: &scenarios.Base{Path: "a", Metric: "rtt"}, Max: &scenarios.Quantity{Text: "1.1x", Value: 1.1, Unit: "ratio"}}, false, math.NaN(), "2.000x"},
		{"ratio over nothing", scenarios.Expect{Path: "b", Metric: "rtt/nic.tx", Over: &scenarios.Base{Path: "a", Metric: "rtt/nic.ack"}, Max: share(2)}, false, math.NaN(), "no ratio: a rtt/nic.ack is 0.000 us"},
		{"difference that is to be below zero", scenarios.Expect{Path: "a", Metric: "rtt", MinusPath: "b", MinusMetric: "rtt", Value: ps(-1.25e6), Within: share(0.2)}, true, 0.2, "-1.000 us"},
		{"difference of metrics", scenarios.Expect{Path: "a", Metric: "rtt.p99", MinusPath: "a", MinusMetric: "rtt", Value: ps(1e6), Within: share(0)}, true, 0, "1.000 us"},
		{"difference of rates", scenarios.Expect{Path: "b", Metric: "message-rate", MinusPath: "a", MinusMetric: "message-rate", Min: rate(9)}, true, math.NaN(), "10.00 Mmsg/s"},
		{"difference from a hung path", scenarios.Expect{Path: "a", Metric: "rtt", MinusPath: "hung", MinusMetric: "rtt", Value: ps(1), Within: share(1)}, false, math.NaN(), "did not finish: deadlock"},
		{"missing metric", value("a", "get", ps(1), share(1)), false, math.NaN(), "path a has no get (it has: rtt, message-rate)"},
		{"missing path", value("c", "rtt", ps(1), share(1)), false, math.NaN(), "no path c in the result"},
		{"hung path", value("hung", "rtt", ps(1), share(1)), false, math.NaN(), "did not finish: deadlock"},
		{"min holds", scenarios.Expect{Path: "a", Metric: "rtt", Min: ps(1e6)}, true, math.NaN(), "1.000 us"},
		{"min fails", scenarios.Expect{Path: "a", Metric: "rtt", Min: ps(1e6 + 1)}, false, math.NaN(), "1.000 us"},
		{"max fails", scenarios.Expect{Path: "a", Metric: "rtt", Min: ps(0), Max: ps(1e6 - 1)}, false, math.NaN(), "1.000 us"},
		{"order of times", scenarios.Expect{Metric: "rtt", Order: []string{"a", "b"}}, true, math.NaN(), "1.000 us, 2.000 us"},
		{"order of times wrong", scenarios.Expect{Metric: "rtt", Order: []string{"b", "a"}}, false, math.NaN(), "2.000 us, 1.000 us"},
		{"order of rates", scenarios.Expect{Metric: "message-rate", Order: []string{"b", "a"}}, true, math.NaN(), "20.00 Mmsg/s, 10.00 Mmsg/s"},
		{"order of rates wrong", scenarios.Expect{Metric: "message-rate", Order: []string{"a", "b"}}, false, math.NaN(), "10.00 Mmsg/s, 20.00 Mmsg/s"},
		{"order of equals", scenarios.Expect{Metric: "cpu.cores", Order: []string{"a", "b"}}, false, math.NaN(), "0.000 cores, 0.000 cores"},
		{"order with one that hung", scenarios.Expect{Metric: "rtt", Order: []string{"a", "hung"}}, false, math.NaN(), "1.000 us, did not finish: deadlock"},
		{"present", scenarios.Expect{Path: "a", Finding: "stale-descriptor", Is: "present"}, true, math.NaN(), "possible"},
		{"not absent", scenarios.Expect{Path: "a", Finding: "stale-descriptor", Is: "absent"}, false, math.NaN(), "possible"},
		{"absent", scenarios.Expect{Path: "b", Finding: "stale-descriptor", Is: "absent"}, true, math.NaN(), "absent"},
		{"not present", scenarios.Expect{Path: "b", Finding: "rnr", Is: "present"}, false, math.NaN(), "absent"},
		{"present where it hung", scenarios.Expect{Path: "hung", Finding: "deadlock", Is: "present"}, true, math.NaN(), "occurred"},
		{"absent where it hung", scenarios.Expect{Path: "hung", Finding: "rnr", Is: "absent"}, false, math.NaN(), "did not finish: deadlock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			vs := Run(&scenarios.Scenario{Expect: []scenarios.Expect{c.e}}, r)
			if len(vs) != 1 {
				t.Fatalf("%d verdicts", len(vs))
			}
			v := vs[0]
			if v.Holds != c.holds || v.Got != c.got || math.Abs(v.Err-c.err) > 1e-12 || math.IsNaN(v.Err) != math.IsNaN(c.err) {
				t.Errorf("got holds %v, %q, err %v; want %v, %q, %v", v.Holds, v.Got, v.Err, c.holds, c.got, c.err)
			}
			if Hold(vs) != c.holds {
				t.Error("Hold disagrees")
			}
		})
	}
}

func TestRunPoints(t *testing.T) {
	r := &result.Result{}
	for i, bytes := range []string{"8B", "64B"} {
		for _, clock := range []string{"cold", "warm"} {
			r.Points = append(r.Points, result.Point{
				At:    []result.Setting{{Key: "workload.bytes", Value: bytes}, {Key: "host.clock", Value: clock}},
				Paths: []result.Path{path("a", sim.Duration(i+1)*sim.Microsecond, 1)},
			})
		}
	}
	e := func(at ...scenarios.Setting) scenarios.Expect {
		return scenarios.Expect{Path: "a", Metric: "rtt", At: at, Max: ps(1e6)}
	}
	for _, c := range []struct {
		name string
		e    scenarios.Expect
		want string // a letter per verdict
	}{
		{"all points", e(), "++--"},
		{"one key", e(scenarios.Setting{Key: "workload.bytes", Value: "64B"}), "--"},
		{"two keys", e(scenarios.Setting{Key: "host.clock", Value: "warm"}, scenarios.Setting{Key: "workload.bytes", Value: "8B"}), "+"},
		{"over another point", scenarios.Expect{Path: "a", Metric: "rtt", Over: &scenarios.Base{Path: "a", Metric: "rtt", At: []scenarios.Setting{{Key: "workload.bytes", Value: "8B"}}}, Value: share(2), Within: share(0)}, "--++"},
		{"over a point that is not there", scenarios.Expect{Path: "a", Metric: "rtt", Over: &scenarios.Base{Path: "a", Metric: "rtt", At: []scenarios.Setting{{Key: "workload.bytes", Value: "9B"}}}, Max: share(9)}, "----"},
		{"no such point", e(scenarios.Setting{Key: "workload.bytes", Value: "9B"}), "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			for _, v := range Run(&scenarios.Scenario{Expect: []scenarios.Expect{c.e}}, r) {
				got += map[bool]string{true: "+", false: "-"}[v.Holds]
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestNeedsBreakdown(t *testing.T) {
	s := &scenarios.Scenario{Expect: []scenarios.Expect{{Metric: "rtt"}}}
	if NeedsBreakdown(s) {
		t.Error("rtt needs none")
	}
	s.Expect = append(s.Expect, scenarios.Expect{Metric: "rtt/nic.tx.share"})
	if !NeedsBreakdown(s) {
		t.Error("a stage needs one")
	}
}

func verdicts() []Verdict {
	v := func(file, use string, line int, err float64, holds bool) Verdict {
		return Verdict{File: file, Line: line, Subject: "mini-gda rtt.p50", Want: "6.9us within 5%", Got: "7.000 us", Err: err, Holds: holds, Use: use, Source: "Table 4"}
	}
	vs := []Verdict{v("a.yaml", "fitted", 3, 0.01, true), v("a.yaml", "fitted", 4, -0.04, true), v("a.yaml", "", 5, math.NaN(), true)}
	for i := range 20 {
		vs = append(vs, v("b.yaml", "checked", i+1, float64(i)/100, i < 15))
	}
	vs[22].At = []scenarios.Setting{{Key: "workload.bytes", Value: "64B"}}
	vs[22].Note = "known to resist"
	return vs
}

func TestSummarise(t *testing.T) {
	want := []Summary{
		{Use: "fitted", N: 2, Valued: 2, Median: 0.01, P95: 0.04, Worst: 0.04, WorstOf: "a.yaml:4 mini-gda rtt.p50"},
		{Use: "checked", N: 20, Failed: 5, Valued: 20, Median: 0.09, P95: 0.18, Worst: 0.19, WorstOf: "b.yaml:20 mini-gda rtt.p50 bytes=64B"},
		{Use: "", N: 1},
	}
	if d := cmp.Diff(want, Summarise(verdicts())); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := Summarise(nil); got != nil {
		t.Errorf("of none: %v", got)
	}
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := Text(&b, verdicts()[:3]); err != nil {
		t.Fatal(err)
	}
	want := `line  expectation       expected              got  error %  verdict  use
   3  mini-gda rtt.p50  6.9us within 5%  7.000 us     +1.0  ok       fitted
   4  mini-gda rtt.p50  6.9us within 5%  7.000 us     -4.0  ok       fitted
   5  mini-gda rtt.p50  6.9us within 5%  7.000 us           ok

fitted: 2, of which 0 failed; |error| of 2 values: median 1.0 %, 95th percentile 4.0 %, worst 4.0 %
  (a.yaml:4 mini-gda rtt.p50)
other: 1, of which 0 failed
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestTextOfManyFiles(t *testing.T) {
	vs := verdicts()
	vs[0].Subject = strings.Repeat("gpu-initiated-doorbell-", 8) + " rtt"
	vs[1].File = strings.Repeat("folder/", 30) + "a.yaml"
	var b strings.Builder
	if err := Text(&b, vs); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(line) - 1; n > textWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"\nb.yaml\n", "FAIL b.yaml:20: mini-gda rtt.p50 bytes=64B: expected 6.9us within 5%, got 7.000 us;", "known to resist"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestMarkdown(t *testing.T) {
	var b strings.Builder
	if err := Markdown(&b, verdicts()[:1]); err != nil {
		t.Fatal(err)
	}
	want := `| where | expectation | expected | got | error % | verdict | use | source |
| --- | --- | --- | ---: | ---: | --- | --- | --- |
| a.yaml:3 | mini-gda rtt.p50 | 6.9us within 5% | 7.000 us | +1.0 | ok | fitted | Table 4 |

- fitted: 1, of which 0 failed; |error| of 1 values: median 1.0 %, 95th percentile 1.0 %, worst 1.0 % (a.yaml:3 mini-gda rtt.p50)
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

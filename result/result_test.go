package result

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gdisim/sim"
	"gdisim/stage"
)

// fill sets every field that v reaches to something that is not zero, so that
// a round trip shows each field that the codec forgets.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		s := reflect.MakeSlice(v.Type(), 2, 2)
		for i := range s.Len() {
			fill(s.Index(i), n)
		}
		v.Set(s)
	case reflect.String:
		v.SetString("s<" + strings.Repeat("x", *n%7))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n) + 1<<60)
	case reflect.Float64:
		v.SetFloat(float64(*n) / 7)
	case reflect.Uint8:
		switch v.Type() {
		case reflect.TypeFor[stage.Metric]():
			v.SetUint(uint64(stage.RTT))
		case reflect.TypeFor[stage.Lane]():
			v.SetUint(uint64(*n)%uint64(stage.LaneGPUDst) + 1)
		case reflect.TypeFor[stage.Grade]():
			v.SetUint(uint64(*n)%2 + 1)
		case reflect.TypeFor[stage.Finding]():
			v.SetUint(uint64(*n)%uint64(stage.FindingCount-1) + 1)
		default:
			v.SetUint(uint64(*n)%uint64(stage.Count-1) + 1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	default:
		panic(v.Kind())
	}
}

func full() *Result {
	var r Result
	n := 0
	fill(reflect.ValueOf(&r).Elem(), &n)
	r.Schema = Schema
	r.Part.Points, r.Part.Notices = 1000, 1
	least := func(ms []Measured) {
		for i := range ms {
			ms[i].Min = 1 // below all quantiles
		}
	}
	least(r.Measured)
	for i := range r.Points {
		for j := range r.Points[i].Paths {
			for k := range r.Points[i].Paths[j].Metrics {
				r.Points[i].Paths[j].Metrics[k].Value = 0 // a time has no plain value
				r.Points[i].Paths[j].Metrics[k].Min = 1
			}
			p := &r.Points[i].Paths[j]
			least(p.Measured)
			p.Metrics = append(p.Metrics, Metric{Metric: stage.Goodput, Value: 48.25})
		}
	}
	return &r
}

func TestRoundTrip(t *testing.T) {
	for name, want := range map[string]*Result{"full": full(), "empty": {Schema: Schema}} {
		t.Run(name, func(t *testing.T) {
			var a, b bytes.Buffer
			if err := Encode(&a, want); err != nil {
				t.Fatal(err)
			}
			got, err := Decode(bytes.NewReader(a.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if err := Encode(&b, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Error("second encoding differs")
			}
		})
	}
}

func TestEncodeZeroTimeIsWritten(t *testing.T) {
	r := &Result{Points: []Point{{Paths: []Path{{Metrics: []Metric{{Metric: stage.Issue, N: 1}, {Metric: stage.MessageRate}}}}}}}
	var b bytes.Buffer
	if err := Encode(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"p50_ps": 0`, `"value": 0`, `"unit": "Mmsg/s"`} {
		if strings.Count(b.String(), want) != 1 {
			t.Errorf("want exactly one %s in\n%s", want, b.String())
		}
	}
}

// A difference of two medians may be below 0.
func TestDecodeDifference(t *testing.T) {
	if _, err := Decode(strings.NewReader(`{"schema":"gdisim-result/1","points":[],"measured":[{"name":"difference.x","n":2,"min_ps":-9,"p50_ps":-5,"max_ps":3,"mean_ps":-5}]}`)); err != nil {
		t.Error(err)
	}
}

func TestDecodeErrors(t *testing.T) {
	ok := `{"schema":"gdisim-result/1","points":[]`
	for _, c := range []struct{ name, src, want string }{
		{"empty", "", "not a gdisim result"},
		{"other", `{"a":1}`, `no key "schema"`},
		{"array", `[1]`, "not a gdisim result"},
		{"newer", `{"schema":"gdisim-result/9"}`, `schema "gdisim-result/9" is not known`},
		{"syntax", "{\"schema\":\n\n!", "line 3"},
		{"trailing", ok + `} {}`, "after top-level value"},
		{"unknown key", ok + `,"colour":1}`, `unknown field "colour"`},
		{"type", ok + `,"seed":"x"}`, "seed: string does not fit"},
		{"stage", `{"schema":"gdisim-result/1","points":[{"paths":[{"breakdowns":[{"metric":"rtt","stages":[{"stage":"nic.tz"}]}]}]}]}`, `unknown stage "nic.tz"`},
		{"metric", `{"schema":"gdisim-result/1","points":[{"paths":[{"metrics":[{"metric":"rt"}]}]}]}`, `unknown metric "rt"`},
		{"finding", `{"schema":"gdisim-result/1","points":[{"paths":[{"findings":[{"finding":"x"}]}]}]}`, `unknown finding "x"`},
		{"negative time", `{"schema":"gdisim-result/1","points":[],"measured":[{"name":"syscall","n":2,"p50_ps":-5}]}`, "measured[0], syscall: p50 -5ps, want 0 or more"},
		{"negative mean", `{"schema":"gdisim-result/1","points":[],"measured":[{"name":"syscall","n":2,"mean_ps":-5}]}`, "mean -5ps, want 0 or more"},
		{"reversed quantiles", `{"schema":"gdisim-result/1","points":[],"measured":[{"name":"syscall","n":2,"quantiles_ps":[3,2]}]}`, "quantiles below 0 or in no order"},
		{"reversed percentiles", `{"schema":"gdisim-result/1","points":[{"paths":[{"name":"x","metrics":[{"metric":"rtt","p50_ps":9,"p99_ps":5}]}]}]}`, "metrics[0], rtt: p99 5ps is below p50 9ps"},
		{"negative rate", `{"schema":"gdisim-result/1","points":[{"paths":[{"name":"x","metrics":[{"metric":"goodput","value":-1}]}]}]}`, "metrics[0], goodput: -1, want"},
		{"negative stage", `{"schema":"gdisim-result/1","points":[{"paths":[{"name":"x","breakdowns":[{"metric":"rtt","stages":[{"stage":"nic.tx","time_ps":-1}]}]}]}]}`, "stages[0]: a time below 0"},
		{"reversed difference", `{"schema":"gdisim-result/1","points":[],"measured":[{"name":"difference.x","n":2,"min_ps":9,"p50_ps":-5,"max_ps":3}]}`, "p50 -5ps is below min 9ps"},
		{"null point", `{"schema":"gdisim-result/1","points":[null]}`, "points[0]: no paths"},
		{"null path", `{"schema":"gdisim-result/1","points":[{"paths":[null]}]}`, "points[0].paths[0]: no name"},
		{"null setting", `{"schema":"gdisim-result/1","points":[{"at":[null],"paths":[{"name":"x"}]}]}`, "without a key"},
		{"null metric", `{"schema":"gdisim-result/1","points":[{"paths":[{"name":"x","metrics":[null]}]}]}`, "metrics[0]: no metric"},
		{"null breakdown", `{"schema":"gdisim-result/1","points":[{"paths":[{"name":"x","breakdowns":[null]}]}]}`, "breakdowns[0]: no metric"},
		{"null stage", `{"schema":"gdisim-result/1","points":[{"paths":[{"name":"x","breakdowns":[{"metric":"rtt","stages":[null]}]}]}]}`, "stages[0]: no stage"},
		{"null finding", `{"schema":"gdisim-result/1","points":[{"paths":[{"name":"x","findings":[null]}]}]}`, "findings[0]: no finding"},
		{"null graph", `{"schema":"gdisim-result/1","points":[{"paths":[{"name":"x","graphs":[null]}]}]}`, "graphs[0]: no metric"},
		{"null span", `{"schema":"gdisim-result/1","points":[{"paths":[{"name":"x","graphs":[{"metric":"rtt","spans":[null]}]}]}]}`, "spans[0]: no stage"},
		{"null cost", `{"schema":"gdisim-result/1","points":[{"paths":[{"name":"x","measured":[null]}]}]}`, "measured[0]: no name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode(strings.NewReader(c.src))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestSummarise(t *testing.T) {
	seq := func(n int) (s []sim.Duration) {
		for i := n; i >= 1; i-- {
			s = append(s, sim.Duration(i))
		}
		return s
	}
	const far = sim.Duration(1) << 62
	for _, c := range []struct {
		name string
		in   []sim.Duration
		want Metric
	}{
		{"none", nil, Metric{}},
		{"one", []sim.Duration{7}, Metric{N: 1, Min: 7, P50: 7, P99: 7, P999: 7, Max: 7, Mean: 7}},
		{"two", []sim.Duration{9, 1}, Metric{N: 2, Min: 1, P50: 1, P99: 9, P999: 9, Max: 9, Mean: 5}},
		{"hundred", seq(100), Metric{N: 100, Min: 1, P50: 50, P99: 99, P999: 100, Max: 100, Mean: 50}},
		{"thousand", seq(1000), Metric{N: 1000, Min: 1, P50: 500, P99: 990, P999: 999, Max: 1000, Mean: 500}},
		{"sum does not fit", []sim.Duration{far, far, far}, Metric{N: 3, Min: far, P50: far, P99: far, P999: far, Max: far, Mean: far}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := append([]sim.Duration(nil), c.in...)
			got := Summarise(in)
			if len(in) > 1 {
				levels := Levels()
				if len(got.Quantiles) != len(levels) || !slices.IsSorted(got.Quantiles) {
					t.Fatalf("quantiles %v", got.Quantiles)
				}
				for i, ppm := range levels {
					want := map[int]sim.Duration{0: c.want.Min, 500_000: c.want.P50, 990_000: c.want.P99, 999_000: c.want.P999, 1_000_000: c.want.Max}
					if w, ok := want[ppm]; ok && got.Quantiles[i] != w {
						t.Errorf("quantile %d ppm is %v, want %v", ppm, got.Quantiles[i], w)
					}
				}
				got.Quantiles = nil
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if !reflect.DeepEqual(in, append([]sim.Duration(nil), c.in...)) {
				t.Error("samples were changed")
			}
		})
	}
}

func TestLookup(t *testing.T) {
	p := &Path{
		Name: "mini-gda",
		Metrics: []Metric{
			{Metric: stage.RTT, N: 3, Min: 1, P50: 2, P99: 3, P999: 4, Max: 5, Mean: 6},
			{Metric: stage.MessageRate, Value: 12.5},
		},
		Breakdowns: []Breakdown{{Metric: stage.RTT, Total: 200, MeanTotal: 210, Stages: []StageTime{
			{Stage: stage.NICTx, Time: 30, Mean: 31}, {Stage: stage.NICTx, Node: 1, Time: 20, Mean: 22},
		}}},
		Cost: Cost{CPUCores: 1.5, SMs: 2},
	}
	dur := func(d sim.Duration) Value { return Value{Unit: "time", Time: d} }
	for _, c := range []struct {
		name string
		want Value
		err  string
	}{
		{"rtt", dur(2), ""},
		{"rtt.p50", dur(2), ""},
		{"rtt.p99", dur(3), ""},
		{"rtt.p99.9", dur(4), ""},
		{"rtt.max", dur(5), ""},
		{"rtt.min", dur(1), ""},
		{"rtt.mean", dur(6), ""},
		{"message-rate", Value{Unit: "Mmsg/s", Number: 12.5}, ""},
		{"cpu.cores", Value{Unit: "cores", Number: 1.5}, ""},
		{"sm.count", Value{Unit: "SMs", Number: 2}, ""},
		{"rtt/nic.tx", dur(50), ""},
		{"rtt/nic.tx@1", dur(20), ""},
		{"rtt/nic.tx.mean", dur(53), ""},
		{"rtt/nic.tx.share", Value{Unit: "share", Number: 0.25}, ""},
		{"rtt/nic.tx@0.share", Value{Unit: "share", Number: 0.15}, ""},
		{"rtt/nic.wqe-fetch", dur(0), ""},
		{"rt", Value{}, `unknown metric "rt"`},
		{"rtt.p98", Value{}, `unknown metric "rtt.p98"`},
		{"rtt.share", Value{}, "rtt has no share"},
		{"message-rate.p50", Value{}, "message-rate has no p50"},
		{"message-rate/nic.tx", Value{}, "no time"},
		{"rtt/nic.tz", Value{}, `unknown stage "nic.tz"`},
		{"rtt/nic.tx@x", Value{}, "unknown stage"},
		{"rtt/nic.tx.p99", Value{}, "no p99"},
		{"get", Value{}, "path mini-gda has no get (it has: rtt, message-rate)"},
		{"issue/nic.tx", Value{}, "no breakdown of issue"},
		{"", Value{}, "unknown metric"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := p.Lookup(c.name)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %v, %v, want error %q", got, err, c.err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Fatalf("got %v, %v, want %v", got, err, c.want)
			}
			n, _ := ParseName(c.name)
			if again, err := ParseName(n.String()); err != nil || again != n {
				t.Errorf("%v does not parse back: %v", n, err)
			}
		})
	}
}

// TestShared: what points have alike is written once, is there again when read,
// and a document that has it everywhere is read as well.
func TestShared(t *testing.T) {
	param := func(k, v string) Param { return Param{Key: k, Value: v, Unit: "ns", Source: "s", Kind: "assumed"} }
	r := &Result{Schema: Schema}
	for i := range 3 {
		v := strings.Repeat("1", i+1)
		r.Points = append(r.Points, Point{Index: i, Paths: []Path{
			{Name: "a", Params: []Param{param("hardware.a", "1"), param("hardware.b", v), param("path.c", "3"), param("faults.x.rate", "4")}},
			{Name: "b", Params: []Param{param("hardware.a", "1"), param("path.c", "5")}},
			{Name: "c"},
		}})
	}
	text := func(r *Result) string {
		var b bytes.Buffer
		if err := Encode(&b, r); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	out := text(r)
	for key, want := range map[string]int{"hardware.a": 2, "hardware.b": 3, "path.c": 2, "faults.x.rate": 1} {
		if n := strings.Count(out, `"`+key+`"`); n != want {
			t.Errorf("%s is there %d times, want %d", key, n, want)
		}
	}
	got, err := Decode(strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, r) || text(got) != out {
		t.Errorf("got %+v\nwant %+v", got, r)
	}
	var whole bytes.Buffer // as before there was sharing
	if err := json.NewEncoder(&whole).Encode(toWire(r)); err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(&whole); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("unshared: %+v, %v", got, err)
	}
	// One point, or an order of its own, is left alone.
	one := &Result{Schema: Schema, Points: r.Points[:1]}
	odd := &Result{Schema: Schema, Points: []Point{{Paths: []Path{{Name: "a", Params: []Param{param("b", "1"), param("a", "1")}}}}, {Index: 1, Paths: []Path{{Name: "a", Params: []Param{param("b", "1"), param("a", "1")}}}}}}
	for _, r := range []*Result{one, odd} {
		out := text(r)
		if !strings.Contains(out, Schema) {
			t.Error("another schema than before")
		}
		if got, err := Decode(strings.NewReader(out)); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

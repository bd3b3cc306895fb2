package plots

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// stream feeds n operations of those legs, one begun every gap.
func stream(s result.TraceSink, n int, gap sim.Duration, legs []leg) {
	for op := range n {
		begin := sim.Time(op) * sim.Time(gap)
		at, pred := begin, -1
		for i, l := range legs {
			start := at
			if l.stage == stage.NICTx {
				start = start.Add(20 * ns) // a wait
			}
			s.Span(result.TraceSpan{
				Op: op + 1, Begin: begin, Index: i, Pred: pred, Stage: l.stage, Wait: stage.NICSched, Lane: l.stage.Lane(), Node: l.node,
				Arrival: at, Start: start, End: start.Add(l.time), Blocker: "operation 1",
			})
			if !l.off {
				at, pred = start.Add(l.time), i
			}
		}
	}
}

type event struct {
	Name, Cat, Ph, BP string
	TS, Dur           float64
	PID, TID, ID      int
	Args              map[string]any
}

func traced(t *testing.T, f func(tr *Trace)) []event {
	t.Helper()
	var b bytes.Buffer
	tr := NewTrace(&b)
	f(tr)
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	return parseTrace(t, b.Bytes())
}

func parseTrace(t *testing.T, b []byte) []event {
	t.Helper()
	var doc struct {
		DisplayTimeUnit string
		TraceEvents     []event
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.DisplayTimeUnit != "ns" {
		t.Errorf("unit %q", doc.DisplayTimeUnit)
	}
	return doc.TraceEvents
}

// TestTrace checks what a viewer relies on.
func TestTrace(t *testing.T) {
	const n = 50
	legs := doorbell(8)
	events := traced(t, func(tr *Trace) {
		stream(tr.Run("one put"), n, 700*ns, legs)
		stream(tr.Run("two put"), 1, 0, proxy(8))
	})
	type track struct{ pid, tid int }
	ends := map[track]float64{}
	names := map[track]string{}
	slices := map[track]int{}
	processes := map[int]string{}
	flows := map[int][]event{}
	counters := map[string]float64{}
	last := map[string]float64{}
	spans := 0
	for _, e := range events {
		k := track{e.PID, e.TID}
		switch e.Ph {
		case "X":
			spans++
			slices[k]++
			// Each thread is in order and its spans do not overlap, to the nanosecond.
			if e.TS < ends[k]-1e-9 {
				t.Fatalf("%s at %g on %v begins before %g", e.Name, e.TS, k, ends[k])
			}
			ends[k] = e.TS + e.Dur
			if names[k] == "" || processes[e.PID] == "" {
				t.Fatalf("%s is drawn before its thread has a name", e.Name)
			}
			if st, ok := stage.Parse(e.Name); !ok || !strings.HasPrefix(names[k], st.Lane().String()) {
				t.Errorf("%s on %s", e.Name, names[k])
			}
		case "M":
			switch name, _ := e.Args["name"].(string); e.Name {
			case "thread_name":
				names[k] = name
			case "process_name":
				processes[e.PID] = name
			}
		case "s", "f":
			flows[e.ID] = append(flows[e.ID], e)
		case "C":
			v := e.Args["value"].(float64)
			id := fmt.Sprint(e.PID, e.Name)
			counters[id] = max(counters[id], v)
			last[id] = v
			if v < 0 {
				t.Errorf("%s is %g", e.Name, v)
			}
		default:
			t.Errorf("event %+v", e)
		}
	}
	if want := n*len(legs) + len(proxy(8)); spans != want {
		t.Errorf("%d spans, want %d", spans, want)
	}
	want := []string{"one put node 0", "one put node 1", "two put node 0", "two put node 1"}
	for i, w := range want {
		if processes[i+1] != w {
			t.Errorf("process %d is %q, want %q", i+1, processes[i+1], w)
		}
	}
	// An operation changes its thread at least eight times.
	if len(flows) < 8*n {
		t.Errorf("%d arrows", len(flows))
	}
	for id, f := range flows {
		if len(f) != 2 || f[0].Ph != "s" || f[1].Ph != "f" || f[1].BP != "e" || f[0].TS > f[1].TS || f[0].TID == f[1].TID && f[0].PID == f[1].PID {
			t.Fatalf("arrow %d: %+v", id, f)
		}
	}
	// 700 ns apart, several operations are under way: the SM's lane is split,
	// the queue grows, and all counters end at nothing.
	if names[track{1, 1001}] != "gpu.sm #2" || counters["1SQ entries"] < 2 || counters["1waiting: nic.sched"] < 1 {
		t.Errorf("threads %v, counters %v", names, counters)
	}
	for id, v := range last {
		if v != 0 {
			t.Errorf("%s ends at %g", id, v)
		}
	}
	// No lane is split further than the overlap of its spans demands.
	for k, name := range names {
		if strings.HasPrefix(name, "nic.tx #3") && slices[k] > 0 && !strings.HasPrefix(processes[k.pid], "one") {
			t.Errorf("%s of %s", name, processes[k.pid])
		}
	}
}

// TestTraceStreams holds that memory does not grow with the operations.
func TestTraceStreams(t *testing.T) {
	live := func(n int) (peak uint64) {
		tr := NewTrace(io.Discard)
		r := tr.Run("x")
		legs := doorbell(8)
		for i := range 4 {
			stream(offset{r, i * n / 4, sim.Duration(i*n/4) * sim.Microsecond}, n/4, sim.Microsecond, legs)
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
		if len(r.ops) > 10 || len(r.queue.items) > 200 {
			t.Errorf("%d operations and %d spans are held", len(r.ops), len(r.queue.items))
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		return peak
	}
	few, many := live(400), live(40_000)
	if many > few+4<<20 {
		t.Errorf("%d bytes for 40,000 operations, %d for 400", many, few)
	}
}

// offset shifts what it passes on.
type offset struct {
	result.TraceSink
	op int
	by sim.Duration
}

func (o offset) Span(s result.TraceSpan) {
	s.Op += o.op
	s.Begin, s.Arrival, s.Start, s.End = s.Begin.Add(o.by), s.Arrival.Add(o.by), s.Start.Add(o.by), s.End.Add(o.by)
	o.TraceSink.Span(s)
}

func TestTraceGraphs(t *testing.T) {
	var a, b bytes.Buffer
	for _, w := range []*bytes.Buffer{&a, &b} {
		if err := TraceGraphs(w, []*result.Result{sizes(2)}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two runs differ")
	}
	found := false
	for _, e := range parseTrace(t, a.Bytes()) {
		found = found || e.Args["name"] == "bytes 16B, proxy, put+completion p50 node 1"
	}
	if !found {
		t.Error("no process is named for the proxy's p50 at 16 B")
	}
	a.Reset()
	if err := TraceGraphs(&a, nil); err != nil || len(parseTrace(t, a.Bytes())) != 0 {
		t.Errorf("nothing: %v", err)
	}
}

func TestDump(t *testing.T) {
	var b bytes.Buffer
	d := NewDump(&b, false, sim.Time(2*sim.Microsecond))
	stream(d.Run("gda put"), 3, 700*ns, doorbell(8))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"run gda put\nop 1, begun at 0.000 ns\n",
		"     8    7  nic.tx@0           nic.tx           1923.400       1943.400       2193.400  nic.sched operation 1\n",
		"  in SQ@0 as entry 1 from 1489.000 to 2621.000 ns\n",
		// At 2 us two doorbells have rung, and the NIC has the first WQE.
		"queues at 2000.000 ns, of the recorded operations\n  CQ@0: producer 0, consumer 0, holds the entries of operations []\n  SQ@0: producer 2, consumer 1, holds the entries of operations [2]\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	d = NewDump(&b, true, sim.Time(2*sim.Microsecond))
	stream(d.Run("proxy put"), 2, 0, proxy(8))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2+3 {
		t.Fatalf("%d lines: %s", len(lines), b.String())
	}
	var op struct {
		Run    string
		Op     int
		Spans  []map[string]any
		Queues []struct {
			Queue string
			Index int
			From  int64 `json:"from_ps"`
			To    int64 `json:"to_ps"`
		}
	}
	if err := json.Unmarshal([]byte(lines[1]), &op); err != nil {
		t.Fatal(err)
	}
	if op.Run != "proxy put" || op.Op != 2 || len(op.Spans) != len(proxy(8)) || len(op.Queues) != 3 {
		t.Errorf("%+v", op)
	}
	for i, q := range []string{"ring", "SQ", "CQ"} {
		if op.Queues[i].Queue != q || op.Queues[i].Index != 1 || op.Queues[i].From >= op.Queues[i].To {
			t.Errorf("queue %d is %+v", i, op.Queues[i])
		}
	}
}

func BenchmarkTrace100000(b *testing.B) {
	legs := doorbell(8)
	for b.Loop() {
		tr := NewTrace(io.Discard)
		stream(tr.Run("x"), 100_000, sim.Microsecond, legs)
		if err := tr.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

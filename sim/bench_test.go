package sim

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// The hold model: n events are pending, and each one, when it runs, schedules
// one more. The delays come from a table, so that they cost nothing.

var delayKinds = []struct {
	name  string
	table func() []Duration
}{
	{"exponential", func() []Duration { return exponentialTable(1 << 16) }},
	{"16-fixed", func() []Duration { return exponentialTable(16) }},
}

var holdSizes = []int{1, 100, 10_000, 1_000_000}

func exponentialTable(n int) []Duration {
	d, r := Exponential(Microsecond), rand.New(rand.NewPCG(1, 2))
	t := make([]Duration, n)
	for i := range t {
		t[i] = d.Draw(r) + 1
	}
	return t
}

// hold schedules one event for each that runs.
type hold struct {
	e     *Engine
	id    HandlerID
	table []Duration
	k     int
	left  int
}

func newHold(e *Engine, table []Duration, n int) *hold {
	h := &hold{e: e, table: table}
	h.id = e.Register(h)
	for i := range n {
		h.more(uint32(i))
	}
	return h
}

func (h *hold) more(arg uint32) {
	h.e.After(h.table[h.k&(len(h.table)-1)], h.id, arg)
	h.k++
}

func (h *hold) Handle(arg uint32) {
	h.more(arg)
	if h.left--; h.left == 0 {
		h.e.Stop()
	}
}

func (h *hold) run(events int) {
	h.left = events
	h.e.Run()
}

// plain is the usual first design: closures in container/heap.
type plain struct {
	now Time
	seq uint64
	q   plainQueue
}

type plainEvent struct {
	at  Time
	seq uint64
	f   func()
}

type plainQueue []*plainEvent

func (q plainQueue) Len() int      { return len(q) }
func (q plainQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q plainQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q *plainQueue) Push(x any) { *q = append(*q, x.(*plainEvent)) }
func (q *plainQueue) Pop() any {
	n := len(*q) - 1
	x := (*q)[n]
	*q = (*q)[:n]
	return x
}

func (p *plain) after(d Duration, f func()) {
	p.seq++
	heap.Push(&p.q, &plainEvent{p.now.Add(d), p.seq, f})
}

func (p *plain) step() {
	x := heap.Pop(&p.q).(*plainEvent)
	p.now = x.at
	x.f()
}

// plainHold is hold on plain.
type plainHold struct {
	p     plain
	table []Duration
	k     int
	sum   uint64
}

func newPlainHold(table []Duration, n int) *plainHold {
	h := &plainHold{table: table}
	for i := range n {
		h.more(uint32(i))
	}
	return h
}

func (h *plainHold) more(arg uint32) {
	h.p.after(h.table[h.k&(len(h.table)-1)], func() { h.sum += uint64(arg); h.more(arg) })
	h.k++
}

func (h *plainHold) run(events int) {
	for range events {
		h.p.step()
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func rate(events int, cpu time.Duration) float64 {
	return float64(events) / 1e6 / max(cpu.Seconds(), 1e-6)
}

// BenchmarkHold reports million events per CPU-second of the engine through
// its public interface, and the memory of an engine per pending event.
func BenchmarkHold(b *testing.B) {
	for _, kind := range delayKinds {
		for _, n := range holdSizes {
			b.Run(fmt.Sprintf("%s/pending=%d", kind.name, n), func(b *testing.B) {
				table := kind.table()
				before := heapBytes()
				h := newHold(New(), table, n)
				h.run(2*n + 1000)
				bytes := heapBytes() - before
				b.ReportAllocs()
				b.ResetTimer()
				cpu := cpuTime()
				h.run(b.N)
				b.ReportMetric(rate(b.N, cpuTime()-cpu), "Mev/CPU-s")
				if n >= 10_000 { // below, the fixed size of an engine hides it
					b.ReportMetric(float64(bytes)/float64(n), "B/pending")
				}
			})
		}
	}
}

// BenchmarkAgainstPlainHeap runs the hold model on the engine and on
// container/heap with closures, in turns, and reports the ratio.
func BenchmarkAgainstPlainHeap(b *testing.B) {
	for _, n := range holdSizes {
		b.Run(fmt.Sprintf("pending=%d", n), func(b *testing.B) {
			table := exponentialTable(1 << 16)
			h, p := newHold(New(), table, n), newPlainHold(table, n)
			h.run(2*n + 1000)
			p.run(n + 1000)
			var engine, other time.Duration
			b.ResetTimer()
			for done := 0; done < b.N; {
				part := min(b.N-done, 1<<20)
				t0 := cpuTime()
				h.run(part)
				t1 := cpuTime()
				p.run(part)
				engine += t1 - t0
				other += cpuTime() - t1
				done += part
			}
			b.ReportMetric(rate(b.N, engine), "Mev/CPU-s")
			b.ReportMetric(rate(b.N, other), "plain-Mev/CPU-s")
			b.ReportMetric(float64(other)/math.Max(1, float64(engine)), "ratio")
		})
	}
}

// BenchmarkZeroDelay runs events that each schedule the next for the same time,
// with 100 others pending.
func BenchmarkZeroDelay(b *testing.B) {
	h := newHold(New(), []Duration{0}, 1)
	for i := range 100 {
		h.e.After(Second+Duration(i), h.id, 0)
	}
	b.ReportAllocs()
	cpu := cpuTime()
	h.run(b.N)
	b.ReportMetric(rate(b.N, cpuTime()-cpu), "Mev/CPU-s")
}

// guard is a retransmission timer: each event cancels it and sets it again.
type guard struct {
	*hold
	timeout HandlerID
	id      TimerID
}

func (g *guard) Handle(arg uint32) {
	g.e.Cancel(g.id)
	g.id = g.e.Timer(g.e.Now().Add(Millisecond), g.timeout, arg)
	g.hold.Handle(arg)
}

type never struct{}

func (never) Handle(uint32) { panic("a cancelled timer fired") }

func newGuard() *guard {
	e := New()
	g := &guard{hold: &hold{e: e, table: exponentialTable(1 << 16)}}
	g.hold.id, g.timeout = e.Register(g), e.Register(never{})
	for i := range 100 {
		g.more(uint32(i))
	}
	return g
}

// BenchmarkTimer reports the rate of an event that cancels a timer and sets
// another, with 100 events pending.
func BenchmarkTimer(b *testing.B) {
	g := newGuard()
	g.run(10_000)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	g.run(b.N)
	b.ReportMetric(rate(b.N, cpuTime()-cpu), "Mev/CPU-s")
}

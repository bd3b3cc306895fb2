package sim

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func ExampleEngine() {
	e := New()
	ping := e.Register(printer{e, "ping"})
	pong := e.Register(printer{e, "pong"})
	e.After(2*Microsecond, pong, 1)
	e.After(1500*Nanosecond, ping, 2)
	e.After(2*Microsecond, ping, 3)
	late := e.Timer(Time(Second), ping, 4)
	fmt.Println(e.Pending(), e.Cancel(late))
	e.Run()
	fmt.Println(e.Executed(), e.Now())
	// Output:
	// 4 true
	// 1.5us ping 2
	// 2us pong 1
	// 2us ping 3
	// 3 2us
}

type printer struct {
	e    *Engine
	name string
}

func (p printer) Handle(arg uint32) { fmt.Println(p.e.Now(), p.name, arg) }

// handlerFunc makes a function a Handler.
type handlerFunc func(arg uint32)

func (f handlerFunc) Handle(arg uint32) { f(arg) }

// reference is the order that the engine promises, kept the slow way.
type reference struct {
	now  Time
	list []refEvent // pending, in the order of their scheduling
}

type refEvent struct {
	at  Time
	arg uint32
}

func (r *reference) add(at Time, arg uint32) { r.list = append(r.list, refEvent{at, arg}) }

// pop removes the event that must run next, if it is not after limit.
func (r *reference) pop(limit Time) (refEvent, bool) {
	first := -1
	for i, x := range r.list {
		if x.at <= limit && (first < 0 || x.at < r.list[first].at) {
			first = i
		}
	}
	if first < 0 {
		return refEvent{}, false
	}
	x := r.list[first]
	r.list = slices.Delete(r.list, first, first+1)
	r.now = x.at
	return x, true
}

func (r *reference) remove(arg uint32) bool {
	n := len(r.list)
	r.list = slices.DeleteFunc(r.list, func(x refEvent) bool { return x.arg == arg })
	return len(r.list) < n
}

// delays are zero, tiny, of a few values, spread, and far.
func delays() *rapid.Generator[Duration] {
	return rapid.OneOf(
		rapid.Just(Duration(0)),
		rapid.Map(rapid.Int64Range(0, 3), func(d int64) Duration { return Duration(d) }),
		rapid.SampledFrom([]Duration{500, 900 * Nanosecond, Microsecond, 16, 256}),
		rapid.Map(rapid.Int64Range(0, int64(Microsecond)), func(d int64) Duration { return Duration(d) }),
		rapid.Map(rapid.Int64Range(0, 1<<53), func(d int64) Duration { return Duration(d) }),
	)
}

// world drives an engine and the reference together. Some events schedule
// children and cancel timers when they run, so pushes mix with pops.
type world struct {
	t      *rapid.T
	e      *Engine
	ref    reference
	id     HandlerID
	next   uint32
	timers map[uint32]TimerID // every timer ever set
	plan   []Duration         // delays of children, used in turn
	cancel []uint32           // how far back children cancel, used in turn
	limit  Time
}

func newWorld(t *rapid.T, e *Engine) *world {
	w := &world{t: t, e: e, timers: map[uint32]TimerID{}, limit: forever}
	w.id = e.Register(handlerFunc(w.ran))
	w.plan = rapid.SliceOfN(delays(), 1, 40).Draw(t, "plan")
	w.cancel = rapid.SliceOfN(rapid.Uint32Range(0, 30), 1, 10).Draw(t, "cancel")
	return w
}

func (w *world) add(d Duration, timer bool) {
	w.next++
	w.ref.add(w.e.Now().Add(d), w.next)
	if timer {
		w.timers[w.next] = w.e.Timer(w.e.Now().Add(d), w.id, w.next)
	} else {
		w.e.After(d, w.id, w.next)
	}
}

func (w *world) drop(arg uint32) {
	id, ok := w.timers[arg]
	if !ok {
		return
	}
	if got, want := w.e.Cancel(id), w.ref.remove(arg); got != want {
		w.t.Fatalf("Cancel of %d = %v, want %v", arg, got, want)
	}
}

func (w *world) ran(arg uint32) {
	want, ok := w.ref.pop(w.limit)
	if !ok || want.arg != arg || want.at != w.e.Now() {
		w.t.Fatalf("ran %d at %d, want %d at %d (%v)", arg, w.e.Now(), want.arg, want.at, ok)
	}
	if w.next < 1000 {
		k := int(arg) % len(w.plan)
		for i := range int(arg) % 3 {
			w.add(w.plan[(k+i)%len(w.plan)], (arg+uint32(i))%2 == 0)
		}
	}
	w.drop(w.next - w.cancel[int(arg)%len(w.cancel)])
	w.same()
}

func (w *world) same() {
	if w.e.Pending() != len(w.ref.list) {
		w.t.Fatalf("Pending = %d, want %d", w.e.Pending(), len(w.ref.list))
	}
}

// Property: whatever is scheduled and cancelled, from outside and from running
// events, events run in the order of time and then of scheduling.
func TestOrder(t *testing.T) {
	e := New()
	rapid.Check(t, func(t *rapid.T) {
		e.Reset()
		w := newWorld(t, e)
		t.Repeat(map[string]func(*rapid.T){
			"":    func(*rapid.T) { w.same() },
			"add": func(t *rapid.T) { w.add(delays().Draw(t, "d"), rapid.Bool().Draw(t, "timer")) },
			"many": func(t *rapid.T) {
				for _, d := range rapid.SliceOfN(delays(), 20, 150).Draw(t, "d") {
					w.add(d, d%2 == 0)
				}
			},
			"burst": func(t *rapid.T) {
				d := delays().Draw(t, "d")
				for range rapid.IntRange(20, 150).Draw(t, "n") {
					w.add(d, false)
				}
			},
			"sweep": func(t *rapid.T) {
				for i, d := range rapid.SliceOfN(delays(), 30, 60).Draw(t, "d") {
					w.add(d, false)
					for range 50 {
						e.Cancel(e.Timer(e.Now().Add(w.plan[i%len(w.plan)]), w.id, 0))
					}
				}
			},
			"cancel": func(t *rapid.T) { w.drop(rapid.Uint32Range(0, w.next).Draw(t, "arg")) },
			"step": func(t *rapid.T) {
				want := len(w.ref.list) > 0
				if got := e.Step(); got != want {
					t.Fatalf("Step = %v, want %v", got, want)
				}
				if e.Now() != w.ref.now {
					t.Fatalf("Now = %d, want %d", e.Now(), w.ref.now)
				}
			},
			"until": func(t *rapid.T) {
				w.limit = e.Now().Add(delays().Draw(t, "d"))
				e.RunUntil(w.limit)
				if _, more := w.ref.pop(w.limit); more || e.Now() != w.limit {
					t.Fatalf("RunUntil(%d) stopped at %d, more events: %v", w.limit, e.Now(), more)
				}
				w.ref.now, w.limit = w.limit, forever
			},
		})
		e.Run()
		if len(w.ref.list) != 0 || e.Pending() != 0 || e.Now() != w.ref.now {
			t.Fatalf("%d left over, Pending %d, Now %d, want %d", len(w.ref.list), e.Pending(), e.Now(), w.ref.now)
		}
	})
}

// Many more events than 2^20 may be pending, and run in order.
func TestManyPending(t *testing.T) {
	const n = 1<<20 + 1<<18
	e := New()
	last, ran := Time(-1), 0
	id := e.Register(handlerFunc(func(arg uint32) {
		if e.Now() < last {
			t.Fatalf("%v after %v", e.Now(), last)
		}
		last = e.Now()
		ran++
	}))
	for i := range uint32(n) {
		e.After(Duration(i*2654435761), id, i)
	}
	if e.Pending() != n {
		t.Fatalf("Pending = %d, want %d", e.Pending(), n)
	}
	e.Run()
	if ran != n || e.Executed() != n {
		t.Fatalf("%d ran, Executed %d, want %d", ran, e.Executed(), n)
	}
	// All chunks have come back, but for one that a bucket keeps.
	chunks := 0
	for c := e.q.free; c != nil; c = c.next {
		chunks++
	}
	kept := 0
	for i := range e.q.buckets {
		if b := &e.q.buckets[i]; b.first != nil {
			kept++
			if b.first.next != nil {
				t.Errorf("bucket %d keeps more than one chunk", i)
			}
		}
	}
	if most := n/chunkLen + len(e.q.buckets) + 2*slabLen; chunks+kept > most {
		t.Errorf("%d chunks for %d events, want at most %d", chunks+kept, n, most)
	}
}

func TestStop(t *testing.T) {
	e := New()
	var ran []uint32
	id := e.Register(handlerFunc(func(arg uint32) {
		ran = append(ran, arg)
		if arg == 2 {
			e.Stop()
		}
	}))
	for i := range uint32(4) {
		e.After(Duration(i), id, i)
	}
	e.RunUntil(100)
	if e.Now() != 2 || e.Pending() != 1 {
		t.Fatalf("after Stop: Now %d, Pending %d", e.Now(), e.Pending())
	}
	e.Run()
	if want := []uint32{0, 1, 2, 3}; !slices.Equal(ran, want) {
		t.Fatalf("ran %v, want %v", ran, want)
	}
	if e.Step() {
		t.Error("Step with nothing pending returned true")
	}
}

// A cancelled timer leaves no trace: it does not move the clock, and earlier
// times can still be used after its own was passed over.
func TestCancelLeavesNoTrace(t *testing.T) {
	e := New()
	var at []Time
	id := e.Register(handlerFunc(func(uint32) { at = append(at, e.Now()) }))
	e.At(10, id, 0)
	e.Cancel(e.Timer(1000, id, 0))
	e.Run()
	if e.Now() != 10 || e.Executed() != 1 {
		t.Fatalf("Now %d, Executed %d, want 10, 1", e.Now(), e.Executed())
	}
	for i := range Time(200) {
		e.At(11+(i*997)%1500, id, 0)
	}
	e.Run()
	if len(at) != 201 || !slices.IsSorted(at) {
		t.Fatalf("ran at %v", at)
	}
}

func TestStaleTimerIDs(t *testing.T) {
	e := New()
	ran := 0
	setUp := func() HandlerID { return e.Register(handlerFunc(func(uint32) { ran++ })) }
	id := setUp()
	fired := e.Timer(1, id, 0)
	e.Run()
	reused := e.Timer(2, id, 0)
	if e.Cancel(fired) || e.Cancel(0) || e.Cancel(1<<32|77) {
		t.Fatal("a stale or unknown timer was cancelled")
	}
	if !e.Cancel(reused) || e.Cancel(reused) {
		t.Fatal("a timer must be cancelled once, and once only")
	}
	before := e.Timer(3, id, 0)
	e.Reset()
	id = setUp()
	after := e.Timer(3, id, 0)
	if e.Cancel(before) {
		t.Fatal("a timer of before Reset was cancelled")
	}
	e.Run()
	if ran != 2 || e.Cancel(after) {
		t.Fatalf("%d timers fired, want 2", ran)
	}
}

// Cancelled timers do not pile up in the queue.
func TestSweep(t *testing.T) {
	e := New()
	ran := 0
	id := e.Register(handlerFunc(func(uint32) { ran++ }))
	keep := e.Timer(5, id, 0)
	for i := range 100_000 {
		e.Cancel(e.Timer(Time(i%1000), id, 0))
		if e.timers.dead > 2000 || len(e.timers.slots) > 3000 {
			t.Fatalf("%d cancelled timers and %d slots are kept", e.timers.dead, len(e.timers.slots))
		}
	}
	e.Run()
	if ran != 1 || e.Cancel(keep) || e.timers.dead != 0 {
		t.Fatalf("%d ran, %d dead, want 1, 0", ran, e.timers.dead)
	}
}

func TestReset(t *testing.T) {
	e := New()
	trace := func() (out []Time) {
		var id HandlerID
		id = e.Register(handlerFunc(func(arg uint32) {
			out = append(out, e.Now())
			if arg > 0 {
				e.After(Duration(arg%7), id, arg-1)
			}
		}))
		for i := range uint32(200) {
			e.After(Duration(i*i%1013), id, i%5)
		}
		e.RunUntil(500) // leaves some behind
		return out
	}
	first := trace()
	e.Reset()
	if e.Now() != 0 || e.Pending() != 0 || e.Executed() != 0 || e.Step() {
		t.Fatal("Reset left something")
	}
	if second := trace(); !slices.Equal(first, second) {
		t.Error("the run after Reset differs")
	}
}

func TestBrokenInvariantsPanic(t *testing.T) {
	e := New()
	id := e.Register(never{})
	e.RunUntil(100)
	tests := map[string]func(){
		"past event":        func() { e.At(99, id, 0) },
		"past timer":        func() { e.Timer(99, id, 0) },
		"negative delay":    func() { e.After(-1, id, 0) },
		"no handler":        func() { e.After(1, 0, 0) },
		"no handler, timer": func() { e.Timer(101, 0, 0) },
		"pipe of no rate":   func() { NewPipe(0) },
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	tests := map[string]interface{ run(int) }{
		"1":          newHold(New(), exponentialTable(1<<16), 1),
		"100":        newHold(New(), exponentialTable(1<<16), 100),
		"10k":        newHold(New(), exponentialTable(1<<16), 10_000),
		"zero delay": newHold(New(), []Duration{0}, 100),
		"timers":     newGuard(),
	}
	for name, h := range tests {
		t.Run(name, func(t *testing.T) {
			h.run(200_000)
			if n := testing.AllocsPerRun(5, func() { h.run(20_000) }); n != 0 {
				t.Errorf("%v allocations in 20,000 events", n)
			}
		})
	}
	t.Run("reset", func(t *testing.T) {
		e := New()
		var h never
		n := testing.AllocsPerRun(5, func() {
			e.Reset()
			id := e.Register(h)
			for i := range 5000 {
				e.After(Duration(i), id, 0)
			}
		})
		if n != 0 {
			t.Errorf("%v allocations in a run after Reset", n)
		}
	})
}

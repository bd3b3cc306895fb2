package sim

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// job is one Take of a property's load.
type job struct {
	gap     Duration // after the arrival before it
	service Duration
	bytes   int64
}

func load() *rapid.Generator[[]job] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job {
		return job{
			gap:     Duration(rapid.Int64Range(0, 50).Draw(t, "gap")),
			service: Duration(rapid.Int64Range(0, 60).Draw(t, "service")),
			bytes:   rapid.Int64Range(0, 5000).Draw(t, "bytes"),
		}
	}), 1, 80)
}

// Property: one server, and k of them, serve in order of arrival, never more
// than k at a time, never idle while somebody waits, and say who was waited for.
func TestServers(t *testing.T) {
	type taker interface {
		Take(Time, Duration, Op) (Time, Time, Op)
		Stats() ServerStats
		FreeAt() Time
	}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(0, 4).Draw(t, "k")
		var s taker = &Server{}
		if k > 0 {
			s = NewServers(k)
		}
		k = max(k, 1)
		free := make([]Time, k) // the servers, busy until
		ends := map[Op]Time{}
		var now, last Time
		var want ServerStats
		for i, j := range load().Draw(t, "jobs") {
			now = now.Add(j.gap)
			who := Op(i + 1)
			slices.Sort(free)
			start, end, blocker := s.Take(now, j.service, who)
			if start != max(now, free[0]) || end.Sub(start) != j.service {
				t.Fatalf("job %d at %d for %d got [%d, %d), servers free at %v", i, now, j.service, start, end, free)
			}
			if start < last {
				t.Fatalf("job %d starts at %d, before an earlier one at %d", i, start, last)
			}
			if start == now && blocker != 0 || start > now && ends[blocker] != start {
				t.Fatalf("job %d from %d to %d was blocked by %d, which ended at %d", i, now, start, blocker, ends[blocker])
			}
			free[0], last, ends[who] = end, start, end
			want.Count++
			want.Busy += j.service
			if w := start.Sub(now); w > 0 {
				want.Waits++
				want.Waited += w
				want.MaxWait = max(want.MaxWait, w)
			}
		}
		if got := s.Stats(); got != want {
			t.Fatalf("Stats = %+v, want %+v", got, want)
		}
		if got := s.FreeAt(); got != slices.Min(free) {
			t.Fatalf("FreeAt = %d, want %d", got, slices.Min(free))
		}
	})
}

func TestPipeTransfer(t *testing.T) {
	tests := []struct {
		rate, bytes int64
		want        Duration
	}{
		{1_000_000_000_000, 1, 8},
		{200_000_000_000, 4096, 163_840},
		{200_000_000_000, 0, 0},
		{3_000_000_000_000, 1, 3}, // 2.67
		{1, 1, 8 * Second},
		{7, 1 << 20, 1_198_372_571_428_571_429},
		{400_000_000_000, 1 << 40, 21_990_232_555_520 * Picosecond},
	}
	for _, tt := range tests {
		if got := NewPipe(tt.rate).Transfer(tt.bytes); got != tt.want {
			t.Errorf("%d B at %d b/s take %d ps, want %d", tt.bytes, tt.rate, got, tt.want)
		}
	}
}

// ceilTime is Transfer in arbitrary precision.
func ceilTime(bytes, rate int64) Duration {
	n := new(big.Int).Mul(big.NewInt(bytes), big.NewInt(8*int64(Second)))
	n.Add(n, big.NewInt(rate-1))
	return Duration(n.Div(n, big.NewInt(rate)).Int64())
}

// Property: over no stretch that begins with a transfer is a pipe above its
// rate, and over a busy stretch it is below by less than a picosecond in all.
func TestPipe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1_000_000_000, 900_000_000_000_000).Draw(t, "rate")
		p := NewPipe(rate)
		var now, since, last Time
		var busy, total int64 // bytes since the pipe was idle, and in all
		var sum Duration
		for i, j := range load().Draw(t, "jobs") {
			now = now.Add(j.gap * Duration(rapid.Int64Range(0, 1000).Draw(t, "far")))
			if rapid.Bool().Draw(t, "right behind") {
				now = max(now, last)
			}
			start, end, blocker := p.Take(now, j.bytes, Op(i+1))
			if start != max(now, last) {
				t.Fatalf("transfer %d at %d starts at %d, the pipe is free at %d", i, now, start, last)
			}
			if start > now && blocker != Op(i) || start == now && blocker != 0 {
				t.Fatalf("transfer %d waits for %d", i, blocker)
			}
			if now > last {
				since, busy = now, 0
			}
			busy += j.bytes
			if want := since.Add(ceilTime(busy, rate)); end != want {
				t.Fatalf("%d B since %d end at %d, want %d", busy, since, end, want)
			}
			if d := p.Transfer(j.bytes) - end.Sub(start); d < 0 || d > 1 {
				t.Fatalf("transfer %d takes %v less than alone", i, d)
			}
			last = end
			total += j.bytes
			sum += end.Sub(start)
		}
		if s := p.Stats(); s.Bytes != total || s.Busy != sum || p.FreeAt() != last {
			t.Fatalf("%+v, free at %d, want %d B, busy %d, free at %d", s, p.FreeAt(), total, sum, last)
		}
	})
}

// Property: credits are never negative nor above the pool, whatever was taken
// is given back, and nobody overtakes.
func TestCredits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(t, "size")
		e := New()
		c := NewCredits(e, size)
		type request struct {
			n    int
			hold Duration
		}
		var requests []request
		var asked, granted []uint32
		asksAt, waited := map[uint32]Time{}, Duration(0)
		held, waits := 0, int64(0)
		var back HandlerID
		grant := func(arg uint32) {
			granted = append(granted, arg)
			held += requests[arg].n
			waited += e.Now().Sub(asksAt[arg])
			e.After(requests[arg].hold, back, arg)
		}
		woken := e.Register(handlerFunc(grant))
		back = e.Register(handlerFunc(func(arg uint32) {
			held -= requests[arg].n
			c.Release(requests[arg].n)
			if c.Available() < 0 || c.Available() > size {
				t.Fatalf("%d of %d available", c.Available(), size)
			}
		}))
		ask := e.Register(handlerFunc(func(arg uint32) {
			asked = append(asked, arg)
			asksAt[arg] = e.Now()
			if c.Acquire(requests[arg].n, woken, arg) {
				grant(arg)
			} else {
				waits++
			}
			if c.Available() < 0 || held > size {
				t.Fatalf("%d available, %d of %d held", c.Available(), held, size)
			}
		}))
		for i, j := range load().Draw(t, "jobs") {
			requests = append(requests, request{int(j.bytes) % (size + 1), j.service})
			e.After(j.gap*3, ask, uint32(i))
		}
		e.Run()
		if !slices.Equal(asked, granted) {
			t.Fatalf("asked in the order %v, granted in %v", asked, granted)
		}
		s := c.Stats()
		if held != 0 || c.Available() != size || s.Count != int64(len(requests)) || s.Waits != waits || s.Waited != waited {
			t.Fatalf("%d held, %d of %d available, %+v, want %d grants, %d waits of %d in all",
				held, c.Available(), size, s, len(requests), waits, waited)
		}
	})
}

func TestCreditStats(t *testing.T) {
	e := New()
	c := NewCredits(e, 2)
	var order []uint32
	id := e.Register(handlerFunc(func(arg uint32) { order = append(order, arg) }))
	if !c.Acquire(2, id, 0) {
		t.Fatal("a full pool refuses")
	}
	if c.Acquire(2, id, 1) || c.Acquire(1, id, 2) {
		t.Fatal("an empty pool grants")
	}
	e.RunUntil(10)
	c.Release(1) // one available, but the first in the queue wants two
	if c.Acquire(1, id, 3) {
		t.Fatal("a small request overtakes")
	}
	e.RunUntil(15)
	c.Release(1)
	c.Release(2)
	e.Run()
	if want := []uint32{1, 2, 3}; !slices.Equal(order, want) {
		t.Fatalf("granted %v, want %v", order, want)
	}
	want := CreditStats{Count: 4, Waits: 3, Waited: 15 + 15 + 5, MaxWait: 15, MaxQueue: 3, Low: 0}
	if got := c.Stats(); got != want {
		t.Errorf("Stats = %+v, want %+v", got, want)
	}
}

// A queue that never empties keeps its order and does not grow.
func TestCreditsAlwaysWaited(t *testing.T) {
	e := New()
	c := NewCredits(e, 1)
	var order []uint32
	id := e.Register(handlerFunc(func(arg uint32) { order = append(order, arg) }))
	const n = 1000
	for i := range uint32(n) {
		c.Acquire(1, id, i)
		if i >= 3 {
			c.Release(1)
			e.Run()
		}
		if cap(c.queue) > 128 {
			t.Fatalf("the queue takes %d places for 3", cap(c.queue))
		}
	}
	for i, arg := range order {
		if int(arg) != i+1 { // the first did not wait
			t.Fatalf("granted %v", order)
		}
	}
	if len(order) != n-3 {
		t.Errorf("%d granted, want %d", len(order), n-3)
	}
}

func TestResourcesAllocateNothing(t *testing.T) {
	e := New()
	var s Server
	k, p, c := NewServers(4), NewPipe(1e9), NewCredits(e, 4)
	id := e.Register(handlerFunc(func(uint32) {}))
	round := func() {
		for i := range 100 {
			s.Take(e.Now(), 10, 1)
			k.Take(e.Now(), 10, 1)
			p.Take(e.Now(), 10, 1)
			c.Acquire(1, id, uint32(i))
		}
		for range 100 {
			c.Release(1)
			e.Run()
		}
	}
	round()
	if n := testing.AllocsPerRun(10, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

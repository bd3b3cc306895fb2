package sim

import (
	"math/big"
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

// Property: a server serves in order of arrival, never idle while somebody waits,
// and says who was waited for.
// TestServerInTurn: work of no length, too, waits for what came before it.
func TestServerInTurn(t *testing.T) {
	const ns = Nanosecond
	var s Server
	for _, tt := range []struct {
		at         Time
		work, want Duration // want from 0
	}{{Time(10 * ns), 0, 10 * ns}, {Time(10 * ns), 30 * ns, 40 * ns}, {Time(15 * ns), 0, 40 * ns}, {Time(20 * ns), 30 * ns, 70 * ns}, {Time(100 * ns), 0, 100 * ns}} {
		if _, got, _ := s.Take(tt.at, tt.work, 0); got != Time(tt.want) {
			t.Errorf("work at %v that takes %v ends at %v, want %v", tt.at, tt.work, got, tt.want)
		}
	}
}

func TestServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Server
		var now, free Time
		var last Op
		var want ServerStats
		for i, j := range load().Draw(t, "jobs") {
			now = now.Add(j.gap)
			who := Op(i + 1)
			start, end, blocker := s.Take(now, j.service, who)
			if start != max(now, free) || end.Sub(start) != j.service {
				t.Fatalf("job %d at %d for %d got [%d, %d), server free at %v", i, now, j.service, start, end, free)
			}
			if start == now && blocker != 0 || start > now && blocker != last {
				t.Fatalf("job %d from %d to %d was blocked by %d, want %d", i, now, start, blocker, last)
			}
			free, last = end, who
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
		if got := s.FreeAt(); got != free {
			t.Fatalf("FreeAt = %d, want %d", got, free)
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

func TestResourcesAllocateNothing(t *testing.T) {
	e := New()
	var s Server
	p := NewPipe(1e9)
	round := func() {
		for range 100 {
			s.Take(e.Now(), 10, 1)
			p.Take(e.Now(), 10, 1)
		}
	}
	round()
	if n := testing.AllocsPerRun(10, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

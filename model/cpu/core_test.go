package cpu_test

import (
	"testing"

	"gdisim/model/cpu"
	"gdisim/sim"

	"pgregory.net/rapid"
)

func TestRun(t *testing.T) {
	us := func(n int64) sim.Time { return sim.Time(sim.Duration(n) * sim.Microsecond) }
	tick := cpu.Outage{Period: 100 * sim.Microsecond, Length: 10 * sim.Microsecond, Phase: 50 * sim.Microsecond}
	for _, tt := range []struct {
		name       string
		outages    []cpu.Outage
		at, work   int64
		start, end int64
	}{
		{"nobody else", nil, 55, 20, 55, 75},
		{"before the tick", []cpu.Outage{tick}, 20, 30, 20, 50},
		{"into the tick", []cpu.Outage{tick}, 45, 10, 45, 65},
		{"from inside the tick", []cpu.Outage{tick}, 55, 10, 60, 70},
		{"over a tick, up to the next", []cpu.Outage{tick}, 60, 180, 60, 250},
		{"over two ticks", []cpu.Outage{tick}, 60, 181, 60, 261},
		{"before the first one's phase", []cpu.Outage{{Period: 100 * sim.Microsecond, Length: 60 * sim.Microsecond, Phase: 50 * sim.Microsecond}}, 5, 10, 10, 20},
		{"no length", []cpu.Outage{{Period: 100 * sim.Microsecond}}, 0, 300, 0, 300},
	} {
		c := cpu.NewCore(&cpu.Config{}, nil, cpu.Load{Outages: tt.outages})
		start, end := c.Run(us(tt.at), sim.Duration(tt.work)*sim.Microsecond)
		if start != us(tt.start) || end != us(tt.end) {
			t.Errorf("%s: %v to %v, want %d to %d us", tt.name, start, end, tt.start, tt.end)
		}
	}
}

// stolen counts the time of [from, to) in which an outage has the core, by
// looking at every picosecond of a small clock.
func stolen(outages []cpu.Outage, from, to sim.Time) (n sim.Duration) {
	for t := from; t < to; t++ {
		for _, o := range outages {
			if x := ((sim.Duration(t)-o.Phase)%o.Period + o.Period) % o.Period; x < o.Length {
				n++
				break
			}
		}
	}
	return n
}

// TestRunConserves: work takes its time outside the outages, begins at the
// first free moment, and more or later work never ends earlier.
func TestRunConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var outages []cpu.Outage
		share := 0.0
		for range rapid.IntRange(0, 2).Draw(t, "outages") {
			p := rapid.Int64Range(2, 60).Draw(t, "period")
			o := cpu.Outage{Period: sim.Duration(p), Length: sim.Duration(rapid.Int64Range(1, max(1, p*2/5)).Draw(t, "length")), Phase: sim.Duration(rapid.Int64Range(0, 100).Draw(t, "phase"))}
			share += float64(o.Length) / float64(p)
			outages = append(outages, o)
		}
		if share >= 1 {
			t.Skip("nothing left of the core")
		}
		c := cpu.NewCore(&cpu.Config{}, nil, cpu.Load{Outages: outages})
		at := sim.Time(rapid.Int64Range(0, 200).Draw(t, "at"))
		work := sim.Duration(rapid.Int64Range(1, 200).Draw(t, "work"))
		start, end := c.Run(at, work)
		if start != c.Available(at) || start < at {
			t.Fatalf("ready at %v, starts at %v, core free at %v", at, start, c.Available(at))
		}
		if n := stolen(outages, at, start); n != start.Sub(at) {
			t.Fatalf("waits from %v to %v, of which %v stolen", at, start, n)
		}
		if n := stolen(outages, start, end); end.Sub(start) != work+n {
			t.Fatalf("%v of work from %v to %v, with %v stolen", work, start, end, n)
		}
		if stolen(outages, start, start+1) != 0 || stolen(outages, end-1, end) != 0 {
			t.Fatalf("%v to %v begins or ends in an outage", start, end)
		}
		if _, e := c.Run(at, work+1); e <= end {
			t.Fatalf("more work ends at %v, less at %v", e, end)
		}
		if _, e := c.Run(at+1, work); e < end {
			t.Fatalf("later work ends at %v, earlier at %v", e, end)
		}
	})
}

package sim

import (
	"testing"

	"pgregory.net/rapid"
)

// Property: however the legs of an operation fork and join, the parts of a walk
// back from any mark sum to the metric's total, and join without a gap.
func TestWalkSumsToTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewRecorder()
		owner := r.Owner("background")
		type leg struct {
			c   Cause
			end Time
		}
		var ops [][]leg // by operation, the causes that can be followed
		for range rapid.IntRange(1, 3).Draw(t, "operations") {
			begin := Time(rapid.Int64Range(0, 1000).Draw(t, "begin"))
			ops = append(ops, []leg{{r.Begin(begin), begin}})
		}
		marks := map[Op][]Time{}
		for range rapid.IntRange(1, 60).Draw(t, "spans") {
			k := rapid.IntRange(0, len(ops)-1).Draw(t, "operation")
			legs := ops[k]
			from := rapid.SampledFrom(legs).Draw(t, "after")
			if rapid.Bool().Draw(t, "join") {
				other := rapid.SampledFrom(legs).Draw(t, "and")
				c := r.Later(from.c, other.c)
				if other.end > from.end {
					from = other
				}
				if c != from.c {
					t.Fatalf("Later = %v, want %v", c, from.c)
				}
			}
			start := from.end + Time(rapid.Int64Range(0, 3).Draw(t, "wait"))
			end := start + Time(rapid.Int64Range(0, 40).Draw(t, "work"))
			kind := Kind{Stage: uint8(rapid.IntRange(1, 9).Draw(t, "stage")), Wait: uint8(rapid.IntRange(0, 1).Draw(t, "kind")) * 20}
			c := r.Span(from.c, kind, start, end, owner)
			ops[k] = append(legs, leg{c, end})
			if rapid.Bool().Draw(t, "mark") {
				r.Mark(c, uint8(len(marks[c.Op])))
				marks[c.Op] = append(marks[c.Op], end)
			}
		}
		if len(r.Records()) != len(ops) {
			t.Fatalf("%d records of %d operations", len(r.Records()), len(ops))
		}
		for i, rec := range r.Records() {
			want := marks[Op(i+1)]
			if len(rec.Marks) != len(want) {
				t.Fatalf("%d marks, want %d", len(rec.Marks), len(want))
			}
			for j, m := range rec.Marks {
				at := want[j] // the walk has come back to here
				if got := rec.Total(m); got != at.Sub(rec.Begin) {
					t.Fatalf("Total = %d, want %d", got, at.Sub(rec.Begin))
				}
				rec.Walk(m, func(s Step) {
					span := rec.Spans[s.Span-1]
					stage, end := span.Stage, span.End
					if s.Wait {
						stage, end = span.Wait, span.Start
						if span.Blocker != owner || s.Time == 0 {
							t.Fatalf("wait of %d with blocker %d", s.Time, span.Blocker)
						}
					}
					if s.Stage != stage || end != at || s.Time < 0 {
						t.Fatalf("step %+v of span %+v, walked back to %d", s, span, at)
					}
					at -= Time(s.Time)
				})
				if at != rec.Begin {
					t.Fatalf("the parts of mark %d miss %d ps of the total", j, at.Sub(rec.Begin))
				}
			}
		}
	})
}

func TestSpanDetails(t *testing.T) {
	r := NewRecorder()
	tick := r.Owner("tick")
	begin := r.Begin(100)
	a := r.Span(begin, Kind{Stage: 1, Wait: 2, Lane: 3, Node: 4}, 110, 120, tick)
	b := r.Span(a, Kind{Stage: 5}, 120, 130, tick) // no wait, so no blocker
	want := []Span{
		{Arrival: 100, Start: 110, End: 120, Pred: 0, Blocker: tick, Stage: 1, Wait: 2, Lane: 3, Node: 4},
		{Arrival: 120, Start: 120, End: 130, Pred: 1, Stage: 5, Wait: 5},
	}
	got := r.Records()[0].Spans
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("spans %+v, want %+v", got, want)
	}
	if name := r.OwnerName(tick); name != "tick" {
		t.Errorf("OwnerName = %q", name)
	}
	if name := r.OwnerName(begin.Op); name != "" {
		t.Errorf("OwnerName of an operation = %q", name)
	}
	other := r.Begin(0)
	laters := []struct{ a, b, want Cause }{
		{a, b, b},
		{b, a, b},
		{begin, a, a},
		{a, Cause{}, a},
		{Cause{}, a, a},
		{a, other, a}, // of another operation
		{Cause{}, Cause{}, Cause{}},
	}
	for _, tt := range laters {
		if got := r.Later(tt.a, tt.b); got != tt.want {
			t.Errorf("Later(%v, %v) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
	tie := r.Span(begin, Kind{Stage: 1}, 100, 130, 0)
	if got := r.Later(tie, b); got != tie {
		t.Errorf("Later of a tie = %v, want the first", got)
	}
}

// Work of no operation is not recorded, whatever it passes through.
func TestUnrecordedWork(t *testing.T) {
	r := NewRecorder()
	for _, c := range []Cause{{}, {Op: r.Owner("background")}} {
		if got := r.Span(c, Kind{Stage: 1}, 5, 3, 0); got != c {
			t.Errorf("Span of %v = %v", c, got)
		}
		r.Mark(c, 1)
	}
	if n := len(r.Records()); n != 0 {
		t.Errorf("%d records", n)
	}
}

func TestSpanBeforeItsPredecessorPanics(t *testing.T) {
	tests := map[string][2]Time{"start": {99, 200}, "end": {150, 149}}
	for name, at := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			r := NewRecorder()
			r.Span(r.Begin(100), Kind{Stage: 1}, at[0], at[1], 0)
		})
	}
}

func TestNilRecorder(t *testing.T) {
	var r *Recorder
	use := func() {
		c := r.Begin(5)
		c = r.Later(c, r.Span(c, Kind{Stage: 1}, 5, 6, r.Owner("x")))
		r.Mark(c, 1)
		if c != (Cause{}) || r.Records() != nil || r.OwnerName(-1) != "" {
			t.Fatal("a nil recorder recorded something")
		}
	}
	if n := testing.AllocsPerRun(100, use); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

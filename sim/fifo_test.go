package sim_test

import (
	"testing"

	"pgregory.net/rapid"

	"gdisim/sim"
)

// A FIFO does what a slice does that is cut at the front.
func TestFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f sim.FIFO[int]
		var want []int
		for next, pushes := range rapid.SliceOfN(rapid.Bool(), 1, 600).Draw(t, "pushes") {
			if pushes {
				f.Push(next)
				want = append(want, next)
			} else if len(want) > 0 {
				if got := f.Pop(); got != want[0] {
					t.Fatalf("popped %d, want %d", got, want[0])
				}
				want = want[1:]
			}
			if f.Len() != len(want) {
				t.Fatalf("holds %d, want %d", f.Len(), len(want))
			}
			if n := len(want); n > 0 && (*f.Front() != want[0] || *f.Back() != want[n-1] || *f.At(n / 2) != want[n/2]) {
				t.Fatalf("front %d, back %d, at %d: %d, want of %v", *f.Front(), *f.Back(), n/2, *f.At(n / 2), want)
			}
		}
	})
}

func TestFIFOAllocatesNothing(t *testing.T) {
	var f sim.FIFO[int]
	turn := func() {
		for i := range 500 {
			f.Push(i)
			if f.Len() > 100 {
				f.Pop()
			}
		}
	}
	for range 10 {
		turn()
	}
	if n := testing.AllocsPerRun(50, turn); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

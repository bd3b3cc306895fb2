package cpu

import "gdisim/sim"

// Fills are a core's line fill buffers: each holds a line that is under way to the
// first-level cache, for a load or for a store, from the request until it is there.
type Fills struct{ free []sim.Time }

// NewFills returns n buffers, none in use.
func NewFills(n int) *Fills { return &Fills{free: make([]sim.Time, n)} }

// Take asks at t for a line that takes d. It returns when a buffer was free for it,
// and when the line is there.
func (f *Fills) Take(t sim.Time, d sim.Duration) (start, end sim.Time) {
	first := 0
	for i, at := range f.free {
		if at < f.free[first] {
			first = i
		}
	}
	start = max(t, f.free[first])
	f.free[first] = start.Add(d)
	return start, f.free[first]
}

// Guess is what a core expects of a branch: a two-bit saturating counter. Its zero
// value expects the branch not to be taken.
type Guess uint8

// Next tells which way the branch went, and reports whether that was expected.
func (g *Guess) Next(taken bool) bool {
	right := *g >= 2 == taken
	switch {
	case taken && *g < 3:
		*g++
	case !taken && *g > 0:
		*g--
	}
	return right
}

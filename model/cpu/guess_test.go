package cpu_test

import (
	"testing"

	"gdisim/model/cpu"
)

// TestGuess follows the two-bit counter: it takes two of a kind to change what is
// expected, and one of the other kind does not change it back.
func TestGuess(t *testing.T) {
	var g cpu.Guess
	for i, tt := range []struct{ taken, expected bool }{
		{false, true}, {true, false}, {false, true}, {true, false}, {true, false}, {true, true}, {false, false}, {true, true},
		{false, false}, {false, false}, {false, true},
	} {
		if got := g.Next(tt.taken); got != tt.expected {
			t.Errorf("branch %d, taken %v: expected %v, want %v", i, tt.taken, got, tt.expected)
		}
	}
}

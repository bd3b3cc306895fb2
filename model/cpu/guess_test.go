package cpu_test

import (
	"testing"

	"gdisim/model/cpu"
)

// TestGuess follows the two-bit counter: it takes two of a kind to change what is
// expected, and one of the other kind does not change it back.
func TestGuess(t *testing.T) {
	var g cpu.Guess
	taken := []bool{false, true, false, true, true, true, false, true, false, false, false}
	expected := []bool{true, false, true, false, false, true, false, true, false, false, true}
	for i, way := range taken {
		if got := g.Next(way); got != expected[i] {
			t.Errorf("branch %d, taken %v: expected %v, want %v", i, way, got, expected[i])
		}
	}
}

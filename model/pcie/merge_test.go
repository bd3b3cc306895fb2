package pcie_test

import (
	"testing"

	"gdisim/model/pcie"
	"gdisim/sim"
)

// TestMerge has writes wait for the lines of those before them.
func TestMerge(t *testing.T) {
	const ns = sim.Nanosecond
	var m pcie.Merge
	for _, tt := range []struct {
		at         sim.Time
		back, want sim.Duration // want from 0
	}{{sim.Time(10 * ns), 0, 10 * ns}, {sim.Time(10 * ns), 30 * ns, 40 * ns}, {sim.Time(15 * ns), 0, 40 * ns}, {sim.Time(20 * ns), 30 * ns, 70 * ns}, {sim.Time(100 * ns), 0, 100 * ns}} {
		if got := m.Pass(tt.at, tt.back); got != sim.Time(tt.want) {
			t.Errorf("a write at %v that takes %v is visible at %v, want %v", tt.at, tt.back, got, tt.want)
		}
	}
}

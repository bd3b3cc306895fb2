package pcie

import "gdisim/sim"

// Merge is where a device's writes to host memory become visible one after the other.
// A write of a part of a line needs the rest of it: from a core that holds the line it
// is taken back first, and what is behind waits.
type Merge struct{ free sim.Time }

// Pass returns when a write is visible that comes at t and for which taking its line
// back lasts so long.
func (m *Merge) Pass(t sim.Time, back sim.Duration) sim.Time {
	m.free = max(t, m.free).Add(back)
	return m.free
}

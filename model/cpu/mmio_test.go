package cpu_test

import (
	"testing"

	"gdisim/model/cpu"
	"gdisim/model/pcie"
	"gdisim/sim"
)

type told func()

func (f told) Done(uint32, sim.Cause) { f() }

// TestMMIO holds runs of stores and loads against their parts, added by hand:
// stores return when the last line has a buffer, loads when the last has come.
func TestMMIO(t *testing.T) {
	const ns = sim.Nanosecond
	link := pcie.LinkSpec{MTps: 8000, Lanes: 16}
	c := pcie.Config{
		Class: pcie.PHB, GPULink: link, NICLink: link, UpLink: link, MPS: 256, MRRS: 512, RCB: 64, RequestHeader: 24, CompletionHeader: 20,
		PostedCredits: 64, NonPostedCredits: 64, CompletionCredits: 64,
	}
	c.Units[pcie.GPU] = pcie.Timing{Read: sim.Fixed(500 * ns), Write: sim.Fixed(400 * ns)}
	c.Units[pcie.CPU] = pcie.Timing{Egress: sim.Fixed(30 * ns)}
	cfg := cpu.MMIOConfig{Call: sim.Fixed(80 * ns), Line: sim.Fixed(2 * ns), Buffers: 4, Piece: 16, Loads: 3}
	wire := sim.NewPipe(link.BitsPerSecond()).Transfer
	piece := 30*ns + wire(24) + 500*ns + wire(16+20)
	for _, tt := range []struct {
		what string
		load bool
		n    int64
		want sim.Duration
	}{
		{"store of 8 B", false, 8, 2*ns + 80*ns},
		{"store of four lines", false, 256, 4*2*ns + 80*ns},
		// The fifth line's buffer is that of the first, which is on the link when
		// its egress and its bytes are over.
		{"store of five lines", false, 320, 2*ns + 30*ns + wire(88) + 2*ns + 80*ns},
		{"load of 1 B", true, 1, 2*ns + 30*ns + wire(24) + 500*ns + wire(21) + 80*ns},
		{"load of 8 B, twice the same", true, 8, 2*ns + 2*(30*ns+wire(24)+500*ns+wire(28)) + 80*ns},
		{"load of 13 B, two of 8 that overlap", true, 13, 2*ns + 2*(30*ns+wire(24)+500*ns+wire(28)) + 80*ns},
		{"load of 24 B", true, 24, 2*ns + piece + 2*(30*ns+wire(24)+500*ns+wire(28)) + 80*ns},
		{"load of 16 B", true, 16, 2*ns + piece + 80*ns},
		{"load of a line", true, 64, 2*ns + 4*piece + 80*ns},
	} {
		eng := sim.New()
		bus, err := pcie.New(eng, nil, nil, "n", c)
		if err != nil {
			t.Fatal(err)
		}
		m := cpu.NewMMIO(eng, nil, nil, bus, cfg)
		for range 2 { // the second finds nothing left of the first
			begin, end := eng.Now(), sim.Time(0)
			done := told(func() { end = eng.Now() })
			if tt.load {
				m.Load(pcie.GPU, tt.n, sim.Cause{}, done, 0)
			} else {
				m.Store(pcie.GPU, tt.n, sim.Cause{}, done, 0)
			}
			eng.Run()
			if got := end.Sub(begin); got != tt.want {
				t.Errorf("%s took %v, want %v", tt.what, got, tt.want)
			}
		}
		if err := bus.Idle(); err != nil {
			t.Error(err)
		}
	}
}

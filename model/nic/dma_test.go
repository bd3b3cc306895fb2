package nic_test

import (
	"math/rand/v2"
	"testing"

	"gdisim/model/nic"
	"gdisim/model/pcie"
	"gdisim/sim"
)

// dmaBus is a device below the root complex whose only time is the link's and
// 100 ns of the host each way.
func dmaBus(t *testing.T) (*sim.Engine, *pcie.Fabric, pcie.Config) {
	link := pcie.LinkSpec{MTps: 8000, Lanes: 8}
	c := pcie.Config{
		Class: pcie.PHB, GPULink: link, NICLink: link, UpLink: link, MPS: 256, MRRS: 512, RCB: 64, RequestHeader: 24, CompletionHeader: 20,
		PostedCredits: 64, NonPostedCredits: 64, CompletionCredits: 64,
	}
	c.Tags[pcie.NIC] = 16
	c.Units[pcie.Host] = pcie.Timing{Read: sim.Fixed(100 * sim.Nanosecond), Write: sim.Fixed(100 * sim.Nanosecond)}
	eng := sim.New()
	bus, err := pcie.New(eng, nil, nil, "n", c)
	if err != nil {
		t.Fatal(err)
	}
	return eng, bus, c
}

type told func(arg uint32)

func (f told) Done(arg uint32, _ sim.Cause) { f(arg) }

// TestDMA holds single commands against their parts, added by hand, and many
// against the limit that should hold them.
func TestDMA(t *testing.T) {
	const ns = sim.Nanosecond
	cfg := nic.DMAConfig{
		Read: nic.Half{Setup: sim.Fixed(60 * ns), Interval: 11 * ns}, Write: nic.Half{Setup: sim.Fixed(200 * ns), Interval: 21 * ns},
		Move: 7 * ns, Rate: 64_000_000_000,
	}
	move := func(n int64) sim.Duration { return 7*ns + sim.Duration(n)*125 } // 64 Gb/s are 125 ps a byte
	wire := sim.NewPipe(pcie.LinkSpec{MTps: 8000, Lanes: 8}.BitsPerSecond()).Transfer
	for _, n := range []int64{8, 256} {
		access := pcie.Access{From: pcie.NIC, To: pcie.Host, Bytes: n}
		write := access
		write.Write = true
		for _, tt := range []struct {
			what string
			do   func(d *nic.DMA, done sim.Sink)
			want sim.Duration
		}{
			{"read", func(d *nic.DMA, s sim.Sink) { d.Submit(access, sim.Cause{}, s, 0) }, 60*ns + wire(24) + 100*ns + wire(n+20) + move(n)},
			{"write", func(d *nic.DMA, s sim.Sink) { d.Submit(write, sim.Cause{}, s, 0) }, 200*ns + move(n) + wire(n+24) + 100*ns},
			{"write, then read", func(d *nic.DMA, s sim.Sink) {
				d.Behind(write, sim.Cause{}, told(func(uint32) { d.Submit(access, sim.Cause{}, s, 0) }), 0)
			}, 200*ns + move(n) + 60*ns + wire(24) + 100*ns + wire(n+20) + move(n)},
		} {
			eng, bus, _ := dmaBus(t)
			d := nic.NewDMA(eng, nil, rand.New(rand.NewPCG(1, 1)), bus, cfg)
			var end sim.Time
			tt.do(d, told(func(uint32) { end = eng.Now() }))
			eng.Run()
			if sim.Duration(end) != tt.want {
				t.Errorf("%s of %d B took %v, want %v", tt.what, n, sim.Duration(end), tt.want)
			}
			if err := bus.Idle(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, tt := range []struct {
		what  string
		write bool
		n     int64
		each  sim.Duration
	}{
		{"small writes at the engine's interval", true, 8, 21 * ns},
		{"large reads at the pace of the device's memory", false, 512, move(512)},
		{"small reads by the tags", false, 8, (wire(24) + 100*ns + wire(28)) / 16},
	} {
		eng, bus, _ := dmaBus(t)
		c := cfg
		if tt.n == 8 && !tt.write {
			c.Read.Interval, c.Move = 0, 0
		}
		d := nic.NewDMA(eng, nil, nil, bus, c)
		const k = 2000
		var half, end sim.Time
		ended := 0
		for range k {
			d.Submit(pcie.Access{From: pcie.NIC, To: pcie.Host, Write: tt.write, Bytes: tt.n}, sim.Cause{}, told(func(uint32) {
				if ended++; ended == k/2 {
					half = eng.Now()
				}
				end = eng.Now()
			}), 0)
		}
		eng.Run()
		if got := end.Sub(half) / (k / 2); got < tt.each*99/100 || got > tt.each*102/100 {
			t.Errorf("%s: one each %v, want %v", tt.what, got, tt.each)
		}
	}
}

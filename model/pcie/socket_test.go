package pcie

import (
	"math/rand/v2"
	"testing"

	"gdisim/sim"
)

// The host is on one of the two sockets: what crosses pays the inter-socket
// link once each way, and only that.
func TestHostNear(t *testing.T) {
	link := LinkSpec{MTps: 32000, Lanes: 16}
	const cross = 100 * sim.Nanosecond
	build := func(near bool, socket sim.Duration) *Fabric {
		c := Config{
			Class: SYS, GPULink: link, NICLink: link, UpLink: link, MPS: 256, MRRS: 512, RCB: 64, RequestHeader: 24, CompletionHeader: 20,
			LinkLatency: sim.Fixed(25 * sim.Nanosecond), RootLatency: sim.Fixed(40 * sim.Nanosecond), SocketLatency: sim.Fixed(socket),
			SocketP2PRate: 120e9, PostedCredits: 8, NonPostedCredits: 8, CompletionCredits: 8, HostNearGPU: near,
		}
		f, err := New(sim.New(), nil, rand.New(rand.NewPCG(1, 1)), "n", c)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		near     bool
		from, to Unit
		want     int // crossings one way
	}{
		{false, GPU, Host, 1},
		{false, CPU, GPU, 1},
		{false, NIC, Host, 0},
		{false, CPU, NIC, 0},
		{false, GPU, NIC, 1},
		{true, GPU, Host, 0},
		{true, CPU, GPU, 0},
		{true, NIC, Host, 1},
		{true, CPU, NIC, 1},
		{true, NIC, GPU, 1},
	} {
		f, free := build(c.near, cross), build(c.near, 0)
		if d := f.OneWay(c.from, c.to, 8) - free.OneWay(c.from, c.to, 8); d != sim.Duration(c.want)*cross {
			t.Errorf("host near GPU %v: %v to %v crosses for %v, want %d times", c.near, c.from, c.to, d, c.want)
		}
		if d := f.RoundTrip(c.from, c.to, 8) - free.RoundTrip(c.from, c.to, 8); d != sim.Duration(2*c.want)*cross {
			t.Errorf("host near GPU %v: a read by %v of %v crosses for %v, want %d times", c.near, c.from, c.to, d, 2*c.want)
		}
	}
}

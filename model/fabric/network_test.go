package fabric_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gdisim/model/fabric"
	"gdisim/sim"

	"pgregory.net/rapid"
)

const (
	ns    = sim.Nanosecond
	rate  = 200_000_000_000
	cable = 21 * ns
	hop   = 130 * ns
)

func build(t interface{ Fatal(...any) }, nodes int, c fabric.Config) (*sim.Engine, *fabric.Network) {
	eng := sim.New()
	c.Rate = rate
	w, err := fabric.New(eng, nil, rand.New(rand.NewPCG(1, 2)), nodes, c)
	if err != nil {
		t.Fatal(err)
	}
	return eng, w
}

type sink func(arg uint32)

func (s sink) Done(arg uint32, _ sim.Cause) { s(arg) }

func bits(n int64) sim.Duration { return sim.NewPipe(rate).Transfer(n) }

// TestHeaders: what the specifications put around a payload.
func TestHeaders(t *testing.T) {
	for _, tt := range []struct {
		packet   fabric.Packet
		ib, roce int64
	}{
		// LRH 8, BTH 12, ICRC 4, VCRC 2; Ethernet 14 + 4 + 20, IPv4 20, UDP 8, BTH 12, ICRC 4.
		{fabric.WriteNext, 26, 82},
		{fabric.WriteFirst, 26 + 16, 82 + 16},
		{fabric.ReadRequest, 26 + 16, 82 + 16},
		{fabric.ReadResponse, 26 + 4, 82 + 4},
		{fabric.Ack, 26 + 4, 82 + 4},
		{fabric.AtomicRequest, 26 + 28, 82 + 28},
	} {
		for transport, header := range map[fabric.Transport]int64{fabric.InfiniBand: tt.ib, fabric.RoCEv2: tt.roce} {
			eng, w := build(t, 2, fabric.Config{Transport: transport, Hops: 1})
			w.Send(0, 1, tt.packet, 100, false, sim.Cause{}, sink(func(uint32) {}), 0)
			eng.Run()
			if got := w.Traffic()[0]; got.Bytes != 100+header || got.Packets != 1 || got.Busy != bits(100+header) {
				t.Errorf("packet %d of transport %d: %+v, want %d B", tt.packet, transport, got, 100+header)
			}
		}
	}
	for name, want := range map[string]fabric.Transport{"infiniband": fabric.InfiniBand, "rocev2": fabric.RoCEv2} {
		if got, ok := fabric.ParseTransport(name); !ok || got != want {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
	if _, ok := fabric.ParseTransport("ib"); ok {
		t.Error("ib is no transport")
	}
}

// TestOnePacket: bytes count once, since switches cut through.
func TestOnePacket(t *testing.T) {
	for hops, latency := range []sim.Duration{cable, 2*cable + hop, 3*cable + 2*hop, 4*cable + 3*hop} {
		eng, w := build(t, 2, fabric.Config{Hops: hops, SwitchLatency: sim.Fixed(hop), CableLatency: sim.Fixed(cable)})
		var at sim.Time
		w.Send(0, 1, fabric.WriteFirst, 4096, false, sim.Cause{}, sink(func(uint32) { at = eng.Now() }), 0)
		eng.Run()
		if want := latency + bits(4096+42); sim.Duration(at) != want {
			t.Errorf("%d hops: %v, want %v", hops, at, want)
		}
	}
}

// TestSharedPort: two nodes that send to a third share its port; who comes
// second waits.
func TestSharedPort(t *testing.T) {
	eng, w := build(t, 3, fabric.Config{Hops: 1, SwitchLatency: sim.Fixed(hop), CableLatency: sim.Fixed(cable)})
	const n, each = 4096, 10
	var at []sim.Time
	for range each {
		for from := range 2 {
			w.Send(from, 2, fabric.WriteNext, n, false, sim.Cause{}, sink(func(uint32) { at = append(at, eng.Now()) }), 0)
		}
	}
	eng.Run()
	for i, a := range at {
		if want := 2*cable + hop + bits(int64(i+1)*(n+26)); sim.Duration(a) != want {
			t.Errorf("packet %d came at %v, want %v", i, a, want)
		}
	}
	if len(at) != 2*each {
		t.Errorf("%d packets came", len(at))
	}
}

// TestInOrder: packets of one node to another keep their order, and none is
// lost, whatever latencies are drawn.
func TestInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := fabric.Config{Hops: rapid.IntRange(0, 3).Draw(t, "hops"), SwitchLatency: sim.Exponential(hop), CableLatency: sim.Uniform(0, 500*ns)}
		nodes := 2
		if c.Hops > 0 {
			nodes = rapid.IntRange(2, 4).Draw(t, "nodes")
		}
		eng, w := build(t, nodes, c)
		sent, got := map[[2]int]uint32{}, map[[2]int]uint32{}
		var bytes int64
		for range rapid.IntRange(1, 40).Draw(t, "packets") {
			from := rapid.IntRange(0, nodes-1).Draw(t, "from")
			to := (from + rapid.IntRange(1, nodes-1).Draw(t, "to")) % nodes
			n := rapid.Int64Range(0, 4096).Draw(t, "bytes")
			flow := [2]int{from, to}
			w.Send(from, to, fabric.WriteNext, n, false, sim.Cause{}, sink(func(arg uint32) {
				if arg != got[flow] {
					t.Fatalf("packet %d of %v came as number %d", arg, flow, got[flow])
				}
				got[flow]++
			}), sent[flow])
			sent[flow]++
			bytes += n + 26
			eng.RunUntil(eng.Now().Add(sim.Duration(rapid.Int64Range(0, 400).Draw(t, "pause")) * ns))
		}
		eng.Run()
		for f, n := range sent {
			if got[f] != n {
				t.Fatalf("%v: %d of %d packets came", f, got[f], n)
			}
		}
		for _, p := range w.Traffic() {
			bytes -= p.Bytes
			if p.Busy > sim.Duration(eng.Now()) {
				t.Fatalf("%s: busy for %v of %v", p.Name, p.Busy, eng.Now())
			}
		}
		if bytes != 0 {
			t.Fatalf("%d B more sent than carried", bytes)
		}
	})
}

func TestErrors(t *testing.T) {
	if _, err := fabric.New(sim.New(), nil, nil, 2, fabric.Config{Hops: 1}); err == nil {
		t.Error("no error without a rate")
	}
	if _, err := fabric.New(sim.New(), nil, nil, 3, fabric.Config{Rate: rate}); err == nil {
		t.Error("no error for three nodes back to back")
	}
}

// A held node gets nothing; released, it gets all in order, until it is held again.
func TestHold(t *testing.T) {
	eng, w := build(t, 2, fabric.Config{Hops: 1})
	var got []uint32
	s := sink(func(arg uint32) {
		if got = append(got, arg); arg == 1 {
			w.Hold(1)
		}
	})
	w.Hold(1)
	for i := range uint32(3) {
		w.Send(0, 1, fabric.WriteFirst, 8, false, sim.Cause{}, s, i)
	}
	eng.Run()
	if len(got) != 0 || w.Delivered()[0] != 0 {
		t.Fatalf("held, and got %v", got)
	}
	w.Release(1)
	if !slices.Equal(got, []uint32{0, 1}) {
		t.Fatalf("released until packet 1: got %v", got)
	}
	w.Release(1)
	if !slices.Equal(got, []uint32{0, 1, 2}) || w.Delivered()[0] != 3 {
		t.Fatalf("got %v, %d delivered", got, w.Delivered()[0])
	}
}

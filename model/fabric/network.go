package fabric

import (
	"fmt"
	"math/rand/v2"

	"gdisim/sim"
	"gdisim/stage"
)

// Transport decides the header bytes of a packet.
type Transport uint8

// The transports.
const (
	InfiniBand Transport = iota
	RoCEv2
)

// ParseTransport returns the transport of that name: infiniband or rocev2.
func ParseTransport(s string) (Transport, bool) {
	switch s {
	case "infiniband":
		return InfiniBand, true
	case "rocev2":
		return RoCEv2, true
	}
	return 0, false
}

// Packet is the kind of a packet, for its headers.
type Packet uint8

// The kinds: a first or only write packet carries an RETH, so does a READ
// request; ACK and atomic answers carry an AETH.
const (
	WriteFirst Packet = iota
	WriteNext
	ReadRequest
	ReadResponse
	AtomicRequest
	Ack
)

// headerBytes per InfiniBand Architecture Specification vol. 1, chapters 7
// (LRH 8), 9 (BTH 12, RETH 16, AETH 4, AtomicETH 28) and 7.8 (ICRC 4, VCRC 2);
// RoCEv2 (annex A17) replaces the LRH and VCRC by Ethernet (14, FCS 4, preamble
// and gap 20), IPv4 20 and UDP 8.
func (t Transport) headerBytes(p Packet) int64 {
	n := int64(8 + 12 + 4 + 2)
	if t == RoCEv2 {
		n = 14 + 4 + 20 + 20 + 8 + 12 + 4
	}
	switch p {
	case WriteFirst, ReadRequest:
		return n + 16
	case ReadResponse, Ack:
		return n + 4
	case AtomicRequest:
		return n + 28
	}
	return n
}

// Config describes the network between nodes with one port each.
type Config struct {
	Transport     Transport
	Rate          int64     // bit/s of a port, after encoding
	Hops          int       // switches between two nodes; 0 is back to back
	SwitchLatency sim.Delay // first bit in to first bit out of one switch
	CableLatency  sim.Delay // one cable with its transceivers, per segment
	// Lose takes packets off the wire, Down all packets while the link is down.
	Lose, Down sim.Triggers
}

type flight struct {
	cause sim.Cause
	from  int
	to    int
	bytes int64
	tail  sim.Time
	done  sim.Sink
	arg   uint32
	kinds *[4]sim.Kind
}

// Network joins the nodes' NIC ports through one switch or more.
type Network struct {
	cfg     Config
	eng     *sim.Engine
	rec     *sim.Recorder
	rng     *rand.Rand
	atOut   sim.HandlerID
	atEnd   sim.HandlerID
	ports   []*sim.Pipe // node to switch
	outs    []*sim.Pipe // last switch to node
	heads   []sim.Time  // when a port's last packet reaches its last switch
	tails   []sim.Time  // when a node's last packet is there
	packets []int
	lost    []Lost
	arrived []int
	flights []flight
	free    sim.Free
	held    []bool             // nodes that take nothing
	waiting []sim.FIFO[uint32] // flights in front of them
	kinds   [][4]sim.Kind
	ackKind [][4]sim.Kind
}

// New returns a network of n nodes. rng serves latencies that are
// distributions.
func New(eng *sim.Engine, rec *sim.Recorder, rng *rand.Rand, n int, cfg Config) (*Network, error) {
	if cfg.Rate <= 0 {
		return nil, fmt.Errorf("fabric: rate %d b/s must be positive", cfg.Rate)
	}
	if cfg.Hops == 0 && n != 2 {
		return nil, fmt.Errorf("fabric: %d nodes back to back, want 2", n)
	}
	w := &Network{cfg: cfg, eng: eng, rec: rec, rng: rng, flights: make([]flight, 0, 256), heads: make([]sim.Time, n), tails: make([]sim.Time, n), packets: make([]int, n), lost: make([]Lost, n), arrived: make([]int, n), held: make([]bool, n), waiting: make([]sim.FIFO[uint32], n)}
	w.atOut = eng.Register(atOut{w})
	w.atEnd = eng.Register(atEnd{w})
	for i := range n {
		w.ports = append(w.ports, sim.NewPipe(cfg.Rate))
		w.outs = append(w.outs, sim.NewPipe(cfg.Rate))
		var k, a [4]sim.Kind
		for j, s := range []stage.Stage{stage.FabricSerialise, stage.FabricPropagate, stage.FabricSwitch, stage.FabricQueue} {
			k[j] = sim.Kind{Stage: uint8(s), Wait: uint8(stage.FabricQueue), Lane: uint8(stage.LaneFabric), Node: uint8(i)}
			a[j] = sim.Kind{Stage: uint8(stage.NICAck), Lane: uint8(stage.LaneFabric), Node: uint8(i)}
		}
		w.kinds = append(w.kinds, k)
		w.ackKind = append(w.ackKind, a)
	}
	return w, nil
}

// Send puts a packet with n payload bytes on the port of node from. done is
// told when its last byte is at node to. The whole way of an ACK is the stage
// nic.ack. A lost packet has had the port, and nobody is told of it: Send reports
// whether the packet will arrive.
func (w *Network) Send(from, to int, p Packet, n int64, ack bool, c sim.Cause, done sim.Sink, arg uint32) bool {
	now := w.eng.Now()
	bytes := n + w.cfg.Transport.headerBytes(p)
	w.packets[from]++
	k := &w.kinds[from]
	if ack {
		k = &w.ackKind[from]
	}
	start, end, blocker := w.ports[from].Take(now, bytes, c.Op)
	if w.cfg.Down.Strikes(now) || w.cfg.Lose.Strikes(now) {
		w.lost[from].Packets++
		w.lost[from].Bytes += bytes
		return false
	}
	first := k[0]
	if blocker == c.Op { // behind the message's own packets: it is still being serialised
		first.Wait = first.Stage
	}
	cable := w.cfg.CableLatency.Draw(w.rng)
	c = w.rec.Span(c, first, start, end, blocker)
	c = w.rec.Span(c, k[1], end, end.Add(cable), 0)
	id := sim.Alloc(&w.flights, &w.free)
	f := &w.flights[id]
	*f = flight{cause: c, from: from, to: to, bytes: bytes, tail: end.Add(cable), done: done, arg: arg, kinds: k}
	if w.cfg.Hops == 0 {
		w.end(f, id)
		return true
	}
	// The switches cut through: the head reaches the last one's output port
	// before the tail has left ours.
	var hops sim.Duration
	for i := range w.cfg.Hops {
		hops += w.cfg.SwitchLatency.Draw(w.rng)
		if i > 0 {
			hops += w.cfg.CableLatency.Draw(w.rng)
		}
	}
	head := max(start.Add(cable+hops), w.heads[from])
	w.heads[from] = head
	f.tail = head.Add(end.Sub(start))
	f.cause = w.rec.Span(c, k[2], end.Add(cable), f.tail, 0)
	w.eng.At(head, w.atOut, id)
	return true
}

// FreeAt returns when the last packet given to the port of a node has left it.
func (w *Network) FreeAt(node int) sim.Time { return w.ports[node].FreeAt() }

// end schedules the delivery, behind the node's last packet.
func (w *Network) end(f *flight, id uint32) {
	f.tail = max(f.tail, w.tails[f.to])
	w.tails[f.to] = f.tail
	w.eng.At(f.tail, w.atEnd, id)
}

type atOut struct{ *Network }

// Handle queues the packet at the output port towards its node.
func (a atOut) Handle(id uint32) {
	w := a.Network
	f := &w.flights[id]
	_, end, blocker := w.outs[f.to].Take(w.eng.Now(), f.bytes, f.cause.Op)
	if end > f.tail { // another packet held the port
		f.cause = w.rec.Span(f.cause, f.kinds[3], end, end, blocker)
		f.tail = end
	}
	cable := w.cfg.CableLatency.Draw(w.rng)
	f.cause = w.rec.Span(f.cause, f.kinds[1], f.tail, f.tail.Add(cable), 0)
	f.tail = f.tail.Add(cable)
	w.end(f, id)
}

type atEnd struct{ *Network }

// Handle delivers the packet, if its node takes any.
func (a atEnd) Handle(id uint32) {
	w := a.Network
	f := &w.flights[id]
	if w.held[f.to] {
		w.waiting[f.to].Push(id)
		return
	}
	w.deliver(id)
}

// Hold keeps packets for the node back, in order, as link-level credits do while
// its NIC takes nothing from the wire.
func (w *Network) Hold(node int) { w.held[node] = true }

// Release lets a held node have its packets, until one of them has it held again.
func (w *Network) Release(node int) {
	w.held[node] = false
	for q := &w.waiting[node]; q.Len() > 0 && !w.held[node]; {
		id := q.Pop()
		f := &w.flights[id]
		now := w.eng.Now()
		f.cause = w.rec.Span(f.cause, f.kinds[3], now, now, 0)
		w.deliver(id)
	}
}

func (w *Network) deliver(id uint32) {
	f := &w.flights[id]
	done, arg, c := f.done, f.arg, f.cause
	w.arrived[f.from]++
	sim.Release(&w.flights, &w.free, id)
	done.Done(arg, c)
}

// Traffic is what a node's port was given, and how long it has been busy with
// it so far.
type Traffic struct {
	Name    string
	Packets int
	Bytes   int64
	Busy    sim.Duration
}

// Lost is what a node's port was given and the wire did not deliver.
type Lost struct {
	Packets int
	Bytes   int64
}

// Lost returns the counters of the nodes' ports.
func (w *Network) Lost() []Lost { return w.lost }

// Delivered returns how many packets of each node have arrived.
func (w *Network) Delivered() []int { return w.arrived }

// Traffic returns the counters of the nodes' ports.
func (w *Network) Traffic() []Traffic {
	out := make([]Traffic, len(w.ports))
	for i, p := range w.ports {
		s := p.Stats()
		ahead := max(0, p.FreeAt().Sub(w.eng.Now()))
		out[i] = Traffic{Name: fmt.Sprintf("node%d.port", i), Packets: w.packets[i], Bytes: s.Bytes, Busy: s.Busy - ahead}
	}
	return out
}

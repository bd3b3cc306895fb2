package pcie

import (
	"fmt"
	"math/rand/v2"

	"gdisim/sim"
)

// Unit is an end point of the node's PCIe tree.
type Unit uint8

// The units of a node. CPU is a core that loads and stores, Host its memory.
const (
	GPU Unit = iota
	NIC
	Host
	CPU

	units
)

var unitNames = [...]string{"gpu", "nic", "host", "cpu"}

// String returns the unit's name as link names spell it.
func (u Unit) String() string { return unitNames[u] }

// Timing is what a unit adds to transactions that it starts or ends.
type Timing struct {
	Egress sim.Delay // before a request leaves it
	Read   sim.Delay // from a read request's arrival until its completion leaves
	Write  sim.Delay // from a write's arrival until a reader in the unit may see it
	Return sim.Delay // from a completion's arrival until the requester has the data
}

// Config describes the node's tree.
type Config struct {
	Class                           Class
	GPULink, NICLink, UpLink        LinkSpec // UpLink: switch to root complex
	C2CRate                         int64    // bit/s of the GPU's coherent link, class C2C
	MPS, MRRS, RCB                  int64    // bytes
	RequestHeader, CompletionHeader int64    // bytes per TLP, framing included
	DLLPShare                       float64  // share of the link that DLLPs and SKP take
	LinkLatency                     sim.Delay
	SwitchLatency                   sim.Delay
	RootLatency                     sim.Delay // through the root complex, to or from the host
	RootPeerLatency                 sim.Delay // through the root complex, between two devices
	MeshLatency                     sim.Delay // between root complexes of one node
	SocketLatency                   sim.Delay // the inter-socket link
	SocketP2PRate                   int64     // bit/s of peer traffic across sockets
	HostNearGPU                     bool      // class SYS: CPU and memory are on the GPU's socket, not the NIC's
	PostedCredits                   int       // TLPs a receiver buffers, posted
	NonPostedCredits                int
	CompletionCredits               int
	Tags                            [units]int // outstanding read requests of a unit
	Units                           [units]Timing
}

// class of a TLP for flow control.
const (
	posted = iota
	nonPosted
	completion
)

// pipe is one direction of a link, with its receiver's credits.
type pipe struct {
	name    string
	bw      *sim.Pipe
	credits [3]int
	limit   [3]int
	tlps    int
	// waiting holds transactions that lack credits, in order: requests (a
	// non-posted one may not pass a posted one) and completions. A completion may
	// not pass a posted request either, without relaxed ordering, and then stands
	// in the requests' queue (PCIe Base Specification, table 2-41).
	waiting [2][]uint32
	posted  int // of those waiting
	// Nothing overtakes on a link, whatever latencies are drawn: when the head
	// and tail of the last TLP went on, and when its target was done with it.
	head, tail [2]sim.Time
	done       [3]sim.Time
}

// hop is a link and what the TLP crosses behind it.
type hop struct {
	pipe    *pipe
	latency []sim.Delay
}

type txn struct {
	kind     sim.Kind
	class    uint8
	write    bool
	from, to Unit
	at       int8  // hop whose link the TLP waits for or is on
	tlps     int32 // on a link, in the present phase
	bytes    int64
	onLink   int64 // the same, headers included
	sampled  sim.Time
	tail     sim.Time // when the last byte reaches the next hop
	cause    sim.Cause
	done     sim.Sink
	arg      uint32
	next     uint32 // free list, tag queue
}

// Fabric is one node's PCIe tree.
type Fabric struct {
	cfg     Config
	eng     *sim.Engine
	rec     *sim.Recorder
	rng     *rand.Rand
	arrive  sim.HandlerID
	routes  [units][units][]hop
	pipes   []*pipe
	txns    []txn
	free    uint32
	tags    [units]int
	tagWait [units][]uint32
	left    [units]sim.Time // when the unit's last request left it
	sampled sim.Time
	// Watch is told of every change of a link's credits: the link, the class
	// (posted, non-posted, completion) and what is free now. Nil: nobody asks.
	Watch func(link, class string, free int)
}

// New builds the tree of node. rng serves the latencies that are
// distributions. Errors name a rate or size that the model cannot use.
func New(eng *sim.Engine, rec *sim.Recorder, rng *rand.Rand, node string, cfg Config) (*Fabric, error) {
	if cfg.MPS <= 0 || cfg.MRRS <= 0 || cfg.RCB <= 0 {
		return nil, fmt.Errorf("pcie: mps %d, mrrs %d and rcb %d must be positive", cfg.MPS, cfg.MRRS, cfg.RCB)
	}
	if cfg.DLLPShare < 0 || cfg.DLLPShare >= 1 {
		return nil, fmt.Errorf("pcie: dllp share %g must be in [0, 1)", cfg.DLLPShare)
	}
	f := &Fabric{cfg: cfg, eng: eng, rec: rec, rng: rng, txns: make([]txn, 1, 256)}
	f.arrive = eng.Register(arrival{f})
	for u := range units {
		f.tags[u] = cfg.Tags[u]
	}
	f.build(node)
	return f, nil
}

// build lays the routes of the distance class.
func (f *Fabric) build(node string) {
	c := &f.cfg
	link := func(name string, rate int64) (up, down *pipe) {
		rate -= int64(float64(rate) * c.DLLPShare)
		mk := func(dir string) *pipe {
			p := &pipe{
				name: node + ".pcie." + name + "." + dir, bw: sim.NewPipe(rate),
				credits: [3]int{c.PostedCredits, c.NonPostedCredits, c.CompletionCredits},
			}
			p.limit = p.credits
			f.pipes = append(f.pipes, p)
			return p
		}
		return mk("up"), mk("down")
	}
	gpuRate := c.GPULink.BitsPerSecond()
	if c.Class == C2C {
		gpuRate = c.C2CRate
	}
	gpuUp, gpuDown := link("gpu", gpuRate)
	nicUp, nicDown := link("nic", c.NICLink.BitsPerSecond())
	wire, sw, root := c.LinkLatency, c.SwitchLatency, c.RootLatency

	var toNIC, toGPU, nicToHost, hostToNIC, gpuToHost, hostToGPU []hop
	switch c.Class {
	case PIX, PXB:
		up, down := link("switch", c.UpLink.BitsPerSecond())
		toNIC = []hop{{gpuUp, []sim.Delay{wire, sw}}, {nicDown, []sim.Delay{wire}}}
		toGPU = []hop{{nicUp, []sim.Delay{wire, sw}}, {gpuDown, []sim.Delay{wire}}}
		if c.Class == PXB {
			// Each device under a switch of its own, both under a third.
			u1, d1 := link("switch1", c.UpLink.BitsPerSecond())
			u2, d2 := link("switch2", c.UpLink.BitsPerSecond())
			toNIC = []hop{{gpuUp, []sim.Delay{wire, sw}}, {u1, []sim.Delay{wire, sw}}, {d2, []sim.Delay{wire, sw}}, {nicDown, []sim.Delay{wire}}}
			toGPU = []hop{{nicUp, []sim.Delay{wire, sw}}, {u2, []sim.Delay{wire, sw}}, {d1, []sim.Delay{wire, sw}}, {gpuDown, []sim.Delay{wire}}}
			nicToHost = []hop{{nicUp, []sim.Delay{wire, sw}}, {u2, []sim.Delay{wire, sw}}, {up, []sim.Delay{wire, root}}}
			hostToNIC = []hop{{down, []sim.Delay{root, wire, sw}}, {d2, []sim.Delay{wire, sw}}, {nicDown, []sim.Delay{wire}}}
			gpuToHost = []hop{{gpuUp, []sim.Delay{wire, sw}}, {u1, []sim.Delay{wire, sw}}, {up, []sim.Delay{wire, root}}}
			hostToGPU = []hop{{down, []sim.Delay{root, wire, sw}}, {d1, []sim.Delay{wire, sw}}, {gpuDown, []sim.Delay{wire}}}
			break
		}
		nicToHost = []hop{{nicUp, []sim.Delay{wire, sw}}, {up, []sim.Delay{wire, root}}}
		hostToNIC = []hop{{down, []sim.Delay{root, wire, sw}}, {nicDown, []sim.Delay{wire}}}
		gpuToHost = []hop{{gpuUp, []sim.Delay{wire, sw}}, {up, []sim.Delay{wire, root}}}
		hostToGPU = []hop{{down, []sim.Delay{root, wire, sw}}, {gpuDown, []sim.Delay{wire}}}
	default:
		between := []sim.Delay{wire, c.RootPeerLatency}
		if c.Class == C2C {
			between = []sim.Delay{wire, root}
		}
		var toNICGate, toGPUGate []hop
		switch c.Class {
		case NODE:
			between = append(between, c.MeshLatency)
		case SYS:
			between = append(between, c.SocketLatency)
			socket := func(dir string) []hop {
				p := &pipe{name: node + ".socket." + dir, bw: sim.NewPipe(c.SocketP2PRate), credits: [3]int{c.PostedCredits, c.NonPostedCredits, c.CompletionCredits}}
				p.limit = p.credits
				f.pipes = append(f.pipes, p)
				return []hop{{p, nil}}
			}
			toNICGate, toGPUGate = socket("to-nic"), socket("to-gpu")
		}
		toNIC = append(append([]hop{{gpuUp, between}}, toNICGate...), hop{nicDown, []sim.Delay{wire}})
		toGPU = append(append([]hop{{nicUp, between}}, toGPUGate...), hop{gpuDown, []sim.Delay{wire}})
		nicToHost = []hop{{nicUp, []sim.Delay{wire, root}}}
		hostToNIC = []hop{{nicDown, []sim.Delay{root, wire}}}
		gpuToHost = []hop{{gpuUp, []sim.Delay{wire, root}}}
		hostToGPU = []hop{{gpuDown, []sim.Delay{root, wire}}}
		if c.Class == SYS {
			// Memory traffic crosses the sockets without the limit of peers'.
			in, out := &gpuToHost[0], &hostToGPU[0]
			if c.HostNearGPU {
				in, out = &nicToHost[0], &hostToNIC[0]
			}
			in.latency = append(in.latency, c.SocketLatency)
			out.latency = append(out.latency, c.SocketLatency)
		}
	}
	r := &f.routes
	r[GPU][NIC], r[NIC][GPU] = toNIC, toGPU
	for _, h := range []Unit{Host, CPU} {
		r[NIC][h], r[h][NIC] = nicToHost, hostToNIC
		r[GPU][h], r[h][GPU] = gpuToHost, hostToGPU
	}
}

// Write sends a posted write of n bytes from one unit to another. done is told
// when a reader in the target may see the bytes; spans are of kind k.
func (f *Fabric) Write(from, to Unit, n int64, c sim.Cause, k sim.Kind, done sim.Sink, arg uint32) {
	id := f.alloc()
	f.txns[id] = txn{kind: k, class: posted, write: true, from: from, to: to, bytes: n, cause: c, done: done, arg: arg}
	f.phase(&f.txns[id])
	f.leave(id)
}

// Read sends the requests for n bytes from one unit to another. done is told
// when the requester has the data; during that call Sampled returns when the
// target was read.
func (f *Fabric) Read(from, to Unit, n int64, c sim.Cause, k sim.Kind, done sim.Sink, arg uint32) {
	id := f.alloc()
	f.txns[id] = txn{kind: k, class: nonPosted, from: from, to: to, bytes: n, cause: c, done: done, arg: arg}
	f.phase(&f.txns[id])
	need := f.tagsFor(id)
	if f.tags[from] < need || len(f.tagWait[from]) > 0 {
		f.tagWait[from] = append(f.tagWait[from], id)
		return
	}
	f.tags[from] -= need
	f.leave(id)
}

// Sampled returns when the target of the read was sampled whose Done is
// running.
func (f *Fabric) Sampled() sim.Time { return f.sampled }

func (f *Fabric) tagsFor(id uint32) int {
	t := &f.txns[id]
	_, n := f.cfg.ReadRequestBytes(t.bytes)
	return min(n, f.cfg.Tags[t.from])
}

// leave lets a request pass its unit's egress.
func (f *Fabric) leave(id uint32) {
	t := &f.txns[id]
	now := f.eng.Now()
	end := max(now.Add(f.cfg.Units[t.from].Egress.Draw(f.rng)), f.left[t.from])
	f.left[t.from] = end
	if end > now {
		t.cause = f.rec.Span(t.cause, t.kind, now, end, 0)
		f.eng.At(end, f.arrive, id)
		return
	}
	f.enter(id)
}

type arrival struct{ *Fabric }

// Handle moves a transaction on at the moment its head reaches the next hop.
func (a arrival) Handle(id uint32) { a.enter(id) }

func (t *txn) queue() int {
	if t.class == completion {
		return 1
	}
	return 0
}

// phase sets what the transaction puts on a link from now on.
func (f *Fabric) phase(t *txn) {
	var n int
	switch {
	case t.write:
		t.onLink, n = f.cfg.WriteBytes(t.bytes)
	case t.class == nonPosted:
		t.onLink, n = f.cfg.ReadRequestBytes(t.bytes)
	default:
		t.onLink, n = f.cfg.CompletionBytes(t.bytes)
	}
	t.tlps = int32(n)
}

// enter lets the transaction take its next link, or end.
func (f *Fabric) enter(id uint32) {
	t := &f.txns[id]
	route := f.route(t)
	if int(t.at) == len(route) {
		f.end(id)
		return
	}
	p := route[t.at].pipe
	q := t.queue()
	if q == 1 && p.posted > 0 {
		q = 0
	}
	if len(p.waiting[q]) > 0 || !f.take(p, t) {
		if t.class == posted {
			p.posted++
		}
		p.waiting[q] = append(p.waiting[q], id)
		return
	}
	f.cross(id, p, route)
}

func (f *Fabric) route(t *txn) []hop {
	if t.class == completion {
		return f.routes[t.to][t.from]
	}
	return f.routes[t.from][t.to]
}

// need is the number of credits of its class: one per TLP, never more than the
// receiver grants.
func (f *Fabric) need(p *pipe, t *txn) int {
	return min(int(t.tlps), p.limit[t.class])
}

func (f *Fabric) take(p *pipe, t *txn) bool {
	n := f.need(p, t)
	if p.credits[t.class] < n {
		return false
	}
	p.credits[t.class] -= n
	f.watch(p, t)
	return true
}

var classes = [...]string{posted: "posted", nonPosted: "non-posted", completion: "completion"}

func (f *Fabric) watch(p *pipe, t *txn) {
	if f.Watch != nil {
		f.Watch(p.name, classes[t.class], p.credits[t.class])
	}
}

// give returns the credits of the link that the transaction has left.
func (f *Fabric) give(t *txn, route []hop, at int8) {
	p := route[at].pipe
	p.credits[t.class] += f.need(p, t)
	f.watch(p, t)
	for q := range p.waiting {
		for len(p.waiting[q]) > 0 {
			id := p.waiting[q][0]
			w := &f.txns[id]
			if !f.take(p, w) {
				break
			}
			p.waiting[q] = p.waiting[q][:copy(p.waiting[q], p.waiting[q][1:])]
			if w.class == posted {
				p.posted--
			}
			f.cross(id, p, f.route(w))
		}
	}
}

// cross puts the transaction on the link at once, behind what is on it. A
// switch cuts through: the head moves on after the latency and the link's
// bytes count once, but no link forwards bytes before they came.
func (f *Fabric) cross(id uint32, p *pipe, route []hop) {
	t := &f.txns[id]
	now := f.eng.Now()
	p.tlps += int(t.tlps)
	start, end, blocker := p.bw.Take(now, t.onLink, t.cause.Op)
	var lat sim.Duration
	for _, d := range route[t.at].latency {
		lat += d.Draw(f.rng)
	}
	if t.at > 0 {
		f.give(t, route, t.at-1)
	}
	t.at++
	q := t.queue()
	head := max(start.Add(lat), p.head[q])
	tail := max(max(end, t.tail).Add(head.Sub(start)), p.tail[q])
	p.head[q], p.tail[q], t.tail = head, tail, tail
	if int(t.at) < len(route) {
		t.cause = f.rec.Span(t.cause, t.kind, start, head, blocker)
		f.eng.At(head, f.arrive, id)
		return
	}
	t.cause = f.rec.Span(t.cause, t.kind, start, tail, blocker)
	u := &f.cfg.Units[t.to]
	var extra sim.Duration
	switch {
	case t.write:
		extra = u.Write.Draw(f.rng)
	case t.class == nonPosted:
		// The target is sampled in the middle of its access.
		extra = u.Read.Draw(f.rng)
		t.sampled = tail.Add(extra / 2)
	default:
		extra = f.cfg.Units[t.from].Return.Draw(f.rng)
	}
	over := max(tail.Add(extra), p.done[t.class])
	p.done[t.class] = over
	t.cause = f.rec.Span(t.cause, t.kind, tail, over, 0)
	f.eng.At(over, f.arrive, id)
}

// end is the arrival behind the last link: a write is visible, a read turns
// round, a completion is there.
func (f *Fabric) end(id uint32) {
	t := &f.txns[id]
	route := f.route(t)
	f.give(t, route, int8(len(route)-1))
	if t.class == nonPosted {
		t.class, t.at, t.tail = completion, 0, 0
		f.phase(t)
		f.enter(id)
		return
	}
	done, arg, cause, class, from := t.done, t.arg, t.cause, t.class, t.from
	f.sampled = t.sampled
	if class == completion {
		f.tags[from] += f.tagsFor(id)
	}
	f.txns[id] = txn{next: f.free}
	f.free = id
	for class == completion && len(f.tagWait[from]) > 0 {
		w := f.tagWait[from][0]
		need := f.tagsFor(w)
		if f.tags[from] < need {
			break
		}
		f.tags[from] -= need
		f.tagWait[from] = f.tagWait[from][:copy(f.tagWait[from], f.tagWait[from][1:])]
		f.leave(w)
	}
	done.Done(arg, cause)
}

func (f *Fabric) alloc() uint32 {
	if id := f.free; id != 0 {
		f.free = f.txns[id].next
		return id
	}
	f.txns = append(f.txns, txn{})
	return uint32(len(f.txns) - 1)
}

// OneWay returns the idle time of a posted write of n bytes, egress and
// visibility included, with distributions at their means.
func (f *Fabric) OneWay(from, to Unit, n int64) sim.Duration {
	b, _ := f.cfg.WriteBytes(n)
	return f.cfg.Units[from].Egress.Mean() + f.idle(f.routes[from][to], b) + f.cfg.Units[to].Write.Mean()
}

// Tags returns the read requests that the unit may have outstanding.
func (f *Fabric) Tags(u Unit) int { return f.cfg.Tags[u] }

// RoundTrip returns the idle time of a read of n bytes.
func (f *Fabric) RoundTrip(from, to Unit, n int64) sim.Duration {
	req, _ := f.cfg.ReadRequestBytes(n)
	cpl, _ := f.cfg.CompletionBytes(n)
	return f.cfg.Units[from].Egress.Mean() + f.idle(f.routes[from][to], req) + f.cfg.Units[to].Read.Mean() +
		f.idle(f.routes[to][from], cpl) + f.cfg.Units[from].Return.Mean()
}

func (f *Fabric) idle(route []hop, bytes int64) sim.Duration {
	var lat, tail sim.Duration
	for _, h := range route {
		end := lat + h.pipe.bw.Transfer(bytes)
		tail = max(tail, end)
		for _, d := range h.latency {
			lat += d.Mean()
			tail += d.Mean()
		}
	}
	return tail
}

// Traffic is what one direction of a link was given, and how long it has been
// busy with it so far.
type Traffic struct {
	Name  string
	TLPs  int
	Bytes int64
	Busy  sim.Duration
}

// Traffic returns the links' counters, in the order they were built.
func (f *Fabric) Traffic() []Traffic {
	out := make([]Traffic, len(f.pipes))
	for i, p := range f.pipes {
		s := p.bw.Stats()
		ahead := max(0, p.bw.FreeAt().Sub(f.eng.Now()))
		out[i] = Traffic{Name: p.name, TLPs: p.tlps, Bytes: s.Bytes, Busy: s.Busy - ahead}
	}
	return out
}

// Idle returns an error that names what is left when nothing should be:
// credits that did not come back, reads without their completion.
func (f *Fabric) Idle() error {
	for _, p := range f.pipes {
		if p.credits != p.limit {
			return fmt.Errorf("pcie: %s: credits %v of %v", p.name, p.credits, p.limit)
		}
	}
	for u := range units {
		if f.tags[u] != f.cfg.Tags[u] {
			return fmt.Errorf("pcie: %s: %d of %d tags", u, f.tags[u], f.cfg.Tags[u])
		}
	}
	return nil
}

// Backlog returns how long the unit's link is still busy with what it was
// given to send.
func (f *Fabric) Backlog(from Unit) sim.Duration {
	to := NIC
	if from == NIC {
		to = GPU
	}
	p := f.routes[from][to][0].pipe
	return max(0, p.bw.FreeAt().Sub(f.eng.Now()))
}

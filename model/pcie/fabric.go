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
	HostFar                         bool         // memory and CPU are across the sockets for both devices; not with class SYS
	Redirect                        bool         // ACS: switches send peer traffic up to the root complex
	IOMMU                           IOMMU        // what devices' requests meet there
	OrderedWrite                    sim.Duration // the root complex takes ordered write TLPs so far apart; 0: as they come
	ColdRead                        sim.Delay    // what a read of host memory costs more when the line is not in the LLC
}

// Access is one request of a unit to another.
type Access struct {
	From, To Unit
	Write    bool
	Bytes    int64
	Addr     uint64 // in the target; an IOMMU looks at its page
	Relaxed  bool   // the relaxed-ordering attribute: a write that need not wait for those before it
	Cold     bool   // the target's lines are not in its LLC
	// Sent is told, with the same argument, when the access has left the unit: its
	// bytes are on the first link. Nil: nobody waits for that.
	Sent sim.Sink
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
	waiting [2]sim.FIFO[uint32]
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
	root    bool // a device's request meets the root complex there
}

type txn struct {
	kind     sim.Kind
	class    uint8
	write    bool
	relaxed  bool
	cold     bool
	direct   bool // carries a translated address (ATS)
	from, to Unit
	at       int8  // hop whose link the TLP waits for or is on
	tlps     int32 // on a link, in the present phase
	tags     int32 // a read's
	bytes    int64
	addr     uint64
	onLink   int64 // the same, headers included
	sampled  sim.Time
	turned   sim.Time // when the completion was ready to leave
	tail     sim.Time // when the last byte reaches the next hop
	cause    sim.Cause
	done     sim.Sink
	arg      uint32
	sent     uint32 // who wants to know when it has left; 0: nobody
}

// Fabric is one node's PCIe tree.
type Fabric struct {
	cfg    Config
	eng    *sim.Engine
	rec    *sim.Recorder
	rng    *rand.Rand
	arrive sim.HandlerID
	onLink sim.HandlerID
	routes [units][units][]hop
	direct [units][units][]hop // of requests that carry translated addresses
	root   root
	pipes  []*pipe
	txns   []txn
	free   sim.Free
	// Who wants to know when an access has left its unit.
	watchers  []watcher
	unwatched sim.Free
	tags      [units]int
	tagWait   [units]sim.FIFO[uint32]
	writes    trains
	reads     [units]trains
	bursts    []burst
	unburst   sim.Free
	left      [units]sim.Time // when the unit's last request left it
	sampled   sim.Time
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
	f := &Fabric{cfg: cfg, eng: eng, rec: rec, rng: rng, txns: make([]txn, 0, 256)}
	f.arrive, f.onLink = eng.Register(arrival{f}), eng.Register(departure{f})
	f.root = newRoot(&f.cfg)
	f.writes = f.cfg.writes()
	for u := range units {
		f.tags[u] = cfg.Tags[u]
		f.reads[u] = f.cfg.reads(u)
	}
	f.build(node)
	return f, nil
}

// Write sends a posted write of n bytes from one unit to another. done is told
// when a reader in the target may see the bytes; spans are of kind k.
func (f *Fabric) Write(from, to Unit, n int64, c sim.Cause, k sim.Kind, done sim.Sink, arg uint32) {
	f.Submit(Access{From: from, To: to, Write: true, Bytes: n}, c, k, done, arg)
}

// Read sends the requests for n bytes from one unit to another. done is told
// when the requester has the data; during that call Sampled returns when the
// target was first read.
func (f *Fabric) Read(from, to Unit, n int64, c sim.Cause, k sim.Kind, done sim.Sink, arg uint32) {
	f.Submit(Access{From: from, To: to, Bytes: n}, c, k, done, arg)
}

// Submit starts a posted write or a read, as Write and Read do.
func (f *Fabric) Submit(a Access, c sim.Cause, k sim.Kind, done sim.Sink, arg uint32) {
	x := &f.writes
	if !a.Write {
		x = &f.reads[a.From]
	}
	if a.Bytes > x.whole {
		f.burst(a, x.piece, c, k, done, arg)
		return
	}
	var sent uint32
	if a.Sent != nil {
		sent = f.watcher(a.Sent, arg)
	}
	f.submit(a, c, k, done, arg, sent)
}

// submit starts what travels as one train.
func (f *Fabric) submit(a Access, c sim.Cause, k sim.Kind, done sim.Sink, arg, sent uint32) {
	id := sim.Alloc(&f.txns, &f.free)
	t := &f.txns[id]
	*t = txn{
		kind: k, class: nonPosted, write: a.Write, relaxed: a.Relaxed, cold: a.Cold, from: a.From, to: a.To,
		bytes: a.Bytes, addr: a.Addr, cause: c, done: done, arg: arg, sent: sent,
	}
	if a.Write {
		t.class = posted
		f.phase(t)
		f.leave(id)
		return
	}
	f.phase(t)
	t.tags = min(t.tlps, int32(f.cfg.Tags[a.From]))
	need := int(t.tags)
	if f.tags[a.From] < need || f.tagWait[a.From].Len() > 0 {
		f.tagWait[a.From].Push(id)
		return
	}
	f.tags[a.From] -= need
	f.leave(id)
}

// Sampled returns when the target of the read was sampled whose Done is
// running.
func (f *Fabric) Sampled() sim.Time { return f.sampled }

// leave lets a request pass its unit's egress.
func (f *Fabric) leave(id uint32) {
	t := &f.txns[id]
	now := f.eng.Now()
	end := max(now.Add(f.cfg.Units[t.from].Egress.Draw(f.rng)), f.left[t.from])
	if f.root.atc[t.from] != nil {
		end = f.ats(t, end)
	}
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
	if p.waiting[q].Len() > 0 || !f.take(p, t) {
		if t.class == posted {
			p.posted++
		}
		p.waiting[q].Push(id)
		return
	}
	f.cross(id, p, route)
}

func (f *Fabric) route(t *txn) []hop {
	r := &f.routes
	if t.direct {
		r = &f.direct
	}
	if t.class == completion {
		return r[t.to][t.from]
	}
	return r[t.from][t.to]
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
		for p.waiting[q].Len() > 0 {
			id := *p.waiting[q].Front()
			w := &f.txns[id]
			if !f.take(p, w) {
				break
			}
			p.waiting[q].Pop()
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
	} else if t.sent != 0 && t.class != completion {
		f.watchers[t.sent].cause = f.rec.Span(t.cause, t.kind, start, end, blocker)
		f.eng.At(end, f.onLink, t.sent)
	}
	if t.class == completion && t.at == 0 {
		t.sampled = t.sampled.Add(start.Sub(t.turned)) // memory is read when the link can take the data
	}
	t.at++
	q := t.queue()
	head := max(start.Add(lat), p.head[q])
	tail := max(max(end, t.tail).Add(head.Sub(start)), p.tail[q])
	before := p.tail[q]
	p.head[q], p.tail[q] = head, tail
	if route[t.at-1].root && t.class != completion && f.root.works {
		before = max(before, f.port(t.from).posted[1])
		head, tail = f.meetRoot(t, head, tail)
	}
	t.tail = tail
	if int(t.at) < len(route) {
		t.cause = f.rec.Span(t.cause, t.kind, start, head, blocker)
		f.eng.At(head, f.arrive, id)
		return
	}
	u := &f.cfg.Units[t.to]
	var extra sim.Duration
	switch {
	case t.write:
		extra = u.Write.Draw(f.rng)
	case t.class == nonPosted:
		// Of several requests the first to come is the first to be served; the
		// target is sampled in the middle of its access.
		if t.tlps > 1 {
			n := sim.Duration(t.tlps)
			tail = max(head.Add((tail.Sub(head)+n-1)/n), min(before, tail))
		}
		extra = u.Read.Draw(f.rng)
		if t.cold {
			extra += f.cfg.ColdRead.Draw(f.rng)
		}
		t.sampled = tail.Add(extra / 2)
		t.tail = t.tail.Add(extra)
	default:
		extra = f.cfg.Units[t.from].Return.Draw(f.rng)
	}
	t.cause = f.rec.Span(t.cause, t.kind, start, tail, blocker)
	over := tail.Add(extra)
	if !f.mayPass(t) {
		over = max(over, p.done[t.class])
	}
	p.done[t.class] = max(over, p.done[t.class])
	t.cause = f.rec.Span(t.cause, t.kind, tail, over, 0)
	f.eng.At(over, f.arrive, id)
}

// mayPass reports whether the transaction may end before others of its class
// that came before it: relaxed writes, and reads whose translation hits while
// another's page is walked for.
func (f *Fabric) mayPass(t *txn) bool {
	return t.write && t.relaxed || t.class == nonPosted && f.root.works
}

// end is the arrival behind the last link: a write is visible, a read turns
// round, a completion is there.
func (f *Fabric) end(id uint32) {
	t := &f.txns[id]
	route := f.route(t)
	f.give(t, route, int8(len(route)-1))
	if t.class == nonPosted {
		t.class, t.at, t.turned = completion, 0, f.eng.Now()
		if n := int64(t.tlps); n > 1 {
			// The last request's data cannot be there before it was served.
			b, _ := f.cfg.CompletionBytes(t.bytes - (n-1)*f.cfg.MRRS)
			t.tail = t.tail.Add(f.route(t)[0].pipe.bw.Transfer(b))
		}
		f.phase(t)
		f.enter(id)
		return
	}
	done, arg, cause, class, from := t.done, t.arg, t.cause, t.class, t.from
	f.sampled = t.sampled
	if class == completion {
		f.tags[from] += int(t.tags)
	}
	sim.Release(&f.txns, &f.free, id)
	for class == completion && f.tagWait[from].Len() > 0 {
		w := *f.tagWait[from].Front()
		need := int(f.txns[w].tags)
		if f.tags[from] < need {
			break
		}
		f.tags[from] -= need
		f.tagWait[from].Pop()
		f.leave(w)
	}
	done.Done(arg, cause)
}

// OneWay returns the idle time of a posted write of n bytes, egress and
// visibility included, with distributions at their means.
func (f *Fabric) OneWay(from, to Unit, n int64) sim.Duration {
	b, _ := f.cfg.WriteBytes(n)
	return f.cfg.Units[from].Egress.Mean() + f.idle(f.routes[from][to], b) + f.cfg.Units[to].Write.Mean()
}

// Return is the mean time from the arrival of a read's data at the unit until it
// has them.
func (f *Fabric) Return(u Unit) sim.Duration { return f.cfg.Units[u].Return.Mean() }

// Tags returns the read requests that the unit may have outstanding.
func (f *Fabric) Tags(u Unit) int { return f.cfg.Tags[u] }

// RoundTrip returns the idle time of a read of n bytes that has the tags and
// credits it needs. Of several requests the first to come starts the completions.
func (f *Fabric) RoundTrip(from, to Unit, n int64) sim.Duration {
	req, k := f.cfg.ReadRequestBytes(n)
	cpl, _ := f.cfg.CompletionBytes(n)
	last, _ := f.cfg.CompletionBytes(n - int64(k-1)*f.cfg.MRRS)
	there, back := f.routes[from][to], f.routes[to][from]
	return f.cfg.Units[from].Egress.Mean() + f.cfg.Units[to].Read.Mean() + f.cfg.Units[from].Return.Mean() +
		max(f.idle(there, req/int64(k))+f.idle(back, cpl), f.idle(there, req)+f.idle(back, last))
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

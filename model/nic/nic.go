package nic

import (
	"fmt"
	"math/rand/v2"

	"gdisim/model/fabric"
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// WQEBB is the basic block of a work queue element in bytes (mlx5:
// MLX5_SEND_WQE_BB).
const WQEBB = 64

// Config describes a NIC.
type Config struct {
	MTU         int64
	Sched       sim.Delay    // doorbell seen until the queue's work starts
	TxLatency   sim.Delay    // WQE and payload there until the packet's first bit leaves
	RxLatency   sim.Delay    // last bit of a packet until it is ready to be delivered
	AckLatency  sim.Delay    // ACK there until the CQE leaves
	Doorbell    sim.Duration // the doorbell unit's time per doorbell
	DoorbellMax int          // doorbells that wait for it before PCIe holds their senders
	TxMessage   sim.Duration // the message engine's time per message sent
	RxMessage   sim.Duration // the same per message received
	QPMessage   sim.Duration // one queue's unit per message: a queue is served by one
	CQEBytes    int64
	FetchMax    int // WQEBBs per WQE fetch
	ReadAhead   int // packets whose payload one message may be fetching
	Atomic      sim.Delay
	InlineMax   int64 // largest payload inside a WQE
	BlueFlame   int64 // largest WQE that fits the BlueFlame buffer, bytes
	MaxQP       int
	SQDepth     int // WQEBBs
	DoorbellLen int64
	Context     Context
}

// Opcode says what a WQE asks for.
type Opcode uint8

// The opcodes.
const (
	RDMAWrite Opcode = iota
	RDMARead
	FetchAdd
)

// WQE is a work queue element as a poster writes it.
type WQE struct {
	Opcode   Opcode
	Bytes    int64
	Inline   bool
	Signaled bool
	Local    pcie.Unit // where the payload lives (or a READ's target)
	Remote   pcie.Unit // memory it is written to (or read from) at the peer
	Visible  sim.Time  // when the NIC may see its bytes in the send queue
	Cause    sim.Cause
	Imm      bool     // an immediate: the receiver's CPU gets a CQE, and Land is told of that
	Land     sim.Sink // told when the last byte is visible at the peer; may be nil
	LandArg  uint32

	rung sim.Time // when its doorbell came
}

// Size returns the WQE's bytes: 16 control, 16 remote address, 16 data pointer
// or a 4-byte inline header with the payload, in blocks of 64 (mlx5:
// mlx5_wqe_ctrl_seg, _raddr_seg, _data_seg, _inline_seg).
func (w *WQE) Size() int64 {
	n := int64(48)
	if w.Opcode == FetchAdd {
		n = 64
	} else if w.Inline {
		n = 32 + 4 + w.Bytes
	}
	return (n + WQEBB - 1) / WQEBB * WQEBB
}

type message struct {
	wqe     WQE
	qp      *QP
	index   uint32 // producer index behind this WQE
	fetched int64  // payload bytes at the NIC
	asked   int64  // payload bytes asked for
	reading int
	sent    int64
	landed  int64
	refs    int8
	started bool
	next    uint32
}

type packet struct {
	msg   uint32
	bytes int64
	cause sim.Cause
	first bool
	last  bool
	parts int8 // writes that must land yet, beside this one
	next  uint32
}

// NIC is one node's NIC.
type NIC struct {
	cfg  Config
	node int
	eng  *sim.Engine
	rec  *sim.Recorder
	rng  *rand.Rand
	bus  *pcie.Fabric
	net  *fabric.Network

	engine   sim.Server // per-message work of both directions
	bell     sim.Server // per-doorbell work
	bells    fifo
	qps      []*QP
	msgs     []message
	msgFree  uint32
	pkts     []packet
	pktFree  uint32
	fetches  []fetch
	fetchTop uint32
	// Work leaves each pipeline in order, whatever latencies are drawn.
	lastTx, lastRx, lastAck sim.Time
	peers                   []*peer

	hSched, hPush, hPump, hTx, hAck, hBell, hRequester sim.HandlerID

	inbound    int64    // payload between the wire and memory
	full       []uint64 // packets that the receive buffer has no room for, as atomics
	atomics    []uint64 // waiting requests: peer<<32 | packet
	atomicBusy bool

	Doorbells  int
	WQEFetches int
	// ContextReads counts the reads of connection state that was not cached.
	ContextReads int
	contexts     cache
	missing      []*QP // of peers, whose packets wait for responder state
	reading      int
	// Stale is told of every WQE that was fetched before its bytes were
	// visible, with the time; nil if nobody asks.
	Stale func(at sim.Time)

	kind kinds
}

type kinds struct {
	sched, wqe, payload, tx, cqe, ack sim.Kind
	rx, deliver                       sim.Kind
}

type fetch struct {
	qp    *QP
	first uint32
	n     uint32
	next  uint32
}

// New returns the NIC of a node.
func New(eng *sim.Engine, rec *sim.Recorder, rng *rand.Rand, node int, cfg Config, bus *pcie.Fabric, net *fabric.Network) (*NIC, error) {
	if cfg.MTU <= 0 || cfg.FetchMax <= 0 || cfg.ReadAhead <= 0 || cfg.SQDepth <= 0 {
		return nil, fmt.Errorf("nic: mtu %d, fetch %d, read-ahead %d and sq depth %d must be positive", cfg.MTU, cfg.FetchMax, cfg.ReadAhead, cfg.SQDepth)
	}
	n := &NIC{cfg: cfg, node: node, eng: eng, rec: rec, rng: rng, bus: bus, net: net, msgs: make([]message, 1, 256), pkts: make([]packet, 1, 256), fetches: make([]fetch, 1, 64)}
	n.hSched = eng.Register(schedule{n})
	n.hPush = eng.Register(pushed{n})
	n.hPump = eng.Register(pump{n})
	n.hTx = eng.Register(transmit{n})
	n.hBell = eng.Register(belled{n})
	n.hAck = eng.Register(acked{n})
	n.hRequester = eng.Register(requesterThere{n})
	k := func(s stage.Stage, l stage.Lane) sim.Kind {
		return sim.Kind{Stage: uint8(s), Lane: uint8(l), Node: uint8(node)}
	}
	n.kind = kinds{
		sched: k(stage.NICSched, stage.LaneNICTx), wqe: k(stage.NICWQEFetch, stage.LaneNICTx), payload: k(stage.NICPayloadFetch, stage.LaneNICTx),
		tx: k(stage.NICTx, stage.LaneNICTx), cqe: k(stage.NICCQE, stage.LaneNICTx), ack: k(stage.NICAck, stage.LaneNICTx),
		rx: k(stage.NICRx, stage.LaneNICRx), deliver: k(stage.PCIeDeliver, stage.LanePCIeDst),
	}
	n.kind.tx.Wait = uint8(stage.NICSched)
	return n, nil
}

// QP is a reliable-connected queue pair's sending half.
type QP struct {
	id     int
	nic    *NIC
	peer   int
	queues pcie.Unit // where SQ, CQ and record live
	onCQE  sim.Sink

	depth     int
	sq        []WQE // by producer index modulo its length, which grows up to depth
	head      uint32
	rung      uint32
	fetched   uint32 // asked for, or taken from BlueFlame
	here      uint32 // at the NIC
	fetching  int    // WQE fetches under way, which nothing may overtake
	pushed    uint32 // producer index behind the last WQE that came through BlueFlame
	completed uint32
	pumping   bool
	unit      sim.Server
	taken     sim.Time // when the message engine takes the queue's last message
	first     uint32   // messages in order of transmission
	last      uint32
	// A queue completes in order: what an atomic or a READ answers later than
	// messages behind it holds them back.
	slow []uint32 // producer indices of atomics and READs without an answer
	late []uint32 // messages that wait for them

	requester entry // here
	loading   bool
	again     []sim.HandlerID
	came      sim.Time // when the requester's state was read last
	responder entry    // at the peer, as is what waits for it
	held      uint32   // packets
	heldLast  uint32
}

// NewQP creates a queue pair to the NIC of node peer, whose queues live in
// unit; onCQE is told, when a CQE is visible there, how many WQEs have been
// completed so far (modulo 2^32). It fails beyond the NIC's limit.
func (n *NIC) NewQP(peer int, queues pcie.Unit, onCQE sim.Sink) (*QP, error) {
	if len(n.qps) >= n.cfg.MaxQP {
		return nil, fmt.Errorf("nic: more than %d queue pairs", n.cfg.MaxQP)
	}
	q := &QP{id: len(n.qps), nic: n, peer: peer, queues: queues, onCQE: onCQE, came: -1, depth: n.cfg.SQDepth, sq: make([]WQE, min(n.cfg.SQDepth, 32))}
	n.qps = append(n.qps, q)
	// Creating a connection leaves its state in both NICs.
	before := n.ContextReads
	n.touch(&q.requester, n.cfg.Context.Requester)
	n.ContextReads = before
	if peer < len(n.peers) {
		r := n.peers[peer].remote
		before := r.ContextReads
		r.touch(&q.responder, n.cfg.Context.Responder)
		r.ContextReads = before
	}
	return q, nil
}

// peer is what a NIC knows of another one.
type peer struct {
	local, remote                 *NIC
	hRx, hRespond, hRead, hAtomic sim.HandlerID
	hContext                      sim.HandlerID
}

// Connect lets the NICs, one per node and in node order, reach each other.
func Connect(nics []*NIC) {
	for _, n := range nics {
		n.peers = make([]*peer, len(nics))
		for i, r := range nics {
			p := &peer{local: n, remote: r}
			p.hRx = n.eng.Register(received{p})
			p.hRespond = n.eng.Register(respond{p})
			p.hRead = n.eng.Register(responseReceived{p})
			p.hAtomic = n.eng.Register(atomicDone{p})
			p.hContext = n.eng.Register(responderThere{p})
			n.peers[i] = p
		}
	}
}

// Free returns the number of free slots in the send queue.
func (q *QP) Free() int { return q.depth - int(q.head-q.completed) }

// Post writes a WQE into the send queue and returns the producer index behind
// it. The caller has checked Free.
func (q *QP) Post(w WQE) uint32 {
	if q.Free() == 0 {
		panic("nic: post to a full send queue")
	}
	if int(q.head-q.completed) == len(q.sq) {
		old := q.sq
		q.sq = make([]WQE, min(2*len(old), q.depth))
		for i := q.completed; i != q.head; i++ {
			*q.at(i) = old[i%uint32(len(old))]
		}
	}
	*q.at(q.head) = w
	q.head++
	return q.head
}

// Head returns the producer index.
func (q *QP) Head() uint32 { return q.head }

// Completed returns how many WQEs CQEs have retired so far.
func (q *QP) Completed() uint32 { return q.completed }

// Doorbell returns the sink that a posted write to the doorbell register must
// name, with the producer index as its argument.
func (q *QP) Doorbell() sim.Sink { return doorbell{q} }

// BlueFlame returns the sink of a posted write that carries the WQE itself.
func (q *QP) BlueFlame() sim.Sink { return blueFlame{q} }

type doorbell struct{ *QP }

// Done is the doorbell at the NIC.
func (d doorbell) Done(head uint32, c sim.Cause) {
	q, n := d.QP, d.nic
	n.Doorbells++
	now := n.eng.Now()
	if start, _, _ := n.bell.Take(now, n.cfg.Doorbell, c.Op); start > now {
		n.bells.push(rung{q, head, c})
		n.eng.At(start, n.hBell, 0)
		return
	}
	q.ringUp(head, c)
}

// DoorbellStall returns how long a store to a doorbell register is held now: PCIe
// flow control reaches back to its sender while too many doorbells wait.
func (n *NIC) DoorbellStall() sim.Duration {
	wait := n.bell.FreeAt().Sub(n.eng.Now())
	return max(0, wait-sim.Duration(n.cfg.DoorbellMax)*n.cfg.Doorbell)
}

// rung is a doorbell that waits for the doorbell unit.
type rung struct {
	qp    *QP
	head  uint32
	cause sim.Cause
}

type belled struct{ *NIC }

// Handle takes the oldest doorbell.
func (b belled) Handle(uint32) {
	r := b.bells.pop()
	r.qp.ringUp(r.head, r.cause)
}

// ringUp is a doorbell in its turn: the queue has work up to head.
func (q *QP) ringUp(head uint32, c sim.Cause) {
	if int32(head-q.rung) <= 0 {
		return // a ring for the recovery path: nothing new
	}
	n := q.nic
	now := n.eng.Now()
	for i := q.rung; i != head; i++ {
		w := &q.sq[i%uint32(len(q.sq))]
		if w.Cause.Op == c.Op {
			w.Cause = c
		} else { // somebody else rang for it
			w.Cause = n.rec.Span(w.Cause, n.kind.sched, now, now, c.Op)
		}
		w.rung = now
	}
	q.rung = head
	n.eng.After(n.cfg.Sched.Draw(n.rng), n.hSched, uint32(q.id))
}

// fifo is a queue of doorbells that reuses its memory.
type fifo struct {
	items []rung
	head  int
}

func (f *fifo) push(r rung) {
	if f.head > 64 && 2*f.head > len(f.items) {
		f.items = f.items[:copy(f.items, f.items[f.head:])]
		f.head = 0
	}
	f.items = append(f.items, r)
}

func (f *fifo) pop() rung {
	r := f.items[f.head]
	f.head++
	return r
}

// next takes the next WQE that was rung for: its queue is scheduled now.
func (q *QP) next() *WQE {
	w := q.at(q.fetched)
	w.Cause = q.nic.rec.Span(w.Cause, q.nic.kind.sched, w.rung, q.nic.eng.Now(), 0)
	q.fetched++
	return w
}

type blueFlame struct{ *QP }

// Done is a WQE at the NIC, doorbell included.
func (b blueFlame) Done(head uint32, c sim.Cause) {
	q, n := b.QP, b.nic
	if q.rung != head-1 || q.fetching > 0 || q.here != q.rung && q.pushed != q.rung {
		doorbell(b).Done(head, c) // earlier WQEs are still to come
		return
	}
	n.Doorbells++
	w := q.at(head - 1)
	w.Cause, w.rung = c, n.eng.Now()
	q.rung, q.pushed = head, head
	n.eng.After(n.cfg.Sched.Draw(n.rng), n.hPush, uint32(q.id))
}

type pushed struct{ *NIC }

// Handle starts the queue's next WQE that came through BlueFlame.
func (p pushed) Handle(id uint32) {
	q := p.qps[id]
	if q.absent(p.hPush) {
		return
	}
	q.next()
	q.enqueue(q.fetched)
	schedule(p).Handle(id)
}

type schedule struct{ *NIC }

// Handle starts the queue's work: fetch what is rung and not fetched, start
// what is here.
func (s schedule) Handle(id uint32) {
	n := s.NIC
	q := n.qps[id]
	if int32(q.pushed-q.fetched) > 0 {
		return // a WQE before these is being scheduled: its turn first
	}
	if q.fetched != q.rung && q.absent(n.hSched) {
		return
	}
	for q.fetched != q.rung {
		// WQEBBs that are contiguous in the ring come with one read.
		first, size, cnt := q.fetched, int64(0), uint32(0)
		for q.fetched != q.rung && (cnt == 0 || size+q.at(q.fetched).Size() <= int64(n.cfg.FetchMax)*WQEBB) {
			size += q.next().Size()
			cnt++
		}
		f := n.allocFetch()
		n.fetches[f] = fetch{qp: q, first: first, n: cnt}
		n.WQEFetches++
		q.fetching++
		n.bus.Read(pcie.NIC, q.queues, size, q.at(first).Cause, n.kind.wqe, wqeFetched{n}, f)
	}
	q.start()
}

func (q *QP) at(i uint32) *WQE { return &q.sq[i%uint32(len(q.sq))] }

type wqeFetched struct{ *NIC }

// Done has WQEs at the NIC.
func (w wqeFetched) Done(f uint32, c sim.Cause) {
	n := w.NIC
	ft := n.fetches[f]
	ft.qp.fetching--
	n.fetches[f] = fetch{next: n.fetchTop}
	n.fetchTop = f
	now := n.eng.Now()
	for i := ft.first; i != ft.first+ft.n; i++ {
		e := ft.qp.at(i)
		if e.Cause.Op == c.Op {
			e.Cause = c
		} else { // carried by another operation's fetch
			e.Cause = n.rec.Span(e.Cause, n.kind.wqe, now, now, c.Op)
		}
		if e.Visible > n.bus.Sampled() && n.Stale != nil {
			n.Stale(n.bus.Sampled())
		}
		ft.qp.enqueue(i + 1)
	}
	ft.qp.start()
}

// enqueue appends the WQE in front of producer index i to the queue's
// messages.
func (q *QP) enqueue(i uint32) {
	n := q.nic
	q.here = i
	id := n.allocMsg()
	m := &n.msgs[id]
	*m = message{wqe: *q.at(i - 1), qp: q, index: i, refs: 1}
	if m.wqe.Opcode == FetchAdd || m.wqe.Opcode == RDMAWrite && m.wqe.Signaled {
		m.refs = 2 // its landing and its answer
	}
	if m.wqe.Opcode != RDMAWrite {
		q.slow = append(q.slow, i)
	}
	if q.last == 0 {
		q.first = id
	} else {
		n.msgs[q.last].next = id
	}
	q.last = id
}

// start begins the payload reads of new messages and transmits what it can.
func (q *QP) start() {
	n := q.nic
	for id := q.first; id != 0; id = n.msgs[id].next {
		if m := &n.msgs[id]; !m.started {
			m.started = true
			if m.wqe.Inline || m.wqe.Opcode != RDMAWrite {
				m.fetched, m.asked = m.wqe.Bytes, m.wqe.Bytes
				continue
			}
			q.ask(id)
		}
	}
	q.transmit()
}

// ask requests the message's next packets' payload.
func (q *QP) ask(id uint32) {
	n := q.nic
	for m := &n.msgs[id]; m.reading < n.cfg.ReadAhead && m.asked < m.wqe.Bytes; m = &n.msgs[id] {
		b := min(n.cfg.MTU, m.wqe.Bytes-m.asked)
		m.asked += b
		m.reading++
		n.bus.Read(pcie.NIC, m.wqe.Local, b, m.wqe.Cause, n.kind.payload, payloadFetched{n}, id)
	}
}

type payloadFetched struct{ *NIC }

// Done has one packet's payload at the NIC.
func (p payloadFetched) Done(id uint32, c sim.Cause) {
	n := p.NIC
	m := &n.msgs[id]
	m.reading--
	m.fetched += min(n.cfg.MTU, m.wqe.Bytes-m.fetched)
	m.wqe.Cause = n.rec.Later(m.wqe.Cause, c)
	m.qp.ask(id)
	m.qp.transmit()
}

type pump struct{ *NIC }

// Handle resumes a queue whose unit was busy.
func (p pump) Handle(id uint32) {
	q := p.qps[id]
	q.pumping = false
	q.transmit()
}

// transmit sends, in order, the packets whose payload is here.
func (q *QP) transmit() {
	n := q.nic
	now := n.eng.Now()
	for !q.pumping && q.first != 0 {
		id := q.first
		m := &n.msgs[id]
		first := m.sent == 0
		if !m.started || m.wqe.Bytes > 0 && m.fetched == m.sent {
			return
		}
		if first {
			// The queue's unit holds one message until the engine takes it: so
			// the engine goes round the queues, however much each has to send.
			if free := max(q.unit.FreeAt(), q.taken); free > now {
				q.pumping = true
				n.eng.At(free, n.hPump, uint32(q.id))
				return
			}
			q.unit.Take(now, n.cfg.QPMessage, m.wqe.Cause.Op)
		}
		b := m.wqe.Bytes
		if m.wqe.Opcode == RDMAWrite {
			b = min(n.cfg.MTU, m.fetched-m.sent)
		}
		m.sent += b
		last := m.sent == m.wqe.Bytes
		pk := n.allocPkt()
		n.pkts[pk] = packet{msg: id, bytes: b, first: first, last: last}
		q.taken = n.emit(pk, m.wqe.Cause, first)
		if last {
			q.first = m.next
			m.next = 0
			if q.first == 0 {
				q.last = 0
			}
		}
	}
}

// emit passes a packet through the message engine to the port and returns when
// the engine takes it.
func (n *NIC) emit(pk uint32, c sim.Cause, first bool) sim.Time {
	now := n.eng.Now()
	start, blocker := now, sim.Op(0)
	if first {
		start, _, blocker = n.engine.Take(now, n.cfg.TxMessage, c.Op)
	}
	end := max(start.Add(n.cfg.TxLatency.Draw(n.rng)), n.lastTx) // packets leave in order
	n.lastTx = end
	n.pkts[pk].cause = n.rec.Span(c, n.kind.tx, start, end, blocker)
	n.eng.At(end, n.hTx, pk)
	return start
}

type transmit struct{ *NIC }

// Handle puts the packet on the wire.
func (t transmit) Handle(pk uint32) {
	n := t.NIC
	p := &n.pkts[pk]
	m := &n.msgs[p.msg]
	kind, bytes := fabric.WriteNext, p.bytes
	switch {
	case m.wqe.Opcode == RDMARead:
		kind, bytes = fabric.ReadRequest, 0
	case m.wqe.Opcode == FetchAdd:
		kind, bytes = fabric.AtomicRequest, 0
	case p.first:
		kind = fabric.WriteFirst
	}
	dst := n.peers[m.qp.peer].remote
	n.net.Send(n.node, dst.node, kind, bytes, false, p.cause, arrived{dst.peers[n.node]}, pk)
}

type arrived struct{ *peer }

// Done has a packet of the peer at the port.
func (a arrived) Done(pk uint32, c sim.Cause) {
	a.remote.pkts[pk].cause = c
	if a.local.cfg.Context.Cache > 0 && a.waits(pk) {
		return
	}
	a.accept(pk)
}

// accept takes a packet through the message engine.
func (a arrived) accept(pk uint32) {
	n := a.local
	p := &a.remote.pkts[pk]
	c := p.cause
	now := n.eng.Now()
	start, blocker := now, sim.Op(0)
	if p.first {
		start, _, blocker = n.engine.Take(now, n.cfg.RxMessage, c.Op)
	}
	end := max(start.Add(n.cfg.RxLatency.Draw(n.rng)), n.lastRx)
	n.lastRx = end
	p.cause = n.rec.Span(c, n.kind.rx, start, end, blocker)
	n.eng.At(end, a.hRx, pk)
}

type received struct{ *peer }

// Handle delivers a packet: DMA write and ACK, or what a request asks for.
func (r received) Handle(pk uint32) {
	n, src := r.local, r.remote
	p := &src.pkts[pk]
	m := &src.msgs[p.msg]
	if len(n.full) > 0 || m.wqe.Opcode == RDMAWrite && n.inbound > 0 && n.inbound+p.bytes > rxBuffer {
		n.full = append(n.full, uint64(src.node)<<32|uint64(pk))
		return
	}
	r.deliver(pk)
}

// rxBuffer is the payload that a NIC takes from the wire ahead of what PCIe has
// carried to memory. What comes beyond is not acknowledged, so that senders with
// a window slow down to PCIe's pace.
const rxBuffer = 256 << 10

func (r received) deliver(pk uint32) {
	n, src := r.local, r.remote
	p := &src.pkts[pk]
	m := &src.msgs[p.msg]
	switch m.wqe.Opcode {
	case RDMAWrite:
		n.inbound += p.bytes
		if p.last && m.wqe.Signaled {
			n.net.Send(n.node, src.node, fabric.Ack, 0, true, p.cause, ackArrived{src}, p.msg)
		}
		if p.last && m.wqe.Imm {
			p.parts = 1
			n.bus.Write(pcie.NIC, pcie.Host, n.cfg.CQEBytes, p.cause, n.kind.deliver, landed{r.peer}, pk)
		}
		n.bus.Write(pcie.NIC, m.wqe.Remote, p.bytes, p.cause, n.kind.deliver, landed{r.peer}, pk)
	case RDMARead:
		for left := m.wqe.Bytes; left > 0; {
			b := min(n.cfg.MTU, left)
			left -= b
			resp := src.allocPkt()
			src.pkts[resp] = packet{msg: p.msg, bytes: b, last: left == 0}
			n.bus.Read(pcie.NIC, m.wqe.Remote, b, p.cause, n.kind.payload, readDone{r.peer}, resp)
			p = &src.pkts[pk]
		}
		src.freePkt(pk)
	case FetchAdd:
		n.atomics = append(n.atomics, uint64(src.node)<<32|uint64(pk))
		n.nextAtomic()
	}
}

type landed struct{ *peer }

// Done has a packet's bytes visible in the destination memory.
func (l landed) Done(pk uint32, c sim.Cause) {
	src := l.remote
	if q := &src.pkts[pk]; q.parts > 0 {
		q.parts--
		q.cause = c
		return
	}
	p := src.pkts[pk]
	c = src.rec.Later(c, p.cause)
	src.freePkt(pk)
	m := &src.msgs[p.msg]
	m.landed += p.bytes
	if m.wqe.Opcode == RDMAWrite {
		l.local.drained(p.bytes)
	}
	if !p.last {
		return
	}
	land, arg := m.wqe.Land, m.wqe.LandArg
	src.release(p.msg)
	if land != nil {
		land.Done(arg, c)
	}
}

// drained has bytes out of the receive buffer.
func (n *NIC) drained(bytes int64) {
	n.inbound -= bytes
	for len(n.full) > 0 {
		src, pk := n.peers[n.full[0]>>32], uint32(n.full[0])
		if p := &src.remote.pkts[pk]; n.inbound > 0 && n.inbound+p.bytes > rxBuffer {
			return
		}
		n.full = n.full[:copy(n.full, n.full[1:])]
		received{src}.deliver(pk)
	}
}

type ackArrived struct{ *NIC }

// Done has the ACK at the source NIC.
func (a ackArrived) Done(id uint32, c sim.Cause) {
	n := a.NIC
	now := n.eng.Now()
	end := max(now.Add(n.cfg.AckLatency.Draw(n.rng)), n.lastAck)
	n.lastAck = end
	n.msgs[id].wqe.Cause = n.rec.Span(c, n.kind.ack, now, end, 0)
	n.eng.At(end, n.hAck, id)
}

type acked struct{ *NIC }

// Handle writes the CQE.
func (a acked) Handle(id uint32) { a.complete(id, a.msgs[id].wqe.Cause) }

// complete has a message's answer, and completes the queue's messages in order.
func (n *NIC) complete(id uint32, c sim.Cause) {
	m := &n.msgs[id]
	q, index := m.qp, m.index
	if len(q.slow) > 0 && int32(index-q.slow[0]) > 0 {
		m.wqe.Cause = c
		q.late = append(q.late, id)
		return
	}
	n.finish(id, c)
	for len(q.slow) > 0 && q.slow[0] == index {
		q.slow = q.slow[:copy(q.slow, q.slow[1:])]
		for len(q.late) > 0 {
			late := &n.msgs[q.late[0]]
			if len(q.slow) > 0 && int32(late.index-q.slow[0]) > 0 {
				return
			}
			id, index = q.late[0], late.index
			q.late = q.late[:copy(q.late, q.late[1:])]
			now := n.eng.Now()
			n.finish(id, n.rec.Span(late.wqe.Cause, n.kind.ack, now, now, c.Op))
			if len(q.slow) > 0 && q.slow[0] == index {
				break
			}
		}
	}
}

func (n *NIC) finish(id uint32, c sim.Cause) {
	m := &n.msgs[id]
	if !m.wqe.Signaled {
		n.release(id)
		return
	}
	n.bus.Write(pcie.NIC, m.qp.queues, n.cfg.CQEBytes, c, n.kind.cqe, cqeVisible{n}, id)
}

type cqeVisible struct{ *NIC }

// Done has the CQE visible in the completion queue; it retires every WQE
// before it in its send queue.
func (v cqeVisible) Done(id uint32, c sim.Cause) {
	n := v.NIC
	m := &n.msgs[id]
	q := m.qp
	q.completed = m.index
	n.release(id)
	q.onCQE.Done(q.completed, c)
}

type readDone struct{ *peer }

// Done has data for a READ response at the responder; the response passes its
// transmit pipeline.
func (r readDone) Done(pk uint32, c sim.Cause) {
	n, src := r.local, r.remote
	now := n.eng.Now()
	end := max(now.Add(n.cfg.TxLatency.Draw(n.rng)), n.lastTx)
	n.lastTx = end
	src.pkts[pk].cause = n.rec.Span(c, n.kind.tx, now, end, 0)
	n.eng.At(end, r.hRespond, pk)
}

type respond struct{ *peer }

// Handle puts a READ response on the wire.
func (r respond) Handle(pk uint32) {
	n, src := r.local, r.remote
	p := &src.pkts[pk]
	n.net.Send(n.node, src.node, fabric.ReadResponse, p.bytes, false, p.cause, responseArrived{src.peers[n.node]}, pk)
}

type responseArrived struct{ *peer }

// Done has a READ response at the requester's port.
func (r responseArrived) Done(pk uint32, c sim.Cause) {
	n := r.local
	now := n.eng.Now()
	end := max(now.Add(n.cfg.RxLatency.Draw(n.rng)), n.lastRx)
	n.lastRx = end
	n.pkts[pk].cause = n.rec.Span(c, n.kind.rx, now, end, 0)
	n.eng.At(end, r.hRead, pk)
}

type responseReceived struct{ *peer }

// Handle writes a READ response to where the data was wanted.
func (r responseReceived) Handle(pk uint32) {
	n := r.local
	p := &n.pkts[pk]
	n.bus.Write(pcie.NIC, n.msgs[p.msg].wqe.Local, p.bytes, p.cause, n.kind.deliver, readLanded{n}, pk)
}

type readLanded struct{ *NIC }

// Done has a READ response in memory; the last one completes the READ.
func (r readLanded) Done(pk uint32, c sim.Cause) {
	n := r.NIC
	p := n.pkts[pk]
	n.freePkt(pk)
	if p.last {
		n.complete(p.msg, c)
	}
}

// nextAtomic runs the read-modify-writes one at a time.
func (n *NIC) nextAtomic() {
	if n.atomicBusy || len(n.atomics) == 0 {
		return
	}
	n.atomicBusy = true
	src, pk := n.peers[n.atomics[0]>>32], uint32(n.atomics[0])
	p := &src.remote.pkts[pk]
	n.bus.Read(pcie.NIC, src.remote.msgs[p.msg].wqe.Remote, 8, p.cause, n.kind.deliver, atomicRead{src}, pk)
}

type atomicRead struct{ *peer }

// Done has the old value: the answer leaves, the new value is written.
func (a atomicRead) Done(pk uint32, c sim.Cause) {
	n, src := a.local, a.remote
	p := &src.pkts[pk]
	now := n.eng.Now()
	end := now.Add(n.cfg.Atomic.Draw(n.rng))
	c = n.rec.Span(c, n.kind.deliver, now, end, 0)
	p.cause = c
	n.eng.At(end, a.hAtomic, pk)
}

type atomicDone struct{ *peer }

// Handle answers an atomic and writes its result.
func (a atomicDone) Handle(pk uint32) {
	n, src := a.local, a.remote
	p := &src.pkts[pk]
	m := &src.msgs[p.msg]
	n.net.Send(n.node, src.node, fabric.Ack, 0, true, p.cause, ackArrived{src}, p.msg)
	n.bus.Write(pcie.NIC, m.wqe.Remote, 8, p.cause, n.kind.deliver, atomicWritten{a.peer}, pk)
}

type atomicWritten struct{ *peer }

// Done has the new value visible; the next atomic may start.
func (a atomicWritten) Done(pk uint32, c sim.Cause) {
	n := a.local
	n.atomics = n.atomics[:copy(n.atomics, n.atomics[1:])]
	n.atomicBusy = false
	n.nextAtomic()
	landed(a).Done(pk, c)
}

func (n *NIC) release(id uint32) {
	m := &n.msgs[id]
	if m.refs--; m.refs == 0 {
		*m = message{next: n.msgFree}
		n.msgFree = id
	}
}

func (n *NIC) allocMsg() uint32 {
	if id := n.msgFree; id != 0 {
		n.msgFree = n.msgs[id].next
		return id
	}
	n.msgs = append(n.msgs, message{})
	return uint32(len(n.msgs) - 1)
}

func (n *NIC) allocPkt() uint32 {
	if id := n.pktFree; id != 0 {
		n.pktFree = n.pkts[id].next
		return id
	}
	n.pkts = append(n.pkts, packet{})
	return uint32(len(n.pkts) - 1)
}

func (n *NIC) freePkt(id uint32) {
	n.pkts[id] = packet{next: n.pktFree}
	n.pktFree = id
}

func (n *NIC) allocFetch() uint32 {
	if id := n.fetchTop; id != 0 {
		n.fetchTop = n.fetches[id].next
		return id
	}
	n.fetches = append(n.fetches, fetch{})
	return uint32(len(n.fetches) - 1)
}

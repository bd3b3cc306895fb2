package nic

import (
	"fmt"
	"math"
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
	Response    sim.Delay    // last response of a READ there until the CQE leaves
	Doorbell    sim.Duration // the doorbell unit's time per doorbell
	DoorbellMax int          // doorbells that wait for it before PCIe holds their senders
	TxMessage   sim.Duration // the message engine's time per message sent
	RxMessage   sim.Duration // the same per message received
	QPMessage   sim.Duration // one queue's unit per message: a queue is served by one
	CQEBytes    int64
	FetchMax    int // WQEBBs per WQE fetch
	ReadAhead   int // packets of payload between the requests for it and the port
	Atomic      sim.Delay
	InlineMax   int64 // largest payload inside a WQE
	BlueFlame   int64 // largest WQE that fits the BlueFlame buffer, bytes
	MaxQP       int
	SQDepth     int // WQEBBs
	DoorbellLen int64
	Window      int64 // bytes of the buffer that a queue's messages walk through; 0: each starts where the last did
	OnDemand    bool  // payload in host memory is not pinned: the first touch of a page is a fault
	PageFault   sim.Delay
	Relaxed     bool // payload writes carry the relaxed-ordering attribute
	RelaxedFlag bool // writes of flags do
	Context     Context
	Retry       Retry
}

// Opcode says what a WQE asks for.
type Opcode uint8

// The opcodes.
const (
	RDMAWrite Opcode = iota
	RDMARead
	FetchAdd
	dcConnect // a packet, not a WQE
)

// WQE is a work queue element as a poster writes it.
type WQE struct {
	Opcode   Opcode
	Bytes    int64
	Peer     int   // node that a DC initiator's message goes to
	Vector   int64 // address vector, which names the peer in a WQE over DC; 0: over RC
	Inline   bool
	Signaled bool
	Local    pcie.Unit // where the payload lives (or a READ's target)
	Remote   pcie.Unit // memory it is written to (or read from) at the peer
	Visible  sim.Time  // when the NIC may see its bytes in the send queue
	Cause    sim.Cause
	Flag     bool     // it announces what came before it
	Imm      bool     // an immediate: the receiver's CPU gets a CQE, and Land is told of that
	Land     sim.Sink // told when the last byte is visible at the peer; may be nil
	LandArg  uint32

	rung     sim.Time // when its doorbell came
	addr     uint64   // of the payload, at either end
	reserved bool
	badRKey  bool
	badLocal bool
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
	n += w.Vector
	return (n + WQEBB - 1) / WQEBB * WQEBB
}

// message is a WQE at the NIC until it has landed and was answered.
type message struct {
	wqe     WQE
	qp      *QP
	index   uint32 // producer index behind this WQE
	fetched int64  // payload bytes at the NIC
	asked   int64  // payload bytes asked for
	sent    int64
	landed  int64
	placed  int64 // payload bytes on their way to memory
	refs    int8
	started bool
	next    uint32
}

type packet struct {
	msg    uint32
	qp     uint32 // of the NIC that requests
	psn    uint32
	op     Opcode
	try    uint8 // of a READ: which request a response answers
	bytes  int64
	cause  sim.Cause
	first  bool
	last   bool
	read   bool // its payload is in the buffer
	parts  int8 // writes that must land yet, beside this one
	next   uint32
	behind uint32 // a flag: packets of data placed before it
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

	engine  sim.Server // per-message work of both directions
	bell    sim.Server // per-doorbell work
	bells   sim.FIFO[rung]
	qps     []*QP
	msgs    []message
	msgFree sim.Free
	pkts    []packet
	pktFree sim.Free
	fetches []fetch
	fetched sim.Free
	// Work leaves each pipeline in order, whatever latencies are drawn.
	lastTx, lastRx, lastAck sim.Time
	peers                   []*peer

	hSched, hPush, hPump, hTx, hAck, hBell, hRequester sim.HandlerID
	hTimeout, hReady, hRoom                            sim.HandlerID

	buffer
	inbound    int64    // payload between the wire and memory
	full       []uint64 // packets that the receive buffer has no room for, as atomics
	atomics    []uint64 // waiting requests: peer<<32 | packet
	atomicBusy bool

	Doorbells  int
	WQEFetches int
	// Retransmits counts packets that were sent again.
	Retransmits int
	Failures    int // queues in the error state
	// ContextReads counts misses of connection state.
	ContextReads int
	pages        faults
	contexts     cache
	reading      int // of responder state, for packets that wait
	stuck        stuck
	Faults       Faults
	// Find is told of what went wrong, and when; nil if nobody asks.
	Find func(at sim.Time, h stage.Hazard)

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
}

// New returns the NIC of a node.
func New(eng *sim.Engine, rec *sim.Recorder, rng *rand.Rand, node int, cfg Config, bus *pcie.Fabric, net *fabric.Network) (*NIC, error) {
	if cfg.MTU <= 0 || cfg.FetchMax <= 0 || cfg.ReadAhead <= 0 || cfg.SQDepth <= 0 {
		return nil, fmt.Errorf("nic: mtu %d, fetch %d, read-ahead %d and sq depth %d must be positive", cfg.MTU, cfg.FetchMax, cfg.ReadAhead, cfg.SQDepth)
	}
	n := &NIC{cfg: cfg, node: node, eng: eng, rec: rec, rng: rng, bus: bus, net: net, msgs: make([]message, 0, 256), pkts: make([]packet, 0, 256), fetches: make([]fetch, 0, 64)}
	if err := n.checkContext(); err != nil {
		return nil, err
	}
	n.hSched = eng.Register(schedule{n})
	n.hPush = eng.Register(pushed{n})
	n.hPump = eng.Register(pump{n})
	n.hTx = eng.Register(transmit{n})
	n.hBell = eng.Register(belled{n})
	n.hAck = eng.Register(acked{n})
	n.hRequester = eng.Register(requesterThere{n})
	n.hTimeout = eng.Register(timeout{n})
	n.hReady = eng.Register(receiverReady{n})
	n.hRoom = eng.Register(roomy{n})
	n.room = int64(cfg.ReadAhead) * cfg.MTU
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

// QP is the sending half of a queue pair, which is reliably connected to one peer
// or is a DC initiator.
type QP struct {
	id     int
	nic    *NIC
	peer   int
	queues pcie.Unit // where SQ, CQ and record live
	onCQE  sim.Sink

	dc        *initiator // nil: RC
	depth     int
	sq        []WQE // by producer index modulo its length, which grows up to depth
	head      uint32
	rung      uint32
	fetched   uint32 // asked for, or taken from BlueFlame
	here      uint32 // at the NIC
	fetching  int    // WQE fetches under way, which nothing may overtake
	pushed    uint32 // producer index behind the last WQE that came through BlueFlame
	completed uint32
	cursor    int64     // in the payload's buffer
	placed    uint32    // packets of data, not flags, on their way to memory at the peer
	seen      uint32    // of those, visible there
	into      pcie.Unit // memory that the last of them went to
	pumping   bool
	unit      sim.Server
	taken     sim.Time // when the message engine takes the queue's last message
	first     uint32   // messages in order of transmission
	last      uint32
	wants     uint32 // the first whose payload is not all asked for
	buffered  int64  // payload between the requests for it and the port
	lined     bool   // it waits for room in the buffer
	// A queue completes in order: what an atomic or a READ answers later than
	// messages behind it holds them back.
	slow []uint32 // producer indices of atomics and READs without an answer
	late []uint32 // messages that wait for them, in order

	requester entry // here
	loading   bool
	again     []sim.HandlerID
	came      sim.Time // when the requester's state was read last
	responder responder

	rel      *reliable // nil: nothing is ever lost or refused
	failed   string    // what put the queue into the error state
	since    sim.Time  // when
	failedAt uint32
}

// NewQP creates a queue pair to the NIC of node peer, whose queues live in
// unit; onCQE is told, when a CQE is visible there, how many WQEs have been
// completed so far (modulo 2^32). It fails beyond the NIC's limit.
func (n *NIC) NewQP(peer int, queues pcie.Unit, onCQE sim.Sink) (*QP, error) {
	q, err := n.newQP(queues, onCQE)
	if err != nil {
		return nil, err
	}
	q.peer = peer
	if peer < len(n.peers) { // its creation leaves its state in both NICs
		r := n.peers[peer].remote
		r.create(&q.responder.entry, r.cfg.Context.Responder)
	}
	return q, nil
}

func (n *NIC) newQP(queues pcie.Unit, onCQE sim.Sink) (*QP, error) {
	if len(n.qps) >= n.cfg.MaxQP {
		return nil, fmt.Errorf("more queue pairs than the NIC's %d (want fewer queues, or hardware.nic.max_qp higher)", n.cfg.MaxQP)
	}
	q := &QP{id: len(n.qps), nic: n, queues: queues, onCQE: onCQE, came: -1, depth: n.cfg.SQDepth, sq: make([]WQE, min(n.cfg.SQDepth, 32))}
	if n.cfg.Retry.On {
		q.rel = &reliable{}
	}
	n.qps = append(n.qps, q)
	n.create(&q.requester, n.requesterSize(queues))
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
	q.address(&w)
	*q.at(q.head) = w
	q.head++
	return q.head
}

// Reserve takes a slot whose WQE comes later, by Fill. A NIC that is told to
// fetch it before finds what the slot held in the lap before: its write is lost.
func (q *QP) Reserve() uint32 {
	return q.Post(WQE{Inline: true, Remote: pcie.GPU, Visible: math.MaxInt64, reserved: true}) - 1
}

// Fill writes the WQE of a reserved slot.
func (q *QP) Fill(i uint32, w WQE) {
	w.reserved, w.rung = true, q.at(i).rung
	q.address(&w)
	*q.at(i) = w
}

// address says in the WQE where its payload lies and over DC, by a vector, whose.
func (q *QP) address(w *WQE) {
	w.addr = q.place(w)
	if q.dc != nil {
		w.Vector = q.dc.vector
	}
}

// Head returns the producer index.
func (q *QP) Head() uint32 { return q.head }

// Completed returns how many WQEs CQEs have retired so far.
func (q *QP) Completed() uint32 { return q.completed }

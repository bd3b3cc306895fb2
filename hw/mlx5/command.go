package mlx5

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A field of a command: its first bit, counted from the most significant one of
// the first byte, and its width, at most 32.
type field struct{ at, bits int }

// in is the field of a structure that begins at bit `at` of another.
func (f field) in(at int) field { return field{f.at + at, f.bits} }

// The commands that make a completion queue and a queue pair out of memory of
// one's own, and bring the pair to RTS. Names and places are those of the Linux
// kernel's include/linux/mlx5/mlx5_ifc.h; those with umem in their names are of
// rdma-core's providers/mlx5/mlx5_ifc.h.
const (
	opCreateCQ = 0x400
	opCreateQP = 0x500
	opRST2INIT = 0x502
	opINIT2RTR = 0x503
	opRTR2RTS  = 0x504

	cqContext = 0x80 // in create_cq_in
	qpContext = 0xc0 // in create_qp_in and the transitions
	path      = 0xc0 // of the primary address path in qpc

	createCQBytes   = 0x880 / 8
	createQPBytes   = 0x880 / 8
	transitionBytes = 0x880 / 8
	outBytes        = 0x80 / 8
)

// The fields, by structure.
var (
	opcodeField = field{0, 16}
	statusField = field{0, 8}
	syndrome    = field{0x20, 32}
	numberField = field{0x48, 24} // cqn, qpn of an output; qpn of a transition

	createCQ = struct{ umemOffset, umemOffsetLow, umemID, umemValid field }{field{0x280, 32}, field{0x2a0, 32}, field{0x2c0, 32}, field{0x2e0, 1}}
	createQP = struct{ umemOffset, umemOffsetLow, umemID, umemValid field }{field{0x800, 32}, field{0x820, 32}, field{0x840, 32}, field{0x860, 1}}

	cqc = struct{ dbrUmemValid, dbrUmemID, logSize, uarPage, eqn, logPageSize, dbrAddr, dbrAddrLow field }{
		field{0x6, 1}, field{0x20, 32}, field{0x63, 5}, field{0x68, 24}, field{0xa0, 32}, field{0xc3, 5}, field{0x1c0, 32}, field{0x1e0, 32},
	}

	qpc = struct {
		pmState, pd, mtu, logMsgMax, logSQSize, uarPage, logPageSize, remoteQPN, retryCount, rnrRetry, nextSendPSN, cqnSnd field
		minRNRNak, nextRcvPSN, cqnRcv, dbrAddr, dbrAddrLow, rqType, dbrUmemValid, dbrUmemID                                field
	}{
		field{0x13, 2},
		field{0x28, 24},
		field{0x40, 3},
		field{0x43, 5},
		field{0x51, 4},
		field{0x68, 24},
		field{0xa3, 5},
		field{0xa8, 24},
		field{0x38d, 3},
		field{0x390, 3},
		field{0x3c8, 24},
		field{0x3e8, 24},
		field{0x4a3, 5},
		field{0x4a8, 24},
		field{0x4e8, 24},
		field{0x500, 32},
		field{0x520, 32},
		field{0x565, 3},
		field{0x683, 1},
		field{0x720, 32},
	}

	ads = struct{ grh, rlid, ackTimeout, srcAddrIndex, hopLimit, rgid, udpSPort, vhcaPort, rmacHigh, rmacLow field }{
		field{0x28, 1}, field{0x30, 16}, field{0x40, 5}, field{0x48, 8}, field{0x58, 8}, field{0x80, 32}, field{0x110, 16}, field{0x128, 8}, field{0x130, 16}, field{0x140, 32},
	}
)

const (
	migrated = 3 // pm_state
	noRQ     = 3 // rq_type: a receive queue of length zero
)

// command is the bytes of a command or of its answer.
type command []byte

func newCommand(op uint32, bytes int) command {
	c := make(command, bytes)
	c.put(opcodeField, op)
	return c
}

// put writes v, whose bits must fit: what cannot be said is a broken invariant of
// ours.
func (c command) put(f field, v uint32) {
	if f.bits < 32 && v>>f.bits != 0 {
		panic(fmt.Sprintf("mlx5: %#x in %d bits at %#x", v, f.bits, f.at))
	}
	word := c[f.at/32*4:]
	shift := 32 - f.bits - f.at%32
	mask := uint32(1<<f.bits-1) << shift
	binary.BigEndian.PutUint32(word, binary.BigEndian.Uint32(word)&^mask|v<<shift)
}

func (c command) get(f field) uint32 {
	return binary.BigEndian.Uint32(c[f.at/32*4:]) << (f.at % 32) >> (32 - f.bits)
}

func (c command) put64(high, low field, v uint64) {
	c.put(high, uint32(v>>32))
	c.put(low, uint32(v))
}

// number is the number of the object that an answer tells of, or its error.
func (c command) number(what string) (uint32, error) {
	if s := c.get(statusField); s != 0 {
		return 0, fmt.Errorf("%s: the device's status is %#x, syndrome %#08x", what, s, c.get(syndrome))
	}
	return c.get(numberField), nil
}

// queues says where a queue pair's parts lie in registered memory: both queues in
// one block, the records in that or another.
type queues struct {
	umem, recordUmem   uint32
	uarPage, pdn, eqn  uint32
	pageBits           int // log2 of the block's pages, at least 12
	sq, cq             int // offsets, on pages of the block
	record, cqRecord   int
	logWQEBBs, logCQEs int
}

func (q *queues) createCQ() command {
	c := newCommand(opCreateCQ, createCQBytes)
	c.put(createCQ.umemID, q.umem)
	c.put(createCQ.umemValid, 1)
	c.put64(createCQ.umemOffset, createCQ.umemOffsetLow, uint64(q.cq))
	c.put(cqc.dbrUmemValid.in(cqContext), 1)
	c.put(cqc.dbrUmemID.in(cqContext), q.recordUmem)
	c.put64(cqc.dbrAddr.in(cqContext), cqc.dbrAddrLow.in(cqContext), uint64(q.cqRecord))
	c.put(cqc.logSize.in(cqContext), uint32(q.logCQEs))
	c.put(cqc.uarPage.in(cqContext), q.uarPage)
	c.put(cqc.eqn.in(cqContext), q.eqn)
	c.put(cqc.logPageSize.in(cqContext), uint32(q.pageBits-12))
	return c
}

// createQP makes a reliably connected pair without a receive queue.
func (q *queues) createQP(cqn uint32) command {
	c := newCommand(opCreateQP, createQPBytes)
	c.put(createQP.umemID, q.umem)
	c.put(createQP.umemValid, 1)
	c.put64(createQP.umemOffset, createQP.umemOffsetLow, uint64(q.sq))
	c.put(qpc.pmState.in(qpContext), migrated)
	c.put(qpc.pd.in(qpContext), q.pdn)
	c.put(qpc.uarPage.in(qpContext), q.uarPage)
	c.put(qpc.logSQSize.in(qpContext), uint32(q.logWQEBBs))
	c.put(qpc.logPageSize.in(qpContext), uint32(q.pageBits-12))
	c.put(qpc.rqType.in(qpContext), noRQ)
	c.put(qpc.cqnSnd.in(qpContext), cqn)
	c.put(qpc.cqnRcv.in(qpContext), cqn)
	c.put(qpc.dbrUmemValid.in(qpContext), 1)
	c.put(qpc.dbrUmemID.in(qpContext), q.recordUmem)
	c.put64(qpc.dbrAddr.in(qpContext), qpc.dbrAddrLow.in(qpContext), uint64(q.record))
	return c
}

// route is how a queue pair reaches its peer.
type route struct {
	port, gidIndex int
	ethernet       bool
	mtu            int // enumeration of the wire: 1 is 256 B
	qpn            uint32
	psn, sendPSN   uint32 // the peer's first, and ours
	lid            uint16
	global         bool // InfiniBand with a GRH
	gid            [16]byte
	mac            [6]byte // Ethernet
	hopLimit       int
}

// Times and counts of a connection.
const (
	logMsgMax  = 30 // 1 GiB
	minRNR     = 12 // 0.64 ms
	ackTimeout = 14 // 67 ms
	retries    = 7
	rnrRetries = 6      // 7 would be for ever
	udpSPort   = 0xc000 // of RoCE v2: the lowest that its annex allows
)

func rst2init(qpn uint32, r *route) command {
	c := newCommand(opRST2INIT, transitionBytes)
	c.put(numberField, qpn)
	c.put(qpc.pmState.in(qpContext), migrated)
	c.put(ads.vhcaPort.in(qpContext+path), uint32(r.port))
	return c
}

func init2rtr(qpn uint32, r *route) (command, error) {
	if r.mtu < 1 || r.mtu > 5 || r.qpn>>24 != 0 || r.psn>>24 != 0 {
		return nil, errors.New("the peer's address makes no sense")
	}
	c := newCommand(opINIT2RTR, transitionBytes)
	c.put(numberField, qpn)
	c.put(qpc.mtu.in(qpContext), uint32(r.mtu))
	c.put(qpc.logMsgMax.in(qpContext), logMsgMax)
	c.put(qpc.remoteQPN.in(qpContext), r.qpn)
	c.put(qpc.nextRcvPSN.in(qpContext), r.psn)
	c.put(qpc.minRNRNak.in(qpContext), minRNR)
	at := qpContext + path
	c.put(ads.vhcaPort.in(at), uint32(r.port))
	if r.ethernet || r.global {
		for i := range 4 {
			c.put(ads.rgid.in(at+32*i), binary.BigEndian.Uint32(r.gid[4*i:]))
		}
		c.put(ads.srcAddrIndex.in(at), uint32(r.gidIndex))
		c.put(ads.hopLimit.in(at), uint32(r.hopLimit))
	}
	if r.ethernet {
		c.put(ads.udpSPort.in(at), udpSPort)
		c.put(ads.rmacHigh.in(at), uint32(binary.BigEndian.Uint16(r.mac[:])))
		c.put(ads.rmacLow.in(at), binary.BigEndian.Uint32(r.mac[2:]))
		return c, nil
	}
	c.put(ads.rlid.in(at), uint32(r.lid))
	if r.global {
		c.put(ads.grh.in(at), 1)
	}
	return c, nil
}

func rtr2rts(qpn uint32, r *route) command {
	c := newCommand(opRTR2RTS, transitionBytes)
	c.put(numberField, qpn)
	c.put(qpc.retryCount.in(qpContext), retries)
	c.put(qpc.rnrRetry.in(qpContext), rnrRetries)
	c.put(qpc.nextSendPSN.in(qpContext), r.sendPSN)
	c.put(ads.ackTimeout.in(qpContext+path), ackTimeout)
	return c
}

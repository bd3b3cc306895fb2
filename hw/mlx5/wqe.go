package mlx5

import (
	"encoding/binary"
	"fmt"
)

// WQEBB is the size in bytes of a send queue's basic block, and of a CQE.
const WQEBB = 64

// Opcode is what a WQE does.
type Opcode uint8

// The opcodes that the poster builds, as in rdma-core's mlx5dv.h.
const (
	RDMAWrite    Opcode = 0x08
	RDMAWriteImm Opcode = 0x09
)

// Flags are the byte fm_ce_se of a control segment.
type Flags uint8

// The flags, as in mlx5dv.h.
const (
	CQUpdate   Flags = 2 << 2 // ask for a CQE
	SmallFence Flags = 1 << 5 // initiator small fence
	Fence      Flags = 4 << 5 // wait for all earlier reads and atomics
)

// maxSegments is what a WQE's 6-bit count can say.
const maxSegments = 63

const inlineFlag = 1 << 31

// WQE is one RDMA write: of Inline, or where that is empty of Bytes at Addr.
type WQE struct {
	Op         Opcode
	Index      uint16 // WQEBBs posted before it, cut to 16 bits
	QPN        uint32 // 24 bits
	Flags      Flags
	Imm        uint32 // with RDMAWriteImm
	RemoteAddr uint64
	RKey       uint32
	Inline     []byte
	Bytes      uint32
	LKey       uint32
	Addr       uint64
}

// Segments is the WQE's length in units of 16 B.
func (w *WQE) Segments() int {
	if len(w.Inline) == 0 {
		return 3
	}
	return 2 + (4+len(w.Inline)+15)/16
}

// WQEBBs is how many basic blocks of 64 B the WQE occupies.
func (w *WQE) WQEBBs() int { return (w.Segments() + 3) / 4 }

func (w *WQE) control() (a, b uint32) {
	return uint32(w.Index)<<8 | uint32(w.Op), w.QPN<<8 | uint32(w.Segments())
}

// Append appends the WQE's Segments() * 16 bytes to b. It fails where the inline
// bytes or the queue pair's number do not fit.
func (w *WQE) Append(b []byte) ([]byte, error) {
	if w.Segments() > maxSegments {
		return b, fmt.Errorf("%d bytes inline, want at most %d", len(w.Inline), (maxSegments-2)*16-4)
	}
	if w.QPN>>24 != 0 {
		return b, fmt.Errorf("queue pair number %#x, want 24 bits", w.QPN)
	}
	be := binary.BigEndian
	c0, c1 := w.control()
	imm := uint32(0)
	if w.Op == RDMAWriteImm {
		imm = w.Imm
	}
	for _, x := range []uint32{c0, c1, uint32(w.Flags), imm} {
		b = be.AppendUint32(b, x)
	}
	b = be.AppendUint64(b, w.RemoteAddr)
	b = be.AppendUint32(b, w.RKey)
	b = be.AppendUint32(b, 0)
	if len(w.Inline) == 0 {
		b = be.AppendUint32(b, w.Bytes)
		b = be.AppendUint32(b, w.LKey)
		return be.AppendUint64(b, w.Addr), nil
	}
	b = be.AppendUint32(b, inlineFlag|uint32(len(w.Inline)))
	b = append(b, w.Inline...)
	return append(b, make([]byte, (16-(4+len(w.Inline))%16)%16)...), nil
}

// Doorbell is what the WQE's poster stores to the register: the first 8 B of the
// control segment, as they lie in memory.
func (w *WQE) Doorbell() [8]byte {
	var d [8]byte
	c0, c1 := w.control()
	binary.BigEndian.PutUint32(d[:4], c0)
	binary.BigEndian.PutUint32(d[4:], c1)
	return d
}

// Words of a queue pair's doorbell record.
const (
	ReceiveRecord = 0
	SendRecord    = 1
)

// Record is a word of a doorbell record: a send or receive counter cut to 16
// bits, as it lies in memory.
func Record(counter uint32) [4]byte {
	var r [4]byte
	binary.BigEndian.PutUint32(r[:], counter&0xffff)
	return r
}

// ConsumerRecord is the first word of a completion queue's doorbell record.
func ConsumerRecord(polled uint32) [4]byte {
	var r [4]byte
	binary.BigEndian.PutUint32(r[:], polled&0xffffff)
	return r
}

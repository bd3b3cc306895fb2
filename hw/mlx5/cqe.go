package mlx5

import (
	"encoding/binary"
	"fmt"
)

// CQEOpcode is the upper half of a CQE's last byte.
type CQEOpcode uint8

// The opcodes of CQEs that a poster meets, as in mlx5dv.h.
const (
	CQERequest        CQEOpcode = 0
	CQERequesterError CQEOpcode = 13
	CQEResponderError CQEOpcode = 14
	CQEInvalid        CQEOpcode = 15 // the device has not written this entry
)

// CQE is what a poster reads of a completion.
type CQE struct {
	Opcode     CQEOpcode
	Owner      uint8  // changes with each lap of the queue
	WQECounter uint16 // index of the WQE that it completes, and with it all before
	QPN        uint32
	Op         Opcode // of the WQE
	Syndrome   Syndrome
	Vendor     uint8 // vendor's part of the syndrome
}

// ParseCQE reads a CQE's 64 bytes.
func ParseCQE(b *[WQEBB]byte) CQE {
	be := binary.BigEndian
	c := CQE{
		Opcode: CQEOpcode(b[63] >> 4), Owner: b[63] & 1, WQECounter: be.Uint16(b[60:]),
		Op: Opcode(b[56]), QPN: be.Uint32(b[56:]) & 0xffffff,
	}
	if c.Opcode == CQERequesterError || c.Opcode == CQEResponderError {
		c.Vendor, c.Syndrome = b[54], Syndrome(b[55])
	}
	return c
}

// Bytes encodes the CQE; what it does not hold is zero.
func (c *CQE) Bytes() *[WQEBB]byte {
	var b [WQEBB]byte
	be := binary.BigEndian
	b[54], b[55] = c.Vendor, uint8(c.Syndrome)
	be.PutUint32(b[56:], uint32(c.Op)<<24|c.QPN)
	be.PutUint16(b[60:], c.WQECounter)
	b[63] = uint8(c.Opcode)<<4 | c.Owner
	return &b
}

// Mine reports whether a poster that has polled n CQEs of a queue of that size
// may take this one.
func (c *CQE) Mine(n, size uint32) bool {
	return c.Opcode != CQEInvalid && (c.Owner == 1) == (n&size != 0)
}

// Syndrome is why a WQE failed.
type Syndrome uint8

// The syndromes, as in mlx5dv.h.
const (
	LocalLength   Syndrome = 0x01
	LocalQPOp     Syndrome = 0x02
	LocalProt     Syndrome = 0x04
	Flush         Syndrome = 0x05
	BindMW        Syndrome = 0x06
	BadResponse   Syndrome = 0x10
	LocalAccess   Syndrome = 0x11
	RemoteInvalid Syndrome = 0x12
	RemoteAccess  Syndrome = 0x13
	RemoteOp      Syndrome = 0x14
	RetryExceeded Syndrome = 0x15
	RNRExceeded   Syndrome = 0x16
	RemoteAborted Syndrome = 0x22
)

// status is the ibv_wc_status that rdma-core makes of each syndrome, and its words.
var status = map[Syndrome]struct {
	wc   int
	text string
}{
	LocalLength:   {1, "local length error"},
	LocalQPOp:     {2, "local QP operation error"},
	LocalProt:     {4, "local protection error"},
	Flush:         {5, "Work Request Flushed Error"},
	BindMW:        {6, "memory bind operation error"},
	BadResponse:   {7, "bad response error"},
	LocalAccess:   {8, "local access error"},
	RemoteInvalid: {9, "remote invalid request error"},
	RemoteAccess:  {10, "remote access error"},
	RemoteOp:      {11, "remote operation error"},
	RetryExceeded: {12, "transport retry counter exceeded"},
	RNRExceeded:   {13, "RNR retry counter exceeded"},
	RemoteAborted: {16, "remote aborted error"},
}

const generalError = 21

// Status is the ibv_wc_status of the syndrome.
func (s Syndrome) Status() int {
	if x, ok := status[s]; ok {
		return x.wc
	}
	return generalError
}

// String says the syndrome in the library's words.
func (s Syndrome) String() string {
	if x, ok := status[s]; ok {
		return x.text
	}
	return fmt.Sprintf("syndrome %#02x", uint8(s))
}

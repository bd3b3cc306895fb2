package mlx5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Addresses, keys and number that the WQEs of an image carry.
const (
	imageQPN    = 0x00a5c3
	imageLKey   = 0x1a2b3c4d
	imageRKey   = 0x5e6f7081
	imageLocal  = 0x00007f1122330000
	imageRemote = 0x00007e4455660000
	imageStride = 1024
)

// imageByte is byte j of the payload at slot s.
func imageByte(s, j int) byte { return byte(s*37+j*11) ^ byte(j>>8) }

// payload is message i's as it should arrive: the slot's bytes, with the message's
// stamp at the end.
func payload(i, n int) []byte {
	b := make([]byte, n)
	for j := range b {
		b[j] = imageByte(i%slots, j)
	}
	b[n-1] = byte(i%255 + 1)
	return b
}

// wqe is the WQE of message i, which lies at index.
func (c *Case) wqe(i, index int) WQE {
	s := c.Shapes[i%len(c.Shapes)]
	off := uint64(i % slots * imageStride)
	w := WQE{Op: s.Op, Index: uint16(index), QPN: imageQPN, Flags: s.Flags, Imm: uint32(i), RemoteAddr: imageRemote + off, RKey: imageRKey}
	if (i+1)%c.SignalEvery == 0 || i+1 == c.N+c.Warmup {
		w.Flags |= CQUpdate
	}
	if s.Inline {
		w.Inline = payload(i, s.Bytes)
	} else {
		w.Bytes, w.LKey, w.Addr = uint32(s.Bytes), imageLKey, imageLocal+off
	}
	return w
}

// Verify holds an outcome against what the case should come to: the ends of both,
// and every byte that they left in queues, records and target.
func (c *Case) Verify(o *Outcome) error {
	switch {
	case c.Planted() && o.Fault == NoFault:
		return errors.New("the NIC did not see the defect")
	case c.Planted(), c.Observed && o.Fault != NoFault:
		return nil
	case o.Fault != NoFault:
		return fmt.Errorf("%v", o)
	}
	total := c.N + c.Warmup
	if c.Mute {
		if o.Why != TimedOut || o.Completed != 0 {
			return fmt.Errorf("%v after %d completed, want that it gives up", o.Why, o.Completed)
		}
		return nil
	}
	if c.FailAt > 0 {
		return c.verifyFailure(o)
	}
	if o.Why != Done || o.Posted != total || o.Completed != total {
		return fmt.Errorf("%v after %d posted and %d completed, want %d", o.Why, o.Posted, o.Completed, total)
	}
	if c.Hold > 0 && o.Full == 0 {
		return fmt.Errorf("the queue was never full")
	}
	if rings := (total + c.Chain - 1) / c.Chain; o.Rings != rings || o.Seen < 1 || o.Seen > rings {
		return fmt.Errorf("%d doorbells, of which the NIC saw %d, want %d", o.Rings, o.Seen, rings)
	}
	ring := make([]byte, len(o.sq))
	at := c.Start
	cqes := 0
	target := make([]byte, len(o.target))
	cq := emptyCQ(c.CQEs)
	for i := range total {
		w := c.wqe(i, at)
		b, err := w.Append(nil)
		if err != nil {
			return err
		}
		for k := 0; k < len(b); k += 16 {
			copy(ring[(at*WQEBB+k)%len(ring):], b[k:k+16])
		}
		if w.Flags&CQUpdate != 0 {
			e := CQE{Opcode: CQERequest, WQECounter: uint16(at), QPN: imageQPN, Op: w.Op}
			if (c.Start+cqes)&c.CQEs != 0 {
				e.Owner = 1
			}
			copy(cq[(c.Start+cqes)%c.CQEs*WQEBB:], e.Bytes()[:])
			cqes++
		}
		n := c.Shapes[i%len(c.Shapes)].Bytes
		copy(target[i%slots*imageStride:], make([]byte, (n+3)/4*4))
		copy(target[i%slots*imageStride:], payload(i, n))
		at += w.WQEBBs()
	}
	if err := same("send queue", o.sq, ring); err != nil {
		return err
	}
	if err := same("completion queue", o.cq, cq); err != nil {
		return err
	}
	if want := Record(uint32(at)); c.Record && o.sendRecord != want {
		return fmt.Errorf("the record is %x, want %x", o.sendRecord, want)
	}
	if want := ConsumerRecord(uint32(c.Start + cqes)); o.cqRecord != want {
		return fmt.Errorf("the consumer record is %x, want %x", o.cqRecord, want)
	}
	for i := max(0, total-slots); i < total; i++ {
		p := payload(i, c.Shapes[i%len(c.Shapes)].Bytes)
		if got := o.target[i%slots*imageStride:][:len(p)]; !bytes.Equal(got, p) {
			return fmt.Errorf("message %d arrived as %x, want %x", i, got, p)
		}
	}
	return nil
}

// verifyFailure: the poster must have named the first error CQE, and not taken a
// later message for complete.
func (c *Case) verifyFailure(o *Outcome) error {
	index, done := c.Start, 0
	for i := range c.FailAt - 1 {
		w := c.wqe(i, index)
		index += w.WQEBBs()
		if w.Flags&CQUpdate != 0 {
			done = i + 1
		}
	}
	switch {
	case o.Why != WCError:
		return fmt.Errorf("%v, want an error CQE", o.Why)
	case o.Syndrome != c.Syndrome || o.Vendor != c.Vendor:
		return fmt.Errorf("error CQE of %v, vendor %#x, want %v, %#x", o.Syndrome, o.Vendor, c.Syndrome, c.Vendor)
	case o.WQECounter != uint16(index):
		return fmt.Errorf("error CQE for the WQE at %#x, want %#x", o.WQECounter, uint16(index))
	case o.Completed != done:
		return fmt.Errorf("%d completed before it, want %d", o.Completed, done)
	}
	return nil
}

func same(what string, got, want []byte) error {
	for k := 0; k < len(want); k += 4 {
		if !bytes.Equal(got[k:k+4], want[k:k+4]) {
			return fmt.Errorf("%s: word %d is %08x, want %08x", what, k/4, binary.BigEndian.Uint32(got[k:]), binary.BigEndian.Uint32(want[k:]))
		}
	}
	return nil
}

// emptyCQ is a completion queue as its owner hands it to the device.
func emptyCQ(n int) []byte {
	b := make([]byte, n*WQEBB)
	for i := range n {
		b[i*WQEBB+63] = byte(CQEInvalid) << 4
	}
	return b
}

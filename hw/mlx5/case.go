package mlx5

import (
	"errors"
	"fmt"
	"time"
)

// The ends of a run that callers tell apart.
var (
	// ErrNoGPU: there is no GPU to run on.
	ErrNoGPU = errors.New("no GPU")
	// ErrHang: a kernel did not end, although it was told to.
	ErrHang = errors.New("the kernel does not end")
)

// Order is what stands between WQE, doorbell record and doorbell.
type Order uint8

// The orders. GPURelease is also what the scenario's gpu and gpu+record are: what
// goes before a releasing store is what a release fence would be.
const (
	NoOrder Order = iota
	GPURelease
	DeviceFence
	SystemRelease
	SystemFence
)

var orderNames = [...]string{NoOrder: "none", GPURelease: "gpu-release", DeviceFence: "device", SystemRelease: "system-release", SystemFence: "system"}

// String returns the order's name in scenarios, "gpu-release".
func (o Order) String() string { return orderNames[o] }

// ParseFence returns the order that a value of the scenario key path.fence names,
// and whether it has a doorbell record by itself.
func ParseFence(s string) (o Order, record bool, err error) {
	switch s {
	case "none":
		return NoOrder, false, nil
	case "gpu", "gpu-release":
		return GPURelease, false, nil
	case "gpu+record":
		return GPURelease, true, nil
	case "device":
		return DeviceFence, true, nil
	case "system-release":
		return SystemRelease, true, nil
	case "system":
		return SystemFence, true, nil
	}
	return 0, false, fmt.Errorf("fence %q: unknown", s)
}

// Shape is what one message is.
type Shape struct {
	Op     Opcode
	Inline bool
	Bytes  int
	Flags  Flags // Fence or SmallFence
}

// WQEBBs is how many basic blocks of 64 B its WQE occupies.
func (s Shape) WQEBBs() int {
	w := WQE{}
	if s.Inline {
		w.Inline = make([]byte, s.Bytes)
	}
	return w.WQEBBs()
}

// Limits of a run.
const (
	maxShapes = 4
	maxDepth  = 8192 // WQEBBs: indices of 16 bits must tell laps apart
	slots     = 64   // places that messages go to in turn
)

// Program is what a poster does: N messages of the shapes in turn after Warmup,
// Chain of them per doorbell, at most Window in flight.
type Program struct {
	Shapes      []Shape
	N, Warmup   int
	Chain       int
	Window      int
	SignalEvery int // messages per CQE
	Order       Order
	Record      bool
	CPURings    bool          // the poster leaves the doorbell to a CPU thread
	Budget      time.Duration // without progress before it gives up
}

// check says whether the program can come to its end on a queue of depth WQEBBs.
func (p *Program) check(depth, cqes int) error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	power := func(n int) bool { return n > 0 && n&(n-1) == 0 }
	if !power(depth) || depth > maxDepth || !power(cqes) || cqes > maxDepth {
		bad("depth %d and %d CQEs, want powers of two up to %d", depth, cqes, maxDepth)
	}
	if len(p.Shapes) < 1 || len(p.Shapes) > maxShapes {
		bad("%d shapes, want 1 to %d", len(p.Shapes), maxShapes)
	}
	big := 0
	for _, s := range p.Shapes {
		big = max(big, s.WQEBBs())
		switch {
		case s.Op != RDMAWrite && s.Op != RDMAWriteImm:
			bad("opcode %#x, want an RDMA write", uint8(s.Op))
		case s.Bytes < 1, s.Inline && s.Bytes > (maxSegments-2)*16-4:
			bad("a message of %d B", s.Bytes)
		}
	}
	if p.N < 1 || p.Warmup < 0 || p.Chain < 1 || p.Window < 1 || p.SignalEvery < 1 || p.Budget <= 0 {
		bad("%d messages after %d, %d a doorbell, %d in flight, a CQE for %d, %v: all must be positive", p.N, p.Warmup, p.Chain, p.Window, p.SignalEvery, p.Budget)
	}
	if most := p.SignalEvery + p.Chain - 1; most > p.Window {
		bad("%d in flight, want at least %d: %d a doorbell and a CQE for every %d would never come to it", p.Window, most, p.Chain, p.SignalEvery)
	} else if most*big > depth {
		bad("%d WQEBBs, want at least %d", depth, most*big)
	}
	return errors.Join(errs...)
}

// Case is a program against the image of a queue in memory, whose NIC checks
// every WQE when its doorbell arrives.
type Case struct {
	Name        string
	Depth, CQEs int // WQEBBs of the send queue, CQEs of the completion queue
	Start       int // WQEBBs and CQEs that went before: where counters stand
	Program

	Eager                 bool // the NIC reads the record also without a doorbell
	Hold                  int  // WQEBBs outstanding before the NIC completes any
	Mute                  bool // the NIC completes nothing: the poster must give up
	FailAt                int  // the message that ends in an error, from 1; 0 for none
	Syndrome              Syndrome
	Vendor                uint8
	Observed              bool // no order: a fault is told, and is no failure
	EarlyDoorbell, NoRoom bool // planted defects: the doorbell before its WQE; slots taken that are not free
}

// Planted reports whether the case has a defect that the NIC must catch.
func (c *Case) Planted() bool { return c.EarlyDoorbell || c.NoRoom }

// Why is how a run of the poster ended.
type Why uint8

// The ends, in the order of the C enumeration.
const (
	Done Why = iota
	WCError
	Stopped
	TimedOut
)

var whyNames = [...]string{"done", "error CQE", "stopped", "timed out"}

// String returns the end in words.
func (w Why) String() string { return whyNames[w] }

// Fault is what the NIC of an image found wrong.
type Fault uint8

// The faults, in the order of the C enumeration.
const (
	NoFault Fault = iota
	BadDoorbell
	LateRecord
	StaleControl
	StaleAddress
	StaleData
	StalePayload
	Overwritten
	QueueOverrun
	CQOverrun
)

var faultNames = [...]string{
	"", "a doorbell of another queue or index", "the record does not cover the doorbell", "the WQE's control segment was not there",
	"the WQE's address segment was not there", "the WQE's data segment was not there", "the payload that the WQE points to was not there",
	"a WQE changed before its completion", "more WQEs outstanding than the queue holds", "a CQE on one that was not polled",
}

// String says the fault in words; "" for none.
func (f Fault) String() string { return faultNames[f] }

// Report is what the poster told at its end.
type Report struct {
	Why               Why
	Posted, Completed int // messages
	Rings             int // doorbells
	Full              int // times that it waited for room
	Syndrome          Syndrome
	Vendor            uint8
	WQECounter        uint16        // of the error CQE
	Elapsed           time.Duration // from the first measured message to the end
	Issue, Done       []int64       // ns; of each doorbell with a window of 1: until it was stored, until the CQE
}

// Outcome is what poster and NIC of an image told, and what they left in memory.
type Outcome struct {
	Report
	Seen   int // doorbells that the NIC saw: several stores may be one to it
	Faults int
	Fault  Fault // the first
	// Message whose WQE was at fault, the 32-bit word, what was there and what should have been.
	Message   int
	Word      int
	Got, Want uint32

	sq, cq, target       []byte
	sendRecord, cqRecord [4]byte
}

// String says what was wrong, "" where nothing was.
func (o *Outcome) String() string {
	if o.Fault == NoFault {
		return ""
	}
	return fmt.Sprintf("%v: message %d, word %d is %#08x, want %#08x", o.Fault, o.Message, o.Word, o.Got, o.Want)
}

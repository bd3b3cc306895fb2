package verbs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gdisim/stage"
)

// Op is what one message does.
type Op int

// The operations, in the order of the C enumeration.
const (
	Write Op = iota
	WriteImm
	Send
	Read
	FetchAdd
	CmpSwap
)

var opNames = [...]string{Write: "write", WriteImm: "write-imm", Send: "send", Read: "read", FetchAdd: "fetch-add", CmpSwap: "cmp-swap"}

// String returns the operation's name, "write-imm".
func (o Op) String() string { return opNames[o] }

// TwoSided reports whether the target takes part with receives.
func (o Op) TwoSided() bool { return o == WriteImm || o == Send }

// Loop is how a batch's messages follow each other.
type Loop int

// The loops, in the order of the C enumeration.
const (
	Latency  Loop = iota // one after the other, each waited for
	PingPong             // writes in both directions, in turn
	Rate                 // a window of writes kept full
	Receive              // the target's part of two-sided operations
)

// Pages is what memory is made of.
type Pages int

// The kinds of pages.
const (
	SmallPages Pages = iota
	TransparentHuge
	HugeTLB
)

var pageNames = [...]string{SmallPages: "4KiB-pages", TransparentHuge: "transparent-huge", HugeTLB: "hugetlb"}

// String returns the kind's name, "4KiB-pages".
func (p Pages) String() string { return pageNames[p] }

// Config says what to open.
type Config struct {
	Device string // "" for the first with an active port
	Port   int    // 0 for 1
	GID    string // by value, "fe80::1" or hex groups; "" for the port's best
	QPs    int
	Depth  int // of each send queue
	Bytes  int // largest message
	Pages  Pages
	Inline int // asked for; Info says what the device agreed to
}

// Address is what the other end must know. It travels as JSON.
type Address struct {
	QPNs []uint32 `json:"qpns"`
	PSN  uint32   `json:"psn"`
	RKey uint32   `json:"rkey"`
	Addr uint64   `json:"addr"`
	Room uint64   `json:"room"` // from source to destination, and on to the atomics
	LID  uint16   `json:"lid"`
	MTU  int      `json:"mtu"` // enumeration of the wire: 1 is 256 B
	GID  string   `json:"gid"` // hex
}

// Batch is one call into the loops. It travels as JSON, to the target.
type Batch struct {
	Loop    Loop          `json:"loop"`
	Op      Op            `json:"op"`
	N       int           `json:"n"`
	Warmup  int           `json:"warmup"`
	Bytes   int           `json:"bytes"`
	Inline  bool          `json:"inline"`
	Event   bool          `json:"event"`   // wait for the completion by an event
	Chain   int           `json:"chain"`   // WRs of one post
	Window  int           `json:"window"`  // messages in flight on each QP (Rate)
	QPs     int           `json:"qps"`     // used by Rate
	Timeout time.Duration `json:"timeout"` // without progress
	Seed    byte          `json:"seed"`    // of the payload's pattern

	Peer   Endpoint `json:"-"` // the other end where it is in this process
	Target bool     `json:"-"` // this end answers
}

// Times are the samples of a batch, each in nanoseconds from the call.
type Times struct {
	Post []int64 // ibv_post_send returned
	Seen []int64 // the target had the data; nil where nobody could look by the same clock
	Done []int64 // the completion was seen, or the ball was back

	Elapsed   time.Duration // of a Rate batch's measured part
	Messages  int
	Doorbells int // ibv_post_send calls
}

//go:generate go run github.com/golang/mock/mockgen@v1.6.0 -source=verbs.go -package=mock -destination=mock/endpoint.go

// Endpoint is one end of a connection. It belongs to one goroutine.
type Endpoint interface {
	Info() Info
	Address() Address
	// Connect brings the queue pairs to RTS towards remote.
	Connect(remote Address) error
	// Prepare fills the source with the batch's pattern, clears the destination
	// and posts receives.
	Prepare(b Batch) error
	// Run runs the batch. The error says why it ended early; what was measured
	// until then is in Times all the same.
	Run(ctx context.Context, b Batch) (Times, error)
	// Verify holds the destination against the pattern after a batch whose data
	// ended here.
	Verify(b Batch) error
	// Register times n registrations and deregistrations, in nanoseconds.
	Register(bytes int, p Pages, n int) (reg, dereg []int64, err error)
	// PortActive asks the device for the port's state.
	PortActive() bool
	// Close releases everything.
	Close()
}

// Setting is a named fact of a device.
type Setting struct{ Key, Value string }

// PortInfo is what the library says of a port.
type PortInfo struct {
	Number, MTU, MaxMTU int // MTU in bytes
	Active, Ethernet    bool
}

// Info is what the library says of a device.
type Info struct {
	Device    string
	Emulated  string // why its timings are not a NIC's; "" where they are
	Atomics   bool
	InlineMax int // of an open endpoint
	Depth     int // of an open endpoint
	GID       string
	Ports     []PortInfo
	Limits    []Setting
}

// The ends of a batch that callers tell apart.
var (
	// ErrTimeout: a message made no progress within its deadline.
	ErrTimeout = errors.New("no completion within the deadline")
	// ErrPortDown: the port is not active any more.
	ErrPortDown = errors.New("the port went down")
	// ErrCQOverrun: completions came faster than they were polled, the CQ is lost.
	ErrCQOverrun = errors.New("completion queue overrun")
	// ErrQPFatal: the device gave up a queue pair, or itself.
	ErrQPFatal = errors.New("queue pair in error")
	// ErrBadData: other bytes arrived than were sent.
	ErrBadData = errors.New("the data that arrived is not what was sent")
	// ErrNoRDMA: there is no device to run on.
	ErrNoRDMA = errors.New("no RDMA")
)

// WCError is a work completion with an error status.
type WCError struct {
	Status, Vendor int
	Text           string // the library's words
}

// Error says what the completion said.
func (e *WCError) Error() string {
	return fmt.Sprintf("work completion: %s (status %d, vendor error %#x)", e.Text, e.Status, e.Vendor)
}

// Statuses of a work completion that are findings.
const (
	statusRemoteAccess = 10
	statusRetry        = 12
	statusRNR          = 13
)

// Finding returns the finding that an error of a batch is, NoFinding for others.
func Finding(err error) stage.Finding {
	var wc *WCError
	switch {
	case errors.As(err, &wc) && wc.Status == statusRemoteAccess:
		return stage.RKeyViolation
	case errors.As(err, &wc) && wc.Status == statusRetry:
		return stage.RetryExceeded
	case errors.As(err, &wc) && wc.Status == statusRNR:
		return stage.RNR
	case errors.Is(err, ErrCQOverrun):
		return stage.CQOverflow
	}
	return stage.NoFinding
}

// emulated says why a device's times are not a NIC's, by its name and vendor.
func emulated(name string, vendor uint32) string {
	switch {
	case strings.HasPrefix(name, "siw"):
		return "software iWARP (" + name + "): the CPU is the NIC"
	case strings.HasPrefix(name, "rxe"), vendor == 0xffffff:
		return "soft-RoCE (" + name + "): the CPU is the NIC, there is no doorbell and no PCIe"
	}
	return ""
}

// pattern is byte i of a payload.
func pattern(seed byte, i int) byte { return seed ^ byte(i) ^ byte(i>>8)*31 ^ 0x5a }

// stamp is the last byte of message i, which a poller waits for. It is never 0
// and differs from that of the message before.
func stamp(i int) byte { return byte(i%255 + 1) }

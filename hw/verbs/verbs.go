package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// Signal is what tells the target that a write before it is complete.
type Signal int

// The signals, in the order of the C enumeration: none, 8 B written, a fetch-add.
const (
	NoSignal Signal = iota
	SignalWrite
	SignalAtomic
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

	NoBlueFlame bool // ring by the doorbell register alone, where Info.BlueFlame says that it can be told so
	DevX        bool // of mlx5: objects can be made by the device's own commands, on what Handles returns
	Extended    bool // completions are polled with their device times, where Info.Stamps says that it has them
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
	Every   int           `json:"every"`   // messages per CQE (Rate); 0 for 1
	Signal  Signal        `json:"signal"`  // what follows a Write of loop Latency in the same post
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

	// Of an extended endpoint on a device with time stamps: when the call was, by
	// the CPU's clock in ns, and the device's clock when the sender's CQE was
	// written and, for a two-sided operation whose target is in this process, the
	// receiver's. Clocks relate the two, read before the first and after the last.
	Call           []int64
	Stamp, Arrived []uint64
	Clocks         [2]Clocks

	Elapsed   time.Duration // of a Rate batch's measured part
	Messages  int
	Doorbells int // ibv_post_send calls
}

// Clocks is the device's clock between two reads of the CPU's, which is known to
// half the time between those. Half is below 0 where there was no reading.
type Clocks struct {
	CPU, Half int64 // ns
	Device    uint64
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

	BlueFlame bool   // the provider pushes single WQEs through BlueFlame, and can be told not to
	StampMask uint64 // bits of a completion's device time; 0 where there is none
	StampKHz  uint64 // ticks of it in a millisecond
}

// Stamps reports whether completions tell the device's time.
func (i *Info) Stamps() bool { return i.StampMask != 0 && i.StampKHz != 0 }

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

// blueFlame reports whether the device's provider is mlx5, which reads
// MLX5_SHUT_UP_BF when a device is opened; not where the user has set it already.
// The parts from Connect-IB on are mlx5's (rdma-core, providers/mlx5/mlx5.c).
func blueFlame(vendor, part uint32) bool {
	const mellanox, connectIB = 0x2c9, 4113
	_, set := os.LookupEnv("MLX5_SHUT_UP_BF")
	return vendor == mellanox && part >= connectIB && !set
}

// pattern is byte i of a payload.
func pattern(seed byte, i int) byte { return seed ^ byte(i) ^ byte(i>>8)*31 ^ 0x5a }

// stamp is the last byte of message i, which a poller waits for. It is never 0
// and differs from that of the message before.
func stamp(i int) byte { return byte(i%255 + 1) }

package cuda

import (
	"context"
	"errors"
	"time"

	"gdisim/sim"
)

// Why a device cannot be opened, or an experiment has no result.
var (
	// ErrAbsent means that this machine has no driver, no GPU or no right to it.
	ErrAbsent = errors.New("no GPU can be used here")
	// ErrRefused means that the driver or this program cannot do it; others can run.
	ErrRefused = errors.New("not possible here")
	// ErrWrong means that data or flags arrived other than they were sent.
	ErrWrong = errors.New("wrong data")
	// ErrLate means that the deadline passed and the kernel was ended.
	ErrLate = errors.New("past its deadline")
	// ErrMemory means that the GPU or the host has too little memory.
	ErrMemory = errors.New("out of memory")
	// ErrLost means that the GPU is of no more use to this process: a launch or an
	// ECC error, or a kernel that cannot be ended.
	ErrLost = errors.New("the GPU is lost")
)

// Ends reports whether an error ends the run, and not only its experiment.
func Ends(err error) bool { return errors.Is(err, ErrLost) }

// Kind is what an experiment runs.
type Kind int

// The kinds.
const (
	Samples  Kind = iota // a kernel of one thread that times each sample
	Polls                // blocks that poll
	Rate                 // blocks that post as fast as they go
	Ask                  // the GPU asks by a flag, a host thread answers
	Answer               // a host thread asks, the GPU answers
	Proxy                // blocks send descriptors to proxy threads
	Launch               // one launch
	Notice               // a kernel's last store until a waiter knows
	Copy                 // one copy
	Register             // pinning host memory, and undoing it
	Export               // a dma-buf of GPU memory
	PeerEcho             // two GPUs ask and answer by flags
	PeerCopy             // bytes into another GPU's memory
	Spin                 // an SM is busy for Delay: no samples, its clock
)

// Memory is where stores, loads and flags go.
type Memory int

// The memories.
const (
	GPU  Memory = iota
	Host        // pinned
	Peer        // of another GPU
)

// Background is traffic of the same GPU beside the measured kernel.
type Background int

// The backgrounds.
const (
	Quiet Background = iota
	CopyToHost
	CopyToGPU
	CopyBoth
	StoreHost // by CTAs
	LoadHost
	StoreGPU
)

// Backgrounds are the words for Background.
var Backgrounds = []string{"none", "copy-to-host", "copy-to-gpu", "copy-both", "store-host", "load-host", "store-gpu"}

// How an Answer's thread asks.
const (
	ByStore = iota
	ByStreamWrite
	ByCopiedWord
)

// How a proxy thread without work waits.
const (
	WaitPoll = iota
	WaitYield
	WaitSleep1us
	WaitSleep50us
	WaitFutex // woken by a thread that polls the ring
	WaitEventfd
)

// Until when a Launch is timed.
const (
	FirstStore = iota
	Sync
	GraphStore
	GraphSync
)

// NoticeBy are the ways to learn of a kernel's end, in the order of their numbers.
var NoticeBy = []string{"next-kernel", "stream-write", "stream-sync", "event-sync", "event-query", "copy", "blocking-event", "host-callback"}

// Directions of a Copy.
const (
	ToHost = iota
	ToGPU
)

// Experiment is one call into the device. Fields that a kind does not use are 0.
type Experiment struct {
	Kind   Kind
	Kernel string // of kernels.cu
	Answer string // PeerEcho: the other GPU's kernel
	N      int    // samples, or messages of each block
	Blocks int    // Samples, Ask, Answer: the last of so many works, which chooses its SM; 0 is 1
	Count  int    // stores before a fence, operations a sample, WQEs a doorbell, kernels of a graph
	Window int    // messages in flight
	Gap    int    // clocks of rest before a sample
	Bytes  int64
	Memory Memory
	Offset int64         // of the target, or of the one queue, in its memory
	Own    bool          // Polls: a line for each block
	Delay  time.Duration // Ask: until the first look; Notice: the kernel's length
	// How is one of the constants of the kind: By..., Wait..., FirstStore..., a
	// number of NoticeBy, ToHost or ToGPU.
	How        int
	Wait       int // Proxy: one of Wait...; Copy: 1 to poll for the last byte
	Background Background
	CTAs       int // of the background
	Proxies    int
	Competing  int           // Proxy: spinning threads on the first proxy's core
	Huge       bool          // Register: huge pages asked for
	Blocking   bool          // Launch, Notice: a context whose waits block
	Second     bool          // keep the second row
	Deadline   time.Duration // 0 for 10 s
}

// Times are what an experiment measured.
type Times struct {
	Each []sim.Duration // samples; empty for a Rate
	// Second, where asked for: the stores before a fence, the call of a launch or
	// copy, the undoing of a Register.
	Second   []sim.Duration
	Hz       int64 // SM clock while it ran, 0 where no kernel was timed
	Elapsed  sim.Duration
	Messages int64 // in Elapsed
	Hits     int64 // Ask: answers found by the first look
}

// Fact is one fact of the device.
type Fact struct{ Key, Value string }

//go:generate go run github.com/golang/mock/mockgen@v1.6.0 -source=experiment.go -package=mock -destination=mock/device.go

// Device is a GPU. It is for one goroutine.
type Device interface {
	// Facts describe GPU and driver.
	Facts() []Fact
	// SMs is their number.
	SMs() int
	// Peer says why there is no second GPU to measure with; nil where there is.
	Peer() error
	// Run runs one experiment. The error wraps one of this package's, or is ctx's.
	Run(ctx context.Context, e Experiment) (Times, error)
	// Close gives everything back. After ErrLost only the end of the process can.
	Close()
}

// Options say which GPU, and which cores its host threads are pinned to.
type Options struct {
	GPU int // ordinal
	// Cores of the caller, of up to four proxies and of a watcher; missing ones are
	// not pinned.
	Cores []int
}

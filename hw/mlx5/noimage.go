//go:build !cgo || !linux

package mlx5

import (
	"context"
	"fmt"

	"gdisim/hw/verbs"
)

var errNoCgo = fmt.Errorf("%w: this gdisim was built without cgo (CGO_ENABLED=0) or not for Linux, so it can drive none: rebuild it with CGO_ENABLED=1 and a C compiler on Linux", ErrNoGPU)

// GPU is one GPU with the kernels loaded.
type GPU struct{ Name string }

// OpenGPU opens a GPU by its ordinal. The error wraps ErrNoGPU.
func OpenGPU(int) (*GPU, error) { return nil, errNoCgo }

// Close gives everything back.
func (g *GPU) Close() {}

// OnCPU runs the case with host threads as poster and NIC.
func (c *Case) OnCPU() (*Outcome, error) { return nil, errNoCgo }

// OnGPU runs the case with a GPU thread as poster.
func (c *Case) OnGPU(*GPU, bool) (*Outcome, error) { return nil, errNoCgo }

// Config says what to open.
type Config struct {
	Device, GID                         string
	Port                                int
	Bytes, Depth, CQEs, Samples         int
	QueuesInGPU, PayloadInGPU, CPURings bool
	GPU                                 *GPU
}

// Endpoint is the initiating end of a connection.
type Endpoint struct{ verbs.Endpoint }

// Available says why no queue can be made on a device. The error wraps
// verbs.ErrNoRDMA.
func Available() error { return verbs.Available() }

// Open makes a queue pair on a device. The error wraps verbs.ErrNoRDMA.
func Open(Config) (*Endpoint, error) { return nil, verbs.Available() }

// How says how the parts of the queue pair were registered.
func (e *Endpoint) How() []string { return nil }

// Post runs a program of one shape.
func (e *Endpoint) Post(context.Context, Program) (Report, error) {
	return Report{}, verbs.ErrNoRDMA
}

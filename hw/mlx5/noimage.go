//go:build !cgo || !linux

package mlx5

import "fmt"

var errNoCgo = fmt.Errorf("%w: this gdisim was built without cgo or not for Linux, so it can drive none: build it with CGO_ENABLED=1 and a C compiler", ErrNoGPU)

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

//go:build !cgo || !linux

package verbs

import "fmt"

var errNoCgo = fmt.Errorf("%w: this gdisim was built without cgo (CGO_ENABLED=0) or not for Linux, so it cannot open libibverbs: rebuild it with CGO_ENABLED=1 and a C compiler on Linux", ErrNoRDMA)

// Library says why the library cannot be opened; nil where it can.
func Library() error { return errNoCgo }

// Available says why no device can be opened. The error wraps ErrNoRDMA.
func Available() error { return errNoCgo }

// Describe asks the library what a device is and can.
func Describe(string) (Info, error) { return Info{}, errNoCgo }

// Open opens a device and makes its queue pairs, not yet connected.
func Open(Config) (Endpoint, error) { return nil, errNoCgo }

//go:build !cgo || !linux

package cuda

import "fmt"

// Open says that this program cannot open a GPU.
func Open(Options) (Device, error) {
	return nil, fmt.Errorf("%w: this gdisim was built without cgo (CGO_ENABLED=0) or not for Linux, so it cannot open the driver: rebuild it with CGO_ENABLED=1 and a C compiler on Linux", ErrAbsent)
}

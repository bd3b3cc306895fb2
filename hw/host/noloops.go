//go:build !cgo || !linux

package host

import (
	"context"
	"errors"
)

const (
	clock = iota
	sysCall
	yield
	fenceFull
	fenceSt
	fenceLd
	sfence
	xadd
	ntStore
	wbStore
	pause
	copy4k
	eventRead
	wake
	timer
	nanosleep
	ctxSwitch
	yieldTwo
	line
	gaps
	lock
)

const (
	futex = iota
	event
	pipe
	epoll
	condvar
)

const (
	small = iota
	thp
	hugetlb
)

var errNoLoops = errors.New("this gdisim was built without cgo (CGO_ENABLED=0) or not for Linux, so it has no timed loops: rebuild it with CGO_ENABLED=1 and a C compiler on Linux")

// Available says why nothing can be measured; nil where it can.
func Available() error { return errNoLoops }

func loop(context.Context, *experiment) (ns, call []int64, err error) { return nil, nil, errNoLoops }

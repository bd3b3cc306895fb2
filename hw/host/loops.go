//go:build cgo && linux

package host

// #cgo CFLAGS: -O2 -pthread
// #cgo LDFLAGS: -pthread
// #include <stdlib.h>
// #include "loops.h"
import "C"

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// What each experiment runs, by the C enumerations.
const (
	clock     = C.HOST_CLOCK
	sysCall   = C.HOST_SYSCALL
	yield     = C.HOST_YIELD
	fenceFull = C.HOST_FENCE_FULL
	fenceSt   = C.HOST_FENCE_STORE
	fenceLd   = C.HOST_FENCE_LOAD
	sfence    = C.HOST_SFENCE
	xadd      = C.HOST_XADD
	ntStore   = C.HOST_NT_STORE
	wbStore   = C.HOST_STORE
	pause     = C.HOST_PAUSE
	copy4k    = C.HOST_MEMCPY
	eventRead = C.HOST_EVENTFD
	wake      = C.HOST_WAKE
	timer     = C.HOST_TIMER
	nanosleep = C.HOST_NANOSLEEP
	ctxSwitch = C.HOST_SWITCH
	yieldTwo  = C.HOST_YIELD_TWO
	line      = C.HOST_LINE
	gaps      = C.HOST_GAPS
	lock      = C.HOST_MLOCK

	futex   = C.HOST_FUTEX
	event   = C.HOST_EVENT
	pipe    = C.HOST_PIPE
	epoll   = C.HOST_EPOLL
	condvar = C.HOST_CONDVAR

	small   = C.HOST_SMALL
	thp     = C.HOST_THP
	hugetlb = C.HOST_HUGETLB
)

// Available says why nothing can be measured; nil where it can.
func Available() error { return nil }

// loop runs one experiment and returns nanoseconds as the clock gave them, and
// for a wake-up the time that the call took on the waker.
func loop(ctx context.Context, e *experiment) (ns, call []int64, err error) {
	size := C.size_t(e.n) * 8
	out := (*C.int64_t)(C.malloc(size))
	out2 := (*C.int64_t)(C.malloc(size))
	stop := (*C.int)(C.calloc(1, C.size_t(unsafe.Sizeof(C.int(0)))))
	if out == nil || out2 == nil || stop == nil {
		return nil, nil, fmt.Errorf("no memory for %d samples", e.n)
	}
	defer func() {
		C.free(unsafe.Pointer(out))
		C.free(unsafe.Pointer(out2))
		C.free(unsafe.Pointer(stop))
	}()
	watched := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		atomic.StoreInt32((*int32)(unsafe.Pointer(stop)), 1)
		close(watched)
	})
	a := C.struct_host_args{
		what: C.int(e.what), cpu_a: C.int(e.cpuA), cpu_b: C.int(e.cpuB), n: C.int(e.n), reps: C.int(e.reps),
		means: C.int(e.means), pages: C.int(e.pages), load: C.int(e.load), idle_ns: C.int64_t(e.idle), slack_ns: C.int64_t(e.slack), bytes: C.int64_t(e.bytes),
		deadline_ns: C.int64_t(e.deadline), out: out, out2: out2, stop: stop,
	}
	got := int(C.host_run(&a))
	if !cancel() {
		<-watched // stop must not be freed under the one who sets it
	}
	if got < 0 {
		return nil, nil, syscall.Errno(-got)
	}
	ns = make([]int64, got)
	for i, v := range unsafe.Slice(out, e.n)[:got] {
		ns[i] = int64(v)
	}
	if e.what == wake {
		call = make([]int64, got)
		for i, v := range unsafe.Slice(out2, e.n)[:got] {
			call[i] = int64(v)
		}
	}
	return ns, call, ctx.Err()
}

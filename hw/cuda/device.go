//go:build cgo && linux

package cuda

// #cgo CFLAGS: -O2 -pthread
// #cgo LDFLAGS: -pthread -ldl
// #include <stdlib.h>
// #include "device.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"gdisim/sim"
)

const library = "libcuda.so.1"

// Open takes a GPU, with all the memory that the experiments use.
func Open(o Options) (Device, error) { return open(library, o) }

type device struct {
	c     *C.struct_gd_device
	ptx   *C.char
	cores []int
}

func open(library string, o Options) (*device, error) {
	name, text := C.CString(library), C.CString(ptx)
	defer C.free(unsafe.Pointer(name))
	why := make([]byte, 400)
	var absent C.int
	c := C.gd_open(name, C.int(o.GPU), text, &absent, (*C.char)(unsafe.Pointer(&why[0])), C.size_t(len(why)))
	if c == nil {
		C.free(unsafe.Pointer(text))
		reason := C.GoString((*C.char)(unsafe.Pointer(&why[0])))
		if absent != 0 {
			return nil, fmt.Errorf("%w: %s", ErrAbsent, reason)
		}
		return nil, errors.New(reason)
	}
	return &device{c: c, ptx: text, cores: o.Cores}, nil
}

func (d *device) Close() {
	if d.c != nil {
		C.gd_close(d.c)
		C.free(unsafe.Pointer(d.ptx))
		d.c = nil
	}
}

func (d *device) SMs() int { return int(C.gd_sms(d.c)) }

func (d *device) Peer() error {
	why := make([]byte, 200)
	if C.gd_peer(d.c, (*C.char)(unsafe.Pointer(&why[0])), C.size_t(len(why))) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrRefused, C.GoString((*C.char)(unsafe.Pointer(&why[0]))))
}

func (d *device) Facts() []Fact {
	var f [32]C.struct_gd_fact
	n := int(C.gd_facts(d.c, &f[0], C.int(len(f))))
	out := make([]Fact, n)
	for i := range out {
		out[i] = Fact{C.GoString(&f[i].key[0]), C.GoString(&f[i].value[0])}
	}
	return out
}

var codes = map[C.int]error{
	C.GD_E_REFUSED: ErrRefused, C.GD_E_WRONG: ErrWrong, C.GD_E_LATE: ErrLate, C.GD_E_MEMORY: ErrMemory, C.GD_E_LOST: ErrLost, C.GD_E_HUNG: ErrLost,
}

func (d *device) Run(ctx context.Context, e Experiment) (Times, error) {
	if err := ctx.Err(); err != nil {
		return Times{}, err
	}
	if e.Deadline <= 0 {
		e.Deadline = 10 * time.Second
	}
	if e.Kind != PeerCopy {
		e.Blocks = max(e.Blocks, 1)
	}
	room := max(e.N*e.Blocks, e.N, 1)
	a := (*C.struct_gd_exp)(C.calloc(1, C.sizeof_struct_gd_exp))
	out, out2 := (*C.int64_t)(C.calloc(C.size_t(room), 8)), (*C.int64_t)(C.calloc(C.size_t(room), 8))
	stop := (*C.int)(C.calloc(1, C.sizeof_int))
	kernel, answer := C.CString(e.Kernel), C.CString(e.Answer)
	defer func() {
		for _, p := range []unsafe.Pointer{unsafe.Pointer(a), unsafe.Pointer(out), unsafe.Pointer(out2), unsafe.Pointer(stop), unsafe.Pointer(kernel), unsafe.Pointer(answer)} {
			C.free(p)
		}
	}()
	if a == nil || out == nil || out2 == nil || stop == nil {
		return Times{}, fmt.Errorf("%w: of this process, for %d samples", ErrMemory, room)
	}
	a.what, a.kernel, a.kernel2 = C.int(e.Kind), kernel, answer
	a.blocks, a.n, a.count, a.window, a.gap = C.int(e.Blocks), C.int(e.N), C.int(e.Count), C.int(e.Window), C.int(e.Gap)
	if e.Own {
		a.stride = 128
	}
	a.delay_ns, a.bytes, a.offset, a.memory = C.int64_t(e.Delay), C.uint64_t(e.Bytes), C.uint64_t(e.Offset), C.int(e.Memory)
	a.background, a.ctas, a.how, a.wait = C.int(e.Background), C.int(e.CTAs), C.int(e.How), C.int(e.Wait)
	a.proxies, a.competing, a.huge, a.blocking = C.int(e.Proxies), C.int(e.Competing), cbool(e.Huge), cbool(e.Blocking)
	for i := range a.cpus {
		a.cpus[i] = -1
		if i < len(d.cores) {
			a.cpus[i] = C.int(d.cores[i])
		}
	}
	a.deadline_ns, a.stop, a.out, a.max = C.int64_t(e.Deadline), stop, out, C.int(room)
	if e.Second || e.Kind == Register {
		a.out2 = out2
	}
	watched := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		atomic.StoreInt32((*int32)(unsafe.Pointer(stop)), 1)
		close(watched)
	})
	n := C.gd_run(d.c, a)
	if !cancel() {
		<-watched // stop must not be freed under the one who sets it
	}
	if n < 0 {
		if err := ctx.Err(); err != nil && n != C.GD_E_HUNG {
			return Times{}, err
		}
		return Times{}, fmt.Errorf("%w: %s", codes[n], C.GoString(&a.err[0]))
	}
	return Times{
		Each: durations(out, int(n)), Second: durations(out2, int(a.n2)), Hz: int64(a.hz), Elapsed: sim.Duration(a.elapsed_ps),
		Messages: int64(a.messages), Hits: int64(a.hits),
	}, nil
}

func durations(p *C.int64_t, n int) []sim.Duration {
	if n == 0 {
		return nil
	}
	out := make([]sim.Duration, n)
	for i, v := range unsafe.Slice(p, n) {
		out[i] = sim.Duration(v)
	}
	return out
}

func cbool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

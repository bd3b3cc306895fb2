//go:build cgo && linux

package mlx5

// #cgo CFLAGS: -O2
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "gpu.h"
// #include "twin.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// image is a queue pair's memory, and what its poster and NIC need beside it.
type image struct {
	c           *Case
	host        *arena // words, reports, structures; the queues too unless gpu
	queues      *arena // what the poster writes and the NIC reads
	run         *C.struct_gm_run
	nic         *C.struct_gm_nic
	stop, quit  *C.uint32_t
	sq, cq, src region
	record      region // of the queue pair, then of the completion queue
	target      region
	issue, done region // samples, 8 B each
}

// arena hands out pieces of one block of memory. Where it is the GPU's, data is a
// mirror in this process.
type arena struct {
	at   uint64
	data []byte
	used int
	gpu  bool // data is a mirror
}

// region is a piece of an arena.
type region struct {
	a       *arena
	at, len int
}

func (a *arena) take(n int) region {
	const align = 256
	r := region{a, (a.used + align - 1) / align * align, n}
	a.used = r.at + n
	return r
}

func (r region) addr() uint64 { return r.a.at + uint64(r.at) }

// bytes is the region where this process can read it, or a's mirror of it.
func (r region) bytes() []byte { return r.a.data[r.at : r.at+r.len] }

func ptr[T any](r region) *T { return (*T)(unsafe.Pointer(&r.bytes()[0])) }

// need is how much room the parts of a case take together, generously.
func (c *Case) need() int {
	return (2*c.Depth+c.CQEs)*WQEBB + 2*slots*imageStride + 2*8*c.N + 64<<10
}

// lay places the case in host and queues. Both have data: queues that only a GPU
// reaches have a mirror here, which is copied.
func (c *Case) lay(host, queues *arena) *image {
	m := &image{c: c, host: host, queues: queues}
	m.sq, m.cq = queues.take(c.Depth*WQEBB), queues.take(c.CQEs*WQEBB)
	shadow := queues.take(c.Depth * WQEBB)
	m.record, m.src, m.target = queues.take(512), queues.take(slots*imageStride), queues.take(slots*imageStride)
	doorbell := queues.take(8)
	m.issue, m.done = queues.take(8*c.N), queues.take(8*c.N)
	mailbox := host.take(8)
	run, report, stop := host.take(C.sizeof_struct_gm_run), host.take(C.sizeof_struct_gm_report), host.take(4)
	nic, quit := queues.take(C.sizeof_struct_gm_nic), queues.take(4)
	m.run, m.nic = ptr[C.struct_gm_run](run), ptr[C.struct_gm_nic](nic)
	m.stop, m.quit = ptr[C.uint32_t](stop), ptr[C.uint32_t](quit)

	copy(m.cq.bytes(), emptyCQ(c.CQEs))
	for s := range slots {
		for j := range imageStride {
			m.src.bytes()[s*imageStride+j] = imageByte(s, j)
		}
	}
	r, n := m.run, m.nic
	p8 := func(r region) *C.uint8_t { return (*C.uint8_t)(pointer(r.addr())) }
	p32 := func(r region, off int) *C.uint32_t { return (*C.uint32_t)(pointer(r.addr() + uint64(off))) }
	p64 := func(r region) *C.uint64_t { return (*C.uint64_t)(pointer(r.addr())) }
	r.q.sq, r.q.cq, r.q.record, r.q.cq_record, r.q.doorbell = p8(m.sq), p8(m.cq), p32(m.record, 0), p32(m.record, 256), p64(doorbell)
	r.q.qpn, r.q.wqebbs, r.q.cqes = imageQPN, C.uint32_t(c.Depth), C.uint32_t(c.CQEs)
	r.q.start, r.q.cq_start = C.uint32_t(c.Start), C.uint32_t(c.Start)
	sent, polled := Record(uint32(c.Start)), ConsumerRecord(uint32(c.Start))
	copy(m.record.bytes()[4*SendRecord:], sent[:])
	copy(m.record.bytes()[256:], polled[:])
	c.fill(r)
	r.local, r.remote, r.stride, r.lkey, r.rkey = imageLocal, imageRemote, imageStride, imageLKey, imageRKey
	r.source, r.stamp, r.mailbox, r.stop = p8(m.src), 1, p64(mailbox), p32(stop, 0)
	if c.Window == 1 {
		r.issue, r.done = p64(m.issue), p64(m.done)
	}
	r.report = (*C.struct_gm_report)(pointer(report.addr()))
	switch {
	case c.EarlyDoorbell:
		r.plant = C.GM_PLANT_EARLY_DOORBELL
	case c.NoRoom:
		r.plant = C.GM_PLANT_NO_ROOM_CHECK
	}
	n.r = *r
	n.shadow, n.target, n.quit = p8(shadow), p8(m.target), p32(quit, 0)
	n.hold, n.fail_at, n.fail_syndrome, n.fail_vendor = C.uint32_t(c.Hold), C.uint32_t(c.FailAt), C.uint32_t(c.Syndrome), C.uint32_t(c.Vendor)
	if c.Mute {
		n.hold = math.MaxUint32
	}
	n.eager = flag(c.Eager)
	n.producer, n.fetched, n.retired = r.q.start, r.q.start, r.q.start
	return m
}

// pointer makes a C pointer of an address that may be another device's.
func pointer(at uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// fill writes the program into r. Its ticks are nanoseconds.
func (p *Program) fill(r *C.struct_gm_run) {
	for i, s := range p.Shapes {
		r.shape[i] = C.struct_gm_shape{opcode: C.uint32_t(s.Op), inlined: flag(s.Inline), bytes: C.uint32_t(s.Bytes), flags: C.uint32_t(s.Flags)}
	}
	r.shapes, r.n, r.warmup = C.uint32_t(len(p.Shapes)), C.uint32_t(p.N), C.uint32_t(p.Warmup)
	r.chain, r.window, r.signal_every = C.uint32_t(p.Chain), C.uint32_t(p.Window), C.uint32_t(p.SignalEvery)
	r.order, r.with_record = C.uint32_t(p.Order), flag(p.Record)
	if p.CPURings {
		r.ringer = C.GM_RING_CPU
	}
	r.budget = C.uint64_t(p.Budget)
}

func flag(b bool) C.uint32_t {
	if b {
		return 1
	}
	return 0
}

// report reads what the poster told; issue and done hold its samples in ticks.
func report(r *C.struct_gm_report, issue, done []byte) Report {
	out := Report{
		Why: Why(r.why), Posted: int(r.posted), Completed: int(r.completed), Rings: int(r.rings), Full: int(r.full),
		Syndrome: Syndrome(r.syndrome), Vendor: uint8(r.vendor), WQECounter: uint16(r.wqe_counter),
	}
	// Both clocks ran over the same span: their ratio is the GPU's clock.
	ticks, ns := float64(r.ticks[1]-r.ticks[0]), float64(r.ns[1]-r.ns[0])
	out.Elapsed = time.Duration(ns)
	for i := range int(r.samples) {
		out.Issue = append(out.Issue, int64(float64(binary.NativeEndian.Uint64(issue[8*i:]))*ns/ticks))
		out.Done = append(out.Done, int64(float64(binary.NativeEndian.Uint64(done[8*i:]))*ns/ticks))
	}
	return out
}

func (m *image) outcome() *Outcome {
	n := m.nic
	return &Outcome{
		Report: report(m.run.report, m.issue.bytes(), m.done.bytes()), Seen: int(n.bells), Faults: int(n.faults), Fault: Fault(n.fault), Message: int(n.fault_message),
		Word: int(n.fault_word), Got: uint32(n.fault_got), Want: uint32(n.fault_want),
		sq: m.sq.bytes(), cq: m.cq.bytes(), target: m.target.bytes(),
		sendRecord: [4]byte(m.record.bytes()[4*SendRecord:]), cqRecord: [4]byte(m.record.bytes()[256:]),
	}
}

// beside runs the NIC, and the CPU thread that rings where there is one, while
// post runs.
func (m *image) beside(nic bool, post func() error) error {
	quit := (*C.uint32_t)(C.calloc(1, 4))
	defer C.free(unsafe.Pointer(quit))
	var wg sync.WaitGroup
	if m.c.CPURings {
		wg.Go(func() { C.gm_twin_ring(m.run, quit) })
	}
	if nic {
		wg.Go(func() { C.gm_twin_nic(m.nic) })
	}
	err := post()
	atomic.StoreUint32((*uint32)(quit), 1)
	atomic.StoreUint32((*uint32)(m.quit), 1)
	wg.Wait()
	return err
}

// OnCPU runs the case with host threads as poster and NIC.
func (c *Case) OnCPU() (*Outcome, error) {
	if err := c.check(c.Depth, c.CQEs); err != nil {
		return nil, err
	}
	p := C.calloc(1, C.size_t(c.need()))
	defer C.free(p)
	a := &arena{at: uint64(uintptr(p)), data: unsafe.Slice((*byte)(p), c.need())}
	m := c.lay(a, a)
	err := m.beside(true, func() error { C.gm_twin_post(m.run); return nil })
	return m.outcome().keep(), err
}

// keep copies what lies in the image, which goes away.
func (o *Outcome) keep() *Outcome {
	for _, b := range []*[]byte{&o.sq, &o.cq, &o.target} {
		*b = append([]byte(nil), *b...)
	}
	return o
}

// GPU is one GPU with the kernels loaded. It belongs to one goroutine.
type GPU struct {
	c    *C.struct_gm_gpu
	Name string
}

// OpenGPU opens a GPU by its ordinal. The error wraps ErrNoGPU where this machine
// has none that can be used.
func OpenGPU(ordinal int) (*GPU, error) {
	text, name := C.CString(kernels), (*C.char)(C.calloc(1, C.GM_ERR))
	why := (*C.char)(C.calloc(1, C.GM_ERR))
	defer func() { C.free(unsafe.Pointer(text)); C.free(unsafe.Pointer(name)); C.free(unsafe.Pointer(why)) }()
	var absent C.int
	g := C.gm_gpu_open(C.int(ordinal), text, name, C.GM_ERR, &absent, why)
	if g == nil {
		err := errors.New(C.GoString(why))
		if absent != 0 {
			err = fmt.Errorf("%w: %w", ErrNoGPU, err)
		}
		return nil, err
	}
	return &GPU{g, C.GoString(name)}, nil
}

// Close gives everything back, unless a kernel hangs.
func (g *GPU) Close() { C.gm_gpu_close(g.c); g.c = nil }

// try calls f with room for its reason; below 0 means that it failed.
func try(f func(err *C.char) C.int) (int, error) {
	why := (*C.char)(C.calloc(1, C.GM_ERR))
	defer C.free(unsafe.Pointer(why))
	if n := f(why); n >= 0 {
		return int(n), nil
	}
	return -1, errors.New(C.GoString(why))
}

// pinned takes host memory that the GPU reaches by the same address.
func (g *GPU) pinned(n int) (*arena, func(), error) {
	var p unsafe.Pointer
	_, err := try(func(why *C.char) C.int {
		if p = C.gm_gpu_host(g.c, C.size_t(n), why); p == nil {
			return -1
		}
		return 0
	})
	if err != nil {
		return nil, nil, err
	}
	return &arena{at: uint64(uintptr(p)), data: unsafe.Slice((*byte)(p), n)}, func() { C.gm_gpu_host_free(g.c, p) }, nil
}

// device takes GPU memory; its data is a mirror in this process.
func (g *GPU) device(n int) (*arena, func(), error) {
	var at C.uint64_t
	_, err := try(func(why *C.char) C.int {
		if at = C.gm_gpu_alloc(g.c, C.size_t(n), why); at == 0 {
			return -1
		}
		return 0
	})
	if err != nil {
		return nil, nil, err
	}
	p := C.calloc(1, C.size_t(n))
	return &arena{at: uint64(at), data: unsafe.Slice((*byte)(p), n), gpu: true}, func() { C.gm_gpu_free(g.c, at); C.free(p) }, nil
}

func (g *GPU) memory(n int, inGPU bool) (*arena, func(), error) {
	if inGPU {
		return g.device(n)
	}
	return g.pinned(n)
}

// grace is what a kernel may take beyond its budget, and again once it was told
// to stop.
const grace = 10 * time.Second

// wait launches a kernel and waits until it has ended, by deadline.
func (g *GPU) wait(kernel C.int, r *C.struct_gm_run, nic uint64, stop *C.uint32_t, within time.Duration) error {
	if _, err := try(func(why *C.char) C.int { return C.gm_gpu_start(g.c, kernel, r, C.uint64_t(nic), why) }); err != nil {
		return err
	}
	told := false
	for start := time.Now(); ; time.Sleep(50 * time.Microsecond) {
		done, err := try(func(why *C.char) C.int { return C.gm_gpu_done(g.c, why) })
		if err != nil || done == 1 {
			return err
		}
		switch late := time.Since(start) - within; {
		case late > grace:
			return ErrHang
		case late > 0 && !told:
			atomic.StoreUint32((*uint32)(stop), 1)
			told = true
		}
	}
}

// within bounds how long the whole program may take: the budget on a slow clock,
// and for each message a multiple of what a slow GPU needs.
func (p *Program) within() time.Duration {
	return ticksPerNS*p.Budget + time.Duration(p.N+p.Warmup)*200*time.Microsecond
}

// ticksPerNS is at least what a GPU's clock counts in a nanosecond: it turns a
// budget into ticks, generously.
const ticksPerNS = 4

// OnGPU runs the case with a GPU thread as poster: against a CPU thread as NIC on
// queues in pinned host memory, or with queuesInGPU against a second GPU thread,
// since no CPU thread can be asked to read GPU memory.
func (c *Case) OnGPU(g *GPU, queuesInGPU bool) (*Outcome, error) {
	if err := c.check(c.Depth, c.CQEs); err != nil {
		return nil, err
	}
	if queuesInGPU && c.CPURings {
		return nil, errors.New("a CPU thread cannot ring a doorbell in GPU memory")
	}
	host, free, err := g.pinned(c.need())
	if err != nil {
		return nil, err
	}
	defer free()
	queues, kernel := host, C.int(C.GM_POST)
	if queuesInGPU {
		var free func()
		if queues, free, err = g.device(c.need()); err != nil {
			return nil, err
		}
		defer free()
		kernel = C.GM_IMAGE
	}
	m := c.lay(host, queues)
	m.run.budget *= ticksPerNS
	nic := uint64(0)
	if queuesInGPU {
		nic = queues.at + uint64(uintptr(unsafe.Pointer(m.nic))-uintptr(unsafe.Pointer(&queues.data[0])))
		if err := g.to(queues); err != nil {
			return nil, err
		}
	}
	err = m.beside(!queuesInGPU, func() error {
		return g.wait(kernel, m.run, nic, m.stop, c.within())
	})
	if err == nil && queuesInGPU {
		err = g.from(queues)
	}
	if err != nil {
		return nil, err
	}
	return m.outcome().keep(), nil
}

func (g *GPU) to(a *arena) error {
	if !a.gpu {
		return nil
	}
	_, err := try(func(why *C.char) C.int {
		return C.gm_gpu_to(g.c, C.uint64_t(a.at), unsafe.Pointer(&a.data[0]), C.size_t(len(a.data)), why)
	})
	return err
}

func (g *GPU) from(a *arena) error {
	if !a.gpu {
		return nil
	}
	_, err := try(func(why *C.char) C.int {
		return C.gm_gpu_from(g.c, unsafe.Pointer(&a.data[0]), C.uint64_t(a.at), C.size_t(len(a.data)), why)
	})
	return err
}

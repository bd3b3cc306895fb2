//go:build cgo && linux

package mlx5

// #include <stdlib.h>
// #include <unistd.h>
// #include "gpu.h"
// #include "rdma.h"
// #include "twin.h"
import "C"

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gdisim/hw/verbs"
)

var loadRDMA = sync.OnceValue(func() error {
	_, err := try(func(why *C.char) C.int { return C.gm_rdma_load(why) })
	if err != nil {
		return fmt.Errorf("%w: %w", verbs.ErrNoRDMA, err)
	}
	return nil
})

// Available says why no queue can be made on a device: no library, no device. nil
// where there may be. The error wraps verbs.ErrNoRDMA.
func Available() error {
	if err := loadRDMA(); err != nil {
		return err
	}
	return verbs.Available()
}

// machine is what posts: a GPU, or a CPU thread in its place.
type machine interface {
	// memory takes n bytes, of the GPU's if asked for and there is one.
	memory(n int, inGPU bool) (*arena, func(), error)
	// dmabuf exports memory of the GPU; the descriptor is the caller's.
	dmabuf(a *arena) (int, error)
	// register is the address at which it reaches a register of this process.
	register(reg unsafe.Pointer) (uint64, func(), error)
	// to and from copy what memory's data mirrors.
	to(a *arena) error
	from(a *arena) error
	// post runs the poster to its end.
	post(r *C.struct_gm_run, stop *C.uint32_t, within time.Duration) error
	ticks() C.uint64_t // in a nanosecond, at least
}

// cpu is a host thread as poster.
type cpu struct{}

func (cpu) memory(n int, _ bool) (*arena, func(), error) {
	p := C.aligned_alloc(gpuPage, C.size_t((n+gpuPage-1)/gpuPage*gpuPage))
	if p == nil {
		return nil, nil, fmt.Errorf("no memory for %d bytes", n)
	}
	data := unsafe.Slice((*byte)(p), n)
	clear(data)
	return &arena{at: uint64(uintptr(p)), data: data}, func() { C.free(p) }, nil
}

func (cpu) dmabuf(*arena) (int, error) { return -1, nil }

func (cpu) register(reg unsafe.Pointer) (uint64, func(), error) {
	return uint64(uintptr(reg)), func() {}, nil
}

func (cpu) to(*arena) error   { return nil }
func (cpu) from(*arena) error { return nil }

func (cpu) post(r *C.struct_gm_run, _ *C.uint32_t, _ time.Duration) error {
	C.gm_twin_post(r)
	return nil
}

func (cpu) ticks() C.uint64_t { return 1 }

func (g *GPU) dmabuf(a *arena) (int, error) {
	if !a.gpu {
		return -1, nil
	}
	return try(func(why *C.char) C.int { return C.gm_gpu_dmabuf(g.c, C.uint64_t(a.at), C.size_t(len(a.data)), why) })
}

const hostPage = 4096

func (g *GPU) register(reg unsafe.Pointer) (uint64, func(), error) {
	off := uintptr(reg) % hostPage
	page := unsafe.Add(reg, -int(off))
	var at C.uint64_t
	mapAs := func(io C.int) error {
		_, err := try(func(why *C.char) C.int {
			if at = C.gm_gpu_map(g.c, page, hostPage, io, why); at == 0 {
				return -1
			}
			return 0
		})
		return err
	}
	err := mapAs(1)
	if err != nil && mapAs(0) == nil { // no device's page: a NIC of software
		err = nil
	}
	if err != nil {
		return 0, nil, fmt.Errorf("the GPU cannot map the doorbell's page (driver option NVreg_RegistryDwords=PeerMappingOverride=1): %w", err)
	}
	return uint64(at) + uint64(off), func() { C.gm_gpu_unmap(g.c, page) }, nil
}

func (g *GPU) post(r *C.struct_gm_run, stop *C.uint32_t, within time.Duration) error {
	return g.wait(C.GM_POST, r, 0, stop, within)
}

func (g *GPU) ticks() C.uint64_t { return ticksPerNS }

// Endpoint is the initiating end of a connection, whose queue pair a GPU thread
// drives. It belongs to one goroutine.
type Endpoint struct {
	verbs.Endpoint // of the device: memory for Prepare, port and GID

	c        Config
	m        machine
	h        verbs.Handles
	undo     []func()
	host     *arena
	payload  *arena
	queues   *arena
	q        C.struct_gm_queue // by the poster's addresses
	doorbell unsafe.Pointer    // by this process's
	sq, cq   region
	record   region
	run      region
	report   region
	stop     region
	mailbox  region
	src      region
	samples  region
	lkey     C.uint32_t
	qp       unsafe.Pointer
	qpn      uint32
	remote   verbs.Address
	how      []string
	dead     bool // a run left the queue pair in error, or a kernel on it
}

// Config says what to open.
type Config struct {
	Device, GID  string
	Port         int
	Bytes        int  // largest message
	Depth        int  // WQEBBs of the send queue, a power of two
	CQEs         int  // of the completion queue, a power of two
	Samples      int  // most messages of a run that are timed
	QueuesInGPU  bool // work queue, records and completion queue
	PayloadInGPU bool
	CPURings     bool // the doorbell record is in host memory then
	GPU          *GPU // nil: a CPU thread posts
}

// gpuPage is the granularity at which GPU memory is exported, and what the
// parts of a queue pair begin on.
const gpuPage = 64 << 10

// Open makes a queue pair on a device, not yet connected. The error wraps
// verbs.ErrNoRDMA where there is no device.
func Open(c Config) (_ *Endpoint, err error) {
	if err := Available(); err != nil {
		return nil, err
	}
	power := func(n int) bool { return n > 0 && n&(n-1) == 0 && n <= 1<<15 }
	if !power(c.Depth) || !power(c.CQEs) || c.Bytes < 1 || c.Samples < 1 {
		return nil, fmt.Errorf("depth %d, %d CQEs, %d bytes, %d samples: want powers of two up to %d, and something to send", c.Depth, c.CQEs, c.Bytes, c.Samples, 1<<15)
	}
	e := &Endpoint{c: c, m: cpu{}}
	if c.GPU != nil {
		e.m = c.GPU
	}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	e.Endpoint, err = verbs.Open(verbs.Config{Device: c.Device, GID: c.GID, Port: c.Port, QPs: 1, Depth: 1, Bytes: c.Bytes, DevX: true})
	if err != nil {
		return nil, err
	}
	e.h, _ = verbs.HandlesOf(e.Endpoint)
	for _, step := range []func() error{e.lay, e.makeQueues} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Info().Device, err)
		}
	}
	return e, nil
}

func (e *Endpoint) take(n int, inGPU bool) (*arena, error) {
	if inGPU { // whole pages of the GPU's, which can be exported
		n = (n + 2<<20 - 1) &^ (2<<20 - 1)
	}
	a, free, err := e.m.memory(n, inGPU)
	if err == nil {
		e.undo = append(e.undo, free)
	}
	return a, err
}

// lay takes the memory.
func (e *Endpoint) lay() (err error) {
	c := &e.c
	up := func(n int) int { return (n + gpuPage - 1) / gpuPage * gpuPage }
	if e.host, err = e.take(gpuPage, false); err != nil {
		return err
	}
	e.run, e.report = e.host.take(C.sizeof_struct_gm_run), e.host.take(C.sizeof_struct_gm_report)
	e.stop, e.mailbox = e.host.take(4), e.host.take(8)
	queues := up(c.Depth*WQEBB) + up(c.CQEs*WQEBB) + gpuPage + up(16*c.Samples)
	if e.queues, err = e.take(queues, c.QueuesInGPU); err != nil {
		return err
	}
	e.sq = e.queues.take(up(c.Depth * WQEBB))
	e.cq = e.queues.take(up(c.CQEs * WQEBB))
	records := e.queues.take(gpuPage)
	e.samples = e.queues.take(up(16 * c.Samples))
	e.record = records
	if c.CPURings {
		e.record = e.host.take(512)
	}
	if e.payload, err = e.take(up(c.Bytes), c.PayloadInGPU); err != nil {
		return err
	}
	e.src = e.payload.take(c.Bytes)
	copy(e.cq.bytes(), emptyCQ(c.CQEs))
	return e.m.to(e.queues)
}

// umem registers an arena for queues: GPU memory by dma-buf, or where that is
// refused by its address, which a peer memory module of the kernel may serve.
func (e *Endpoint) umem(a *arena, what string) (id uint32, err error) {
	var u unsafe.Pointer
	var n C.uint32_t
	err = e.register(a, what, func(fd int) error {
		_, err := try(func(why *C.char) C.int {
			return C.gm_umem_reg(e.h.Context, C.uint64_t(a.at), C.size_t(len(a.data)), C.int(fd), &u, &n, why)
		})
		return err
	})
	if err == nil {
		e.undo = append(e.undo, func() { C.gm_umem_dereg(u) })
	}
	return uint32(n), err
}

func (e *Endpoint) register(a *arena, what string, reg func(fd int) error) error {
	if !a.gpu {
		e.how = append(e.how, what+" in host memory")
		return reg(-1)
	}
	fd, err := e.m.dmabuf(a)
	if err == nil {
		err = reg(fd)
		C.close(C.int(fd)) // the device keeps its own reference
		if err == nil {
			e.how = append(e.how, what+" in GPU memory by dma-buf")
			return nil
		}
	}
	if again := reg(-1); again != nil {
		return fmt.Errorf("GPU memory cannot be registered: %w; by its address (nvidia-peermem): %w", err, again)
	}
	e.how = append(e.how, fmt.Sprintf("%s in GPU memory by its address, since dma-buf was refused (%v)", what, err))
	return nil
}

// How says how the parts of the queue pair were registered.
func (e *Endpoint) How() []string { return e.how }

// makeQueues registers the memory, and has the device make queues of it.
func (e *Endpoint) makeQueues() (err error) {
	q := queues{
		sq: e.sq.at, cq: e.cq.at, cqRecord: e.record.at, record: e.record.at + 256, pageBits: 12,
		logWQEBBs: bits.TrailingZeros(uint(e.c.Depth)), logCQEs: bits.TrailingZeros(uint(e.c.CQEs)),
	}
	if e.queues.gpu {
		q.pageBits = 16
	}
	if q.umem, err = e.umem(e.queues, "queues"); err != nil {
		return err
	}
	q.recordUmem = q.umem
	if e.record.a != e.queues {
		if q.recordUmem, err = e.umem(e.host, "doorbell records"); err != nil {
			return err
		}
	}
	var mr, uar, cq unsafe.Pointer
	var pdn, eqn, page C.uint32_t
	err = e.register(e.payload, "payload", func(fd int) error {
		_, err := try(func(why *C.char) C.int {
			return C.gm_mr_reg(e.h.PD, C.uint64_t(e.payload.at), C.size_t(len(e.payload.data)), C.int(fd), &mr, &e.lkey, why)
		})
		return err
	})
	if err != nil {
		return err
	}
	e.undo = append(e.undo, func() { C.gm_mr_dereg(mr) })
	for _, f := range []func(*C.char) C.int{
		func(why *C.char) C.int { return C.gm_pd_number(e.h.PD, &pdn, why) },
		func(why *C.char) C.int { return C.gm_eqn(e.h.Context, &eqn, why) },
		func(why *C.char) C.int { return C.gm_uar_alloc(e.h.Context, &uar, &e.doorbell, &page, why) },
	} {
		if _, err := try(f); err != nil {
			return err
		}
	}
	e.undo = append(e.undo, func() { C.gm_uar_free(uar) })
	at, unmap, err := uint64(uintptr(e.doorbell)), func() {}, error(nil)
	if !e.c.CPURings {
		if at, unmap, err = e.m.register(e.doorbell); err != nil {
			return err
		}
	}
	e.undo = append(e.undo, unmap)
	q.uarPage, q.pdn, q.eqn = uint32(page), uint32(pdn), uint32(eqn)
	cqn, cq, err := e.create("create_cq", q.createCQ())
	if err != nil {
		return err
	}
	e.undo = append(e.undo, func() { C.gm_destroy(cq) })
	if e.qpn, e.qp, err = e.create("create_qp", q.createQP(cqn)); err != nil {
		return err
	}
	e.undo = append(e.undo, func() { C.gm_destroy(e.qp) })
	e.q = C.struct_gm_queue{
		sq: (*C.uint8_t)(pointer(e.sq.addr())), cq: (*C.uint8_t)(pointer(e.cq.addr())), cq_record: (*C.uint32_t)(pointer(e.record.addr())),
		record: (*C.uint32_t)(pointer(e.record.addr() + 256)), doorbell: (*C.uint64_t)(pointer(at)),
		qpn: C.uint32_t(e.qpn), wqebbs: C.uint32_t(e.c.Depth), cqes: C.uint32_t(e.c.CQEs),
	}
	return nil
}

func (e *Endpoint) create(what string, c command) (uint32, unsafe.Pointer, error) {
	out, obj := make(command, outBytes), unsafe.Pointer(nil)
	_, err := try(func(why *C.char) C.int {
		return C.gm_create(e.h.Context, unsafe.Pointer(&c[0]), C.size_t(len(c)), unsafe.Pointer(&out[0]), C.size_t(len(out)), &obj, why)
	})
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", what, err)
	}
	n, err := out.number(what)
	return n, obj, err
}

// Address is what the other end must know.
func (e *Endpoint) Address() verbs.Address {
	a := e.Endpoint.Address()
	a.QPNs = []uint32{e.qpn}
	return a
}

// Connect brings the queue pair to RTS towards remote.
func (e *Endpoint) Connect(remote verbs.Address) error {
	gid, err := hex.DecodeString(remote.GID)
	if err != nil || len(gid) != 16 || len(remote.QPNs) != 1 {
		return fmt.Errorf("the other end's address makes no sense: GID %q, %d queue pairs", remote.GID, len(remote.QPNs))
	}
	r := route{
		port: max(e.c.Port, 1), gidIndex: e.h.GIDIndex, ethernet: e.Info().Ports[0].Ethernet, mtu: min(remote.MTU, e.h.MTU), qpn: remote.QPNs[0],
		psn: remote.PSN, sendPSN: e.Endpoint.Address().PSN, lid: remote.LID, global: remote.LID == 0, gid: [16]byte(gid), hopLimit: 64,
	}
	if r.ethernet {
		_, err := try(func(why *C.char) C.int {
			return C.gm_mac(e.h.PD, C.int(r.port), C.int(r.gidIndex), (*C.uint8_t)(unsafe.Pointer(&gid[0])), (*C.uint8_t)(unsafe.Pointer(&r.mac[0])), why)
		})
		if err != nil {
			return err
		}
	}
	rtr, err := init2rtr(e.qpn, &r)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		to string
		c  command
	}{{"INIT", rst2init(e.qpn, &r)}, {"RTR", rtr}, {"RTS", rtr2rts(e.qpn, &r)}} {
		out := make(command, outBytes)
		_, err := try(func(why *C.char) C.int {
			return C.gm_modify(e.qp, unsafe.Pointer(&step.c[0]), C.size_t(len(step.c)), unsafe.Pointer(&out[0]), C.size_t(len(out)), why)
		})
		if err == nil {
			_, err = out.number("modify")
		}
		if err != nil {
			return fmt.Errorf("queue pair to %s: %w", step.to, err)
		}
	}
	e.remote = remote
	return nil
}

// Prepare fills the payload with the batch's pattern.
func (e *Endpoint) Prepare(b verbs.Batch) error {
	if err := e.Endpoint.Prepare(b); err != nil {
		return err
	}
	copy(e.src.bytes(), e.h.Source)
	return e.m.to(e.payload)
}

// Post runs a program of one shape. The error says why it ended early; what was
// measured until then is in the report all the same.
func (e *Endpoint) Post(ctx context.Context, p Program) (Report, error) {
	switch {
	case e.dead:
		return Report{}, verbs.ErrQPFatal
	case len(p.Shapes) != 1 || p.Shapes[0].Bytes > e.c.Bytes || p.Window == 1 && p.N > e.c.Samples || p.CPURings != e.c.CPURings:
		return Report{}, errors.New("the endpoint was not opened for this program")
	}
	if err := p.check(min(e.c.Depth, maxDepth), min(e.c.CQEs, maxDepth)); err != nil {
		return Report{}, err
	}
	r, rep, stop := ptr[C.struct_gm_run](e.run), ptr[C.struct_gm_report](e.report), ptr[C.uint32_t](e.stop)
	*r, *rep = C.struct_gm_run{}, C.struct_gm_report{}
	atomic.StoreUint32((*uint32)(stop), 0)
	r.q = e.q
	p.fill(r)
	r.budget *= e.m.ticks()
	r.local, r.source, r.lkey = C.uint64_t(e.src.addr()), (*C.uint8_t)(pointer(e.src.addr())), e.lkey
	r.remote, r.rkey = C.uint64_t(e.remote.Addr+e.remote.Room), C.uint32_t(e.remote.RKey)
	r.stop, r.report = (*C.uint32_t)(pointer(e.stop.addr())), (*C.struct_gm_report)(pointer(e.report.addr()))
	r.mailbox = (*C.uint64_t)(pointer(e.mailbox.addr()))
	if p.Window == 1 {
		r.stamp = 1
		r.issue = (*C.uint64_t)(pointer(e.samples.addr()))
		r.done = (*C.uint64_t)(pointer(e.samples.addr() + uint64(8*e.c.Samples)))
	}
	cancel := context.AfterFunc(ctx, func() { atomic.StoreUint32((*uint32)(stop), 1) })
	defer cancel()
	err := e.beside(r, p.CPURings, func() error { return e.m.post(r, stop, p.within()) })
	if err == nil {
		err = e.m.from(e.queues)
	}
	if err != nil {
		e.dead = true
		return Report{}, err
	}
	e.q.start, e.q.cq_start = rep.next, rep.cq_next
	s := e.samples.bytes()
	out := report(rep, s, s[8*e.c.Samples:])
	switch e.dead = out.Why != Done; out.Why {
	case WCError:
		err = &verbs.WCError{Status: out.Syndrome.Status(), Vendor: int(out.Vendor), Text: out.Syndrome.String()}
	case Stopped:
		err = ctx.Err()
	case TimedOut:
		err = verbs.ErrTimeout
	}
	return out, err
}

// beside rings for the poster where a CPU thread must.
func (e *Endpoint) beside(r *C.struct_gm_run, ring bool, post func() error) error {
	if !ring {
		return post()
	}
	p := C.calloc(1, C.sizeof_struct_gm_run+8)
	defer C.free(p)
	mine, quit := (*C.struct_gm_run)(p), (*C.uint32_t)(unsafe.Add(p, C.sizeof_struct_gm_run))
	*mine = *r
	*(*uint64)(unsafe.Pointer(mine.mailbox)) = 0
	var wg sync.WaitGroup
	wg.Go(func() { C.gm_twin_ring(mine, quit) })
	err := post()
	atomic.StoreUint32((*uint32)(quit), 1)
	wg.Wait()
	return err
}

// Close releases everything, in the reverse order.
func (e *Endpoint) Close() {
	for i := len(e.undo) - 1; i >= 0; i-- {
		e.undo[i]()
	}
	e.undo = nil
	if e.Endpoint != nil {
		e.Endpoint.Close()
		e.Endpoint = nil
	}
}

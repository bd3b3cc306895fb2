//go:build cgo && linux

package verbs

// #cgo CFLAGS: -O2
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "device.h"
import "C"

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

var load = sync.OnceValue(func() error {
	var buf [C.GV_ERR]C.char
	if C.gv_load(&buf[0], C.GV_ERR) != 0 {
		return fmt.Errorf("%w: %s", ErrNoRDMA, C.GoString(&buf[0]))
	}
	return nil
})

// Library says why the library cannot be opened; nil where it can.
func Library() error { return load() }

// Available says why no device can be opened: no library, no RDMA in the kernel,
// no device. nil where there is one. The error wraps ErrNoRDMA.
func Available() error {
	names, err := devices()
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%w: the library finds no device", ErrNoRDMA)
	}
	return err
}

func devices() ([]string, error) {
	if err := load(); err != nil {
		return nil, err
	}
	const size = 64 << 10
	buf := (*C.char)(C.calloc(1, size))
	defer C.free(unsafe.Pointer(buf))
	if n := C.gv_devices(buf, size); n < 0 {
		return nil, fmt.Errorf("%w: the kernel has none (%w)", ErrNoRDMA, syscall.Errno(-n))
	}
	return strings.Fields(C.GoString(buf)), nil
}

// Describe asks the library what a device is and can.
func Describe(name string) (Info, error) {
	if err := load(); err != nil {
		return Info{}, err
	}
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var d C.struct_gv_device_attr_ex
	var ports [8]C.struct_gv_port_attr
	var buf [C.GV_ERR]C.char
	n := C.gv_query(cname, &d, &ports[0], C.int(len(ports)), &buf[0], C.GV_ERR)
	if n < 0 {
		return Info{}, errors.New(C.GoString(&buf[0]))
	}
	info := describe(name, &d)
	for i, p := range ports[:n] {
		info.Ports = append(info.Ports, portInfo(i+1, &p))
	}
	return info, nil
}

func portInfo(number int, p *C.struct_gv_port_attr) PortInfo {
	return PortInfo{
		Number: number, MTU: 128 << p.active_mtu, MaxMTU: 128 << p.max_mtu,
		Active: p.state == C.GV_PORT_ACTIVE, Ethernet: p.link_layer == C.GV_LINK_ETHERNET,
	}
}

func describe(name string, x *C.struct_gv_device_attr_ex) Info {
	d := &x.orig_attr
	info := Info{
		Device: name, Emulated: emulated(name, uint32(d.vendor_id)), Atomics: d.atomic_cap != 0, BlueFlame: blueFlame(uint32(d.vendor_id), uint32(d.vendor_part_id)),
		StampMask: uint64(x.completion_timestamp_mask), StampKHz: uint64(x.hca_core_clock),
	}
	for _, l := range []struct {
		key string
		n   uint64
	}{
		{"max_qp", uint64(d.max_qp)},
		{"max_qp_wr", uint64(d.max_qp_wr)},
		{"max_sge", uint64(d.max_sge)},
		{"max_cq", uint64(d.max_cq)},
		{"max_cqe", uint64(d.max_cqe)},
		{"max_mr", uint64(d.max_mr)},
		{"max_mr_size", uint64(d.max_mr_size)},
		{"max_qp_rd_atom", uint64(d.max_qp_rd_atom)},
	} {
		info.Limits = append(info.Limits, Setting{l.key, strconv.FormatUint(l.n, 10)})
	}
	atom := [...]string{"none", "by the device", "global"}
	atomics := "unknown"
	if int(d.atomic_cap) < len(atom) {
		atomics = atom[d.atomic_cap]
	}
	stamps := "none"
	if info.Stamps() {
		stamps = fmt.Sprintf("at %d kHz, mask %#x", info.StampKHz, info.StampMask)
	}
	info.Limits = append(info.Limits, Setting{"atomics", atomics}, Setting{"completion-timestamps", stamps}, Setting{"vendor_id", fmt.Sprintf("%#x", uint32(d.vendor_id))}, Setting{"vendor_part_id", strconv.FormatUint(uint64(d.vendor_part_id), 10)})
	return info
}

type endpoint struct {
	c      *C.struct_gv_end
	config Config
	remote *C.struct_gv_remote
}

var opening sync.Mutex

// Open opens a device and makes its queue pairs, not yet connected.
func Open(c Config) (Endpoint, error) {
	names, err := devices()
	if err != nil {
		return nil, err
	}
	if c.Port == 0 {
		c.Port = 1
	}
	if c.QPs < 1 || c.QPs > C.GV_MAX_QP {
		return nil, fmt.Errorf("%d queue pairs, want 1 to %d", c.QPs, C.GV_MAX_QP)
	}
	if c.Device == "" {
		for _, n := range names {
			if info, err := Describe(n); err == nil && len(info.Ports) >= c.Port && info.Ports[c.Port-1].Active {
				c.Device = n
				break
			}
		}
		if c.Device == "" {
			return nil, fmt.Errorf("%w: no device has an active port %d", ErrNoRDMA, c.Port)
		}
	}
	cname := C.CString(c.Device)
	defer C.free(unsafe.Pointer(cname))
	cc := C.struct_gv_config{
		device: cname, port: C.int(c.Port), qps: C.int(c.QPs), depth: C.int(c.Depth), pages: C.int(c.Pages),
		bytes: C.size_t(c.Bytes), want_inline: C.uint32_t(c.Inline), no_blueflame: flag(c.NoBlueFlame), extended: flag(c.Extended), devx: flag(c.DevX),
	}
	if c.GID == "" {
		cc.any_gid = 1
	} else {
		a, err := netip.ParseAddr(c.GID)
		if err != nil {
			return nil, fmt.Errorf("GID %q: want a value such as fe80::1 or ::ffff:10.0.0.1", c.GID)
		}
		raw := a.As16()
		*(*[16]byte)(unsafe.Pointer(&cc.gid)) = raw
	}
	e := &endpoint{c: (*C.struct_gv_end)(C.calloc(1, C.sizeof_struct_gv_end)), config: c, remote: (*C.struct_gv_remote)(C.calloc(1, C.sizeof_struct_gv_remote))}
	opening.Lock() // the environment of a provider is the process's
	rc := C.gv_end_open(e.c, &cc)
	opening.Unlock()
	if rc != 0 {
		err := fmt.Errorf("%s: %s", c.Device, C.GoString(&e.c.err[0]))
		if rc == -2 {
			err = fmt.Errorf("%w: %w", ErrPortDown, err)
		}
		e.free()
		return nil, err
	}
	return e, nil
}

func (e *endpoint) free() {
	C.free(unsafe.Pointer(e.c))
	C.free(unsafe.Pointer(e.remote))
	e.c, e.remote = nil, nil
}

func (e *endpoint) Close() {
	if e.c != nil {
		C.gv_end_close(e.c)
		e.free()
	}
}

func (e *endpoint) gid() []byte { return C.GoBytes(unsafe.Pointer(&e.c.gid), 16) }

func (e *endpoint) Info() Info {
	info := describe(e.config.Device, &e.c.dev)
	info.InlineMax, info.Depth, info.Ports = int(e.c.inline_max), int(e.c.depth), []PortInfo{portInfo(e.config.Port, &e.c.pa)}
	info.GID = netip.AddrFrom16([16]byte(e.gid())).String()
	return info
}

func (e *endpoint) Address() Address {
	a := Address{
		PSN: uint32(e.c.psn), RKey: uint32(e.c.mr.rkey), Addr: uint64(uintptr(unsafe.Pointer(e.c.buf))), Room: uint64(e.c.room),
		LID: uint16(e.c.pa.lid), MTU: int(e.c.mtu), GID: hex.EncodeToString(e.gid()),
	}
	for i := range int(e.c.nqp) {
		a.QPNs = append(a.QPNs, uint32(e.c.qp[i].qp_num))
	}
	return a
}

// Handles are the library's objects of an endpoint, for who makes queues of their
// own on them.
type Handles struct {
	Context, PD unsafe.Pointer // struct ibv_context, struct ibv_pd
	GIDIndex    int
	MTU         int    // enumeration of the wire
	Source      []byte // what Prepare fills
}

// HandlesOf returns the handles of an endpoint that Open returned; false for
// another. They are good until it is closed.
func HandlesOf(e Endpoint) (Handles, bool) {
	v, ok := e.(*endpoint)
	if !ok {
		return Handles{}, false
	}
	src, _, _ := v.memory()
	return Handles{unsafe.Pointer(v.c.ctx), unsafe.Pointer(v.c.pd), int(v.c.gid_index), int(v.c.mtu), src}, true
}

func (e *endpoint) Connect(r Address) error {
	gid, err := hex.DecodeString(r.GID)
	if err != nil || len(gid) != 16 {
		return fmt.Errorf("the other end's GID %q is none", r.GID)
	}
	if len(r.QPNs) != int(e.c.nqp) {
		return fmt.Errorf("the other end has %d queue pairs, this one %d", len(r.QPNs), e.c.nqp)
	}
	if r.MTU < 1 || r.MTU > 5 || r.Room != uint64(e.c.room) {
		return fmt.Errorf("the other end's address makes no sense: mtu %d, room %d", r.MTU, r.Room)
	}
	for i, q := range r.QPNs {
		e.remote.qpn[i] = C.uint32_t(q)
	}
	e.remote.psn, e.remote.rkey, e.remote.addr, e.remote.room = C.uint32_t(r.PSN&0xffffff), C.uint32_t(r.RKey), C.uint64_t(r.Addr), C.uint64_t(r.Room)
	e.remote.lid, e.remote.mtu = C.uint16_t(r.LID), C.int(r.MTU)
	*(*[16]byte)(unsafe.Pointer(&e.remote.gid)) = [16]byte(gid)
	if C.gv_end_connect(e.c, e.remote) != 0 {
		return fmt.Errorf("%s: %s", e.config.Device, C.GoString(&e.c.err[0]))
	}
	return nil
}

func (e *endpoint) memory() (src, dst, aux []byte) {
	room := int(e.c.room)
	all := unsafe.Slice((*byte)(unsafe.Pointer(e.c.buf)), int(e.c.len))
	return all[:room], all[room : 2*room], all[2*room : 2*room+64]
}

func (e *endpoint) check(b Batch) error {
	if b.Bytes < 1 || b.Bytes > e.config.Bytes {
		return fmt.Errorf("%d bytes, the endpoint was opened for %d", b.Bytes, e.config.Bytes)
	}
	if b.Chain < 1 || b.Chain > C.GV_DEPTH || b.Chain > int(e.c.depth) {
		return fmt.Errorf("chain of %d, want 1 to the queue's depth %d", b.Chain, e.c.depth)
	}
	if b.N < 1 || b.N > 1<<28 || b.Warmup < 0 || b.Warmup > 1<<28 {
		return fmt.Errorf("%d messages after %d to warm up, want at least one and at most %d", b.N, b.Warmup, 1<<28)
	}
	if b.QPs > int(e.c.nqp) || b.Window > int(e.c.depth) {
		return fmt.Errorf("%d queue pairs with %d in flight, there are %d of depth %d", b.QPs, b.Window, e.c.nqp, e.c.depth)
	}
	if b.Signal < NoSignal || b.Signal > SignalAtomic || b.Signal != NoSignal && (b.Op != Write || b.Loop != Latency) {
		return fmt.Errorf("signal %d after operation %d, loop %d: unknown", b.Signal, b.Op, b.Loop)
	}
	if b.Op < Write || b.Op > CmpSwap || b.Loop < Latency || b.Loop > Receive || b.Timeout <= 0 {
		return fmt.Errorf("operation %d, loop %d, timeout %v: unknown", b.Op, b.Loop, b.Timeout)
	}
	return nil
}

func (e *endpoint) Prepare(b Batch) error {
	if err := e.check(b); err != nil {
		return err
	}
	src, dst, aux := e.memory()
	for i := range b.Bytes {
		src[i] = pattern(b.Seed, i)
	}
	clear(dst[:b.Bytes])
	clear(aux)
	if b.Op.TwoSided() {
		if rc := C.gv_top_up(e.c, C.uint32_t(b.Bytes)); rc != 0 {
			return fmt.Errorf("post receives: %w", syscall.Errno(-rc))
		}
	}
	return nil
}

func (e *endpoint) Verify(b Batch) error {
	_, dst, aux := e.memory()
	switch {
	case b.Op == FetchAdd || b.Op == CmpSwap:
		want := uint64(b.N+b.Warmup) * uint64(b.Chain)
		if got := *(*uint64)(unsafe.Pointer(&aux[C.GV_ATOMIC_WORD])); got != want {
			return fmt.Errorf("%w: the counter is %d after %d operations", ErrBadData, got, want)
		}
		return nil
	case b.Signal != NoSignal:
		if got := *(*uint64)(unsafe.Pointer(&aux[C.GV_SIGNAL_WORD])); got != uint64(b.N+b.Warmup) {
			return fmt.Errorf("%w: the signal's word is %d after %d signals", ErrBadData, got, b.N+b.Warmup)
		}
	case b.Op == Read && b.Target:
		return nil // nothing arrives at the one that is read
	}
	last := pattern(b.Seed, b.Bytes-1)
	switch {
	case b.Loop == Latency && b.Op != Read, b.Loop == Receive, b.Loop == PingPong:
		last = stamp(b.N + b.Warmup - 1)
	}
	if dst[b.Bytes-1] != last {
		return fmt.Errorf("%w: last byte is %#02x, want %#02x", ErrBadData, dst[b.Bytes-1], last)
	}
	for i := range b.Bytes - 1 {
		if dst[i] != pattern(b.Seed, i) {
			return fmt.Errorf("%w: byte %d of %d is %#02x, want %#02x", ErrBadData, i, b.Bytes, dst[i], pattern(b.Seed, i))
		}
	}
	return nil
}

func (e *endpoint) PortActive() bool { return C.gv_port_state(e.c) == C.GV_PORT_ACTIVE }

func (e *endpoint) Run(ctx context.Context, b Batch) (Times, error) {
	if err := e.check(b); err != nil {
		return Times{}, err
	}
	if b.Inline && b.Bytes > int(e.c.inline_max) {
		return Times{}, fmt.Errorf("%d bytes inline, the device takes %d", b.Bytes, e.c.inline_max)
	}
	room := C.size_t(1)
	if b.Loop == Latency || b.Loop == PingPong {
		room = C.size_t(b.N)
	}
	extended := e.config.Extended && b.Loop == Latency
	columns := C.size_t(3)
	if extended {
		columns = 6
	}
	samples := (*C.int64_t)(C.calloc(room*columns, 8))
	stop := (*C.int)(C.calloc(1, 4))
	cb := (*C.struct_gv_batch)(C.calloc(1, C.sizeof_struct_gv_batch))
	defer func() {
		C.free(unsafe.Pointer(samples))
		C.free(unsafe.Pointer(stop))
		C.free(unsafe.Pointer(cb))
	}()
	if samples == nil || stop == nil || cb == nil {
		return Times{}, fmt.Errorf("no memory for %d samples", b.N)
	}
	cb.loop, cb.op, cb.n, cb.warmup, cb.bytes = C.int(b.Loop), C.int(b.Op), C.int(b.N), C.int(b.Warmup), C.uint32_t(b.Bytes)
	cb.inlined, cb.event, cb.first = flag(b.Inline), flag(b.Event), flag(!b.Target)
	cb.signal, cb.every = C.int(b.Signal), C.int(max(b.Every, 1))
	cb.chain, cb.window, cb.qps, cb.timeout_ns, cb.stop = C.int(b.Chain), C.int(max(b.Window, 1)), C.int(max(b.QPs, 1)), C.int64_t(b.Timeout), stop
	cb.remote = *e.remote
	all := unsafe.Slice(samples, room*columns)
	column := func(i int) []C.int64_t { return all[i*int(room) : (i+1)*int(room)] }
	cb.post, cb.seen, cb.done = &column(0)[0], &column(1)[0], &column(2)[0]
	if extended {
		cb.call, cb.stamp, cb.arrived = &column(3)[0], (*C.uint64_t)(unsafe.Pointer(&column(4)[0])), (*C.uint64_t)(unsafe.Pointer(&column(5)[0]))
	}
	if p, ok := b.Peer.(*endpoint); ok {
		cb.peer = p.c
	}
	watched := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		atomic.StoreInt32((*int32)(unsafe.Pointer(stop)), 1)
		close(watched)
	})
	C.gv_run(e.c, cb)
	if !cancel() {
		<-watched // stop must not be freed under the one who sets it
	}
	t := Times{Elapsed: time.Duration(cb.elapsed_ns), Messages: int(cb.messages), Doorbells: int(cb.doorbells)}
	for i := range int(cb.got) {
		t.Post = append(t.Post, int64(column(0)[i]))
		t.Done = append(t.Done, int64(column(2)[i]))
		if s := int64(column(1)[i]); s >= 0 {
			t.Seen = append(t.Seen, s)
		}
		if cb.stamp != nil && e.c.dev.completion_timestamp_mask != 0 {
			t.Call = append(t.Call, int64(column(3)[i]))
			t.Stamp = append(t.Stamp, uint64(column(4)[i]))
			t.Arrived = append(t.Arrived, uint64(column(5)[i]))
		}
	}
	for i, c := range cb.clocks {
		t.Clocks[i] = Clocks{CPU: int64(c.cpu_ns), Half: int64(c.half_ns), Device: uint64(c.device)}
	}
	return t, e.why(ctx, cb)
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func (e *endpoint) why(ctx context.Context, b *C.struct_gv_batch) error {
	var err error
	switch b.why {
	case C.GV_DONE:
		return nil
	case C.GV_STOPPED:
		return ctx.Err()
	case C.GV_TIMEOUT:
		err = ErrTimeout
	case C.GV_WC_ERROR:
		err = &WCError{Status: int(b.wc_status), Vendor: int(b.vendor_err), Text: C.GoString(C.gv_status(b.wc_status))}
	case C.GV_POST_ERROR:
		err = fmt.Errorf("post: %w", syscall.Errno(b.sys))
	case C.GV_BAD_DATA:
		err = ErrBadData
	case C.GV_ASYNC:
		switch b.event_type {
		case C.GV_EVENT_CQ_ERR:
			return ErrCQOverrun
		case C.GV_EVENT_PORT_ERR:
			return ErrPortDown
		}
		return ErrQPFatal
	default:
		err = syscall.Errno(b.sys)
	}
	if e.portFailed(err) {
		err = errors.Join(ErrPortDown, err)
	}
	return err
}

// portFailed reports whether a message that found no way is the port's fault. A
// send may fail a little before the kernel says that the port is down, so an error
// of this side waits for that word; an answer of the other side does not.
func (e *endpoint) portFailed(err error) bool {
	var wc *WCError
	wait := errors.As(err, &wc) && wc.Status != statusRemoteAccess && wc.Status != statusRNR
	for end := time.Now().Add(settle); ; time.Sleep(settle / 20) {
		if !e.PortActive() {
			return true
		}
		if !wait || time.Now().After(end) {
			return false
		}
	}
}

// settle is how long a port's state may lag behind what its messages met.
const settle = 500 * time.Millisecond

func (e *endpoint) Register(size int, p Pages, n int) (reg, dereg []int64, err error) {
	buf := make([]int64, 2*n)
	var why *C.char
	got := C.gv_register(e.c, C.size_t(size), C.int(p), C.int(n), (*C.int64_t)(unsafe.Pointer(&buf[0])), (*C.int64_t)(unsafe.Pointer(&buf[n])), &why)
	if got < 0 {
		return nil, nil, errors.New(C.GoString(why))
	}
	return buf[:n], buf[n:], nil
}

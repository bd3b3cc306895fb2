// Every kernel of package cuda. Times are clock64 differences of one thread; what
// is timed is written in PTX, so that no compiler moves it. A kernel ends by
// itself: loops have a budget of the GPU's timer. Those that poll look at a word in
// host memory too, which ends them sooner; the others must not, since on an H200 a
// load of host memory makes every later fence of the SM dearer. `make ptx` builds
// kernels.ptx from this.
#include "kernels.h"

#ifndef __global__ // clang without the toolkit's headers
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#endif
#define INLINE static __device__ __attribute__((always_inline)) inline

typedef gd_u64 u64;
typedef gd_i64 i64;
typedef gd_u32 u32;

INLINE u64 timer() { u64 t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t) :: "memory"); return t; }
INLINE i64 clk() { i64 t; asm volatile("mov.u64 %0, %%clock64;" : "=l"(t) :: "memory"); return t; }
INLINE u32 thread() { u32 v; asm("mov.u32 %0, %%tid.x;" : "=r"(v)); return v; }
INLINE u32 threads() { u32 v; asm("mov.u32 %0, %%ntid.x;" : "=r"(v)); return v; }
INLINE u32 block() { u32 v; asm("mov.u32 %0, %%ctaid.x;" : "=r"(v)); return v; }
INLINE u32 blocks() { u32 v; asm("mov.u32 %0, %%nctaid.x;" : "=r"(v)); return v; }
INLINE void warp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

// clk that cannot be read before v has arrived.
INLINE i64 clk_after(u64 v)
{
	i64 t;
	asm volatile("{\n\t.reg .pred p;\n\tsetp.eq.u64 p, %1, 0xdeadbeefdeadbeef;\n\t@p trap;\n\tmov.u64 %0, %%clock64;\n\t}" : "=l"(t) : "l"(v) : "memory");
	return t;
}

enum { WEAK, VOLATILE, RELAXED_GPU, RELAXED_SYS, ACQUIRE_GPU, ACQUIRE_SYS };
template <int L> INLINE u64 load(u64 p)
{
	u64 v = 0;
	if (L == WEAK) asm volatile("ld.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	if (L == VOLATILE) asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	if (L == RELAXED_GPU) asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	if (L == RELAXED_SYS) asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	if (L == ACQUIRE_GPU) asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	if (L == ACQUIRE_SYS) asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}
INLINE u32 load32(u64 p) { u32 v; asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
INLINE u32 load32_weak(u64 p) { u32 v; asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }

INLINE void store(u64 p, u64 v) { asm volatile("st.volatile.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
INLINE void store32(u64 p, u32 v) { asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
INLINE void store16(u64 p, u32 a, u32 b, u32 c, u32 d) { asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(a), "r"(b), "r"(c), "r"(d) : "memory"); }
INLINE void store16_weak(u64 p, u32 a, u32 b, u32 c, u32 d) { asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(a), "r"(b), "r"(c), "r"(d) : "memory"); }
INLINE void release_sys(u64 p, u64 v) { asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
INLINE void release_gpu(u64 p, u64 v) { asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
INLINE void release32_sys(u64 p, u32 v) { asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
INLINE void release32_gpu(u64 p, u32 v) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }

enum { NONE, BLOCK, GPU, SYSTEM };
template <int F> INLINE void fence()
{
	if (F == BLOCK) asm volatile("membar.cta;" ::: "memory");
	if (F == GPU) asm volatile("membar.gl;" ::: "memory");
	if (F == SYSTEM) asm volatile("membar.sys;" ::: "memory");
}
INLINE void acquire() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

INLINE void rest(u32 clocks) { i64 t = clk(); while (clk() - t < (i64)clocks) { } }

// run is one block's life: its report, and when it must end.
struct run {
	const gd_args *a;
	gd_report *r;
	u64 end;
	u32 bad;
};
INLINE run begin(const gd_args &a, u32 report)
{
	run x;
	x.a = &a;
	x.r = (gd_report *)a.report + report;
	x.bad = 0;
	x.r->bad = 0;
	x.r->g0 = timer();
	x.end = x.r->g0 + a.budget;
	x.r->c0 = clk();
	return x;
}
INLINE void finish(run &x)
{
	x.r->c1 = clk();
	x.r->g1 = timer();
	x.r->bad = x.bad;
}
// over says whether to give up, looking now and then.
INLINE bool over(run &x, u32 i, u32 every)
{
	if ((i & (every - 1)) == every - 1 && timer() > x.end) x.bad = GD_LATE;
	return x.bad != 0;
}
// await polls p until it holds v or more.
template <int L> INLINE u64 await(run &x, u64 p, u64 v)
{
	u64 got;
	u32 spin = 0;
	while ((got = load<L>(p)) < v)
		if ((++spin & 255) == 0) {
			if (timer() > x.end) { x.bad = GD_LATE; break; }
			if ((spin & 0xffff) == 0 && load32(x.a->abort)) { x.bad = GD_ABORTED; break; }
		}
	return got;
}

#define KERNEL(name) extern "C" __global__ void name(gd_args a)
// One thread, of the last block: how many blocks there are chooses its SM. It keeps
// its samples on the SM until it ends: a store of a sample must not be one that a
// fence waits for.
#define SAMPLES                                                                                                        \
	__shared__ u32 row[GD_ROW];                                                                                    \
	__shared__ u32 row2[GD_ROW];                                                                                   \
	if (block() + 1 != blocks()) return;                                                                           \
	run x = begin(a, 0);                                                                                           \
	u32 i
#define KEEP                                                                                                           \
	finish(x);                                                                                                     \
	for (u32 k = 0; k < i; k++) {                                                                                  \
		((u32 *)a.out)[k] = row[k];                                                                            \
		if (a.out2) ((u32 *)a.out2)[k] = row2[k];                                                              \
	}                                                                                                              \
	if (a.stop) store32(a.stop, 1)

KERNEL(spin)
{
	run x = begin(a, block());
	while (timer() - x.r->g0 < a.delay) { }
	finish(x);
}

// Two clock reads, back to back.
KERNEL(clock_pair)
{
	SAMPLES;
	for (i = 0; i < a.n && !over(x, i, 32); i++) {
		rest(a.gap);
		i64 t0 = clk();
		row[i] = (u32)(clk() - t0);
		row2[i] = 0;
	}
	KEEP;
}

// count stores to lines of their own, then a fence: the fence, and the stores.
template <int F> INLINE void fence_body(const gd_args &a)
{
	SAMPLES;
	for (i = 0; i < a.n && !over(x, i, 32); i++) {
		rest(a.gap);
		i64 t0 = clk();
		for (u32 j = 0; j < a.count; j++) store(a.target + j * 128, ((u64)i << 8) | j);
		i64 t1 = clk();
		fence<F>();
		i64 t2 = clk();
		row[i] = (u32)(t2 - t1);
		row2[i] = (u32)(t1 - t0);
	}
	KEEP;
}
KERNEL(fence_block) { fence_body<BLOCK>(a); }
KERNEL(fence_gpu) { fence_body<GPU>(a); }
KERNEL(fence_system) { fence_body<SYSTEM>(a); }

// count stores of W bytes one after the other, U of them without a branch between.
template <int W, int U> INLINE void store_body(const gd_args &a)
{
	SAMPLES;
	for (i = 0; i < a.n && !over(x, i, 32); i++) {
		rest(a.gap);
		u64 p = a.target;
		i64 t0 = clk();
		for (u32 j = 0; j < a.count; j += U)
#pragma unroll
			for (int u = 0; u < U; u++, p += W) {
				if (W == 4) store32(p, i);
				if (W == 8) store(p, i);
				if (W >= 16)
#pragma unroll
					for (int k = 0; k < W / 16; k++) store16(p + k * 16, i, i, i, i);
			}
		row[i] = (u32)(clk() - t0);
		row2[i] = 0;
	}
	KEEP;
}
KERNEL(store_4) { store_body<4, 8>(a); }
KERNEL(store_8) { store_body<8, 8>(a); }
KERNEL(store_16) { store_body<16, 8>(a); }
KERNEL(store_64) { store_body<64, 8>(a); }
KERNEL(store_4_alone) { store_body<4, 1>(a); }
KERNEL(store_8_alone) { store_body<8, 1>(a); }
KERNEL(store_16_alone) { store_body<16, 1>(a); }
KERNEL(store_64_alone) { store_body<64, 1>(a); }

// One load; where count is not 0, of a word that an atomic has changed before the
// rest, which no half of the L2 but the line's own can serve.
template <int L> INLINE void load_body(const gd_args &a)
{
	SAMPLES;
	u64 sum = 0;
	for (i = 0; i < a.n && !over(x, i, 32); i++) {
		if (a.count) asm volatile("red.relaxed.gpu.global.add.u64 [%0], 1;" ::"l"(a.target) : "memory");
		rest(a.gap);
		i64 t0 = clk();
		u64 v = load<L>(a.target);
		row[i] = (u32)(clk_after(v) - t0);
		row2[i] = 0;
		sum += v;
	}
	x.r->sum = sum;
	KEEP;
}
KERNEL(load_weak) { load_body<WEAK>(a); }
KERNEL(load_volatile) { load_body<VOLATILE>(a); }
KERNEL(load_relaxed_gpu) { load_body<RELAXED_GPU>(a); }
KERNEL(load_relaxed_system) { load_body<RELAXED_SYS>(a); }
KERNEL(load_acquire_gpu) { load_body<ACQUIRE_GPU>(a); }
KERNEL(load_acquire_system) { load_body<ACQUIRE_SYS>(a); }

// Every block polls, GD_BATCH polls a sample.
template <int L> INLINE void poll_body(const gd_args &a)
{
	__shared__ u32 row[GD_ROW];
	run x = begin(a, block());
	u64 p = a.target + (u64)block() * a.stride;
	u32 i;
	for (i = 0; i < a.n && !over(x, i, 8); i++) {
		i64 t0 = clk();
#pragma unroll 1
		for (u32 j = 0; j < GD_BATCH; j++)
			if (load<L>(p) == 0x1234567812345678ull) break;
		row[i] = (u32)(clk() - t0);
	}
	finish(x);
	for (u32 k = 0; k < i; k++) ((u32 *)a.out)[(u64)block() * a.n + k] = row[k];
	if (a.stop) store32(a.stop, 1);
}
KERNEL(poll_gpu) { poll_body<RELAXED_GPU>(a); }
KERNEL(poll_system) { poll_body<VOLATILE>(a); }

enum { ADD, CAS, EXCHANGE, REDUCE };
template <int A, int F> INLINE void atomic_body(const gd_args &a)
{
	SAMPLES;
	for (i = 0; i < a.n && !over(x, i, 32); i++) {
		rest(a.gap);
		u64 v = 0, p = a.target;
		i64 t0 = clk();
		if (A == ADD && F == GPU) asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], 1;" : "=l"(v) : "l"(p) : "memory");
		if (A == ADD && F == SYSTEM) asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], 1;" : "=l"(v) : "l"(p) : "memory");
		if (A == CAS) asm volatile("atom.relaxed.sys.global.cas.b64 %0, [%1], %2, %3;" : "=l"(v) : "l"(p), "l"((u64)i), "l"((u64)i + 1) : "memory");
		if (A == EXCHANGE) asm volatile("atom.relaxed.sys.global.exch.b64 %0, [%1], %2;" : "=l"(v) : "l"(p), "l"((u64)i + 1) : "memory");
		if (A == REDUCE) asm volatile("red.relaxed.sys.global.add.u64 [%0], 1;" ::"l"(p) : "memory");
		row[i] = (u32)((A == REDUCE ? clk() : clk_after(v)) - t0);
		row2[i] = 0;
	}
	KEEP;
}
KERNEL(atomic_add_gpu) { atomic_body<ADD, GPU>(a); }
KERNEL(atomic_add_system) { atomic_body<ADD, SYSTEM>(a); }
KERNEL(atomic_cas_system) { atomic_body<CAS, SYSTEM>(a); }
KERNEL(atomic_exchange_system) { atomic_body<EXCHANGE, SYSTEM>(a); }
KERNEL(atomic_reduce_system) { atomic_body<REDUCE, SYSTEM>(a); }

// This side asks by a flag and waits for the answer; F stands before the flag. It
// looks for the first time after delay clocks.
template <int F> INLINE void ask_body(const gd_args &a)
{
	if (block() + 1 != blocks()) return;
	run x = begin(a, 0);
	u32 i, hits = 0;
	for (i = 0; i < a.n && !over(x, i, 32); i++) {
		u64 v, want = a.base + i + 1;
		rest(a.gap + (i * 7919) % 4000);
		i64 t0 = clk();
		fence<F>();
		store(a.flag, want);
		if (a.delay) {
			while (clk() - t0 < (i64)a.delay) { }
			v = load<VOLATILE>(a.in);
			hits += v >= want;
			if (v < want) v = await<VOLATILE>(x, a.in, want);
		} else {
			v = await<VOLATILE>(x, a.in, want);
		}
		u32 t = (u32)(clk_after(v) - t0);
		if (!x.bad && v != want) x.bad = GD_WRONG;
		if (x.bad) break;
		((u32 *)a.out)[i] = t;
	}
	x.r->hits = hits;
	finish(x);
	if (a.stop) store32(a.stop, 1);
}
KERNEL(ask) { ask_body<NONE>(a); }
KERNEL(ask_fenced) { ask_body<SYSTEM>(a); }

// This side answers.
template <int F> INLINE void answer_body(const gd_args &a)
{
	if (block() + 1 != blocks()) return;
	run x = begin(a, 0);
	for (u32 i = 0; i < a.n; i++) {
		u64 want = a.base + i + 1, v = await<VOLATILE>(x, a.in, want);
		if (!x.bad && v != want) x.bad = GD_WRONG;
		if (x.bad) break;
		fence<F>();
		store(a.flag, want);
	}
	finish(x);
}
KERNEL(answer) { answer_body<NONE>(a); }
KERNEL(answer_fenced) { answer_body<SYSTEM>(a); }

// Messages to a proxy thread: a 64-byte descriptor in a ring of the block's own,
// and a completion word of the block's own in host memory (in, a line each).
// FLAG: the body, then a release store of the sequence number. SELF: four
// 16-byte stores of one thread, each with the number. LANES: the same by four
// lanes in one instruction.
enum { FLAG, SELF, LANES };
template <int M> INLINE void ring_body(const gd_args &a)
{
	u32 lane = thread(), b = block();
	if (M != LANES && lane) return;
	run x;
	x.a = &a;
	x.bad = 0;
	x.end = timer() + a.budget;
	gd_report *r = (gd_report *)a.report + b;
	u64 ring = a.target + (u64)b * GD_RING * 64, in = a.in + (u64)b * 128, done = a.base;
	if (!lane) {
		r->g0 = timer();
		r->c0 = clk();
	}
	u32 i;
	for (i = 0; i < a.n && !x.bad; i++) {
		u64 m = a.base + i + 1;
		if (a.window == 1 && !lane) rest(a.gap + (i * 7919 + b * 104729) % 4000);
		if (M == LANES) warp();
		i64 t0 = clk();
		if (m > done + a.window) done = await<VOLATILE>(x, in, m - a.window);
		if (M == LANES) warp();
		u64 d = ring + ((u32)m & (GD_RING - 1)) * 64;
		u32 s = (u32)m;
		if (M == FLAG) {
			store16(d, s, b, s ^ b, 1);
			store16(d + 16, s, b, s + 1, 2);
			store16(d + 32, s, b, s + 2, 3);
			store(d + 48, ((u64)b << 32) | s);
			release_sys(d + 56, m);
		} else if (M == SELF) {
			store16(d, b, s ^ b, 1, s);
			store16(d + 16, b, s + 1, 2, s);
			store16(d + 32, b, s + 2, 3, s);
			store16(d + 48, b, s + 3, 4, s);
		} else if (lane < 4) {
			store16(d + lane * 16, b, lane ? s + lane : s ^ b, lane + 1, s);
		}
		if (a.window == 1) {
			done = await<VOLATILE>(x, in, m);
			i64 t1 = clk_after(done);
			if (!x.bad && done != m) x.bad = GD_WRONG;
			if (!lane) ((u32 *)a.out)[(u64)b * a.n + i] = (u32)(t1 - t0);
		}
		if (M == LANES) {
			u32 any;
			asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %1, 0;\n\tvote.sync.any.pred q, p, 0xffffffff;\n\tselp.u32 %0, 1, 0, q;\n\t}" : "=r"(any) : "r"(x.bad) : "memory");
			if (any && !x.bad) x.bad = GD_LATE;
		}
	}
	if (!x.bad) await<VOLATILE>(x, in, a.base + a.n);
	if (!lane) {
		r->c1 = clk();
		r->g1 = timer();
		r->bad = x.bad;
	}
}
KERNEL(ring_flag) { ring_body<FLAG>(a); }
KERNEL(ring_thread) { ring_body<SELF>(a); }
KERNEL(ring_lanes) { ring_body<LANES>(a); }

// ---- posting to a NIC's queue, without a NIC --------------------------------

INLINE u32 be32(u32 v) { u32 r; asm("prmt.b32 %0, %1, 0, 0x0123;" : "=r"(r) : "r"(v)); return r; }

// view is how a thread gets at a queue: BARE, everything it needs is in registers; else
// the fields are behind a pointer and are fetched where they are used, as a
// compiler must behind a fence.
template <int BARE> struct view {
	gd_queue *q;
	u64 wqes, record, doorbell, raddr;
	u32 mask, number, rkey;
};
template <int BARE> INLINE view<BARE> open(gd_queue *q)
{
	view<BARE> v;
	v.q = q;
	if (BARE) {
		v.wqes = q->wqes;
		v.record = q->record;
		v.doorbell = q->doorbell;
		v.raddr = q->raddr;
		v.mask = q->mask;
		v.number = q->number;
		v.rkey = q->rkey;
	}
	return v;
}
#define FIELD(v, name) (BARE ? (v).name : load<WEAK>((u64) & (v).q->name))
#define FIELD32(v, name) (BARE ? (v).name : load32_weak((u64) & (v).q->name))

// The WQE of an RDMA write with 8 inline bytes: control, remote address, inline
// header; unless BARE, the payload is copied word by word from GPU memory.
template <int BARE> INLINE void wqe(const view<BARE> &v, u64 index)
{
	u64 base = FIELD(v, wqes), raddr = FIELD(v, raddr);
	u32 mask = FIELD32(v, mask), number = FIELD32(v, number), rkey = FIELD32(v, rkey);
	u64 w = base + ((index & mask) << 6);
	store16_weak(w, be32(((u32)index & 0xffff) << 8 | 8), be32(number << 8 | 3), 8u << 24, 0);
	store16_weak(w + 16, be32((u32)(raddr >> 32)), be32((u32)raddr), rkey, 0);
	if (BARE) {
		store16_weak(w + 32, be32(8u | 0x80000000u), GD_PAYLOAD_0, GD_PAYLOAD_1, 0);
		return;
	}
	u64 src = load<WEAK>((u64)&v.q->payload);
	store32(w + 32, be32(8u | 0x80000000u));
#pragma unroll 1
	for (u32 k = 0; k < 2; k++) {
		u32 word = load32_weak(src + k * 4);
		asm volatile("st.global.u32 [%0], %1;" ::"l"(w + 36 + k * 4), "r"(word) : "memory");
	}
}

// What stands before record and doorbell: nothing; a release store at GPU scope;
// a full fence at GPU scope; a release store at system scope; a full fence there.
enum { O_NONE, O_GPU, O_DEVICE, O_SYSTEM_RELEASE, O_SYSTEM };

template <int O> INLINE void order()
{
	if (O == O_DEVICE) fence<GPU>();
	if (O == O_SYSTEM) fence<SYSTEM>();
}

template <int O, int BARE> INLINE void record(const view<BARE> &v, u64 index)
{
	u64 at = FIELD(v, record);
	u32 value = be32((u32)index & 0xffff);
	if (O == O_GPU) release32_gpu(at, value);
	else if (O == O_SYSTEM_RELEASE) release32_sys(at, value);
	else store32(at, value);
}

template <int O, int BARE> INLINE void doorbell(const view<BARE> &v, u64 index)
{
	u64 at = FIELD(v, doorbell);
	u32 number = FIELD32(v, number);
	u64 value = (u64)be32(number << 8) << 32 | be32(((u32)index & 0xffff) << 8);
	if (O == O_GPU) release_gpu(at, value);
	else if (O == O_SYSTEM_RELEASE) release_sys(at, value);
	else store(at, value);
}

// ring announces everything below index.
template <int O, int RECORD, int BARE> INLINE void ring(const view<BARE> &v, u64 index)
{
	if (RECORD) {
		order<O>();
		record<O, BARE>(v, index);
	}
	order<O>();
	doorbell<O, BARE>(v, index);
}

// next and advance are the queue's index, a word of GPU memory unless BARE.
template <int BARE> INLINE u64 next(const view<BARE> &v, u64 index) { return BARE ? index : load<WEAK>((u64)&v.q->producer); }
template <int BARE> INLINE void advance(const view<BARE> &v, u64 index)
{
	if (!BARE) asm volatile("st.global.u64 [%0], %1;" ::"l"((u64)&v.q->producer), "l"(index) : "memory");
}

// Posts by themselves: a rest before each, and before that, where count is not 0,
// the acquire with which a thread has seen the completion of the last.
template <int O, int RECORD, int BARE> INLINE void post_body(const gd_args &a)
{
	__shared__ u32 row[GD_ROW];
	run x = begin(a, block());
	view<BARE> v = open<BARE>((gd_queue *)a.queue);
	u32 i;
	for (i = 0; i < a.n && !over(x, i, 32); i++) {
		if (a.count) acquire();
		rest(a.gap);
		i64 t0 = clk();
		u64 index = next(v, i);
		wqe(v, index);
		ring<O, RECORD, BARE>(v, index + 1);
		advance(v, index + 1);
		row[i] = (u32)(clk() - t0);
	}
	finish(x);
	for (u32 k = 0; k < i; k++) ((u32 *)a.out)[k] = row[k];
}

// Posts as fast as they go, each block to a queue of its own, count WQEs a doorbell.
template <int O, int RECORD, int BARE> INLINE void stream_body(const gd_args &a)
{
	run x = begin(a, block());
	view<BARE> v = open<BARE>((gd_queue *)a.queue + block());
	u64 index = 0;
	for (u32 i = 0; i < a.n && !over(x, i, 256); i++) {
		index = next(v, index);
		for (u32 k = 0; k < a.count; k++, index++) wqe(v, index);
		ring<O, RECORD, BARE>(v, index);
		advance(v, index);
	}
	fence<SYSTEM>();
	finish(x);
}

// All blocks post to one queue: a slot by an atomic, the fence that makes the WQE
// visible, then record and doorbell in the order of the slots.
template <int O, int RECORD, int BARE> INLINE void shared_body(const gd_args &a)
{
	run x = begin(a, block());
	view<BARE> v = open<BARE>((gd_queue *)a.queue);
	for (u32 i = 0; i < a.n && !over(x, i, 256); i++) {
		u64 slot;
		asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], 1;" : "=l"(slot) : "l"((u64)&v.q->reserved) : "memory");
		wqe(v, slot);
		order<O>();
		// The turn is the slot's when it has come; later turns cannot pass it.
		await<ACQUIRE_GPU>(x, (u64)&v.q->turn, slot);
		if (x.bad) break;
		if (RECORD) {
			record<O, BARE>(v, slot + 1);
			order<O>();
		}
		doorbell<O, BARE>(v, slot + 1);
		release_gpu((u64)&v.q->turn, slot + 1);
	}
	finish(x);
}
#define FORMS(kind, name, O)                                                                                           \
	KERNEL(kind##_##name) { kind##_body<O, 0, 0>(a); }                                                             \
	KERNEL(kind##_##name##_record) { kind##_body<O, 1, 0>(a); }                                                    \
	KERNEL(kind##_##name##_bare) { kind##_body<O, 0, 1>(a); }                                                      \
	KERNEL(kind##_##name##_record_bare) { kind##_body<O, 1, 1>(a); }
FORMS(post, none, O_NONE)
FORMS(post, gpu, O_GPU)
FORMS(post, device, O_DEVICE)
FORMS(post, system_release, O_SYSTEM_RELEASE)
FORMS(post, system, O_SYSTEM)
FORMS(stream, none, O_NONE)
FORMS(stream, gpu, O_GPU)
FORMS(stream, device, O_DEVICE)
FORMS(stream, system_release, O_SYSTEM_RELEASE)
FORMS(stream, system, O_SYSTEM)
FORMS(shared, device, O_DEVICE)
FORMS(shared, system, O_SYSTEM)

// ---- what launch, notice and background need --------------------------------

KERNEL(empty) { }
KERNEL(set) { store(a.flag, a.base); }
KERNEL(work)
{
	u64 t = timer();
	while (timer() - t < a.delay) { }
	store(a.flag, a.base);
}

// Traffic until stop or budget: every thread goes through the region, 16 bytes a
// time, storing or loading.
template <int READ> INLINE void noise_body(const gd_args &a)
{
	u64 end = timer() + a.budget, n = a.bytes / 16, step = (u64)blocks() * threads();
	u32 sum = 0, round = 0;
	while (!load32(a.stop) && timer() < end) {
		round++;
		for (u64 k = (u64)block() * threads() + thread(); k < n; k += step) {
			u64 p = a.target + k * 16;
			if (READ) {
				u32 v, w, y, z;
				asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v), "=r"(w), "=r"(y), "=r"(z) : "l"(p) : "memory");
				sum += v ^ w ^ y ^ z;
			} else {
				store16_weak(p, round, round, round, (u32)k);
			}
			if (load32(a.stop)) break;
		}
	}
	if (READ && sum == 0x12345) store32(a.target, sum);
}
KERNEL(noise_store) { noise_body<0>(a); }
KERNEL(noise_load) { noise_body<1>(a); }

// The SMs copy.
KERNEL(copy)
{
	u64 n = a.bytes / 16, step = (u64)blocks() * threads();
	for (u64 k = (u64)block() * threads() + thread(); k < n; k += step) {
		u32 v, w, y, z;
		asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v), "=r"(w), "=r"(y), "=r"(z) : "l"(a.source + k * 16) : "memory");
		store16_weak(a.target + k * 16, v, w, y, z);
	}
}

//go:build cgo && linux

#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#define relax() _mm_pause()
#else
#define relax() __asm__ volatile("yield" ::: "memory")
#endif

typedef _Atomic uint64_t word;

static inline int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void busy(int64_t ns)
{
	int64_t t = now();
	while (now() - t < ns)
		relax();
}

static void pin(int cpu)
{
	cpu_set_t s;
	if (cpu < 0)
		return;
	CPU_ZERO(&s);
	CPU_SET(cpu, &s);
	pthread_setaffinity_np(pthread_self(), sizeof s, &s);
}

// x is one experiment under way.
struct x {
	struct gd_device *d;
	struct gd_exp *e;
	struct place *p;
	int64_t end;
	int rc;
};

static int over(struct x *x) { return *x->e->stop || now() > x->end; }

static int fail(struct x *x, int rc, const char *why)
{
	if (!x->rc) {
		x->rc = rc;
		snprintf(x->e->err, sizeof x->e->err, "%s", why);
	}
	return x->rc;
}

// refused sorts an error of the driver: most leave the context as it was, the
// ones of a kernel's end do not.
static int refused(struct x *x, const char *call, CUresult r)
{
	char what[64];
	if (x->rc)
		return x->rc;
	snprintf(what, sizeof what, "%.*s", (int)strcspn(call, "("), call);
	gd_explain(what, r, x->e->err, sizeof x->e->err);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		x->rc = GD_E_MEMORY;
	else if (r == CUDA_ERROR_ECC_UNCORRECTABLE || (r >= CUDA_ERROR_ILLEGAL_ADDRESS && r < CUDA_ERROR_NOT_PERMITTED && r != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES))
		x->rc = GD_E_LOST;
	else
		x->rc = GD_E_REFUSED;
	return x->rc;
}

// CK returns from a function of this experiment when a call fails.
#define CK(call)                                                                                                       \
	do {                                                                                                           \
		CUresult r_ = lib.call;                                                                                \
		if (r_)                                                                                                \
			return refused(x, #call, r_);                                                                  \
	} while (0)
#define DO(call)                                                                                                       \
	do {                                                                                                           \
		if (call)                                                                                              \
			return x->rc;                                                                                  \
	} while (0)

static word *host_word(struct x *x, int at) { return (word *)(x->d->words + at); }

// Flags between GPU and CPU lie in the page of the offset.
static word *flag_word(struct x *x, int at) { return (word *)(x->d->big + x->e->offset + at); }

static void flags_at(struct x *x, struct gd_args *a)
{
	a->in = x->d->big_at + x->e->offset + AT_IN;
	a->flag = x->d->big_at + x->e->offset + AT_FLAG;
}

static int function(struct x *x, struct place *p, const char *name, CUfunction *f)
{
	CK(module_function(f, p->module, name));
	return 0;
}

static struct gd_args args(struct x *x)
{
	struct gd_args a;
	struct gd_exp *e = x->e;
	memset(&a, 0, sizeof a);
	a.out = x->p->out;
	a.report = x->p->reports;
	a.abort = x->d->words_at + AT_ABORT;
	a.in = x->d->words_at + AT_IN;
	a.flag = x->d->words_at + AT_FLAG;
	a.queue = x->p->queues;
	a.base = x->d->base;
	a.n = e->n;
	a.count = e->count;
	a.window = e->window;
	a.stride = e->stride;
	a.gap = e->gap;
	int64_t left = x->end - now();
	a.budget = left > 0 ? left : 0;
	return a;
}

static int launch_in(struct x *x, struct place *p, CUfunction f, int blocks, int threads, CUstream s, struct gd_args *a)
{
	void *params[] = {a, NULL};
	CK(launch(f, blocks, 1, 1, threads, 1, 1, 0, s, params, NULL));
	(void)p;
	return 0;
}

static int launch(struct x *x, const char *name, int blocks, int threads, CUstream s, struct gd_args *a)
{
	CUfunction f;
	DO(function(x, x->p, name, &f));
	return launch_in(x, x->p, f, blocks, threads, s, a);
}

// finish waits for a stream. Past the deadline it tells the kernels to end, and
// gives them two seconds.
static int finish(struct x *x, CUstream s)
{
	int64_t grace = 0;
	for (;;) {
		CUresult r = lib.stream_query(s);
		if (r == CUDA_SUCCESS) {
			if (grace)
				return fail(x, *x->e->stop ? GD_E_STOPPED : GD_E_LATE, *x->e->stop ? "stopped" : "not done by its deadline, and stopped");
			return x->rc;
		}
		if (r != CUDA_ERROR_NOT_READY)
			return refused(x, "kernel", r);
		if (!grace && over(x)) {
			grace = now() + 2000000000;
			*(volatile uint32_t *)(x->d->words + AT_ABORT) = 1;
		}
		if (grace && now() > grace) {
			x->d->hung = 1;
			x->rc = 0;
			return fail(x, GD_E_HUNG, "a kernel does not end although its time is up: the GPU or its driver hangs");
		}
		struct timespec t = {0, 20000};
		nanosleep(&t, NULL);
	}
}

// reports checks how the blocks ended and takes the clock that they ran at; span,
// if wanted, is from the first's begin to the last's end.
static int reports(struct x *x, struct place *p, int blocks, int64_t *span)
{
	struct gd_report r[GD_QUEUES];
	uint64_t lo = ~0ull, hi = 0;
	CK(to_host(r, p->reports, blocks * sizeof *r));
	for (int i = 0; i < blocks; i++) {
		switch (r[i].bad) {
		case 0: break;
		case GD_WRONG: return fail(x, GD_E_WRONG, "a flag came out of order");
		case GD_ABORTED: return fail(x, *x->e->stop ? GD_E_STOPPED : GD_E_LATE, "stopped");
		default: return fail(x, GD_E_LATE, "a kernel gave up at its deadline");
		}
		lo = r[i].g0 < lo ? r[i].g0 : lo;
		hi = r[i].g1 > hi ? r[i].g1 : hi;
	}
	if (r[0].g1 <= r[0].g0 || r[0].c1 <= r[0].c0)
		return fail(x, GD_E_WRONG, "the GPU's clocks stand still");
	x->e->hz = (int64_t)((double)(r[0].c1 - r[0].c0) / (double)(r[0].g1 - r[0].g0) * 1e9);
	x->e->hits = r[0].hits;
	if (span)
		*span = (int64_t)(hi - lo);
	return 0;
}

// clocks fetches n counts and makes picoseconds of them.
static int clocks(struct x *x, CUdeviceptr from, int64_t *to, int n, double div)
{
	uint32_t *c = malloc((size_t)n * 4);
	if (!c)
		return fail(x, GD_E_MEMORY, "no memory for the samples");
	CUresult r = lib.to_host(c, from, (size_t)n * 4);
	if (r) {
		free(c);
		return refused(x, "cuMemcpyDtoH", r);
	}
	for (int i = 0; i < n; i++)
		to[i] = (int64_t)((double)c[i] * 1e12 / (double)x->e->hz / div + 0.5);
	free(c);
	return 0;
}

static CUdeviceptr target(struct x *x)
{
	switch (x->e->memory) {
	case GD_HOST: return x->d->big_at + x->e->offset;
	case GD_PEER: return x->d->peer.big + x->e->offset;
	default: return x->p->big + x->e->offset;
	}
}

// warm loads a kernel's code onto the GPU, by a launch that does nothing: the driver
// loads it when it is first launched, and waits for all traffic to do so.
static int warm(struct x *x, const char *name)
{
	struct gd_args a = args(x);
	a.n = 0;
	a.budget = 0;
	a.stop = x->p->words + AT_STOP;
	a.target = x->p->big;
	DO(launch(x, name, 1, 1, x->p->stream, &a));
	return finish(x, x->p->stream);
}

// ---- traffic beside the measured kernel --------------------------------------

enum { COPIES = 400 }; // of CHUNK bytes, queued at once: about 0.1 s at full rate

static int background(struct x *x)
{
	struct gd_exp *e = x->e;
	struct gd_args a = args(x);
	if (e->background == GD_QUIET)
		return 0;
	const char *noise = e->background == GD_LOAD_HOST ? "noise_load" : "noise_store";
	DO(warm(x, e->kernel));
	DO(warm(x, noise));
	CK(memset8(x->p->words + AT_STOP, 0, 4));
	int both = e->background == GD_COPY_BOTH;
	if (both || e->background == GD_COPY_TO_HOST)
		for (int i = 0; i < COPIES; i++)
			CK(to_host_async(x->d->big + HALF, x->p->big + HALF, CHUNK, x->p->side));
	if (both || e->background == GD_COPY_TO_GPU)
		for (int i = 0; i < COPIES; i++)
			CK(to_gpu_async(x->p->big + HALF + CHUNK, x->d->big + HALF + CHUNK, CHUNK, x->p->side2));
	if (e->background >= GD_STORE_HOST) {
		a.stop = x->p->words + AT_STOP;
		a.target = e->background == GD_STORE_GPU ? x->p->big + HALF : x->d->big_at + HALF;
		a.bytes = e->background == GD_STORE_GPU ? HALF : HALF / 2;
		DO(launch(x, noise, e->ctas, 512, x->p->side, &a));
	}
	busy(1500000);
	return 0;
}

// outlasted checks that the traffic was there until the end, then ends it.
static int outlasted(struct x *x)
{
	int kind = x->e->background, gone = 0;
	if (kind == GD_QUIET || x->d->hung)
		return x->rc;
	if (kind == GD_COPY_TO_HOST || kind == GD_COPY_BOTH)
		gone |= lib.stream_query(x->p->side) == CUDA_SUCCESS;
	if (kind == GD_COPY_TO_GPU || kind == GD_COPY_BOTH)
		gone |= lib.stream_query(x->p->side2) == CUDA_SUCCESS;
	CUresult r = lib.memset8(x->p->words + AT_STOP, 1, 1);
	if (r)
		return refused(x, "cuMemsetD8", r);
	x->end += 3000000000; // the copies that are queued
	finish(x, x->p->side);
	finish(x, x->p->side2);
	if (gone)
		fail(x, GD_E_LATE, "the background traffic ended before the measurement");
	return x->rc;
}

// ---- kernels that time themselves ---------------------------------------------

// queues lays out so many, and returns where: a single one lies in the page of the
// offset, with the payload, as a library's words lie together.
static int queues(struct x *x, int blocks, CUdeviceptr *at)
{
	struct gd_queue *q = calloc(GD_QUEUES, sizeof *q);
	uint32_t payload[2] = {GD_PAYLOAD_0, GD_PAYLOAD_1};
	if (!q)
		return fail(x, GD_E_MEMORY, "no memory for the queues");
	*at = blocks == 1 ? x->p->big + x->e->offset : x->p->queues;
	CUdeviceptr payload_at = blocks == 1 ? *at + 2048 : x->p->words + AT_PAYLOAD;
	for (int i = 0; i < blocks; i++) {
		q[i].wqes = x->p->wqes + (CUdeviceptr)i * GD_DEPTH * 64;
		q[i].record = x->p->records + (CUdeviceptr)i * 128;
		q[i].doorbell = x->d->words_at + AT_DOORBELL + (CUdeviceptr)i * 128;
		q[i].payload = payload_at;
		q[i].raddr = 0x7f0000001000;
		q[i].mask = GD_DEPTH - 1;
		q[i].number = 0x100 + i;
		q[i].rkey = 0x12345678;
	}
	CUresult r = lib.to_gpu(*at, q, blocks * sizeof *q);
	free(q);
	if (r)
		return refused(x, "cuMemcpyHtoD", r);
	CK(to_gpu(payload_at, payload, sizeof payload));
	CK(memset8(x->p->wqes, 0xee, (size_t)blocks * GD_DEPTH * 64));
	memset(x->d->words + AT_DOORBELL, 0xee, (size_t)blocks * 128);
	return 0;
}

static uint32_t be32(uint32_t v) { return __builtin_bswap32(v); }

// posted checks the WQEs that are still in each queue, and its doorbell.
static int posted(struct x *x, int blocks, uint64_t each)
{
	uint32_t *w = malloc(GD_DEPTH * 64);
	if (!w)
		return fail(x, GD_E_MEMORY, "no memory to check the queues");
	for (int b = 0; b < blocks && !x->rc; b++) {
		CUresult r = lib.to_host(w, x->p->wqes + (CUdeviceptr)b * GD_DEPTH * 64, GD_DEPTH * 64);
		if (r) {
			refused(x, "cuMemcpyDtoH", r);
			break;
		}
		for (uint64_t i = each > GD_DEPTH ? each - GD_DEPTH : 0; i < each; i++) {
			uint32_t *s = w + (i & (GD_DEPTH - 1)) * 16;
			if (s[0] != be32(((uint32_t)i & 0xffff) << 8 | 8) || s[1] != be32((0x100u + b) << 8 | 3) || s[6] != 0x12345678 || s[9] != GD_PAYLOAD_0 || s[10] != GD_PAYLOAD_1)
				x->e->wrong++;
		}
		uint64_t db = *(volatile uint64_t *)(x->d->words + AT_DOORBELL + (size_t)b * 128);
		if (db != ((uint64_t)be32((0x100u + b) << 8) << 32 | be32(((uint32_t)each & 0xffff) << 8)))
			x->e->wrong++;
	}
	free(w);
	if (x->e->wrong)
		fail(x, GD_E_WRONG, "WQEs or doorbells are not what was posted");
	return x->rc;
}

// atomics checks what the atomics left behind.
static int counted(struct x *x)
{
	uint64_t v = 0;
	CK(to_host(&v, target(x), 8));
	if (v != (uint64_t)x->e->n)
		return fail(x, GD_E_WRONG, "the atomics' sum is wrong");
	return 0;
}

static int samples(struct x *x)
{
	struct gd_exp *e = x->e;
	struct gd_args a = args(x);
	int post = !strncmp(e->kernel, "post_", 5), atomic = !strncmp(e->kernel, "atomic_", 7);
	a.target = target(x);
	a.out2 = e->out2 ? x->p->out2 : 0;
	a.stop = x->p->words + AT_STOP;
	if (!strncmp(e->kernel, "load_", 5))
		CK(memset8(x->p->big, 0, 4096));
	if (atomic) {
		uint64_t zero = 0;
		CK(to_gpu(a.target, &zero, 8));
	}
	if (post)
		DO(queues(x, 1, (CUdeviceptr *)&a.queue));
	DO(background(x));
	if (!launch(x, e->kernel, e->blocks, 1, x->p->stream, &a))
		finish(x, x->p->stream);
	outlasted(x);
	DO(x->rc);
	DO(reports(x, x->p, 1, NULL));
	DO(clocks(x, x->p->out, e->out, e->n, e->count > 0 && !strncmp(e->kernel, "store_", 6) ? e->count : 1));
	if (e->out2) {
		DO(clocks(x, x->p->out2, e->out2, e->n, 1));
		e->n2 = e->n;
	}
	if (post)
		DO(posted(x, 1, e->n));
	if (atomic)
		DO(counted(x));
	return e->n;
}

static int spin(struct x *x)
{
	struct gd_args a = args(x);
	a.delay = (uint32_t)x->e->delay_ns;
	DO(launch(x, "spin", 1, 1, x->p->stream, &a));
	DO(finish(x, x->p->stream));
	return reports(x, x->p, 1, NULL);
}

static int polls(struct x *x)
{
	struct gd_exp *e = x->e;
	struct gd_args a = args(x);
	a.target = target(x);
	a.stop = x->p->words + AT_STOP;
	if (e->memory == GD_HOST)
		memset(x->d->big, 0, GD_QUEUES * 128);
	else
		CK(memset8(a.target, 0, GD_QUEUES * 128));
	DO(background(x));
	if (!launch(x, e->kernel, e->blocks, 1, x->p->stream, &a))
		finish(x, x->p->stream);
	outlasted(x);
	DO(x->rc);
	DO(reports(x, x->p, e->blocks, NULL));
	DO(clocks(x, x->p->out, e->out, e->n * e->blocks, GD_BATCH));
	return e->n * e->blocks;
}

static int rate(struct x *x)
{
	struct gd_exp *e = x->e;
	struct gd_args a = args(x);
	int shared = !strncmp(e->kernel, "shared_", 7);
	DO(queues(x, shared ? 1 : e->blocks, (CUdeviceptr *)&a.queue));
	DO(launch(x, e->kernel, e->blocks, 1, x->p->stream, &a));
	DO(finish(x, x->p->stream));
	int64_t span = 0;
	DO(reports(x, x->p, e->blocks, &span));
	e->messages = (int64_t)e->blocks * e->n * (shared ? 1 : e->count);
	e->elapsed_ps = span * 1000;
	if (shared)
		DO(posted(x, 1, e->messages));
	else
		DO(posted(x, e->blocks, (uint64_t)e->n * e->count));
	return 0;
}

// ---- a thread on the other side -------------------------------------------------

struct echo {
	struct x *x;
	_Atomic int quit, ready;
	int64_t wrong;
};

static void *answer(void *p)
{
	struct echo *t = p;
	word *flag = flag_word(t->x, AT_FLAG), *in = flag_word(t->x, AT_IN);
	uint64_t i = t->x->d->base + 1, v;
	pin(t->x->e->cpus[1]);
	t->ready = 1;
	while (!atomic_load_explicit(&t->quit, memory_order_relaxed)) {
		if ((v = atomic_load_explicit(flag, memory_order_acquire)) < i) {
			relax();
			continue;
		}
		t->wrong += v != i;
		atomic_store_explicit(in, i++, memory_order_release);
	}
	return NULL;
}

static int spawn(struct x *x, pthread_t *t, void *(*f)(void *), void *arg)
{
	return pthread_create(t, NULL, f, arg) ? fail(x, GD_E_MEMORY, "no thread for the other side") : 0;
}

static int ask(struct x *x)
{
	struct gd_exp *e = x->e;
	struct echo t = {.x = x};
	pthread_t th;
	*flag_word(x, AT_FLAG) = *flag_word(x, AT_IN) = x->d->base;
	struct gd_args a = args(x);
	flags_at(x, &a);
	a.stop = x->p->words + AT_STOP;
	if (e->delay_ns) {
		// The delay is in clocks, and a kernel that spins tells what one is now.
		struct gd_args s = args(x);
		s.delay = 2000000;
		DO(launch(x, "spin", 1, 1, x->p->stream, &s));
		DO(finish(x, x->p->stream));
		DO(reports(x, x->p, 1, NULL));
		a.delay = (uint32_t)((double)e->delay_ns * (double)e->hz / 1e9);
	}
	DO(spawn(x, &th, answer, &t));
	while (!t.ready)
		sched_yield();
	if (!background(x) && !launch(x, e->kernel, e->blocks, 1, x->p->stream, &a))
		finish(x, x->p->stream);
	outlasted(x);
	t.quit = 1;
	pthread_join(th, NULL);
	x->d->base += e->n;
	e->wrong = t.wrong;
	DO(x->rc);
	if (t.wrong)
		return fail(x, GD_E_WRONG, "the thread saw flags out of order");
	DO(reports(x, x->p, 1, NULL));
	DO(clocks(x, x->p->out, e->out, e->n, 1));
	return e->n;
}

// told polls a word of host memory until it holds v.
static int told(struct x *x, word *w, uint64_t v)
{
	uint64_t got;
	for (uint32_t spin = 0; (got = atomic_load_explicit(w, memory_order_acquire)) != v; spin++) {
		if (got > v)
			return fail(x, GD_E_WRONG, "a flag came out of order");
		if ((spin & 1023) == 1023 && over(x))
			return fail(x, *x->e->stop ? GD_E_STOPPED : GD_E_LATE, "no flag from the GPU by the deadline");
		relax();
	}
	return 0;
}

static int asked(struct x *x)
{
	struct gd_exp *e = x->e;
	word *in = flag_word(x, AT_IN), *flag = flag_word(x, AT_FLAG);
	uint64_t *from = (uint64_t *)(x->d->words + AT_PAYLOAD);
	uint64_t base = x->d->base;
	struct gd_args a = args(x);
	int i;
	flags_at(x, &a);
	*in = *flag = base;
	if (e->how == GD_STREAM_WRITE && !lib.stream_write)
		return fail(x, GD_E_REFUSED, "this driver has no stream memory operations");
	if (e->how != GD_STORE) {
		a.in = x->p->words + AT_IN;
		CK(to_gpu(a.in, &base, 8));
	}
	DO(launch(x, e->kernel, e->blocks, 1, x->p->stream, &a));
	busy(200000);
	for (i = 0; i < e->n && !x->rc; i++) {
		uint64_t want = base + i + 1;
		busy(500 + ((int64_t)i * 7919) % 1500);
		from[i & 63] = want;
		int64_t t0 = now(), t1;
		if (e->how == GD_STORE)
			atomic_store_explicit(in, want, memory_order_release);
		else {
			CUresult r = e->how == GD_STREAM_WRITE ? lib.stream_write(x->p->side, a.in, want, 0) : lib.to_gpu_async(a.in, &from[i & 63], 8, x->p->side);
			if (r)
				refused(x, "asking", r);
		}
		t1 = now();
		if (x->rc || told(x, flag, want))
			break;
		e->out[i] = (now() - t0) * 1000;
		if (e->out2)
			e->out2[i] = (t1 - t0) * 1000;
	}
	x->d->base += e->n;
	if (x->rc)
		*(volatile uint32_t *)(x->d->words + AT_ABORT) = 1;
	finish(x, x->p->stream);
	finish(x, x->p->side);
	DO(x->rc);
	DO(reports(x, x->p, 1, NULL));
	e->n2 = e->out2 ? i : 0;
	return i;
}

// ---- proxy threads -----------------------------------------------------------------

struct desc {
	uint32_t w[16];
};

struct proxies {
	struct x *x;
	_Atomic int quit, ready;
	_Atomic int64_t wrong;
	_Atomic int futex;
	int efd, first, form;
};

struct proxy {
	struct proxies *all;
	int k;
};

static int arrived(int form, const struct desc *d, uint64_t m)
{
	const volatile uint32_t *w = d->w;
	uint32_t s = (uint32_t)m;
	if (form == 0) // a flag behind the body
		return atomic_load_explicit((word *)&((struct desc *)d)->w[14], memory_order_acquire) == m;
	int have = w[3] == s && w[7] == s && w[11] == s && w[15] == s;
	atomic_thread_fence(memory_order_acquire);
	return have;
}

static int sound(int form, const struct desc *d, uint64_t m, uint32_t b)
{
	const volatile uint32_t *w = d->w;
	uint32_t s = (uint32_t)m;
	if (form == 0)
		return w[0] == s && w[1] == b && w[6] == s + 1 && w[10] == s + 2 && w[12] == s && w[13] == b;
	return w[0] == b && w[1] == (s ^ b) && w[5] == s + 1 && w[9] == s + 2 && w[13] == s + 3;
}

static void *serve(void *p)
{
	struct proxy *t = p;
	struct proxies *all = t->all;
	struct x *x = all->x;
	struct gd_exp *e = x->e;
	uint64_t next[GD_QUEUES];
	word doorbell[GD_QUEUES];
	for (int b = 0; b < e->blocks; b++)
		next[b] = x->d->base + 1;
	pin(e->cpus[1 + t->k % (GD_CPUS - 2)]);
	prctl(PR_SET_TIMERSLACK, 1ul);
	all->ready++;
	while (!atomic_load_explicit(&all->quit, memory_order_relaxed)) {
		int found = 0;
		for (int b = t->k; b < e->blocks; b += e->proxies) {
			uint64_t m = next[b];
			const struct desc *d = (struct desc *)x->d->ring + (size_t)b * GD_RING + (m & (GD_RING - 1));
			if (!arrived(all->form, d, m))
				continue;
			found = 1;
			if (!sound(all->form, d, m, b))
				all->wrong++;
			atomic_store_explicit(&doorbell[b], m, memory_order_release); // where a NIC's would be
			atomic_store_explicit((word *)(x->d->comp + (size_t)b * 128), m, memory_order_release);
			next[b] = m + 1;
		}
		if (found)
			continue;
		switch (e->wait) {
		case GD_YIELD: sched_yield(); break;
		case GD_SLEEP_1US:
		case GD_SLEEP_50US: {
			struct timespec s = {0, e->wait == GD_SLEEP_1US ? 1000 : 50000};
			nanosleep(&s, NULL);
			break;
		}
		case GD_FUTEX:
			if (!atomic_exchange(&all->futex, 0)) {
				struct timespec s = {0, 100000000};
				syscall(SYS_futex, &all->futex, FUTEX_WAIT_PRIVATE, 0, &s, NULL, 0);
				all->futex = 0;
			}
			break;
		case GD_EVENTFD: {
			struct pollfd f = {all->efd, POLLIN, 0};
			uint64_t v;
			if (poll(&f, 1, 100) > 0 && read(all->efd, &v, 8) != 8)
				all->wrong++;
			break;
		}
		default: relax();
		}
	}
	return NULL;
}

static void kick(struct proxies *all)
{
	uint64_t one = 1;
	if (all->x->e->wait == GD_FUTEX) {
		all->futex = 1;
		syscall(SYS_futex, &all->futex, FUTEX_WAKE_PRIVATE, 64, NULL, NULL, 0);
	} else if (all->x->e->wait == GD_EVENTFD && write(all->efd, &one, 8) != 8) {
		all->wrong++;
	}
}

// watch polls the one ring for a proxy that sleeps, as an interrupt would.
static void *watch(void *p)
{
	struct proxies *all = p;
	struct x *x = all->x;
	uint64_t m = x->d->base + 1;
	pin(x->e->cpus[GD_CPUS - 1]);
	all->ready++;
	while (!atomic_load_explicit(&all->quit, memory_order_relaxed)) {
		if (!arrived(all->form, (struct desc *)x->d->ring + (m & (GD_RING - 1)), m)) {
			relax();
			continue;
		}
		m++;
		kick(all);
	}
	return NULL;
}

static void *compete(void *p)
{
	struct proxies *all = p;
	volatile uint64_t n = 0;
	pin(all->x->e->cpus[1]);
	all->ready++;
	while (!atomic_load_explicit(&all->quit, memory_order_relaxed))
		n = n + 1;
	return NULL;
}

static int proxy(struct x *x)
{
	enum { THREADS = 16 };
	struct gd_exp *e = x->e;
	struct proxies all = {.x = x, .efd = -1, .form = strcmp(e->kernel, "ring_flag") ? 1 : 0};
	struct proxy each[THREADS];
	pthread_t th[THREADS];
	int threads = 0, sleeps = e->wait == GD_FUTEX || e->wait == GD_EVENTFD;
	if (e->proxies + e->competing + sleeps > THREADS || e->blocks > GD_QUEUES || e->window > GD_RING)
		return fail(x, GD_E_REFUSED, "more threads, blocks or messages in flight than this program lays out");
	if (e->wait == GD_EVENTFD && (all.efd = eventfd(0, EFD_CLOEXEC)) < 0)
		return fail(x, GD_E_MEMORY, strerror(errno));
	for (int b = 0; b < e->blocks; b++)
		*(word *)(x->d->comp + (size_t)b * 128) = x->d->base;
	for (int i = 0; i < e->proxies && !x->rc; i++) {
		each[i] = (struct proxy){&all, i};
		if (!spawn(x, &th[threads], serve, &each[i]))
			threads++;
	}
	for (int i = 0; i < e->competing && !x->rc; i++)
		if (!spawn(x, &th[threads], compete, &all))
			threads++;
	if (sleeps && !x->rc && !spawn(x, &th[threads], watch, &all))
		threads++;
	while (!x->rc && all.ready < threads)
		usleep(100);
	if (!x->rc) {
		struct gd_args a = args(x);
		usleep(2000);
		a.target = x->d->ring_at;
		a.in = x->d->comp_at;
		if (!launch(x, e->kernel, e->blocks, 32, x->p->stream, &a))
			finish(x, x->p->stream);
	}
	all.quit = 1;
	kick(&all);
	for (int i = 0; i < threads; i++)
		pthread_join(th[i], NULL);
	if (all.efd >= 0)
		close(all.efd);
	x->d->base += e->n + 1;
	DO(x->rc);
	if ((e->wrong = all.wrong))
		return fail(x, GD_E_WRONG, "descriptors arrived with wrong contents");
	int64_t span = 0;
	DO(reports(x, x->p, e->blocks, &span));
	e->messages = (int64_t)e->blocks * e->n;
	e->elapsed_ps = span * 1000;
	if (e->window != 1)
		return 0;
	DO(clocks(x, x->p->out, e->out, e->n * e->blocks, 1));
	return e->n * e->blocks;
}

// ---- launches, notices, copies ----------------------------------------------------

static int settle(struct x *x)
{
	struct gd_args a = args(x);
	for (int i = 0; i < 100; i++)
		DO(launch(x, "empty", 1, 1, x->p->stream, &a));
	return finish(x, x->p->stream);
}

static int graph(struct x *x, CUfunction f, struct gd_args *a, int kernels, CUgraphExec *exec)
{
	CUgraph g = NULL;
	if (!lib.begin_capture || !lib.end_capture || !lib.graph_instantiate || !lib.graph_launch)
		return fail(x, GD_E_REFUSED, "this driver has no graphs");
	CK(begin_capture(x->p->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (int i = 0; i < kernels; i++)
		launch_in(x, x->p, f, 1, 1, x->p->stream, a);
	CUresult r = lib.end_capture(x->p->stream, &g);
	if (r)
		return refused(x, "cuStreamEndCapture", r);
	if (!x->rc && (r = lib.graph_instantiate(exec, g, 0)))
		refused(x, "cuGraphInstantiateWithFlags", r);
	lib.graph_destroy(g);
	return x->rc;
}

// launches times launches one by one: e->how until the first store is seen, or
// until the stream is waited for.
static int launches(struct x *x)
{
	struct gd_exp *e = x->e;
	word *flag = host_word(x, AT_FLAG);
	CUfunction set, empty;
	CUgraphExec exec = NULL;
	struct gd_args a = args(x);
	int store = e->how == GD_FIRST_STORE || e->how == GD_GRAPH_STORE, i;
	DO(function(x, x->p, "set", &set));
	DO(function(x, x->p, "empty", &empty));
	DO(settle(x));
	*flag = 0;
	a.base = 7;
	if (e->how == GD_GRAPH_STORE || e->how == GD_GRAPH_SYNC)
		DO(graph(x, store ? set : empty, &a, e->count, &exec));
	for (i = 0; i < e->n && !x->rc && !over(x); i++) {
		busy(5000);
		a.base = 1;
		*flag = 0;
		int64_t t0 = now();
		CUresult r = 0;
		if (exec)
			r = lib.graph_launch(exec, x->p->stream);
		else
			launch_in(x, x->p, store ? set : empty, 1, 1, x->p->stream, &a);
		int64_t t1 = now();
		if (store && !r && !x->rc)
			told(x, flag, exec ? 7 : 1);
		int64_t t2 = now();
		if (!r)
			r = lib.stream_sync(x->p->stream);
		e->out[i] = ((store ? t2 : now()) - t0) * 1000;
		if (e->out2)
			e->out2[i] = (t1 - t0) * 1000;
		if (r)
			refused(x, exec ? "cuGraphLaunch" : "cuStreamSynchronize", r);
	}
	if (exec)
		lib.graph_exec_destroy(exec);
	e->n2 = e->out2 ? i : 0;
	return x->rc ? x->rc : i;
}

// seer notes when a polling thread sees the flag of the kernel.
struct seer {
	struct x *x;
	word want, at;
	_Atomic int quit;
};

static void *see(void *p)
{
	struct seer *s = p;
	word *flag = host_word(s->x, AT_FLAG);
	uint64_t seen = 0, w;
	pin(s->x->e->cpus[GD_CPUS - 1]);
	while (!atomic_load_explicit(&s->quit, memory_order_relaxed)) {
		if ((w = atomic_load_explicit(&s->want, memory_order_acquire)) == seen) {
			relax();
			continue;
		}
		while (atomic_load_explicit(flag, memory_order_acquire) != w && !atomic_load_explicit(&s->quit, memory_order_relaxed))
			;
		atomic_store_explicit(&s->at, now(), memory_order_release);
		seen = w;
	}
	return NULL;
}

static void called_back(void *p) { atomic_store_explicit((word *)p, now(), memory_order_release); }

static int notice_one(struct x *x, struct seer *s, uint64_t v, CUfunction work, CUfunction set, int64_t *out)
{
	struct gd_exp *e = x->e;
	struct place *p = x->p;
	word *mark = host_word(x, AT_MARK);
	static word called;
	uint64_t copied = v;
	struct gd_args a = args(x), b = a;
	int64_t t = 0;
	a.delay = (uint32_t)e->delay_ns;
	a.base = b.base = v;
	b.flag = x->d->words_at + AT_MARK;
	called = 0;
	s->at = 0;
	if (e->how == GD_BY_COPY)
		CK(to_gpu(p->words + AT_IN, &copied, 8));
	atomic_store_explicit(&s->want, v, memory_order_release);
	DO(launch_in(x, p, work, 1, 1, p->stream, &a));
	switch (e->how) {
	case GD_NEXT_KERNEL: DO(launch_in(x, p, set, 1, 1, p->stream, &b)); break;
	case GD_BY_STREAM_WRITE: CK(stream_write(p->stream, x->d->words_at + AT_MARK, v, 0)); break;
	case GD_BY_COPY: CK(to_host_async((void *)mark, p->words + AT_IN, 8, p->stream)); break;
	case GD_EVENT_SYNC:
	case GD_EVENT_QUERY: CK(event_record(p->event, p->stream)); break;
	case GD_BLOCKING_EVENT: CK(event_record(p->blocking, p->stream)); break;
	case GD_CALLBACK: CK(host_func(p->stream, called_back, &called)); break;
	}
	switch (e->how) {
	case GD_STREAM_SYNC: CK(stream_sync(p->stream)); break;
	case GD_EVENT_SYNC: CK(event_sync(p->event)); break;
	case GD_BLOCKING_EVENT: CK(event_sync(p->blocking)); break;
	case GD_EVENT_QUERY: {
		CUresult r;
		while ((r = lib.event_query(p->event)) == CUDA_ERROR_NOT_READY)
			if (over(x))
				return fail(x, GD_E_LATE, "no event by the deadline");
		if (r)
			return refused(x, "cuEventQuery", r);
		break;
	}
	case GD_CALLBACK:
		while (!(t = (int64_t)atomic_load_explicit(&called, memory_order_acquire))) {
			if (over(x))
				return fail(x, GD_E_LATE, "no callback by the deadline");
			relax();
		}
		break;
	default: DO(told(x, mark, v));
	}
	if (!t)
		t = now();
	uint64_t seen;
	while (!(seen = atomic_load_explicit(&s->at, memory_order_acquire))) {
		if (over(x))
			return fail(x, GD_E_LATE, "no flag from the kernel by the deadline");
		relax();
	}
	CK(stream_sync(p->stream));
	*out = t > (int64_t)seen ? (t - (int64_t)seen) * 1000 : 0;
	return 0;
}

static int notice(struct x *x)
{
	struct gd_exp *e = x->e;
	struct seer s = {.x = x};
	pthread_t th;
	CUfunction work, set;
	int i;
	if (e->how == GD_BY_STREAM_WRITE && !lib.stream_write)
		return fail(x, GD_E_REFUSED, "this driver has no stream memory operations");
	DO(function(x, x->p, "work", &work));
	DO(function(x, x->p, "set", &set));
	DO(settle(x));
	*host_word(x, AT_FLAG) = *host_word(x, AT_MARK) = 0;
	DO(spawn(x, &th, see, &s));
	for (i = 0; i < e->n && !over(x); i++)
		if (notice_one(x, &s, x->d->base + i + 1, work, set, &e->out[i]))
			break;
	s.quit = 1;
	pthread_join(th, NULL);
	x->d->base += e->n;
	return x->rc ? x->rc : i;
}

// copies times copies one by one: how is the direction; wait says whether the last
// byte is polled for instead of the stream (to the host only).
static int copies(struct x *x)
{
	struct gd_exp *e = x->e;
	char *h = x->d->big;
	CUdeviceptr g = x->p->big;
	int i;
	DO(settle(x));
	for (i = 0; i < e->n && !x->rc && !over(x); i++) {
		unsigned char mark = 1 + (i & 1);
		if (e->how == GD_TO_HOST) {
			if (e->wait || i < 2) {
				CK(memset8(g, mark, e->bytes));
				memset(h, 0, e->bytes);
			}
		} else if (i < 2) {
			memset(h, mark, e->bytes);
		}
		busy(3000);
		int64_t t0 = now(), t1;
		CUresult r = e->how == GD_TO_HOST ? lib.to_host_async(h, g, e->bytes, x->p->stream) : lib.to_gpu_async(g, h, e->bytes, x->p->stream);
		t1 = now();
		if (r)
			return refused(x, "cuMemcpyAsync", r);
		if (e->wait)
			while (((volatile unsigned char *)h)[e->bytes - 1] != mark && !over(x))
				;
		else
			CK(stream_sync(x->p->stream));
		e->out[i] = (now() - t0) * 1000;
		if (e->out2)
			e->out2[i] = (t1 - t0) * 1000;
		if (e->wait)
			CK(stream_sync(x->p->stream));
		if (e->how == GD_TO_HOST && (e->wait || i < 2))
			for (uint64_t k = 0; k < e->bytes; k += k + 4093 < e->bytes ? 4093 : e->bytes)
				if ((unsigned char)h[k] != mark)
					return fail(x, GD_E_WRONG, "a copy brought other bytes than were there");
	}
	e->n2 = e->out2 ? i : 0;
	// Back to back: what one costs when the next is queued.
	int many = e->bytes < (1u << 20) ? 200 : 50;
	int64_t t0 = now();
	for (int k = 0; k < many && !e->wait; k++)
		if (e->how == GD_TO_HOST)
			CK(to_host_async(h, g, e->bytes, x->p->stream));
		else
			CK(to_gpu_async(g, h, e->bytes, x->p->stream));
	DO(finish(x, x->p->stream));
	if (!e->wait) {
		e->elapsed_ps = (now() - t0) * 1000;
		e->messages = many;
	}
	return i;
}

static int registers(struct x *x)
{
	struct gd_exp *e = x->e;
	int i;
	char *m = mmap(NULL, e->bytes + (2u << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return fail(x, GD_E_MEMORY, strerror(errno));
	char *at = (char *)(((uintptr_t)m + (2u << 20) - 1) & ~((uintptr_t)(2u << 20) - 1));
	madvise(at, e->bytes, e->huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(at, 1, e->bytes);
	for (i = -1; i < e->n && !x->rc && !over(x); i++) { // the first is not kept
		int64_t t0 = now();
		CUresult r = lib.host_register(at, e->bytes, 0);
		int64_t t1 = now();
		if (r) {
			refused(x, "cuMemHostRegister", r);
			break;
		}
		r = lib.host_unregister(at);
		int64_t t2 = now();
		if (r)
			refused(x, "cuMemHostUnregister", r);
		if (i >= 0) {
			e->out[i] = (t1 - t0) * 1000;
			e->out2[i] = (t2 - t1) * 1000;
		}
	}
	munmap(m, e->bytes + (2u << 20));
	e->n2 = i;
	return x->rc ? x->rc : i;
}

static int export_range(struct x *x)
{
	struct gd_exp *e = x->e;
	CUdeviceptr m;
	int i;
	if (!lib.export_range)
		return fail(x, GD_E_REFUSED, "this driver exports no dma-buf");
	CK(mem_alloc(&m, e->bytes));
	for (i = -1; i < e->n && !x->rc && !over(x); i++) {
		int fd = -1;
		int64_t t0 = now();
		CUresult r = lib.export_range(&fd, m, e->bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
		int64_t t1 = now();
		if (r) {
			refused(x, "dma-buf refused: cuMemGetHandleForAddressRange(", r);
			break;
		}
		close(fd);
		if (i >= 0)
			e->out[i] = (t1 - t0) * 1000;
	}
	CUresult r = lib.mem_free(m);
	if (r)
		refused(x, "cuMemFree", r);
	return x->rc ? x->rc : i;
}

// ---- two GPUs ---------------------------------------------------------------------

static int peer_echo(struct x *x)
{
	struct gd_exp *e = x->e;
	struct place *other = &x->d->peer;
	uint64_t base = x->d->base;
	struct gd_args a = args(x), b = args(x);
	CUfunction f;
	a.in = x->p->words + AT_IN;
	a.flag = b.in = other->words + AT_IN;
	b.flag = a.in;
	b.report = other->reports;
	a.stop = 0;
	CK(to_gpu(a.in, &base, 8));
	CK(ctx_set(other->ctx));
	CK(to_gpu(b.in, &base, 8));
	DO(function(x, other, e->kernel2, &f));
	int rc = launch_in(x, other, f, 1, 1, other->stream, &b);
	CK(ctx_set(x->p->ctx));
	DO(rc);
	if (!launch(x, e->kernel, 1, 1, x->p->stream, &a))
		finish(x, x->p->stream);
	if (x->rc)
		*(volatile uint32_t *)(x->d->words + AT_ABORT) = 1;
	CK(ctx_set(other->ctx));
	finish(x, other->stream);
	if (!x->rc)
		reports(x, other, 1, NULL);
	CK(ctx_set(x->p->ctx));
	x->d->base += e->n;
	DO(x->rc);
	DO(reports(x, x->p, 1, NULL));
	DO(clocks(x, x->p->out, e->out, e->n, 1));
	return e->n;
}

static int peer_copy(struct x *x)
{
	struct gd_exp *e = x->e;
	struct gd_args a = args(x);
	unsigned char got[64];
	CUfunction f;
	int i;
	a.source = x->p->big;
	a.target = x->d->peer.big;
	a.bytes = e->bytes;
	DO(function(x, x->p, "copy", &f));
	for (i = 0; i < e->n && !x->rc && !over(x); i++) {
		CK(memset8(a.source, i + 1, e->bytes));
		int64_t t0 = now();
		for (int k = 0; k < e->count && !x->rc; k++)
			if (e->blocks)
				launch_in(x, x->p, f, e->blocks, 512, x->p->stream, &a);
			else
				CK(peer_async(a.target, x->d->peer.ctx, a.source, x->p->ctx, e->bytes, x->p->stream));
		CK(stream_sync(x->p->stream));
		e->out[i] = (now() - t0) * 1000 / e->count;
		CK(to_host(got, a.target + e->bytes - sizeof got, sizeof got));
		if (got[0] != (unsigned char)(i + 1) || got[63] != (unsigned char)(i + 1))
			return fail(x, GD_E_WRONG, "the other GPU's memory does not hold what was copied");
	}
	e->elapsed_ps = 0;
	for (int k = 0; k < i; k++)
		e->elapsed_ps += e->out[k];
	e->messages = i;
	return x->rc ? x->rc : i;
}

// ---- one experiment ---------------------------------------------------------------

static int experiment(struct x *x)
{
	switch (x->e->what) {
	case GD_SAMPLES: return samples(x);
	case GD_POLLS: return polls(x);
	case GD_RATE: return rate(x);
	case GD_ASK: return ask(x);
	case GD_ANSWER: return asked(x);
	case GD_PROXY: return proxy(x);
	case GD_LAUNCH: return launches(x);
	case GD_NOTICE: return notice(x);
	case GD_COPY: return copies(x);
	case GD_REGISTER: return registers(x);
	case GD_EXPORT: return export_range(x);
	case GD_PEER_ECHO: return peer_echo(x);
	case GD_PEER_COPY: return peer_copy(x);
	case GD_SPIN: return spin(x);
	}
	return fail(x, GD_E_REFUSED, "no such experiment");
}

// contexts opens the contexts that this experiment needs beside the usual.
static int contexts(struct x *x)
{
	struct gd_device *d = x->d;
	struct gd_exp *e = x->e;
	char why[200];
	int rc;
	if (e->blocking) {
		if (!d->blocking.ctx && (rc = place_open(d, &d->blocking, d->dev, CU_CTX_SCHED_BLOCKING_SYNC, 1, why, sizeof why)))
			return fail(x, rc == CUDA_ERROR_OUT_OF_MEMORY ? GD_E_MEMORY : GD_E_REFUSED, why);
		x->p = &d->blocking;
	}
	if (e->memory == GD_PEER || e->what == GD_PEER_ECHO || e->what == GD_PEER_COPY) {
		if (!d->has_peer)
			return fail(x, GD_E_REFUSED, d->peer_why);
		if (!d->peer.ctx) {
			if ((rc = place_open(d, &d->peer, d->peer_dev, CU_CTX_SCHED_SPIN, 0, why, sizeof why)))
				return fail(x, rc == CUDA_ERROR_OUT_OF_MEMORY ? GD_E_MEMORY : GD_E_REFUSED, why);
			CK(enable_peer(d->one.ctx, 0));
			CK(ctx_set(d->one.ctx));
			CK(enable_peer(d->peer.ctx, 0));
		}
	}
	CK(ctx_set(x->p->ctx));
	return 0;
}

static void *body(void *p)
{
	struct x *x = p;
	int rc;
	pin(x->e->cpus[0]);
	if (!contexts(x)) {
		*(volatile uint32_t *)(x->d->words + AT_ABORT) = 0;
		rc = experiment(x);
		x->rc = rc;
	}
	return NULL;
}

int gd_run(struct gd_device *d, struct gd_exp *e)
{
	struct x x = {.d = d, .e = e, .p = &d->one, .end = now() + e->deadline_ns};
	pthread_t t;
	e->err[0] = 0;
	if (d->hung)
		return fail(&x, GD_E_HUNG, "the GPU hangs");
	if (e->n < 1 || e->n > e->max || (int64_t)e->blocks * e->n > OUT / 4 || e->blocks > GD_QUEUES || (e->what == GD_SAMPLES && e->n > GD_ROW) || (e->bytes > BIG && e->what != GD_REGISTER && e->what != GD_EXPORT))
		return fail(&x, GD_E_REFUSED, "more blocks, samples or bytes than this program lays out");
	// A thread of its own, since it is pinned and its context is its own.
	if (spawn(&x, &t, body, &x))
		return x.rc;
	pthread_join(t, NULL);
	if (x.rc >= 0 && *e->stop)
		return x.rc = 0, fail(&x, GD_E_STOPPED, "stopped");
	if (!x.rc && !e->messages && e->what != GD_SPIN)
		return fail(&x, GD_E_LATE, "no sample by its deadline");
	return x.rc;
}

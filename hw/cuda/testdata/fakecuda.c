// A driver library without a GPU, for the tests of package cuda: memory is the
// host's, and a thread stands for each kernel, by its name. FAKECUDA_FAULT names
// what goes wrong; FAKECUDA_LOG names a file that always holds how many things are
// allocated.
#define _GNU_SOURCE
#include "../abi.h"
#include "../kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

static _Atomic int held;

static void hold(int by)
{
	const char *log = getenv("FAKECUDA_LOG");
	held += by;
	FILE *f = log ? fopen(log, "w") : NULL;
	if (f) {
		fprintf(f, "%d\n", held);
		fclose(f);
	}
}

static int fault(const char *what)
{
	const char *f = getenv("FAKECUDA_FAULT");
	size_t n = strlen(what);
	return f && !strncmp(f, what, n) && (f[n] == 0 || f[n] == '=') ? (f[n] ? atoi(f + n + 1) : 1) : 0;
}

struct CUstream_st {
	pthread_t t;
	_Atomic int busy, joined;
	int error;
};
struct CUfunc_st {
	char name[40];
};
static struct CUfunc_st functions[128];
static int used;

static uint64_t ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct job {
	CUstream s;
	struct gd_args a;
	int blocks;
	char name[40];
};

#define W(at) ((_Atomic uint64_t *)(uintptr_t)(at))

static int await(struct gd_args *a, uint64_t at, uint64_t v, uint64_t end)
{
	while (*W(at) < v) {
		if (ns() > end)
			return GD_LATE;
		if (*(volatile uint32_t *)(uintptr_t)a->abort)
			return GD_ABORTED;
		sched_yield();
	}
	return 0;
}

static void wqe(struct gd_queue *q, uint64_t i, uint64_t next)
{
	uint32_t *w = (uint32_t *)(uintptr_t)(q->wqes + (i & q->mask) * 64), *payload = (uint32_t *)(uintptr_t)q->payload;
	w[0] = __builtin_bswap32(((uint32_t)i & 0xffff) << 8 | 8);
	w[1] = __builtin_bswap32(q->number << 8 | 3);
	w[6] = q->rkey;
	w[9] = payload[0];
	w[10] = payload[1] + !!fault("payload");
	*(uint64_t *)(uintptr_t)q->doorbell = (uint64_t)__builtin_bswap32(q->number << 8) << 32 | __builtin_bswap32(((uint32_t)next & 0xffff) << 8);
}

static void *run(void *p)
{
	struct job *j = p;
	struct gd_args *a = &j->a;
	struct gd_report *r = (struct gd_report *)(uintptr_t)a->report;
	uint64_t begin = ns(), end = begin + a->budget;
	const char *k = j->name;
	int bad = 0;
#define IS(prefix) (!strncmp(k, prefix, strlen(prefix)))
	if (fault("hang"))
		for (;;)
			pause();
	if (fault("late"))
		while (ns() < end)
			usleep(100);
	if (IS("set") || IS("work"))
		*W(a->flag) = a->base;
	else if (IS("ask")) {
		for (uint32_t i = 0; i < a->n && !bad; i++) {
			*W(a->flag) = a->base + i + 1 + (fault("order") && i == 3);
			bad = await(a, a->in, a->base + i + 1, end);
		}
	} else if (IS("answer")) {
		for (uint32_t i = 0; i < a->n && !bad; i++) {
			bad = await(a, a->in, a->base + i + 1, end);
			if (!bad)
				*W(a->flag) = a->base + i + 1;
		}
	} else if (IS("ring_")) {
		for (uint32_t i = 0; i < a->n && !bad; i++) {
			uint64_t m = a->base + i + 1;
			uint32_t s = (uint32_t)m;
			for (int b = 0; b < j->blocks; b++) {
				volatile uint32_t *w = (uint32_t *)(uintptr_t)(a->target + ((size_t)b * GD_RING + (m & (GD_RING - 1))) * 64);
				if (IS("ring_flag")) {
					w[0] = s, w[1] = b, w[6] = s + 1, w[10] = s + 2, w[12] = s, w[13] = b + !!fault("descriptor");
					*W(w + 14) = m;
				} else {
					w[0] = b, w[1] = s ^ b, w[5] = s + 1, w[9] = s + 2, w[13] = s + 3;
					atomic_thread_fence(memory_order_release);
					w[3] = w[7] = w[11] = w[15] = s;
				}
			}
			for (int b = 0; b < j->blocks && !bad; b++)
				bad = await(a, a->in + (size_t)b * 128, m, end);
		}
	} else if (IS("post_") || IS("stream_")) {
		for (int b = 0; b < j->blocks; b++) {
			uint64_t n = IS("post_") ? a->n : (uint64_t)a->n * a->count;
			for (uint64_t i = 0; i < n; i++)
				wqe((struct gd_queue *)(uintptr_t)a->queue + b, i, i + 1);
		}
	} else if (IS("shared_")) {
		for (uint64_t i = 0; i < (uint64_t)a->n * j->blocks; i++)
			wqe((struct gd_queue *)(uintptr_t)a->queue, i, i + 1);
	} else if (IS("atomic_")) {
		*W(a->target) = a->n + !!fault("sum");
	} else if (IS("noise_")) {
		while (!*(volatile uint32_t *)(uintptr_t)a->stop && ns() < end)
			usleep(50);
	} else if (IS("copy")) {
		memcpy((void *)(uintptr_t)a->target, (void *)(uintptr_t)a->source, a->bytes);
	}
	if (r && !IS("noise_") && !IS("set") && !IS("work") && !IS("empty") && !IS("copy")) {
		for (int b = 0; b < j->blocks; b++)
			r[b] = (struct gd_report){.c0 = 0, .c1 = 2000000, .g0 = begin, .g1 = begin + 1000000, .bad = fault("late") ? GD_LATE : bad};
		if (a->out && (IS("clock") || IS("fence") || IS("store") || IS("load") || IS("poll") || IS("atomic") || IS("ask") || IS("post") || (IS("ring") && a->window == 1)))
			for (uint32_t i = 0; i < a->n * j->blocks; i++) {
				((uint32_t *)(uintptr_t)a->out)[i] = 320; // 160 ns at 2 GHz
				if (a->out2 && !IS("ring"))
					((uint32_t *)(uintptr_t)a->out2)[i] = 64;
			}
	}
	j->s->busy = 0;
	free(j);
	return NULL;
}

CUresult cuInit(unsigned f) { return (void)f, fault("nodevice") ? CUDA_ERROR_NO_DEVICE : fault("init"); }
CUresult cuDriverGetVersion(int *v) { return *v = 13000, 0; }
CUresult cuDeviceGetCount(int *n) { return *n = fault("two") ? 2 : 1, 0; }
CUresult cuDeviceGet(CUdevice *d, int i) { return *d = i, 0; }
CUresult cuDeviceGetName(char *s, int n, CUdevice d) { return snprintf(s, n, "fake GPU %d", d), 0; }
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) { return (void)d, *n = 1 << 30, 0; }
CUresult cuDeviceGetPCIBusId(char *s, int n, CUdevice d) { return snprintf(s, n, "0000:0%d:00.0", d), 0; }
CUresult cuDeviceGetAttribute(int *v, int at, CUdevice d) { return (void)d, *v = at == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : at == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 4 : 0, 0; }
CUresult cuDeviceCanAccessPeer(int *y, CUdevice a, CUdevice b) { return (void)a, (void)b, *y = 1, 0; }
CUresult cuCtxCreate_v2(CUcontext *c, unsigned f, CUdevice d) { return (void)f, (void)d, *c = malloc(1), hold(1), 0; }
CUresult cuCtxDestroy_v2(CUcontext c) { return free(c), hold(-1), 0; }
CUresult cuCtxSetCurrent(CUcontext c) { return (void)c, 0; }
CUresult cuCtxEnablePeerAccess(CUcontext c, unsigned f) { return (void)c, (void)f, 0; }
CUresult cuModuleLoadDataEx(CUmodule *m, const void *p, unsigned n, int *o, void **v)
{
	(void)o;
	if (fault("ptx")) {
		snprintf(v[0], 100, "ptxas: line 1");
		return fault("ptx");
	}
	return *m = (CUmodule)(uintptr_t)(n + (p != NULL)), hold(1), 0;
}
CUresult cuModuleUnload(CUmodule m) { return (void)m, hold(-1), 0; }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name)
{
	(void)m;
	for (int i = 0; i < used; i++)
		if (!strcmp(functions[i].name, name))
			return *f = &functions[i], 0;
	snprintf(functions[used].name, sizeof functions[used].name, "%s", name);
	return *f = &functions[used++], 0;
}
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n)
{
	if (fault("oom"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return *p = (CUdeviceptr)(uintptr_t)aligned_alloc(4096, (n + 4095) & ~4095ul), hold(1), 0;
}
CUresult cuMemFree_v2(CUdeviceptr p) { return free((void *)(uintptr_t)p), hold(-1), 0; }
CUresult cuMemHostAlloc(void **p, size_t n, unsigned f)
{
	(void)f;
	if (fault("hostoom"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return *p = aligned_alloc(4096, (n + 4095) & ~4095ul), hold(1), 0;
}
CUresult cuMemFreeHost(void *p) { return free(p), hold(-1), 0; }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *p, unsigned f) { return (void)f, *d = (CUdeviceptr)(uintptr_t)p, 0; }
CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned f) { return (void)p, (void)n, (void)f, fault("register") ? fault("register") : (hold(1), 0); }
CUresult cuMemHostUnregister(void *p) { return (void)p, hold(-1), 0; }
CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char v, size_t n) { return memset((void *)(uintptr_t)p, v, n), 0; }
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n) { return memcpy((void *)(uintptr_t)d, s, n), 0; }
CUresult cuMemcpyDtoH_v2(void *d, CUdeviceptr s, size_t n) { return memcpy(d, (void *)(uintptr_t)s, n), 0; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, CUstream t) { return (void)t, memcpy((void *)(uintptr_t)d, s, n), 0; }
CUresult cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, CUstream t)
{
	(void)t;
	memcpy(d, (void *)(uintptr_t)s, n);
	if (fault("copy"))
		((char *)d)[0] ^= 1;
	return 0;
}
CUresult cuMemcpyPeerAsync(CUdeviceptr d, CUcontext a, CUdeviceptr s, CUcontext b, size_t n, CUstream t) { return (void)a, (void)b, (void)t, memcpy((void *)(uintptr_t)d, (void *)(uintptr_t)s, n), 0; }
CUresult cuStreamCreate(CUstream *s, unsigned f) { return (void)f, *s = calloc(1, sizeof **s), hold(1), 0; }
static void join(CUstream s)
{
	if (s->t) {
		pthread_join(s->t, NULL);
		s->t = 0;
	}
}
CUresult cuStreamDestroy_v2(CUstream s) { return join(s), free(s), hold(-1), 0; }
CUresult cuStreamQuery(CUstream s) { return s->error ? s->error : s->busy ? CUDA_ERROR_NOT_READY : 0; }
CUresult cuStreamSynchronize(CUstream s) { return join(s), s->error; }
CUresult cuEventCreate(CUevent *e, unsigned f) { return (void)f, *e = calloc(1, sizeof(CUstream)), hold(1), 0; }
CUresult cuEventDestroy_v2(CUevent e) { return free(e), hold(-1), 0; }
CUresult cuEventRecord(CUevent e, CUstream s) { return *(CUstream *)e = s, 0; }
CUresult cuEventQuery(CUevent e) { return cuStreamQuery(*(CUstream *)e); }
CUresult cuEventSynchronize(CUevent e) { return cuStreamSynchronize(*(CUstream *)e); }
CUresult cuLaunchKernel(CUfunction f, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz, unsigned sh, CUstream s, void **p, void **x)
{
	(void)by, (void)bz, (void)tx, (void)ty, (void)tz, (void)sh, (void)x;
	if (fault("launch"))
		return fault("launch");
	join(s);
	if (fault("ecc")) {
		s->error = CUDA_ERROR_ECC_UNCORRECTABLE;
		return 0;
	}
	struct job *j = malloc(sizeof *j);
	*j = (struct job){.s = s, .a = *(struct gd_args *)p[0], .blocks = bx};
	snprintf(j->name, sizeof j->name, "%s", f->name);
	s->busy = 1;
	return pthread_create(&s->t, NULL, run, j) ? CUDA_ERROR_OUT_OF_MEMORY : 0;
}
CUresult cuLaunchHostFunc(CUstream s, CUhostFn f, void *p) { return join(s), f(p), 0; }
CUresult cuStreamWriteValue64_v2(CUstream s, CUdeviceptr p, uint64_t v, unsigned f)
{
	(void)f;
	join(s);
	*W(p) = v;
	return 0;
}
CUresult cuMemGetHandleForAddressRange(void *h, CUdeviceptr p, size_t n, int t, unsigned long long f)
{
	(void)p, (void)n, (void)t, (void)f;
	return fault("export") ? fault("export") : (*(int *)h = dup(1), 0);
}
CUresult cuGetErrorName(CUresult r, const char **s)
{
	*s = r == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : r == 214 ? "CUDA_ERROR_ECC_UNCORRECTABLE" : r == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : r == 801 ? "CUDA_ERROR_NOT_SUPPORTED" : r == 800 ? "CUDA_ERROR_NOT_PERMITTED" : r == 218 ? "CUDA_ERROR_INVALID_PTX" : NULL;
	return *s ? 0 : 1;
}
CUresult cuGetErrorString(CUresult r, const char **s) { return *s = r == 2 ? "out of memory" : "", 0; }

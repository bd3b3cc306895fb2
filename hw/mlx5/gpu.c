//go:build cgo && linux

#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Names and values are those of the CUDA driver API's reference.
typedef uint64_t device_ptr;
enum {
	NO_DEVICE = 100,
	NOT_READY = 600,
	COMPUTE_CAPABILITY_MAJOR = 75,
	HOST_PORTABLE = 1,
	HOST_DEVICEMAP = 2,
	REGISTER_PORTABLE = 1,
	REGISTER_DEVICEMAP = 2,
	REGISTER_IOMEMORY = 4,
	DMA_BUF_FD = 1,
	STREAM_NON_BLOCKING = 1,
};

#define SYMBOLS(X)                                                                                                     \
	X(init, cuInit, (unsigned))                                                                                    \
	X(error_name, cuGetErrorName, (int, const char **))                                                            \
	X(device_count, cuDeviceGetCount, (int *))                                                                     \
	X(device_get, cuDeviceGet, (int *, int))                                                                       \
	X(device_name, cuDeviceGetName, (char *, int, int))                                                            \
	X(device_attribute, cuDeviceGetAttribute, (int *, int, int))                                                   \
	X(ctx_create, cuCtxCreate_v2, (void **, unsigned, int))                                                        \
	X(ctx_destroy, cuCtxDestroy_v2, (void *))                                                                      \
	X(ctx_set, cuCtxSetCurrent, (void *))                                                                          \
	X(module_load, cuModuleLoadData, (void **, const void *))                                                      \
	X(module_function, cuModuleGetFunction, (void **, void *, const char *))                                       \
	X(host_alloc, cuMemHostAlloc, (void **, size_t, unsigned))                                                     \
	X(host_free, cuMemFreeHost, (void *))                                                                          \
	X(host_pointer, cuMemHostGetDevicePointer_v2, (device_ptr *, void *, unsigned))                                \
	X(host_register, cuMemHostRegister_v2, (void *, size_t, unsigned))                                             \
	X(host_unregister, cuMemHostUnregister, (void *))                                                              \
	X(mem_alloc, cuMemAlloc_v2, (device_ptr *, size_t))                                                            \
	X(mem_free, cuMemFree_v2, (device_ptr))                                                                        \
	X(memset8, cuMemsetD8_v2, (device_ptr, unsigned char, size_t))                                                 \
	X(to_gpu, cuMemcpyHtoD_v2, (device_ptr, const void *, size_t))                                                 \
	X(to_host, cuMemcpyDtoH_v2, (void *, device_ptr, size_t))                                                      \
	X(stream_create, cuStreamCreate, (void **, unsigned))                                                          \
	X(stream_query, cuStreamQuery, (void *))                                                                       \
	X(stream_destroy, cuStreamDestroy_v2, (void *))                                                                \
	X(launch, cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))

// The library, opened once and never closed.
static struct {
#define FIELD(name, symbol, args) int(*name) args;
	SYMBOLS(FIELD)
	int (*export)(void *, device_ptr, size_t, int, unsigned long long); // of newer drivers
} lib;

struct gm_gpu {
	void *ctx, *module, *stream, *kernel[2];
	int running;
};

static int load(char *err)
{
	void *h = dlopen("libcuda.so.1", RTLD_NOW);
	if (!h) {
		snprintf(err, GM_ERR, "no NVIDIA driver: %s", dlerror());
		return -1;
	}
#define NEED(name, symbol, args)                                                                                       \
	if (!(*(void **)&lib.name = dlsym(h, #symbol))) {                                                              \
		snprintf(err, GM_ERR, "libcuda.so.1 has no %s", #symbol);                                              \
		return -1;                                                                                             \
	}
	SYMBOLS(NEED)
	*(void **)&lib.export = dlsym(h, "cuMemGetHandleForAddressRange");
	return 0;
}

static int failed(int r, const char *what, char *err)
{
	const char *name = NULL;
	if (!r)
		return 0;
	if (lib.error_name(r, &name) || !name)
		name = "unknown error";
	snprintf(err, GM_ERR, "%s: %s (%d)", what, name, r);
	return 1;
}

#define TRY(call, what)                                                                                                \
	if (failed(lib.call, what, err))                                                                               \
		goto bad

struct gm_gpu *gm_gpu_open(int ordinal, const char *ptx, char *name, size_t name_size, int *absent, char *err)
{
	int count = 0, dev, major = 0;
	struct gm_gpu *g = NULL;
	*absent = 1;
	if (load(err))
		return NULL;
	int r = lib.init(0);
	if (r == NO_DEVICE) {
		snprintf(err, GM_ERR, "no GPU: the driver is there and sees none");
		return NULL;
	}
	if (failed(r, "no GPU can be used: cuInit", err))
		return NULL;
	TRY(device_count(&count), "cuDeviceGetCount");
	if (ordinal < 0 || ordinal >= count) {
		snprintf(err, GM_ERR, "no GPU %d: this machine has %d", ordinal, count);
		return NULL;
	}
	TRY(device_get(&dev, ordinal), "cuDeviceGet");
	TRY(device_name(name, (int)name_size, dev), "cuDeviceGetName");
	TRY(device_attribute(&major, COMPUTE_CAPABILITY_MAJOR, dev), "cuDeviceGetAttribute");
	if (major < 7) {
		snprintf(err, GM_ERR, "%s has compute capability %d.x, and fences by scope need 7.0", name, major);
		return NULL;
	}
	*absent = 0;
	if (!(g = calloc(1, sizeof *g))) {
		snprintf(err, GM_ERR, "no memory");
		return NULL;
	}
	TRY(ctx_create(&g->ctx, 0, dev), "cuCtxCreate");
	TRY(module_load(&g->module, ptx), "cuModuleLoadData");
	TRY(module_function(&g->kernel[GM_POST], g->module, "gm_gpu_post"), "cuModuleGetFunction");
	TRY(module_function(&g->kernel[GM_IMAGE], g->module, "gm_gpu_image"), "cuModuleGetFunction");
	TRY(stream_create(&g->stream, STREAM_NON_BLOCKING), "cuStreamCreate");
	return g;
bad:
	gm_gpu_close(g);
	return NULL;
}

void gm_gpu_close(struct gm_gpu *g)
{
	if (!g || g->running)
		return;
	if (g->ctx) { // destroys the module, and frees what is left
		lib.ctx_set(g->ctx);
		if (g->stream)
			lib.stream_destroy(g->stream);
		lib.ctx_destroy(g->ctx);
	}
	free(g);
}

void *gm_gpu_host(struct gm_gpu *g, size_t bytes, char *err)
{
	void *p = NULL;
	device_ptr at = 0;
	TRY(ctx_set(g->ctx), "cuCtxSetCurrent");
	TRY(host_alloc(&p, bytes, HOST_PORTABLE | HOST_DEVICEMAP), "cuMemHostAlloc");
	memset(p, 0, bytes);
	if (failed(lib.host_pointer(&at, p, 0), "cuMemHostGetDevicePointer", err) || at != (uintptr_t)p) {
		if (at)
			snprintf(err, GM_ERR, "pinned memory has another address on the GPU");
		lib.host_free(p);
		goto bad;
	}
	return p;
bad:
	return NULL;
}

void gm_gpu_host_free(struct gm_gpu *g, void *p)
{
	if (!g->running && !lib.ctx_set(g->ctx))
		lib.host_free(p);
}

uint64_t gm_gpu_alloc(struct gm_gpu *g, size_t bytes, char *err)
{
	device_ptr p = 0;
	TRY(ctx_set(g->ctx), "cuCtxSetCurrent");
	TRY(mem_alloc(&p, bytes), "cuMemAlloc");
	if (failed(lib.memset8(p, 0, bytes), "cuMemsetD8", err)) {
		lib.mem_free(p);
		return 0;
	}
	return p;
bad:
	return 0;
}

void gm_gpu_free(struct gm_gpu *g, uint64_t p)
{
	if (!g->running && !lib.ctx_set(g->ctx))
		lib.mem_free(p);
}

int gm_gpu_to(struct gm_gpu *g, uint64_t to, const void *from, size_t bytes, char *err)
{
	TRY(ctx_set(g->ctx), "cuCtxSetCurrent");
	TRY(to_gpu(to, from, bytes), "cuMemcpyHtoD");
	return 0;
bad:
	return -1;
}

int gm_gpu_from(struct gm_gpu *g, void *to, uint64_t from, size_t bytes, char *err)
{
	TRY(ctx_set(g->ctx), "cuCtxSetCurrent");
	TRY(to_host(to, from, bytes), "cuMemcpyDtoH");
	return 0;
bad:
	return -1;
}

uint64_t gm_gpu_map(struct gm_gpu *g, void *p, size_t bytes, int io, char *err)
{
	device_ptr at = 0;
	TRY(ctx_set(g->ctx), "cuCtxSetCurrent");
	TRY(host_register(p, bytes, REGISTER_PORTABLE | REGISTER_DEVICEMAP | (io ? REGISTER_IOMEMORY : 0)), "cuMemHostRegister");
	if (failed(lib.host_pointer(&at, p, 0), "cuMemHostGetDevicePointer", err)) {
		lib.host_unregister(p);
		return 0;
	}
	return at;
bad:
	return 0;
}

void gm_gpu_unmap(struct gm_gpu *g, void *p)
{
	if (!g->running && !lib.ctx_set(g->ctx))
		lib.host_unregister(p);
}

int gm_gpu_dmabuf(struct gm_gpu *g, uint64_t at, size_t bytes, char *err)
{
	int fd = -1;
	if (!lib.export) {
		snprintf(err, GM_ERR, "this driver exports no dma-buf (no cuMemGetHandleForAddressRange)");
		return -1;
	}
	TRY(ctx_set(g->ctx), "cuCtxSetCurrent");
	TRY(export(&fd, at, bytes, DMA_BUF_FD, 0), "cuMemGetHandleForAddressRange");
	return fd;
bad:
	return -1;
}

int gm_gpu_start(struct gm_gpu *g, int kernel, struct gm_run *r, uint64_t nic, char *err)
{
	void *args[] = {r, &nic};
	TRY(ctx_set(g->ctx), "cuCtxSetCurrent");
	TRY(launch(g->kernel[kernel], kernel == GM_IMAGE ? 2 : 1, 1, 1, 1, 1, 1, 0, g->stream, args, NULL), "cuLaunchKernel");
	g->running = 1;
	return 0;
bad:
	return -1;
}

int gm_gpu_done(struct gm_gpu *g, char *err)
{
	int r = lib.ctx_set(g->ctx);
	if (!r)
		r = lib.stream_query(g->stream);
	if (r == NOT_READY)
		return 0;
	g->running = 0;
	return failed(r, "the kernel", err) ? -1 : 1;
}

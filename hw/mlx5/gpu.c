//go:build cgo && linux

#include "gpu.h"

#include "../cuda/abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { // of cuMemHostRegister, as in the CUDA driver API's reference
	REGISTER_PORTABLE = 1,
	REGISTER_DEVICEMAP = 2,
	REGISTER_IOMEMORY = 4,
};

// The library, opened once and never closed.
static struct {
#define FIELD(name, symbol, args) CUresult(*name) args;
	GD_SYMBOLS(FIELD, FIELD)
} lib;

struct gm_gpu {
	CUcontext ctx;
	CUmodule module;
	CUstream stream;
	CUfunction kernel[2];
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
#define MAYBE(name, symbol, args) *(void **)&lib.name = dlsym(h, #symbol);
	GD_SYMBOLS(NEED, MAYBE)
	return 0;
}

static int failed(CUresult r, const char *what, char *err)
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
	if (r == CUDA_ERROR_NO_DEVICE) {
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
	TRY(device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev), "cuDeviceGetAttribute");
	if (major < 7) {
		snprintf(err, GM_ERR, "%s has compute capability %d.x, and fences by scope need 7.0", name, major);
		return NULL;
	}
	*absent = 0;
	if (!(g = calloc(1, sizeof *g))) {
		snprintf(err, GM_ERR, "no memory");
		return NULL;
	}
	TRY(ctx_create(&g->ctx, CU_CTX_MAP_HOST, dev), "cuCtxCreate");
	TRY(module_load(&g->module, ptx, 0, NULL, NULL), "the driver refuses the kernels");
	TRY(module_function(&g->kernel[GM_POST], g->module, "gm_gpu_post"), "cuModuleGetFunction");
	TRY(module_function(&g->kernel[GM_IMAGE], g->module, "gm_gpu_image"), "cuModuleGetFunction");
	TRY(stream_create(&g->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
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
	CUdeviceptr at = 0;
	TRY(ctx_set(g->ctx), "cuCtxSetCurrent");
	TRY(host_alloc(&p, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
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
	CUdeviceptr p = 0;
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
	CUdeviceptr at = 0;
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
	if (!lib.export_range) {
		snprintf(err, GM_ERR, "this driver exports no dma-buf (no cuMemGetHandleForAddressRange)");
		return -1;
	}
	TRY(ctx_set(g->ctx), "cuCtxSetCurrent");
	TRY(export_range(&fd, at, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), "cuMemGetHandleForAddressRange");
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
	if (r == CUDA_ERROR_NOT_READY)
		return 0;
	g->running = 0;
	return failed(r, "the kernel", err) ? -1 : 1;
}

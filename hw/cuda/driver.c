//go:build cgo && linux

#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gd_library lib;

int gd_load(const char *path, char *err, size_t n)
{
	void *h = dlopen(path, RTLD_NOW);
	if (!h) {
		snprintf(err, n, "no NVIDIA driver: %s", dlerror());
		return -1;
	}
#define NEED(name, symbol, args)                                                                                       \
	if (!(*(void **)&lib.name = dlsym(h, #symbol))) {                                                              \
		snprintf(err, n, "%s has no %s: an older driver than 450", path, #symbol);                             \
		return -1;                                                                                             \
	}
#define MAYBE(name, symbol, args) *(void **)&lib.name = dlsym(h, #symbol);
	GD_SYMBOLS(NEED, MAYBE)
	return 0;
}

// symbol is the API's name of a call that is named as this program names it.
static const char *symbol(const char *what)
{
	static const struct {
		const char *name, *symbol;
	} of[] = {
#define PAIR(name, symbol, args) {#name, #symbol},
		GD_SYMBOLS(PAIR, PAIR)
#undef PAIR
	};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		if (!strcmp(of[i].name, what))
			return of[i].symbol;
	return what;
}

void gd_explain(const char *what, CUresult r, char *err, size_t n)
{
	const char *name = NULL, *text = NULL;
	what = symbol(what);
	if (lib.error_name(r, &name) || !name)
		name = "unknown error";
	if (lib.error_string(r, &text) || !text)
		text = "";
	snprintf(err, n, "%s: %s (%d)%s%s", what, name, r, *text ? ", " : "", text);
}

// TRY jumps to bad with a reason when a call fails.
#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		CUresult r_ = lib.call;                                                                                \
		if (r_) {                                                                                              \
			char what_[64];                                                                                \
			snprintf(what_, sizeof what_, "%.*s", (int)strcspn(#call, "("), #call);                        \
			gd_explain(what_, r_, err, n);                                                                 \
			rc = r_;                                                                                       \
			goto bad;                                                                                      \
		}                                                                                                      \
	} while (0)

// place_open makes a context; a small one has only what launches need.
int place_open(struct gd_device *d, struct place *p, CUdevice dev, unsigned flags, int small, char *err, size_t n)
{
	int rc = 0;
	char log[512] = "";
	int opts[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *vals[] = {log, (void *)(uintptr_t)sizeof log};
	CUresult r;
	TRY(ctx_create(&p->ctx, flags | CU_CTX_MAP_HOST, dev));
	if ((r = lib.module_load(&p->module, d->ptx, 2, opts, vals))) {
		gd_explain("the driver refuses the kernels", r, err, n);
		size_t at = strlen(err);
		if (*log)
			snprintf(err + at, n - at, ": %.120s", log);
		rc = r;
		goto bad;
	}
	TRY(stream_create(&p->stream, CU_STREAM_NON_BLOCKING));
	TRY(stream_create(&p->side, CU_STREAM_NON_BLOCKING));
	TRY(stream_create(&p->side2, CU_STREAM_NON_BLOCKING));
	TRY(event_create(&p->event, CU_EVENT_DISABLE_TIMING));
	TRY(event_create(&p->blocking, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
	const struct {
		CUdeviceptr *p;
		size_t n;
		int always;
	} mem[] = {
		{&p->words, WORDS, 1}, {&p->reports, GD_QUEUES * sizeof(struct gd_report), 1}, {&p->out, OUT, 0}, {&p->out2, OUT, 0},
		{&p->queues, GD_QUEUES * sizeof(struct gd_queue), 0}, {&p->wqes, GD_QUEUES * GD_DEPTH * 64, 0}, {&p->records, GD_QUEUES * 128, 0},
		{&p->big, BIG, 0},
	};
	for (size_t i = 0; i < sizeof mem / sizeof *mem; i++)
		if (mem[i].always || !small) {
			TRY(mem_alloc(mem[i].p, mem[i].n));
			TRY(memset8(*mem[i].p, 0, mem[i].n));
		}
	return 0;
bad:
	place_close(p);
	return rc;
}

void place_close(struct place *p)
{
	if (!p->ctx)
		return;
	lib.ctx_set(p->ctx);
	CUdeviceptr *mem[] = {&p->words, &p->out, &p->out2, &p->reports, &p->queues, &p->wqes, &p->records, &p->big};
	for (size_t i = 0; i < sizeof mem / sizeof *mem; i++)
		if (*mem[i])
			lib.mem_free(*mem[i]);
	if (p->event)
		lib.event_destroy(p->event);
	if (p->blocking)
		lib.event_destroy(p->blocking);
	CUstream s[] = {p->stream, p->side, p->side2};
	for (int i = 0; i < 3; i++)
		if (s[i])
			lib.stream_destroy(s[i]);
	if (p->module)
		lib.module_unload(p->module);
	lib.ctx_destroy(p->ctx);
	memset(p, 0, sizeof *p);
}

struct gd_device *gd_open(const char *library, int ordinal, const char *ptx, int *absent, char *err, size_t n)
{
	struct gd_device *d = calloc(1, sizeof *d);
	int rc = 0, count = 0, major = 0;
	*absent = 1;
	if (!d) {
		*absent = 0;
		snprintf(err, n, "out of memory");
		return NULL;
	}
	d->ptx = ptx;
	d->base = 1000;
	if (gd_load(library, err, n))
		goto bad;
	CUresult r = lib.init(0);
	if (r == CUDA_ERROR_NO_DEVICE) {
		snprintf(err, n, "no GPU: the driver is there and sees none");
		goto bad;
	}
	if (r) {
		gd_explain("no GPU can be used: cuInit", r, err, n);
		goto bad;
	}
	TRY(device_count(&count));
	if (ordinal < 0 || ordinal >= count) {
		snprintf(err, n, "no GPU %d: this machine has %d", ordinal, count);
		goto bad;
	}
	TRY(device_get(&d->dev, ordinal));
	TRY(device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d->dev));
	if (major < 7) {
		snprintf(err, n, "GPU %d has compute capability %d.x, and fences by scope need 7.0", ordinal, major);
		goto bad;
	}
	*absent = 0;
	TRY(device_attribute(&d->sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d->dev));
	if (place_open(d, &d->one, d->dev, CU_CTX_SCHED_SPIN, 0, err, n))
		goto bad;
	const struct {
		char **p;
		CUdeviceptr *at;
		size_t n;
	} host[] = {
		{&d->words, &d->words_at, WORDS}, {&d->ring, &d->ring_at, GD_QUEUES * GD_RING * 64}, {&d->comp, &d->comp_at, GD_QUEUES * 128},
		{&d->big, &d->big_at, BIG},
	};
	for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
		TRY(host_alloc((void **)host[i].p, host[i].n, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
		memset(*host[i].p, 0, host[i].n);
		TRY(host_pointer(host[i].at, *host[i].p, 0));
	}
	// A second GPU is looked for and opened where it can be reached; that it
	// cannot is no failure of this one.
	int reach = 0, other = ordinal ? 0 : 1;
	if (count < 2)
		snprintf(d->peer_why, sizeof d->peer_why, "this machine has one GPU");
	else if (lib.device_get(&d->peer_dev, other) || lib.can_access_peer(&reach, d->dev, d->peer_dev) || !reach)
		snprintf(d->peer_why, sizeof d->peer_why, "GPU %d cannot reach the memory of GPU %d", ordinal, other);
	else
		d->has_peer = 1;
	return d;
bad:
	(void)rc;
	gd_close(d);
	return NULL;
}

void gd_close(struct gd_device *d)
{
	if (!d)
		return;
	// A kernel that does not end would hold every call below: the end of the
	// process gives everything back.
	if (!d->hung) {
		place_close(&d->blocking);
		place_close(&d->peer);
		if (d->one.ctx) {
			lib.ctx_set(d->one.ctx);
			char *host[] = {d->words, d->ring, d->comp, d->big};
			for (int i = 0; i < 4; i++)
				if (host[i])
					lib.host_free(host[i]);
		}
		place_close(&d->one);
		free(d);
	}
}

int gd_sms(struct gd_device *d) { return d->sms; }

int gd_peer(struct gd_device *d, char *err, size_t n)
{
	snprintf(err, n, "%s", d->peer_why);
	return d->has_peer ? 0 : -1;
}

int gd_facts(struct gd_device *d, struct gd_fact *f, int max)
{
	int k = 0, v = 0, w = 0;
	size_t mem = 0;
	char text[128];
#define FACT(name, ...)                                                                                                \
	if (k < max) {                                                                                                 \
		snprintf(f[k].key, sizeof f[k].key, "%s", name);                                                       \
		snprintf(f[k].value, sizeof f[k].value, __VA_ARGS__);                                                  \
		k++;                                                                                                   \
	}
	if (!lib.device_name(text, sizeof text, d->dev))
		FACT("gpu", "%s", text);
	if (!lib.device_bus(text, sizeof text, d->dev))
		FACT("gpu.bus", "%s", text);
	if (!lib.driver_version(&v))
		FACT("gpu.driver-api", "%d.%d", v / 1000, v % 1000 / 10);
	FACT("gpu.sms", "%d", d->sms);
	if (!lib.device_mem(&mem, d->dev))
		FACT("gpu.memory", "%zu MiB", mem >> 20);
	if (!lib.device_attribute(&v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d->dev) &&
	    !lib.device_attribute(&w, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d->dev))
		FACT("gpu.compute-capability", "%d.%d", v, w);
	if (!lib.device_attribute(&v, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, d->dev))
		FACT("gpu.l2", "%d KiB", v >> 10);
	const struct {
		const char *key;
		int at;
	} flags[] = {
		{"gpu.ecc", CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
		{"gpu.dma-buf", CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED},
		{"gpu.gpudirect-rdma", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED},
		{"gpu.flush-writes-options", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS},
		{"gpu.writes-ordering", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING},
		{"gpu.host-native-atomics", CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED},
		{"gpu.pageable-access", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
	};
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (!lib.device_attribute(&v, flags[i].at, d->dev))
			FACT(flags[i].key, "%d", v);
	FACT("gpu.peer", "%s", d->has_peer ? "reaches another GPU's memory" : d->peer_why);
	return k;
}

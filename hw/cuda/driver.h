// The driver library and one GPU's resources, shared by the C files of package cuda.
#ifndef GDISIM_CUDA_DRIVER_H
#define GDISIM_CUDA_DRIVER_H
#include "abi.h"
#include "device.h"
#include "kernels.h"

struct gd_library {
#define FIELD(name, symbol, args) CUresult(*name) args;
	GD_SYMBOLS(FIELD, FIELD)
#undef FIELD
};
extern struct gd_library lib;

int gd_load(const char *path, char *err, size_t n);
void gd_explain(const char *what, CUresult r, char *err, size_t n);

// Regions of memory, all taken when the device is opened.
enum { BIG = 128u << 20, HALF = BIG / 2, CHUNK = 16u << 20, OUT = 4u << 20, WORDS = 64u << 10 };

// Where words lie in a region of words.
enum {
	AT_ABORT = 0,	  // host: u32 that ends kernels
	AT_STOP = 0,	  // GPU: u32 that ends background kernels
	AT_IN = 4096,	  // flag to the GPU
	AT_FLAG = 8192,	  // flag from the GPU
	AT_MARK = 12288,  // a second flag from the GPU
	AT_PAYLOAD = 16384,
	AT_DOORBELL = 20480, // 128 B each
};

// place is a context with what lives in it.
struct place {
	CUcontext ctx;
	CUmodule module;
	CUstream stream, side, side2;
	CUevent event, blocking;
	CUdeviceptr words, out, out2, reports, queues, wqes, records, big;
};

struct gd_device {
	CUdevice dev, peer_dev;
	int hung, sms;
	struct place one, blocking, peer; // the last two when first asked for
	int has_peer;
	char peer_why[128];
	const char *ptx;
	// Pinned host memory, and where the GPU sees it.
	char *words, *ring, *comp, *big;
	CUdeviceptr words_at, ring_at, comp_at, big_at;
	uint64_t base; // flags and sequence numbers only grow
};

int place_open(struct gd_device *d, struct place *p, CUdevice dev, unsigned flags, int small, char *err, size_t n);
void place_close(struct place *p);
#endif

// One GPU through the driver library, which is opened when it is needed. Every
// call returns 0 or more, or a negative number with the reason in err.
#ifndef GDISIM_MLX5_GPU_H
#define GDISIM_MLX5_GPU_H
#include <stddef.h>

#include "layout.h"

enum { GM_ERR = 256, GM_POST = 0, GM_IMAGE = 1 };

struct gm_gpu;

// gm_gpu_open says with *absent whether this machine lacks a GPU, or has one
// that cannot be used.
struct gm_gpu *gm_gpu_open(int ordinal, const char *ptx, char *name, size_t name_size, int *absent, char *err);
// gm_gpu_close gives everything back, unless a kernel is still running: then the
// end of the process does.
void gm_gpu_close(struct gm_gpu *);
void *gm_gpu_host(struct gm_gpu *, size_t bytes, char *err); // pinned; the GPU uses the same address
void gm_gpu_host_free(struct gm_gpu *, void *);
uint64_t gm_gpu_alloc(struct gm_gpu *, size_t bytes, char *err); // 0 on failure
void gm_gpu_free(struct gm_gpu *, uint64_t);
int gm_gpu_to(struct gm_gpu *, uint64_t to, const void *from, size_t bytes, char *err);
int gm_gpu_from(struct gm_gpu *, void *to, uint64_t from, size_t bytes, char *err);
// gm_gpu_map lets the GPU store to memory of this process, io for a page of
// device registers. It returns the GPU's address, 0 on failure.
uint64_t gm_gpu_map(struct gm_gpu *, void *, size_t bytes, int io, char *err);
void gm_gpu_unmap(struct gm_gpu *, void *);
// gm_gpu_dmabuf exports GPU memory for another device: a file descriptor.
int gm_gpu_dmabuf(struct gm_gpu *, uint64_t at, size_t bytes, char *err);
int gm_gpu_start(struct gm_gpu *, int kernel, struct gm_run *, uint64_t nic, char *err);
int gm_gpu_done(struct gm_gpu *, char *err); // 1 when the kernel has ended
#endif

// Memory as a CPU thread reaches it.
#ifndef GDISIM_MLX5_MEM_CPU_H
#define GDISIM_MLX5_MEM_CPU_H
#include <sched.h>
#include <stdint.h>
#include <time.h>

#define GM_FN static inline

GM_FN uint32_t gm_ld32(const uint32_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
GM_FN uint64_t gm_ld64(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
GM_FN uint32_t gm_ld32_acquire(const uint32_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
GM_FN uint64_t gm_ld64_acquire(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
GM_FN uint32_t gm_ld_payload(const uint32_t *p) { return *p; }
GM_FN void gm_st8(uint8_t *p, uint32_t v) { __atomic_store_n(p, (uint8_t)v, __ATOMIC_RELAXED); }
GM_FN void gm_st32(uint32_t *p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }
GM_FN void gm_st64(uint64_t *p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }
GM_FN void gm_st128(uint8_t *p, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	uint32_t *w = (uint32_t *)p;
	gm_st32(w, a);
	gm_st32(w + 1, b);
	gm_st32(w + 2, c);
	gm_st32(w + 3, d);
}
GM_FN void gm_st32_release_gpu(uint32_t *p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
GM_FN void gm_st32_release_sys(uint32_t *p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
GM_FN void gm_st64_release_gpu(uint64_t *p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
GM_FN void gm_st64_release_sys(uint64_t *p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
GM_FN void gm_fence_gpu(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
GM_FN void gm_fence_sys(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
// gm_device_barrier orders stores to memory before a store to a device.
GM_FN void gm_device_barrier(void)
{
#ifdef __aarch64__
	__asm__ volatile("dmb oshst" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
GM_FN uint64_t gm_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
GM_FN uint64_t gm_clock(void) { return gm_ns(); }
GM_FN void gm_relax(void) { sched_yield(); }
#endif

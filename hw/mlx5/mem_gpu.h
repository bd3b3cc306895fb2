// Memory as a GPU thread reaches it. Plain stores are weak, as a compiler would
// emit them; who else looks at a location decides nothing but the scope.
#ifndef GDISIM_MLX5_MEM_GPU_H
#define GDISIM_MLX5_MEM_GPU_H
#include <stdint.h>

#ifdef __clang__
#define GM_FN static inline __attribute__((device, always_inline))
#define GM_KERNEL extern "C" __attribute__((global)) void
#else
#define GM_FN static __device__ __forceinline__
#define GM_KERNEL extern "C" __global__ void
#endif

#define GM_LOAD(name, type, op, c)                                                                                     \
	GM_FN type name(const type *p)                                                                                 \
	{                                                                                                              \
		type v;                                                                                                \
		asm volatile(op " %0, [%1];" : "=" c(v) : "l"(p) : "memory");                                         \
		return v;                                                                                              \
	}
#define GM_STORE(name, type, op, c)                                                                                    \
	GM_FN void name(type *p, type v) { asm volatile(op " [%0], %1;" : : "l"(p), c(v) : "memory"); }

GM_LOAD(gm_ld32, uint32_t, "ld.relaxed.sys.u32", "r")
GM_LOAD(gm_ld64, uint64_t, "ld.relaxed.sys.u64", "l")
GM_LOAD(gm_ld32_acquire, uint32_t, "ld.acquire.sys.u32", "r")
GM_LOAD(gm_ld64_acquire, uint64_t, "ld.acquire.sys.u64", "l")
GM_LOAD(gm_ld_payload, uint32_t, "ld.u32", "r")
GM_STORE(gm_st32, uint32_t, "st.relaxed.sys.u32", "r")
GM_STORE(gm_st64, uint64_t, "st.relaxed.sys.u64", "l")
GM_STORE(gm_st32_release_gpu, uint32_t, "st.release.gpu.u32", "r")
GM_STORE(gm_st32_release_sys, uint32_t, "st.release.sys.u32", "r")
GM_STORE(gm_st64_release_gpu, uint64_t, "st.release.gpu.u64", "l")
GM_STORE(gm_st64_release_sys, uint64_t, "st.release.sys.u64", "l")
GM_FN void gm_st8(uint8_t *p, uint32_t v) { asm volatile("st.u8 [%0], %1;" : : "l"(p), "r"(v) : "memory"); }
GM_FN void gm_st128(uint8_t *p, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	asm volatile("st.v4.u32 [%0], {%1, %2, %3, %4};" : : "l"(p), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
GM_FN void gm_fence_gpu(void) { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
GM_FN void gm_fence_sys(void) { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
GM_FN void gm_relax(void) {}
GM_FN uint64_t gm_clock(void)
{
	uint64_t v;
	asm volatile("mov.u64 %0, %%clock64;" : "=l"(v)::"memory");
	return v;
}
GM_FN uint64_t gm_ns(void)
{
	uint64_t v;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v)::"memory");
	return v;
}
GM_FN uint32_t gm_block(void)
{
	uint32_t v;
	asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(v));
	return v;
}
#endif

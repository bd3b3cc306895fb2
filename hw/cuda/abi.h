// The part of the CUDA driver API that package cuda calls, declared anew so that it
// builds without the toolkit. Names and values are those of the API's reference
// (cuda.h 11.4 to 13).
#ifndef GDISIM_CUDA_ABI_H
#define GDISIM_CUDA_ABI_H
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef void (*CUhostFn)(void *);

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_ECC_UNCORRECTABLE = 214,
	CUDA_ERROR_OPERATING_SYSTEM = 304,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
	CUDA_ERROR_NOT_PERMITTED = 800,
	CUDA_ERROR_NOT_SUPPORTED = 801,
};

enum {
	CU_CTX_SCHED_SPIN = 1,
	CU_CTX_SCHED_BLOCKING_SYNC = 4,
	CU_CTX_MAP_HOST = 8,
	CU_STREAM_NON_BLOCKING = 1,
	CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
	CU_EVENT_BLOCKING_SYNC = 1,
	CU_EVENT_DISABLE_TIMING = 2,
	CU_MEMHOSTALLOC_PORTABLE = 1,
	CU_MEMHOSTALLOC_DEVICEMAP = 2,
	CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1,
	CU_JIT_ERROR_LOG_BUFFER = 5,
	CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

enum {
	CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
	CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
	CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED = 86,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED = 116,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
	CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
};

// X(return, name here, symbol, arguments). What MAYBE lists, an older driver may
// lack.
#define GD_SYMBOLS(X, MAYBE)                                                                                           \
	X(init, cuInit, (unsigned))                                                                                    \
	X(driver_version, cuDriverGetVersion, (int *))                                                                 \
	X(device_count, cuDeviceGetCount, (int *))                                                                     \
	X(device_get, cuDeviceGet, (CUdevice *, int))                                                                  \
	X(device_name, cuDeviceGetName, (char *, int, CUdevice))                                                       \
	X(device_mem, cuDeviceTotalMem_v2, (size_t *, CUdevice))                                                       \
	X(device_bus, cuDeviceGetPCIBusId, (char *, int, CUdevice))                                                    \
	X(device_attribute, cuDeviceGetAttribute, (int *, int, CUdevice))                                              \
	X(can_access_peer, cuDeviceCanAccessPeer, (int *, CUdevice, CUdevice))                                         \
	X(ctx_create, cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice))                                               \
	X(ctx_destroy, cuCtxDestroy_v2, (CUcontext))                                                                   \
	X(ctx_set, cuCtxSetCurrent, (CUcontext))                                                                       \
	X(enable_peer, cuCtxEnablePeerAccess, (CUcontext, unsigned))                                                   \
	X(module_load, cuModuleLoadDataEx, (CUmodule *, const void *, unsigned, int *, void **))                       \
	X(module_unload, cuModuleUnload, (CUmodule))                                                                   \
	X(module_function, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                                \
	X(mem_alloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                           \
	X(mem_free, cuMemFree_v2, (CUdeviceptr))                                                                       \
	X(host_alloc, cuMemHostAlloc, (void **, size_t, unsigned))                                                     \
	X(host_free, cuMemFreeHost, (void *))                                                                          \
	X(host_pointer, cuMemHostGetDevicePointer_v2, (CUdeviceptr *, void *, unsigned))                               \
	X(host_register, cuMemHostRegister_v2, (void *, size_t, unsigned))                                             \
	X(host_unregister, cuMemHostUnregister, (void *))                                                              \
	X(memset8, cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))                                                \
	X(to_gpu, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                                \
	X(to_host, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                                     \
	X(to_gpu_async, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))                           \
	X(to_host_async, cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))                                \
	X(peer_async, cuMemcpyPeerAsync, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))           \
	X(stream_create, cuStreamCreate, (CUstream *, unsigned))                                                       \
	X(stream_destroy, cuStreamDestroy_v2, (CUstream))                                                              \
	X(stream_query, cuStreamQuery, (CUstream))                                                                     \
	X(stream_sync, cuStreamSynchronize, (CUstream))                                                                \
	X(event_create, cuEventCreate, (CUevent *, unsigned))                                                          \
	X(event_destroy, cuEventDestroy_v2, (CUevent))                                                                 \
	X(event_record, cuEventRecord, (CUevent, CUstream))                                                            \
	X(event_query, cuEventQuery, (CUevent))                                                                        \
	X(event_sync, cuEventSynchronize, (CUevent))                                                                   \
	X(launch, cuLaunchKernel,                                                                                      \
	  (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
	X(host_func, cuLaunchHostFunc, (CUstream, CUhostFn, void *))                                                   \
	X(error_name, cuGetErrorName, (CUresult, const char **))                                                       \
	X(error_string, cuGetErrorString, (CUresult, const char **))                                                   \
	MAYBE(stream_write, cuStreamWriteValue64_v2, (CUstream, CUdeviceptr, uint64_t, unsigned))                      \
	MAYBE(export_range, cuMemGetHandleForAddressRange, (void *, CUdeviceptr, size_t, int, unsigned long long))     \
	MAYBE(begin_capture, cuStreamBeginCapture_v2, (CUstream, int))                                                 \
	MAYBE(end_capture, cuStreamEndCapture, (CUstream, CUgraph *))                                                  \
	MAYBE(graph_instantiate, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))            \
	MAYBE(graph_launch, cuGraphLaunch, (CUgraphExec, CUstream))                                                    \
	MAYBE(graph_destroy, cuGraphDestroy, (CUgraph))                                                                \
	MAYBE(graph_exec_destroy, cuGraphExecDestroy, (CUgraphExec))
#endif

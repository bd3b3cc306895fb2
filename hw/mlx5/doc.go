// Package mlx5 lets a GPU thread ring a ConnectX doorbell itself: it builds WQEs,
// writes the doorbell record, rings and polls the CQ, as scenarios with the
// protocol gpu-doorbell describe. The algorithm is one C source, post.h, compiled
// three times: for the GPU (post.cu, embedded as PTX), for a CPU thread, and
// against a store buffer that reorders what no fence holds back.
//
// An Endpoint is a queue pair on a device, made by device commands out of memory
// of a GPU or the host. A Case takes hardware's place: the image of a queue in
// memory, with a NIC that checks every WQE when its doorbell arrives. Byte layouts
// have encoders in Go as well, held against rdma-core's and the kernel's headers.
// No HCA has met any of it.
package mlx5

// Package mlx5 lets a GPU thread ring a ConnectX doorbell itself: it builds WQEs,
// writes the doorbell record, rings and polls the CQ, as scenarios with the
// protocol gpu-doorbell describe. The algorithm is one C source, post.h, compiled
// three times: for the GPU (post.cu, embedded as PTX), for a CPU thread, and
// against a store buffer that reorders what no fence holds back. An image of a queue
// in memory with a NIC that checks every WQE when the doorbell arrives takes the
// place of hardware in tests. Byte layouts have encoders in Go as well, held
// against rdma-core's header.
package mlx5

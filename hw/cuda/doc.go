// Package cuda measures a GPU through the NVIDIA driver: what a GPU thread pays for
// fences, stores, loads, polls and posts, what flags, proxies, launches and copies
// cost between GPU and host, idle and beside traffic. The driver's library is
// opened when a device is, so a program with this package runs without it. The
// kernels are PTX that the driver compiles for the GPU at hand; scripts/ptx.sh
// makes it from kernels.cu. Nothing is a cgo call per operation, every kernel and
// every wait has a deadline, and the data that arrives is checked.
package cuda

// Package host measures what the operating system and the cores of this machine
// cost: wake-ups, switches, system calls, cache lines, fences, timers, idle
// exits, delay beside other threads, time taken away, pinning of memory. The
// loops are C, one call an experiment, on threads pinned to a core; a program
// built without cgo has none and says so. Nothing here needs RDMA.
package host

// Package cpu models a host core that runs communication code: prices of steps
// in core cycles and uncore cycles, and the time that the core does not belong
// to the thread (timer tick, other threads on the core). What the thread does
// belongs to package path.
package cpu

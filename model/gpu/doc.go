// Package gpu models what a GPU thread pays for the steps of communication
// code: loads through a warm or cold L1, L2 loads and atomics by placement,
// stores, fences by scope, and polling with its phase. Prices are cycles of the
// SM clock plus a fixed part, resolved to time before they get here; which
// steps a library takes belongs to package path.
//
// Edge is where threads, copy engines and fences at system scope meet on their
// way to the host: what one of them waits for there is the traffic of the others.
package gpu

// Package importers reads what the benchmarks of the field print, perftest, OSU,
// NVSHMEM's perftest, nccl-tests, DeepEP and gdrcopy, as results: units converted,
// a line that was left out named with its reason. A line that is not understood is
// an error with its place, never a guess.
package importers

// Package path holds the control protocols that tie GPU, CPU, NIC and PCIe
// together. A path is four choices (who decides, builds, rings, polls) and four
// places (where work queue, doorbell record, completion and payload live). Two
// protocols cover the libraries of GPU threads: one posts and rings itself, one
// hands a descriptor to a CPU proxy. Their steps are lists that the run executes
// and that `gdisim explain` prints. In a third a CPU thread calls verbs itself.
package path

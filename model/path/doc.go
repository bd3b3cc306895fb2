// Package path holds the control protocols that tie GPU, CPU, NIC and PCIe
// together. A path is four choices (who decides, builds, rings, polls) and four
// places (where work queue, doorbell record, completion and payload live). Two
// protocols cover the libraries: a GPU thread that posts and rings itself, and
// a GPU thread that hands a descriptor to a CPU proxy. Their steps are lists
// that the run executes and that `gdisim explain` prints.
package path

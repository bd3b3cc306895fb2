// Package workload drives the threads of a path: puts one after the other,
// ping-pongs, streams with a window, background load. It decides when an
// operation begins and which event ends which metric; it knows no hardware.
package workload

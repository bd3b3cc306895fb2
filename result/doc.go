// Package result holds the one result type that the simulator and the hardware
// backend both fill: per point of a sweep and per path the metrics, the
// breakdown of each metric by stage, findings, costs and the parameters that
// made them. It also has the codecs and the look-ups by which `expect`, the
// renderers and a comparison read it. It computes nothing about hardware.
package result

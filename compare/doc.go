// Package compare holds two results side by side, simulated or measured: every
// metric, stage and measured cost of each, the difference, its interval and a
// verdict. It judges nothing beyond that.
package compare

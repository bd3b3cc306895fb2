// Package plots draws results: figures as PNG or SVG, a self-contained HTML
// report, a trace in Chrome's Trace Event format and dumps of recorded
// operations. It reads results and what a result.TraceSink is fed, whichever
// backend filled them, and computes nothing about hardware. The same input
// gives the same bytes.
package plots

// Package stage is the vocabulary that simulator, hardware backend, plots and
// reports share: the stages of a message, the lanes they run on, the metrics
// and the findings, each with the text that defines it. It holds words only;
// what a stage costs is decided by the packages under model/.
package stage

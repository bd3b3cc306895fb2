// Package sensitivity tells which inputs of a scenario move its results: it
// changes each number that a run has read a little up and down, runs the
// scenario again with the same random numbers, and reports how many percent each
// metric follows one percent of the input.
package sensitivity

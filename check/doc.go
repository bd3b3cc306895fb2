// Package check holds a result against the expectations of its scenario, and
// writes the table of what was expected, what came out and how far off it is.
// Figures that fitted a parameter and figures that only check are summarised
// apart. It runs nothing.
package check

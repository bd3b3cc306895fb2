// Package crossval asks what the published figures of one table tell that the
// others do not: it leaves a table out, fits again the parameters that the table
// had determined, from the fitted figures that are left and the bounds that
// profiles and stacks state, and holds the simulator against the table.
package crossval

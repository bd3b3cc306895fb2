// Package calibrate turns results into a profile: it finds which parameters of
// the simulator the numbers identify, fits those within bounds, and says how sure
// it is. The simulator itself is the model, run again for each trial; what a
// measured cost of the host says directly is taken as it is.
//
// A parameter that the numbers do not tell is named and left at its prior.
package calibrate

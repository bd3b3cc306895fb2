// Package testbed assembles machines from a scenario, runs its workload over
// its paths and collects the result. It is the only package that knows all
// models; what they are configured with comes from package scenarios.
package testbed

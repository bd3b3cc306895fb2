// Package hw runs a scenario on real machines and fills the same result as the
// simulator, as far as hardware shows it. Probe reads what a machine has.
// Package host below it measures what needs no RDMA, package verbs drives a
// device through libibverbs, package mlx5 has a GPU ring one's doorbell, package
// pair joins two processes, package cuda measures a GPU with its host, which needs
// no NIC.
//
// Nothing is invented: a stage that no clock and no difference of measurements
// separates goes into one lump, and what this machine could not do is named.
package hw

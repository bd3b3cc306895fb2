// Package fabric models the wire between the NICs: ports that serialise
// packets at the link rate, cables, cut-through switches whose output ports
// queue, and the header bytes of each transport. It delivers packets in order;
// what a packet means belongs to package nic.
package fabric

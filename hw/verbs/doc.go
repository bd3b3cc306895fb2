// Package verbs drives an RDMA device through libibverbs: it opens one end of a
// reliable connection, registers memory, and runs batches of operations whose
// loops are C. The library is opened when it is needed, so the same program
// runs without it; what little of its ABI is used is declared in abi.h. Package
// hw decides what to run; it sees only the interface Endpoint.
package verbs

// Package pcie models the PCI Express side of one node: links with their
// generation, width and encoding, switches, the root complex, and transactions
// (posted writes, non-posted reads and their completions) as TLPs with header
// bytes, flow-control credits, read tags, MPS, MRRS and RCB. The root complex
// translates devices' requests (IOMMU, ATS) and keeps ordered writes apart; ACS
// sends peer traffic through it. Units (GPU, NIC, host memory, CPU) hang on it by
// their distance class as `nvidia-smi topo -m` names it. What a unit does with
// what arrives belongs to its own package.
package pcie

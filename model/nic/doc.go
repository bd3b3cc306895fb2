// Package nic models an RDMA NIC at WQE level: queue pairs with their send
// queue, doorbell and BlueFlame, WQE and payload fetches over PCIe, packets of
// one MTU, receive processing, ACK, and the CQE at the source. Connections are RC
// or DC, are sent again where packets may be lost or refused, and have state that a
// cache holds. Where queues and payload live is given per queue pair and WQE, so
// that the same NIC serves a GPU and a CPU. Names are those of rdma-core.
package nic

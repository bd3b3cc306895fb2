package nic

import "gdisim/sim"

func (n *NIC) release(id uint32) {
	m := &n.msgs[id]
	if m.refs--; m.refs == 0 {
		sim.Release(&n.msgs, &n.msgFree, id)
	}
}

func (n *NIC) allocPkt() uint32 { return sim.Alloc(&n.pkts, &n.pktFree) }

func (n *NIC) freePkt(id uint32) { sim.Release(&n.pkts, &n.pktFree, id) }

package nic

func (n *NIC) release(id uint32) {
	m := &n.msgs[id]
	if m.refs--; m.refs == 0 {
		*m = message{next: n.msgFree}
		n.msgFree = id
	}
}

func (n *NIC) allocMsg() uint32 {
	if id := n.msgFree; id != 0 {
		n.msgFree = n.msgs[id].next
		return id
	}
	n.msgs = append(n.msgs, message{})
	return uint32(len(n.msgs) - 1)
}

func (n *NIC) allocPkt() uint32 {
	if id := n.pktFree; id != 0 {
		n.pktFree = n.pkts[id].next
		return id
	}
	n.pkts = append(n.pkts, packet{})
	return uint32(len(n.pkts) - 1)
}

func (n *NIC) freePkt(id uint32) {
	n.pkts[id] = packet{next: n.pktFree}
	n.pktFree = id
}

func (n *NIC) allocFetch() uint32 {
	if id := n.fetchTop; id != 0 {
		n.fetchTop = n.fetches[id].next
		return id
	}
	n.fetches = append(n.fetches, fetch{})
	return uint32(len(n.fetches) - 1)
}

package testbed

import (
	"gdisim/model/path"
	"gdisim/model/pcie"
	"gdisim/scenarios"
)

// reachable refuses paths whose NIC cannot get at their payload or queues: peer
// traffic that the platform does not forward, memory that nobody registers.
func (r *runner) reachable(p *plan, payload pcie.Unit) error {
	c := r.cfg
	inline := c.Bool("path.inline") && !p.msg.Get && p.msg.Bytes <= c.Bytes("hardware.nic.inline_max")
	if p.proxy {
		inline = inline && p.msg.Bytes <= p.prox.ValueBytes
	}
	staged := p.cpu && p.verbs.Copies
	inGPU := payload == pcie.GPU && !staged || p.msg.Word == pcie.GPU
	rings := !p.proxy && !p.cpu
	reads := payload == pcie.GPU && !staged && !inline || rings && p.doorbell.Queues == pcie.GPU
	p.block(peers(c, reads, inGPU || rings))
	switch word := c.Enum("workload.registration"); {
	case word == "per-operation" && !p.cpu:
		return refuse("workload.registration", "%s with a path that a GPU thread initiates, which cannot call the kernel (want pool, or a stack such as verbs-cpu)", word)
	case word == "on-demand" && inGPU:
		return refuse("workload.registration", "%s with a payload in GPU memory, which is pinned (want pool, or payload_in host)", word)
	}
	return nil
}

// lands returns the memory that the path's payloads go to.
func (p *plan) lands() pcie.Unit {
	if p.cpu {
		return p.verbs.Payload
	}
	return pcie.GPU
}

// place says where messages land. The word that a receiver polls is theirs unless
// a signal tells of them.
func (r *runner) place(p *plan) {
	p.msg.Lands, p.msg.Word = p.lands(), p.lands()
	if p.notify == path.SignalImmediate { // which comes as a CQE; a CPU thread stores its count for a GPU's through BAR1
		return
	}
	switch r.cfg.Enum("path.notify_in") {
	case "gpu":
		p.msg.Word = pcie.GPU
	case "host":
		p.msg.Word = pcie.Host
	}
	if p.msg.Signal == path.SignalNone && p.notify == path.SignalNone && !p.msg.Get && p.kind != "stream" {
		p.msg.Lands = p.msg.Word
	}
}

// peers says which peer traffic between GPU and NIC the platform's root complex
// does not forward; "": none of it.
func peers(c *scenarios.Config, reads, writes bool) blocked {
	root := true
	switch c.Enum("hardware.pcie.path.gpu_nic") {
	case "PIX", "PXB":
		root = c.Enum("hardware.pcie.acs") == "redirect" && iommuConfig(c).ATC == 0
	case "C2C":
		root = false
	}
	switch allowed := c.Enum("hardware.pcie.p2p"); {
	case !root || allowed == "both":
	case allowed == "none" && (reads || writes):
		return blocked("hardware.pcie.p2p: none: the root complex forwards no peer traffic, so NIC and GPU cannot reach each other (want a switch between them, or a stack that stages through host memory)")
	case allowed == "writes" && reads:
		return blocked("hardware.pcie.p2p: writes: the root complex forwards no peer reads, so the NIC cannot read GPU memory (want a payload that travels inline, queues in host memory, or a stack that stages)")
	}
	return ""
}

package testbed

import (
	"gdisim/model/path"
	"gdisim/model/pcie"
	"gdisim/scenarios"
)

// inlined reports whether what the path's messages bring travels inline: in a WQE, and in
// the descriptor before it where a proxy posts.
func (r *runner) inlined(p *plan) bool {
	c := r.cfg
	limit := c.Bytes("hardware.nic.inline_max")
	if p.proxy {
		limit = min(limit, p.prox.ValueBytes)
	}
	return c.Bool("path.inline") && !p.msg.Get && p.msg.Bytes <= limit && !(p.cpu && (p.verbs.Copies || p.verbs.Payload == pcie.GPU))
}

// reachable refuses paths whose NIC cannot get at their payload or queues: peer
// traffic that the platform does not forward, memory that nobody registers.
func (r *runner) reachable(p *plan, payload pcie.Unit, inline bool) error {
	c := r.cfg
	staged := p.cpu && p.verbs.Copies
	source := payload == pcie.GPU && !staged
	rings := !p.proxy && !p.cpu
	reads := source && !inline || rings && p.doorbell.Queues == pcie.GPU
	writes := p.msg.Lands == pcie.GPU || p.word == pcie.GPU
	p.block(peers(c, reads, source || writes || rings))
	switch word := c.Enum("workload.registration"); {
	case word == "per-operation" && !p.cpu:
		return refuse("workload.registration", "%s with a path that a GPU thread initiates, which cannot call the kernel (want pool, or a stack such as verbs-cpu)", word)
	case word == "on-demand" && source:
		return refuse("workload.registration", "%s with a payload in GPU memory, which is pinned (want pool, or payload_in host)", word)
	case word == "on-demand" && p.msg.Lands == pcie.GPU:
		return refuse("workload.registration", "%s with a payload that lands in GPU memory, which is pinned (want pool, a CPU thread that initiates with payload_in host, or a put told of by its data with notify_in host)", word)
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

// place says where messages land, and where the word lies that a receiver polls
// who is told of them: the data's own, unless a signal tells.
func (r *runner) place(p *plan) {
	p.msg.Lands = p.lands()
	p.word = p.msg.Lands
	signal := p.msg.Signal
	if signal == path.SignalNone {
		signal = p.notify
	}
	// An immediate comes as a CQE; a CPU thread stores its count for a GPU's through BAR1.
	if !p.msg.Get && p.kind != "stream" && signal != path.SignalImmediate {
		switch r.cfg.Enum("path.notify_in") {
		case "gpu":
			p.word = pcie.GPU
		case "host":
			p.word = pcie.Host
		}
		if signal == path.SignalNone {
			p.msg.Lands = p.word
		}
	}
	p.msg.Word = p.msg.Lands
	if p.msg.Signal != path.SignalNone {
		p.msg.Word = p.word
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

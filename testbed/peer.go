package testbed

import (
	"errors"

	"gdisim/scenarios"
)

// peers refuses peer traffic between GPU and NIC that the platform's root
// complex does not forward.
func peers(c *scenarios.Config, reads, writes bool) error {
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
		return errors.New("hardware.pcie.p2p: none: the root complex forwards no peer traffic, so NIC and GPU cannot reach each other (want a switch between them, or a stack that stages through host memory)")
	case allowed == "writes" && reads:
		return errors.New("hardware.pcie.p2p: writes: the root complex forwards no peer reads, so the NIC cannot read GPU memory (want a payload that travels inline, queues in host memory, or a stack that stages)")
	}
	return nil
}

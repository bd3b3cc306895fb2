package scenarios

// pcieFields are the parameters of the PCIe tree and of what stands in it.
var pcieFields = []Field{
	{Key: "hardware.pcie.path.gpu_nic", Kind: Enum, Enum: []string{"PIX", "PXB", "PHB", "NODE", "SYS", "C2C"}, Text: "distance of GPU and NIC, as nvidia-smi topo -m prints it; C2C: the GPU hangs on its CPU by a coherent link", Used: "model/pcie"},
	{Key: "hardware.pcie.host_near", Kind: Enum, Enum: []string{"nic", "gpu"}, Default: "nic", Text: "whose socket the proxy and its memory are on, class SYS", Used: "model/pcie"},
	{Key: "hardware.pcie.gpu_link", Kind: Link, Text: "the GPU's link", Used: "model/pcie"},
	{Key: "hardware.pcie.nic_link", Kind: Link, Text: "the NIC's link", Used: "model/pcie"},
	{Key: "hardware.pcie.up_link", Kind: Link, Text: "the switch's link to the root complex", Used: "model/pcie"},
	{Key: "hardware.pcie.c2c_rate", Kind: Rate, Text: "GPU's coherent link to its CPU, class C2C", Used: "model/pcie"},
	{Key: "hardware.pcie.mps", Kind: Bytes, Min: "128B", Max: "4KiB", Pow2: true, Text: "max payload size of a TLP", Used: "model/pcie"},
	{Key: "hardware.pcie.mrrs", Kind: Bytes, Min: "128B", Max: "4KiB", Pow2: true, Text: "max read request size", Used: "model/pcie"},
	{Key: "hardware.pcie.rcb", Kind: Bytes, Min: "64B", Max: "128B", Pow2: true, Text: "read completion boundary", Used: "model/pcie"},
	{Key: "hardware.pcie.header.request", Kind: Bytes, Min: "12B", Max: "64B", Text: "bytes of a 64-bit request TLP beside its payload, framing included", Used: "model/pcie"},
	{Key: "hardware.pcie.header.completion", Kind: Bytes, Min: "12B", Max: "64B", Text: "bytes of a completion TLP beside its payload, framing included", Used: "model/pcie"},
	{Key: "hardware.pcie.dllp", Kind: Ratio, Max: "50%", Text: "share of a link that DLLPs and SKP ordered sets take", Used: "model/pcie"},
	{Key: "hardware.pcie.link_latency", Kind: Duration, Dist: true, Text: "one link: PHY and data link layers of both ends", Used: "model/pcie"},
	{Key: "hardware.pcie.switch_latency", Kind: Duration, Dist: true, Text: "cut-through latency of a switch", Used: "model/pcie"},
	{Key: "hardware.pcie.root_latency", Kind: Duration, Dist: true, Text: "through the root complex to or from the host", Used: "model/pcie"},
	{Key: "hardware.pcie.root_peer_latency", Kind: Duration, Dist: true, Text: "through the root complex between two devices, classes PHB, NODE and SYS", Used: "model/pcie"},
	{Key: "hardware.pcie.mesh_latency", Kind: Duration, Dist: true, Text: "between root complexes of one NUMA node", Used: "model/pcie"},
	{Key: "hardware.pcie.socket_latency", Kind: Duration, Dist: true, Text: "inter-socket link, both uncores warm", Used: "model/pcie"},
	{Key: "hardware.pcie.socket_p2p_rate", Kind: Rate, Text: "peer traffic across sockets", Used: "model/pcie"},
	{Key: "hardware.pcie.credits.posted", Kind: Count, Min: "1", Text: "posted TLPs that a receiver buffers", Used: "model/pcie"},
	{Key: "hardware.pcie.credits.non_posted", Kind: Count, Min: "1", Text: "non-posted TLPs that a receiver buffers", Used: "model/pcie"},
	{Key: "hardware.pcie.credits.completion", Kind: Count, Min: "1", Text: "completion TLPs that a receiver buffers", Used: "model/pcie"},

	{Key: "hardware.pcie.relaxed_ordering", Kind: Bool, Default: "true", Text: "devices may set the relaxed-ordering attribute (Device Control)", Used: "model/pcie"},
	{Key: "hardware.pcie.ordered_write", Kind: Duration, Default: "0ns", Max: "10us", Text: "the root complex takes an ordered write TLP so long after the one before it, a relaxed one as it comes; 0: either as it comes", Used: "model/pcie"},
	{Key: "hardware.pcie.acs", Kind: Enum, Enum: []string{"off", "redirect"}, Default: "off", Text: "redirect: switches send peer traffic up to the root complex, unless its addresses are translated (ATS)", Used: "model/pcie"},
	{Key: "hardware.pcie.p2p", Kind: Enum, Enum: []string{"both", "writes", "none"}, Default: "both", Text: "what peers' traffic the root complex forwards", Used: "testbed"},
	{Key: "hardware.pcie.ats", Kind: Bool, Default: "false", Text: "devices cache translations themselves and ask the IOMMU for those they lack", Used: "model/pcie"},
	{Key: "hardware.pcie.atc", Kind: Count, Min: "1", Max: "1048576", Text: "translations that a device with ATS holds", Used: "model/pcie"},
	{Key: "hardware.pcie.iommu.mode", Kind: Enum, Enum: []string{"off", "passthrough", "lazy", "strict"}, Default: "off", Text: "whether the IOMMU translates devices' requests; lazy and strict differ in what unmapping costs", Used: "model/pcie"},
	// What an operating system maps by, not what hardware takes: the one such size
	// with a default.
	{Key: "hardware.pcie.iommu.page", Kind: Bytes, Default: "4KiB", Min: "4KiB", Max: "1GiB", Pow2: true, Text: "page that one translation covers", Used: "model/pcie"},
	{Key: "hardware.pcie.iommu.entries", Kind: Count, Min: "1", Max: "1048576", Text: "translations that the IOTLB holds", Used: "model/pcie"},
	{Key: "hardware.pcie.iommu.hit", Kind: Duration, Dist: true, Text: "look-up of a translation", Used: "model/pcie"},
	{Key: "hardware.pcie.iommu.walk", Kind: Duration, Dist: true, Text: "page walk of a miss", Used: "model/pcie"},
	{Key: "hardware.pcie.iommu.map", Kind: Duration, Text: "entry of the IOMMU's tables, per page that is registered", Used: "testbed"},
	{Key: "hardware.pcie.iommu.invalidate", Kind: Duration, Text: "wait until the IOMMU has forgotten what is unregistered (strict)", Used: "testbed"},
	{Key: "hardware.pcie.iommu.interval", Kind: Duration, Text: "one page walk starts so long after another", Used: "model/pcie"},
}

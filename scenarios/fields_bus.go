package scenarios

// busFields are the keys of steps on the PCIe tree, and what they cost.
var busFields = []Field{
	{Key: "workload.op", Kind: Enum, Enum: []string{"read", "write", "write-read", "read-write"}, Default: "read", Kinds: []string{"dma"}, Text: "what the step does: dma reads, writes, reads what it has just written, or reads and writes side by side", Used: "testbed"},
	{Key: "workload.window", Kind: Bytes, Default: "8KiB", Min: "64B", Max: "64GiB", Kinds: []string{"dma"}, Text: "memory that the transfers are spread over at random", Used: "testbed"},
	{Key: "workload.cache", Kind: Enum, Enum: []string{"warm", "cold"}, Default: "warm", Kinds: []string{"dma"}, Text: "whether the lines are in the last-level cache (host memory)", Used: "testbed"},
	{Key: "workload.socket", Kind: Enum, Enum: []string{"local", "remote"}, Default: "local", Kinds: []string{"dma"}, Text: "socket of the host memory, seen from the device", Used: "testbed"},

	{Key: "hardware.nic.dma.read.setup", Kind: Duration, Default: "0ns", Dist: true, Text: "DMA engine: from a read command until its request may leave", Used: "model/nic"},
	{Key: "hardware.nic.dma.read.interval", Kind: Duration, Default: "0ns", Text: "DMA engine: read commands are taken so far apart", Used: "model/nic"},
	{Key: "hardware.nic.dma.write.setup", Kind: Duration, Default: "0ns", Dist: true, Text: "DMA engine: from a write command until its data is moved", Used: "model/nic"},
	{Key: "hardware.nic.dma.write.interval", Kind: Duration, Default: "0ns", Text: "DMA engine: write commands are taken so far apart", Used: "model/nic"},
	{Key: "hardware.nic.dma.move", Kind: Duration, Default: "0ns", Text: "DMA engine: per transfer from or to the device's own memory, beside its bytes", Used: "model/nic"},
	{Key: "hardware.nic.dma.rate", Kind: Rate, Optional: true, Text: "DMA engine: rate of the device's own memory, each way; absent: its bytes take no time", Used: "model/nic"},
	{Key: "hardware.host.pcie.miss", Kind: Duration, Default: "45ns", Dist: true, Text: "what a device's read costs more when the line is not in the last-level cache", Used: "model/pcie"},
}

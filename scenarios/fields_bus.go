package scenarios

import (
	"maps"
	"slices"
)

// busFields are the keys of steps on the PCIe tree, and what they cost.
var busFields = []Field{
	{Key: "workload.op", Kind: Enum, Enum: words(ops), Kinds: slices.Sorted(maps.Keys(ops)), Text: "what the step does: dma reads, writes, reads what it has just written, or reads and writes side by side; mmio stores or loads; register registers or unregisters, or makes one of the calls on GPU memory that are part of that", Used: "testbed"},
	{Key: "workload.window", Kind: Bytes, Optional: true, Min: "64B", Max: "64GiB", Kinds: slices.Concat(messageKinds, []string{"dma"}), Text: "dma: memory that the transfers are spread over at random; messages: buffer of a queue that they walk through", Used: "testbed"},
	{Key: "workload.cache", Kind: Enum, Enum: []string{"warm", "cold"}, Default: "warm", Kinds: []string{"dma"}, Text: "whether the lines are in the last-level cache (host memory)", Used: "testbed"},
	{Key: "workload.to", Kind: Enum, Enum: []string{"gpu-bar", "nic"}, Default: "gpu-bar", Kinds: []string{"mmio"}, Text: "whose memory the cores store to or load from", Used: "testbed"},
	{Key: "workload.cores", Kind: Count, Default: "1", Min: "1", Max: "1024", Kinds: []string{"mmio"}, Text: "CPU cores that do it at the same time", Used: "testbed"},
	{Key: "workload.reuse", Kind: Enum, Enum: []string{"per-operation", "pool"}, Default: "per-operation", Kinds: []string{"register"}, Text: "pool: the memory was registered before and is only looked up", Used: "testbed"},
	{Key: "workload.page", Kind: Bytes, Default: "4KiB", Min: "4KiB", Max: "1GiB", Pow2: true, Kinds: slices.Concat(messageKinds, []string{"register"}), Text: "page of the host memory that is registered", Used: "testbed"},
	{Key: "workload.registration", Kind: Enum, Enum: []string{"pool", "per-operation", "on-demand"}, Default: "pool", Text: "whether buffers are registered once, by each operation of a CPU thread that initiates, or not at all: the NIC then faults on the first touch of a page", Used: "testbed"},
	{Key: "workload.socket", Kind: Enum, Enum: []string{"local", "remote"}, Default: "local", Kinds: []string{"dma"}, Text: "socket of the host memory, seen from the device", Used: "testbed"},

	{Key: "hardware.nic.dma.read.setup", Kind: Duration, Default: "0ns", Dist: true, Text: "DMA engine: from a read command until its request may leave", Used: "model/nic"},
	{Key: "hardware.nic.dma.read.interval", Kind: Duration, Default: "0ns", Text: "DMA engine: read commands are taken so far apart", Used: "model/nic"},
	{Key: "hardware.nic.dma.write.setup", Kind: Duration, Default: "0ns", Dist: true, Text: "DMA engine: from a write command until its data is moved", Used: "model/nic"},
	{Key: "hardware.nic.dma.write.interval", Kind: Duration, Default: "0ns", Text: "DMA engine: write commands are taken so far apart", Used: "model/nic"},
	{Key: "hardware.nic.dma.move", Kind: Duration, Default: "0ns", Text: "DMA engine: per transfer from or to the device's own memory, beside its bytes", Used: "model/nic"},
	{Key: "hardware.nic.dma.rate", Kind: Rate, Optional: true, Text: "DMA engine: rate of the device's own memory, each way; absent: its bytes take no time", Used: "model/nic"},
	{Key: "hardware.cpu.mmio.call", Kind: Cost, Dist: true, Text: "routine around a run of stores or loads to a device's memory (core cycles)", Used: "model/cpu"},
	{Key: "hardware.cpu.mmio.line", Kind: Cost, Dist: true, Text: "from one 64-byte line of such a run to the next (uncore cycles)", Used: "model/cpu"},
	{Key: "hardware.cpu.mmio.buffers", Kind: Count, Min: "1", Max: "1024", Text: "lines that are between a core and the link while it goes on storing", Used: "model/cpu"},
	{Key: "hardware.cpu.mmio.piece", Kind: Bytes, Min: "1B", Max: "64B", Text: "bytes of one load of a device's memory; those of a line follow each other", Used: "model/cpu"},
	{Key: "hardware.cpu.mmio.loads", Kind: Count, Min: "1", Max: "1024", Text: "lines of a device's memory that a core may be loading at a time", Used: "model/cpu"},
	{Key: "hardware.nic.page_fault", Kind: Duration, Dist: true, Text: "a page that the NIC touches first (on-demand paging)", Used: "model/nic"},
	{Key: "hardware.registration.lookup", Kind: Duration, Dist: true, Text: "finding a registration in a cache of them", Used: "testbed"},
	{Key: "hardware.registration.host.pin.fixed", Kind: Duration, Dist: true, Text: "registering host memory with the NIC, per call", Used: "testbed"},
	{Key: "hardware.registration.host.pin.page", Kind: Duration, Text: "the same, per page", Used: "testbed"},
	{Key: "hardware.registration.host.unpin.fixed", Kind: Duration, Dist: true, Text: "deregistering host memory, per call", Used: "testbed"},
	{Key: "hardware.registration.host.unpin.page", Kind: Duration, Text: "the same, per page", Used: "testbed"},
	{Key: "hardware.registration.gpu.granule", Kind: Bytes, Min: "4KiB", Max: "2MiB", Pow2: true, Text: "page of GPU memory that is pinned", Used: "testbed"},
	{Key: "hardware.registration.gpu.pin.fixed", Kind: Duration, Dist: true, Text: "pinning GPU memory, per call", Used: "testbed"},
	{Key: "hardware.registration.gpu.pin.page", Kind: Duration, Text: "the same, per page", Used: "testbed"},
	{Key: "hardware.registration.gpu.map.fixed", Kind: Duration, Dist: true, Text: "mapping pinned GPU memory for the CPU, per call", Used: "testbed"},
	{Key: "hardware.registration.gpu.map.page", Kind: Duration, Text: "the same, per page", Used: "testbed"},
	{Key: "hardware.registration.gpu.unmap.fixed", Kind: Duration, Dist: true, Text: "ending that mapping, per call", Used: "testbed"},
	{Key: "hardware.registration.gpu.unmap.page", Kind: Duration, Text: "the same, per page", Used: "testbed"},
	{Key: "hardware.registration.gpu.unpin.fixed", Kind: Duration, Dist: true, Text: "unpinning GPU memory, per call", Used: "testbed"},
	{Key: "hardware.registration.gpu.unpin.page", Kind: Duration, Text: "the same, per page", Used: "testbed"},
	{Key: "hardware.host.pcie.miss", Kind: Duration, Dist: true, Text: "what a device's read costs more when the line is not in the last-level cache", Used: "model/pcie"},
}

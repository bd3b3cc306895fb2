package stage

// Stage is one named step of a message's way. A breakdown assigns every
// picosecond of a metric to exactly one Stage.
type Stage uint8

// The stages, in causal order of a put. None marks the absence of a stage.
const (
	None Stage = iota
	GPUProduce
	GPUReserve
	GPUBuild
	GPUFence
	GPURing
	GPUDrain
	GPUStore
	GPULoad
	GPUPause
	GPUKernelExit
	GPULaunch
	PCIeNotify
	CPUCall
	CPUWait
	CPUInterrupt
	CPUWake
	CPUDequeue
	CPUPost
	CPURing
	CPUCopy
	GPUCopy
	PCIeDoorbell
	NICSched
	NICWQEFetch
	NICPayloadFetch
	NICTx
	FabricSerialise
	FabricPropagate
	FabricSwitch
	FabricQueue
	NICRx
	PCIeDeliver
	GPUObserve
	NICAck
	NICCQE
	GPUPoll
	CPUPoll
	CPUPublish
	Unresolved

	// Count is the number of stages, None included; arrays are indexed by Stage.
	Count
)

// Lane is the unit that works during a stage.
type Lane uint8

// The lanes. A lane belongs to a node; spans carry the node beside it.
const (
	NoLane Lane = iota
	LaneSM
	LaneGPUMem
	LanePCIeSrc
	LaneCPUProxy
	LaneNICTx
	LaneFabric
	LaneNICRx
	LanePCIeDst
	LaneCPUDst
	LaneGPUDst
)

var laneNames = [...]string{
	NoLane: "", LaneSM: "gpu.sm", LaneGPUMem: "gpu.mem", LanePCIeSrc: "pcie.src", LaneCPUProxy: "cpu.proxy", LaneNICTx: "nic.tx",
	LaneFabric: "fabric", LaneNICRx: "nic.rx", LanePCIeDst: "pcie.dst", LaneCPUDst: "cpu.dst", LaneGPUDst: "gpu.dst",
}

// String returns the lane's name as outputs print it, "" for NoLane.
func (l Lane) String() string { return laneNames[l] }

type entry struct {
	name string
	lane Lane
	text string
}

var entries = [Count]entry{
	None:            {"", NoLane, ""},
	GPUProduce:      {"gpu.produce", LaneSM, "last stores of the payload by the kernel; 0 where the payload is ready"},
	GPUReserve:      {"gpu.reserve", LaneSM, "slot reservation: atomics, locks, waiting for a free slot, publication in reservation order"},
	GPUBuild:        {"gpu.build", LaneSM, "writing the WQE or the proxy descriptor, inline payload copy included"},
	GPUFence:        {"gpu.fence", LaneSM, "ordering before what publishes: nothing, GPU scope, device fence, system scope"},
	GPURing:         {"gpu.ring", LaneSM, "doorbell record and doorbell stores as the SM issues them"},
	GPUDrain:        {"gpu.drain", LaneSM, "a fence at system scope behind others' traffic: stores of all SMs, reads of host memory that are under way"},
	GPUStore:        {"gpu.store", LaneSM, "a store as the SM issues it"},
	GPULoad:         {"gpu.load", LaneSM, "a load or an atomic whose result the thread waits for, over PCIe where the line is in host memory"},
	GPUPause:        {"gpu.pause", LaneSM, "the thread waits on purpose before it looks"},
	GPUKernelExit:   {"gpu.kernel-exit", LaneSM, "kernel completion seen by the host"},
	GPULaunch:       {"gpu.launch", LaneSM, "launch of the next kernel (host-driven paths)"},
	PCIeNotify:      {"pcie.notify", LanePCIeSrc, "GPU store to host memory on its way to where the CPU polls, or the reverse"},
	CPUCall:         {"cpu.call", LaneCPUProxy, "call into the GPU's driver: launch, copy, query"},
	CPUWait:         {"cpu.wait", LaneCPUProxy, "until the proxy looks: poll interval, rings before ours, other threads on the core"},
	CPUInterrupt:    {"cpu.interrupt", LaneCPUProxy, "MSI-X write, IRQ entry, handler, moderation"},
	CPUWake:         {"cpu.wake", LaneCPUProxy, "idle-state exit, scheduler, context switch"},
	CPUDequeue:      {"cpu.dequeue", LaneCPUProxy, "reading and checking the descriptor"},
	CPUPost:         {"cpu.post", LaneCPUProxy, "building the WQE with its barriers (ibv_post_send)"},
	CPURing:         {"cpu.ring", LaneCPUProxy, "doorbell or BlueFlame store, until the write-combining buffer is flushed"},
	CPUCopy:         {"cpu.copy", LaneCPUProxy, "staging copy by the CPU"},
	GPUCopy:         {"gpu.copy", LaneGPUMem, "staging copy by the GPU's copy engine"},
	PCIeDoorbell:    {"pcie.doorbell", LanePCIeSrc, "posted write from the ringer to the NIC's BAR"},
	NICSched:        {"nic.sched", LaneNICTx, "NIC picks the queue: arbitration, QP context"},
	NICWQEFetch:     {"nic.wqe-fetch", LaneNICTx, "DMA read of the WQE; 0 with BlueFlame"},
	NICPayloadFetch: {"nic.payload-fetch", LaneNICTx, "DMA read of the payload; 0 when inline"},
	NICTx:           {"nic.tx", LaneNICTx, "packet building, per-message processing"},
	FabricSerialise: {"fabric.serialise", LaneFabric, "bytes on the wire at the link rate"},
	FabricPropagate: {"fabric.propagate", LaneFabric, "cable and transceivers"},
	FabricSwitch:    {"fabric.switch", LaneFabric, "switch hops"},
	FabricQueue:     {"fabric.queue", LaneFabric, "waiting for a link that another packet holds"},
	NICRx:           {"nic.rx", LaneNICRx, "receive processing, R_Key check, translation"},
	PCIeDeliver:     {"pcie.deliver", LanePCIeDst, "DMA write into the destination memory until visible there"},
	GPUObserve:      {"gpu.observe", LaneGPUDst, "the destination GPU polls until it sees the data or flag"},
	NICAck:          {"nic.ack", LaneFabric, "ACK back to the source NIC and its processing, also of a READ's last response; retransmission"},
	NICCQE:          {"nic.cqe", LaneNICTx, "CQE written to the completion queue at the source"},
	GPUPoll:         {"gpu.poll", LaneSM, "the waiting GPU thread sees the CQE or flag; completion routine"},
	CPUPoll:         {"cpu.poll", LaneCPUProxy, "the CPU sees the CQE; completion routine"},
	CPUPublish:      {"cpu.publish", LaneCPUProxy, "proxy publishes the completion for the GPU"},
	Unresolved:      {"unresolved", NoLane, "on hardware: what no clock and no difference of measurements could separate"},
}

// String returns the stage's name as scenarios and outputs spell it.
func (s Stage) String() string { return entries[s].name }

// Text says in one line what the stage covers.
func (s Stage) Text() string { return entries[s].text }

// Lane returns the lane that the stage runs on at its source.
func (s Stage) Lane() Lane { return entries[s].lane }

// Parse returns the stage of that name; ok is false for an unknown one.
func Parse(name string) (s Stage, ok bool) {
	for i := Stage(1); i < Count; i++ {
		if entries[i].name == name {
			return i, true
		}
	}
	return None, false
}

// Metric is something a run measures.
type Metric uint8

// The metrics.
const (
	NoMetric Metric = iota
	Issue
	PutCompletion
	OneWay
	RTT
	Get
	Latency // of one message of a stream, or of one step
	MessageRate
	Goodput
	BackgroundRate
	CPUCores
	SMCount

	// MetricCount is the number of metrics, NoMetric included.
	MetricCount
)

type metricEntry struct{ name, unit, text string }

var metrics = [MetricCount]metricEntry{
	NoMetric:       {"", "", ""},
	Issue:          {"issue", "time", "from the call to its return on the initiating thread; a proxy's issue is only the enqueue"},
	PutCompletion:  {"put+completion", "time", "from the call until the initiator knows that the write is acknowledged and the source may be reused"},
	OneWay:         {"one-way", "time", "from the call until the destination's poller sees the data"},
	RTT:            {"rtt", "time", "ping-pong by the stack's own notification, request and reply"},
	Get:            {"get", "time", "from the call until the data is in the initiator's memory and seen there"},
	Latency:        {"latency", "time", "of one message of a stream, from the call until its completion is known; of one step, from its begin until the one that takes it goes on"},
	MessageRate:    {"message-rate", "Mmsg/s", "messages completed per second"},
	Goodput:        {"goodput", "GB/s", "payload bytes completed per second (1 GB = 1e9 B)"},
	BackgroundRate: {"background-rate", "Mmsg/s", "messages per second carried by the background load during the measurement"},
	CPUCores:       {"cpu.cores", "cores", "CPU core-seconds used per second, polling included"},
	SMCount:        {"sm.count", "SMs", "SMs that post or wait for communication"},
}

// String returns the metric's name as scenarios and outputs spell it.
func (m Metric) String() string { return metrics[m].name }

// Unit is "time" for durations, else the unit the value is printed in.
func (m Metric) Unit() string { return metrics[m].unit }

// Text defines the metric in one line.
func (m Metric) Text() string { return metrics[m].text }

// IsTime reports whether the metric is a distribution of durations.
func (m Metric) IsTime() bool { return metrics[m].unit == "time" }

// ParseMetric returns the metric of that name; ok is false for an unknown one.
func ParseMetric(name string) (m Metric, ok bool) {
	for i := Metric(1); i < MetricCount; i++ {
		if metrics[i].name == name {
			return i, true
		}
	}
	return NoMetric, false
}

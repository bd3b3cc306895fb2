package stage

// Finding is a verdict about a run, beside its times.
type Finding uint8

// The findings.
const (
	NoFinding Finding = iota
	StaleDescriptor
	FlagBeforeData
	LostDoorbell
	Deadlock
	RingOverflow
	CQOverflow
	UnregisteredMemory
	RKeyViolation
	P2PBlocked
	RNR
	RetryExceeded
	LostInterrupt

	// FindingCount is the number of findings, NoFinding included.
	FindingCount
)

type findingEntry struct{ name, text, avoid string }

var findings = [FindingCount]findingEntry{
	NoFinding:          {"", "", ""},
	StaleDescriptor:    {"stale-descriptor", "the NIC may fetch, or did fetch, a WQE before its bytes were visible", "a fence before the doorbell, of the scope that reaches the memory where the queue lives: fence: gpu for GPU memory, system for host memory"},
	FlagBeforeData:     {"flag-before-data", "a reader may see, or saw, the flag before the data it announces", "a flag that no write may be passed by: strictly ordered memory for the flag, and one path through the network; or wait for the completion of the data first"},
	LostDoorbell:       {"lost-doorbell", "WQEs wait in a queue that nobody rings", "a ring for the last WQE of every post, and a thread that looks at what a host is to ring for"},
	Deadlock:           {"deadlock", "operations wait and nothing is left that could wake them", "what the waiters named in the error wait for"},
	RingOverflow:       {"ring-overflow", "a producer overwrote a slot that was not consumed", "a look at the consumer's progress before each slot is taken, or a ring deeper than what is in flight"},
	CQOverflow:         {"cq-overflow", "a CQE was written over one that was not polled", "a completion queue as deep as the CQEs that its send queues may ask for, or fewer of them"},
	UnregisteredMemory: {"unregistered-memory", "the NIC was given an address without a registration", "a registration of the buffer before its address is posted"},
	RKeyViolation:      {"rkey-violation", "the remote key does not cover the access", "the key of the memory region that covers the access, with remote access granted"},
	P2PBlocked:         {"p2p-blocked", "no path from GPU to NIC BAR, or from NIC to GPU memory", "a driver option or platform that maps the NIC's doorbells and the GPU's memory to each other; else rings_by: host, or a stack that stages through host memory"},
	RNR:                {"rnr", "receiver not ready", "receives posted before their messages come, as many as may be in flight"},
	RetryExceeded:      {"retry-exceeded", "the transport gave up after its retries", "a path that comes back within timeout x (retry_cnt + 1): less loss, a longer timeout, another path"},
	LostInterrupt:      {"lost-interrupt", "an event came between the last poll and the arming", "poll, arm, and poll once more before sleeping"},
}

// String returns the finding's name.
func (f Finding) String() string { return findings[f].name }

// Text says what the finding means.
func (f Finding) Text() string { return findings[f].text }

// Avoid says what keeps the finding from a run.
func (f Finding) Avoid() string { return findings[f].avoid }

// ParseFinding returns the finding of that name; ok is false for an unknown one.
func ParseFinding(name string) (f Finding, ok bool) {
	for i := Finding(1); i < FindingCount; i++ {
		if findings[i].name == name {
			return i, true
		}
	}
	return NoFinding, false
}

// Grade tells a hazard from an accident.
type Grade uint8

// Possible: no happens-before edge rules it out, whatever this run's timing
// was. Occurred: it happened in this run.
const (
	Possible Grade = iota + 1
	Occurred
)

// String returns "possible" or "occurred".
func (g Grade) String() string {
	if g == Occurred {
		return "occurred"
	}
	return "possible"
}

// Hazard is a finding as the model states it that decides it.
type Hazard struct {
	Finding Finding
	Grade   Grade
	Node    int
	Queue   int    // queue pair or ring of the node; negative: the whole node
	Index   int    // WQE or slot of the queue; negative: all of them
	Cause   string // the rule that was broken, or the fault
	Avoid   string // what would keep it away; "" for what Finding.Avoid says
}

package scenarios

// faultFields are the keys of an entry of `faults`, beside its name and path.
var faultFields = []Field{
	{Key: "fault.kind", Kind: Enum, Enum: faultNames(), Text: "what goes wrong; the table of kinds says what a chance is", Used: "testbed"},
	{Key: "fault.at", Kind: Duration, Default: "0s", Text: "when it may strike first, from the begin of each run", Used: "testbed"},
	{Key: "fault.for", Kind: Duration, Optional: true, Min: "1ns", Text: "how long from then on; absent: to the end", Used: "testbed"},
	{Key: "fault.rate", Kind: Ratio, Optional: true, Max: "100%", Text: "share of the chances at which it strikes; absent: all", Used: "testbed"},
	{Key: "fault.count", Kind: Count, Optional: true, Min: "1", Max: "1000000000", Text: "strikes at most; absent: any number, but 1 of a kind that ends its queue where rate is absent too", Used: "testbed"},
}

// faultKind is a kind of fault: what a chance of it is, and the keys that it
// takes beside at.
type faultKind struct {
	name, text string
	keys       string
	once       bool // without count and rate: one strike
	some       bool // needs rate or count
}

var faultKinds = []faultKind{
	{name: "drop-fence", text: "a fence before a doorbell, or before a proxy's descriptor, is left out; chance: each fence", keys: "for rate count"},
	{name: "reorder", text: "a doorbell leaves before its WQEs are stored; chance: each post of a GPU thread that rings", keys: "for rate count"},
	{name: "skip-doorbell", text: "a doorbell is not rung; chance: each doorbell", keys: "for rate count", once: true},
	{name: "two-producers", text: "GPU threads that share a library's send queue do not wait for each other: each rings for all slots up to its own", keys: ""},
	{name: "slow-reader", text: "the CPU thread that reads rings, CQs and doorbell slots does nothing, from at for so long; absent: for ever", keys: "for"},
	{name: "loss", text: "a packet is lost between the NICs; chance: each packet, ACKs too", keys: "for rate count", some: true},
	{name: "link-down", text: "the network delivers nothing, from at for so long", keys: "for"},
	{name: "cqe-error", text: "a CQE tells of an error; chance: each CQE of node 0", keys: "for rate count", once: true},
	{name: "wrong-rkey", text: "a WQE names a remote key that does not cover its access; chance: each WQE of node 0", keys: "for rate count", once: true},
	{name: "unregistered", text: "a WQE names local memory without a registration; chance: each WQE of node 0 that is not inline", keys: "for rate count", once: true},
	{name: "no-recv", text: "the peer has no receive posted; chance: each message of node 0 that needs one, as writes with an immediate do", keys: "for rate count"},
}

func faultNames() []string {
	var out []string
	for _, k := range faultKinds {
		out = append(out, k.name)
	}
	return out
}

package pcie

// Kind is what a TLP is for the ordering rules.
type Kind uint8

// The kinds of TLPs.
const (
	PostedWrite Kind = iota
	ReadRequest
	AtomicRequest // FetchAdd, Swap, CAS: non-posted, with data
	CompletionTLP
)

// TLP is what the ordering rules look at.
type TLP struct {
	Kind      Kind
	Relaxed   bool   // attribute: relaxed ordering
	IDO       bool   // attribute: ID-based ordering
	Requester Unit   // whose ID it carries
	Path      uint16 // which way it takes; TLPs of different ways have no order
}

// MayPass reports whether a switch or root complex may let a later TLP pass an
// earlier one (PCI Express Base Specification 5.0, table 2-40). What may pass
// may be seen first at the destination, however rarely it is.
func MayPass(later, earlier TLP) bool {
	if later.Path != earlier.Path {
		return true
	}
	if earlier.Kind != PostedWrite {
		return true
	}
	// Behind a posted write: only relaxed ordering or another requester's ID
	// opens the way, and for a read request only the latter.
	if later.IDO && later.Requester != earlier.Requester {
		return true
	}
	return later.Relaxed && later.Kind != ReadRequest
}

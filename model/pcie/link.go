package pcie

import "fmt"

// LinkSpec is a link's signalling rate and width.
type LinkSpec struct {
	MTps  int64 // transfers per second and lane, in 1e6: 32000 for 32 GT/s
	Lanes int
}

// String prints the link as scenarios write it: "32GT/s x16".
func (l LinkSpec) String() string {
	if l.MTps%1000 == 0 {
		return fmt.Sprintf("%dGT/s x%d", l.MTps/1000, l.Lanes)
	}
	return fmt.Sprintf("%gGT/s x%d", float64(l.MTps)/1000, l.Lanes)
}

// BitsPerSecond returns the rate that is left for TLPs and DLLPs after line
// encoding, per direction: 8b/10b up to 5 GT/s, 128b/130b for 8 to 32 GT/s
// (PCIe Base Specification 5.0, section 4.2), and 236 TLP bytes in a flit of
// 256 at 64 GT/s (6.0, section 4.2.3).
func (l LinkSpec) BitsPerSecond() int64 {
	raw := l.MTps * int64(l.Lanes) * 1_000_000
	switch {
	case l.MTps <= 5_000:
		return raw / 10 * 8
	case l.MTps <= 32_000:
		return raw / 130 * 128
	default:
		return raw / 256 * 236
	}
}

// Class is the distance of GPU and NIC, as `nvidia-smi topo -m` prints it.
type Class uint8

// The classes, near to far.
const (
	PIX  Class = iota // one switch between them
	PXB               // several switches, not the root complex
	PHB               // the root complex of one socket
	NODE              // root complexes of one NUMA node
	SYS               // the inter-socket link
	C2C               // GPU on its CPU's coherent link, NIC on that CPU's root complex
)

var classNames = [...]string{"PIX", "PXB", "PHB", "NODE", "SYS", "C2C"}

// String returns the class's name.
func (c Class) String() string { return classNames[c] }

// ParseClass returns the class of that name.
func ParseClass(s string) (Class, bool) {
	for i, n := range classNames {
		if n == s {
			return Class(i), true
		}
	}
	return 0, false
}

// ceil returns a/b rounded up.
func ceil(a, b int64) int64 { return (a + b - 1) / b }

// WriteBytes returns the bytes on the link of a posted write of n payload
// bytes and the number of TLPs that carry it.
func (c *Config) WriteBytes(n int64) (bytes int64, tlps int) {
	t := max(1, ceil(n, c.MPS))
	return n + t*c.RequestHeader, int(t)
}

// ReadRequestBytes returns the bytes on the link of the requests for n bytes,
// and their number.
func (c *Config) ReadRequestBytes(n int64) (bytes int64, tlps int) {
	t := max(1, ceil(n, c.MRRS))
	return t * c.RequestHeader, int(t)
}

// CompletionBytes returns the bytes on the link of the completions that bring
// n bytes, and their number. A completer cuts at the read completion boundary
// and may fill up to MPS; aligned reads are assumed.
func (c *Config) CompletionBytes(n int64) (bytes int64, tlps int) {
	cut := c.MPS
	if c.RCB > cut {
		cut = c.RCB
	}
	t := max(1, ceil(n, cut))
	return n + t*c.CompletionHeader, int(t)
}

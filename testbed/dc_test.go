package testbed_test

import (
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/stage"
)

// TestDC: over DC each WQE carries the peer's address and each request 8 B more on
// the wire; the compact form leaves a WQE of one block. By hand: 48 B and the vector
// in blocks of 64 B are fetched, and 20 messages of one packet each are sent.
func TestDC(t *testing.T) {
	const n = 20
	ps := paths(t, scene{
		paths: []string{
			"{name: rc, stack: nvshmem-ibgda, set: {call: internal, qps_per_peer: 1}}",
			"{name: compact, stack: nvshmem-ibgda, set: {call: internal, transport: dc, dcis: 1, address_vector: 16B}}",
			"{name: full, stack: nvshmem-ibgda, set: {call: internal, transport: dc, dcis: 1}}",
		},
		workload: "{kind: put, bytes: 8B, iterations: 20, warmup: 0}",
	})
	bytes := func(p *result.Path, link string) (sum int64) {
		for _, l := range p.Cost.Links {
			if strings.HasPrefix(l.Name, link) {
				sum += l.Bytes
			}
		}
		if sum == 0 {
			t.Fatalf("no link %s in %+v", link, p.Cost.Links)
		}
		return sum
	}
	const wire, wqes = "node0.port", "node0.pcie.nic.down"
	if d := bytes(&ps[1], wire) - bytes(&ps[0], wire); d != 8*n {
		t.Errorf("%d messages over DC take %d B more on the wire, want %d", n, d, 8*n)
	}
	if d := bytes(&ps[2], wqes) - bytes(&ps[1], wqes); d != 64*n {
		t.Errorf("%d WQEs of two blocks take %d B more to fetch, want %d", n, d, 64*n)
	}
	if got := metric(t, &ps[1], stage.PutCompletion).P50 - metric(t, &ps[0], stage.PutCompletion).P50; got <= 0 {
		t.Errorf("DC takes %v more, want an address vector's build and 8 B", got)
	}
}

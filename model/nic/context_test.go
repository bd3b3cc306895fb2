package nic

import (
	"math/rand/v2"
	"testing"

	"gdisim/model/pcie"

	"pgregory.net/rapid"
)

// Whatever is touched in whatever order: the cache holds no more than its lines,
// each entry knows how many are its own, a touch misses where one was gone, and
// what was touched last is there.
func TestContextCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := &NIC{rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		n.cfg.Context = Context{Cache: rapid.Int64Range(1000, 20000).Draw(t, "cache"), Line: 64, Requester: 900, Responder: 100}
		es := make([]entry, 40)
		reads := 0
		for range rapid.IntRange(1, 300).Draw(t, "touches") {
			i := rapid.IntRange(0, len(es)-1).Draw(t, "entry")
			size, lines := n.cfg.Context.Responder, 2
			if i%2 == 0 {
				size, lines = n.cfg.Context.Requester, 15
			}
			had := es[i].lines == lines
			if hit := n.touch(&es[i], size); hit != had {
				t.Fatalf("entry %d: hit %v, was cached %v", i, hit, had)
			} else if !hit {
				reads++
			}
			if es[i].lines != lines {
				t.Fatalf("entry %d has %d lines of %d after its touch", i, es[i].lines, lines)
			}
			own := map[*entry]int{}
			for _, e := range n.contexts.owners {
				own[e]++
			}
			for k := range es {
				if e := &es[k]; own[e] != e.lines {
					t.Fatalf("entry %d thinks it has %d lines, the cache %d", k, e.lines, own[e])
				}
			}
			if held := int64(len(n.contexts.owners)) * 64; held > n.cfg.Context.Cache {
				t.Fatalf("%d bytes held, of %d", held, n.cfg.Context.Cache)
			}
		}
		if n.ContextReads != reads {
			t.Fatalf("%d reads, %d misses", n.ContextReads, reads)
		}
	})
}

// Without a limit nothing is ever missing.
func TestContextCacheOff(t *testing.T) {
	n := &NIC{}
	for i := range make([]entry, 100) {
		if !n.touch(&entry{}, 1<<30) {
			t.Fatalf("miss %d", i)
		}
	}
}

// A queue in host memory has the addresses of its pages beside the rest: of 64 WQEs
// and 64 CQEs of 64 B one page each.
func TestRequesterSize(t *testing.T) {
	n := &NIC{cfg: Config{SQDepth: 64, CQEBytes: 64, Context: Context{Requester: 1000, Page: 8}}}
	if gpu, host := n.requesterSize(pcie.GPU), n.requesterSize(pcie.Host); gpu != 1000 || host != 1016 {
		t.Errorf("queues in GPU memory: %d B, in host memory %d B, want 1000 and 1016", gpu, host)
	}
}

package nic

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is touched in whatever order: the cache holds no more than its
// bytes, an entry knows where it is, and what was touched last is there.
func TestContextCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := &NIC{rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		n.cfg.Context = Context{Cache: rapid.Int64Range(1000, 20000).Draw(t, "cache"), Requester: 900, Responder: 100}
		es := make([]entry, 40)
		reads := 0
		for range rapid.IntRange(1, 300).Draw(t, "touches") {
			i := rapid.IntRange(0, len(es)-1).Draw(t, "entry")
			size := n.cfg.Context.Responder
			if i%2 == 0 {
				size = n.cfg.Context.Requester
			}
			had := es[i].at > 0
			if hit := n.touch(&es[i], size); hit != had {
				t.Fatalf("entry %d: hit %v, was cached %v", i, hit, had)
			} else if !hit {
				reads++
			}
			if es[i].at == 0 {
				t.Fatalf("entry %d is not there after its touch", i)
			}
			var used int64
			for k, c := range n.contexts.items {
				if c.e.at != k+1 {
					t.Fatalf("item %d thinks it is %d", k, c.e.at-1)
				}
				used += c.size
			}
			if used != n.contexts.used || used > n.cfg.Context.Cache {
				t.Fatalf("%d bytes held, %d counted, of %d", used, n.contexts.used, n.cfg.Context.Cache)
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

package scenarios

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Expanded returns the SHA-256, in hex, of all that the scenario says: with
// profiles, stacks and measured distributions as they were read, and what Apply
// has set.
func (s *Scenario) Expanded() string {
	h := sha256.New()
	layer := func(w io.Writer, name string, m map[string]value) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			_, _ = fmt.Fprintf(w, "%s %s %q\n", name, key, m[key].whole()) // a hash takes everything
		}
	}
	_, _ = fmt.Fprintf(h, "%q %q %d %q\n", s.Name, s.Digest, s.Seed, s.setArgs)
	layer(h, "base", s.base)
	for i, p := range s.Paths {
		_, _ = fmt.Fprintf(h, "path %q %q\n", p.Name, p.Stack)
		layer(h, p.Name, s.ofPath[i])
		if i < len(s.sets) {
			layer(h, p.Name+" set", s.sets[i])
		}
	}
	for _, a := range s.axes {
		_, _ = fmt.Fprintf(h, "sweep %s\n", a.key)
		for _, v := range a.values {
			_, _ = fmt.Fprintf(h, "%q\n", v.whole())
		}
	}
	for _, f := range s.faults {
		_, _ = fmt.Fprintf(h, "fault %q %q\n", f.name, f.path)
		layer(h, f.name, f.values)
		layer(h, f.name+" set", f.sets)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// whole is the value with all that a run could see of it.
func (v value) whole() string {
	s := fmt.Sprint(v.text, " ", v.kind, v.n, " ", v.fixed, v.link, v.source, v.origin)
	if v.dist != nil {
		s += v.dist.Identity()
	}
	return s
}

package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Streams makes the random number generators of one run.
type Streams struct{ seed, point uint64 }

// NewStreams returns the streams of a run: seed is the scenario's, point tells
// the points of a sweep apart.
func NewStreams(seed, point uint64) Streams { return Streams{seed, point} }

// Stream returns the generator called name, at its start. It depends on seed,
// point and name alone, so one more user of randomness changes no other.
func (s Streams) Stream(name string) *rand.Rand {
	b := binary.LittleEndian.AppendUint64(nil, s.seed)
	b = binary.LittleEndian.AppendUint64(b, s.point)
	h := sha256.Sum256(append(b, name...))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(h[:]), binary.LittleEndian.Uint64(h[8:])))
}

package pcie

import (
	"math"

	"gdisim/sim"
)

// The TLPs of an access travel as one train while they are a small part of the
// tags and credits that there are; then how a train waits for all it needs, and
// gives all of it back at once, differs little from TLP by TLP. A longer access
// goes in shorter trains, which take their tags and credits as those of other
// accesses do.
const (
	wholeShare = 8  // of what there is, a train may take this part
	pieceShare = 16 // and one of several this
)

// trains are the bytes of an access that go as one train: of one that is whole, at
// most, and of each train of a longer one.
type trains struct{ whole, piece int64 }

// writes returns those of posted writes.
func (c *Config) writes() trains { return share(c.MPS, c.PostedCredits) }

// reads returns those of a unit's reads.
func (c *Config) reads(from Unit) trains {
	_, completions := c.CompletionBytes(c.MRRS)
	limit := min(c.NonPostedCredits, c.CompletionCredits/completions)
	if tags := c.Tags[from]; tags > 0 {
		limit = min(limit, tags)
	}
	return share(c.MRRS, limit)
}

// share parts a limit on TLPs of a size.
func share(size int64, limit int) trains {
	piece := size * int64(max(1, limit/pieceShare))
	return trains{max(piece, size*int64(limit/wholeShare)), piece}
}

// burst is an access that goes in several trains.
type burst struct {
	left    int // trains under way
	sampled sim.Time
	done    sim.Sink
	arg     uint32
}

func (f *Fabric) burst(a Access, train int64, c sim.Cause, k sim.Kind, done sim.Sink, arg uint32) {
	id := sim.Alloc(&f.bursts, &f.unburst)
	f.bursts[id] = burst{left: int(ceil(a.Bytes, train)), sampled: math.MaxInt64, done: done, arg: arg}
	var last uint32
	if a.Sent != nil {
		last = f.watcher(a.Sent, arg)
	}
	for ; a.Bytes > train; a.Bytes, a.Addr = a.Bytes-train, a.Addr+uint64(train) {
		piece := a
		piece.Bytes = train
		f.submit(piece, c, k, arrived{f}, id, 0)
	}
	f.submit(a, c, k, arrived{f}, id, last)
}

type arrived struct{ *Fabric }

// Done has one of an access's trains ended.
func (a arrived) Done(id uint32, c sim.Cause) {
	b := &a.bursts[id]
	b.sampled = min(b.sampled, a.sampled)
	if b.left--; b.left > 0 {
		return
	}
	done, arg := b.done, b.arg
	a.sampled = b.sampled
	sim.Release(&a.bursts, &a.unburst, id)
	done.Done(arg, c)
}

package path

import (
	"gdisim/model/gpu"
	"gdisim/model/pcie"
	"gdisim/sim"
)

// hostReads are the reads of host memory that a node's GPU has under way: each
// reader has one, and sends the next when it is back. No event stands for those
// that poll; how many there are says what a read, and a fence, waits for.
type hostReads struct {
	under int // all readers'
	words []*hostWord
	idle  sim.Duration // a read that meets no other
}

// hostWord is a word of host memory that threads read at system scope.
type hostWord struct{ under int }

// hostReader is the read that lanes of a warp have under way together, since they
// ask for the same word.
type hostReader struct {
	word  *hostWord // nil: nobody else reads it
	lanes int
}

// newHostWord returns a word of the node's memory that nobody reads.
func (n *Node) newHostWord() *hostWord {
	w := &hostWord{}
	n.reads.words = append(n.reads.words, w)
	return w
}

// beginRead lets one more lane share the reader's read.
func (n *Node) beginRead(r *hostReader) {
	if r.lanes++; r.lanes == 1 {
		n.reads.under++
		if r.word != nil {
			r.word.under++
		}
	}
}

// endRead has a lane ask no more.
func (n *Node) endRead(r *hostReader) {
	if r.lanes--; r.lanes == 0 {
		n.reads.under--
		if r.word != nil {
			r.word.under--
		}
	}
}

// idleRead is the time of a GPU's read of host memory that meets no other.
func (n *Node) idleRead() sim.Duration {
	if n.reads.idle == 0 {
		n.reads.idle = n.Bus.RoundTrip(pcie.GPU, pcie.Host, 8)
	}
	return n.reads.idle
}

// readTime is what a read of the word takes, its turn included: all readers share
// the GPU's read tags, and reads of one word follow each other where they meet.
func (n *Node) readTime(w *hostWord) sim.Duration {
	if w == nil {
		return n.taggedRead()
	}
	return max(n.taggedRead(), sim.Duration(w.under)*(n.idleRead()-n.GPU.LineWay.Mean()))
}

func (n *Node) taggedRead() sim.Duration {
	d, tags := n.idleRead(), n.Bus.Tags(pcie.GPU)
	if n.reads.under <= tags {
		return d
	}
	return d * sim.Duration(n.reads.under) / sim.Duration(tags)
}

// drain is what a fence of a thread on the SM waits for at system scope beyond its
// own trip to the GPU's edge and back, which ends as the way of a read's data does:
// for the reads of the host that were asked for before it got there, whoever asked,
// and for the writes that the link has not taken. k readers that go on in turn ask
// once in a k-th of their time.
func (n *Node) drain(sm *gpu.SM) sim.Duration {
	k := sim.Duration(n.reads.under)
	if k == 0 {
		return n.Bus.Backlog(pcie.GPU)
	}
	slowest := n.taggedRead()
	for _, w := range n.reads.words {
		if t := n.readTime(w); t > slowest {
			slowest, k = t, sim.Duration(w.under)
		}
	}
	return max(n.Bus.Backlog(pcie.GPU), slowest-sm.Phase(slowest/k)-n.Bus.Return(pcie.GPU))
}

package gpu

import (
	"gdisim/model/pcie"
	"gdisim/sim"
)

// HostLine is a line of host memory that several threads of the GPU read. Its
// reads follow each other: the next leaves where they meet when the data of the
// last is there. One at GPU scope serves up to merge threads, those too that come
// while it is under way; one at system scope serves a single thread.
type HostLine struct {
	edge    *Edge
	merge   int
	period  sim.Duration // from one read to the next on an idle link
	waiting []lineReader
	serving []lineReader
	begun   int // of serving; the rest of an earlier read is still on its way
	under   int // reads under way
	room    int // threads that the last of them may still serve
	busy    bool
	next    sim.HandlerID
}

type lineReader struct {
	c    sim.Cause
	k    sim.Kind
	done sim.Sink
	arg  uint32
	read int // number of the read that serves it
}

// NewHostLine returns a line that nobody reads. way is from an SM to where its
// reads meet and back.
func NewHostLine(e *Edge, merge int, way sim.Duration) *HostLine {
	l := &HostLine{edge: e, merge: max(1, merge), period: max(sim.Nanosecond, e.bus.RoundTrip(pcie.GPU, pcie.Host, 8)-way)}
	l.next = e.eng.Register(lineNext{l})
	return l
}

// Read loads from the line; done is told when the thread has the data.
func (l *HostLine) Read(c sim.Cause, k sim.Kind, done sim.Sink, arg uint32) {
	r := lineReader{c: c, k: k, done: done, arg: arg}
	l.edge.asked++ // a fence waits for it, also while it waits for its turn
	if l.room > 0 && l.under > 0 {
		l.room--
		r.read = l.begun
		l.serving = append(l.serving, r)
		return
	}
	l.waiting = append(l.waiting, r)
	if !l.busy {
		l.serve()
	}
}

// serve sends the next read.
func (l *HostLine) serve() {
	n := min(l.merge, len(l.waiting))
	l.busy = n > 0 && l.under < 2
	if !l.busy {
		return
	}
	l.begun++
	l.under++
	l.room = l.merge - n
	for _, r := range l.waiting[:n] {
		r.read = l.begun
		l.serving = append(l.serving, r)
	}
	r := l.waiting[0]
	l.waiting = l.waiting[:copy(l.waiting, l.waiting[n:])]
	l.edge.pass(access{n: 8, c: r.c, k: r.k, read: true, done: lineBack{l}, arg: uint32(l.begun)})
	l.edge.eng.After(l.period, l.next, 0)
}

type lineNext struct{ *HostLine }

// Handle has the data where the line's reads meet.
func (n lineNext) Handle(uint32) { n.serve() }

type lineBack struct{ *HostLine }

// Done gives the data of a read to all that it serves.
func (b lineBack) Done(read uint32, c sim.Cause) {
	l := b.HostLine
	l.under--
	now := l.edge.eng.Now()
	n := 0
	for n < len(l.serving) && l.serving[n].read == int(read) {
		n++
	}
	for i := range n {
		r := l.serving[i]
		if i > 0 { // it waited for the first one's read
			c = l.edge.rec.Span(r.c, r.k, now, now, 0)
		}
		l.edge.back++
		r.done.Done(r.arg, c)
	}
	l.edge.check()
	l.serving = l.serving[:copy(l.serving, l.serving[n:])]
	if !l.busy {
		l.serve()
	}
}

package sim

import (
	"math/bits"
	"slices"
)

// entry is one pending event. It holds no pointer, so the garbage collector
// never looks into the queue.
type entry struct {
	at  Time
	h   HandlerID
	arg uint32
}

const (
	chunkLen = 31
	slabLen  = 16 // chunks allocated at a time
	sortLen  = 16 // a bucket of up to this many is sorted at once
	frontLen = 32
)

type chunk struct {
	next *chunk // all that the collector has to look at
	e    [chunkLen]entry
}

// bucket is a FIFO of entries in a list of chunks. Its first chunk stays with
// it when it empties; the others go back to the queue's free list.
type bucket struct {
	first, tail *chunk
	n           int // entries in tail; chunkLen while there is no chunk
}

// queue is a monotone radix heap of base 16 with a short sorted front.
//
// The bucket of an entry is the highest digit in which its time differs from
// last: the digit's place, or level, and its value. (Entries at last itself lie
// at level 0 like its neighbours.) last follows the clock to the earliest entry,
// which can only change the place of entries in the lowest bucket; these move
// down in their order. Entries of one time thus always share a bucket and stay
// in the order of their pushes, without a sequence number.
//
// A lowest bucket of few entries goes to the front, sorted, instead of down, and
// so does all that is pushed into its range from then on, up to limit, until
// the front is empty or full.
type queue struct {
	last       Time
	limit      Time // latest time that may join the front; -1: none
	head, tail int  // of the front
	front      [2 * frontLen]entry
	levels     uint64     // bit i: digits[i] is not 0
	digits     [16]uint64 // bit j of digits[i]: bucket j of level i is not empty
	buckets    [256]bucket
	free       *chunk
}

func (q *queue) init() {
	q.limit = -1
	for i := range q.buckets {
		q.buckets[i].n = chunkLen
	}
}

// push adds x, whose time must not be below last.
func (q *queue) push(x entry) {
	if x.at <= q.limit {
		q.insert(x)
		return
	}
	q.put(x)
}

// put appends x to its bucket.
func (q *queue) put(x entry) {
	level := uint(bits.Len64(uint64(x.at^q.last)|1)-1) / 4 & 15
	digit := uint(x.at) >> (level * 4) & 15
	b := &q.buckets[level<<4|digit]
	if b.n == chunkLen {
		q.extend(b)
	}
	q.digits[level] |= 1 << digit
	q.levels |= 1 << level
	b.tail.e[b.n] = x
	b.n++
}

// extend gives b one more chunk.
func (q *queue) extend(b *bucket) {
	if q.free == nil {
		slab := make([]chunk, slabLen)
		for i := range slab {
			q.release(&slab[i])
		}
	}
	c := q.free
	q.free, c.next = c.next, nil
	if b.first == nil {
		b.first = c
	} else {
		b.tail.next = c
	}
	b.tail, b.n = c, 0
}

func (q *queue) release(c *chunk) {
	c.next = q.free
	q.free = c
}

// insert puts x into the front, behind all entries of its time.
func (q *queue) insert(x entry) {
	if q.tail-q.head == frontLen {
		q.spill()
		q.put(x)
		return
	}
	if q.tail == len(q.front) {
		q.tail = copy(q.front[:], q.front[q.head:])
		q.head = 0
	}
	i := q.tail
	q.tail++
	f := &q.front
	for i > q.head {
		y := f[i-1]
		if y.at <= x.at {
			break
		}
		f[i] = y
		i--
	}
	f[i] = x
}

// spill moves the front back to the buckets.
func (q *queue) spill() {
	for _, x := range q.front[q.head:q.tail] {
		q.put(x)
	}
	q.head, q.tail, q.limit = 0, 0, -1
}

func (q *queue) empty() bool { return q.head == q.tail && q.levels == 0 }

// pop removes the earliest entry of a queue that is not empty.
func (q *queue) pop() entry {
	if q.head == q.tail {
		q.refill()
	}
	x := q.front[q.head]
	q.head++
	q.last = x.at
	return x
}

// lowest returns the lowest bucket that is not empty and its level.
func (q *queue) lowest() (b *bucket, level, digit uint) {
	level = uint(bits.TrailingZeros64(q.levels)) & 15
	digit = uint(bits.TrailingZeros64(q.digits[level])) & 15
	return &q.buckets[level<<4|digit], level, digit
}

// next returns the time of the earliest entry of a queue that is not empty.
func (q *queue) next() Time {
	if q.head != q.tail {
		return q.front[q.head].at
	}
	b, _, _ := q.lowest()
	return b.earliest()
}

func (b *bucket) earliest() Time {
	low := forever
	for c := b.first; c != b.tail; c = c.next {
		for i := range c.e {
			low = min(low, c.e[i].at)
		}
	}
	for i := range b.tail.e[:b.n] {
		low = min(low, b.tail.e[i].at)
	}
	return low
}

// refill fills the empty front.
func (q *queue) refill() {
	q.head, q.tail, q.limit = 0, 0, -1
	for {
		b, level, digit := q.lowest()
		if b.tail == b.first && b.n <= sortLen {
			q.limit = b.first.e[0].at | (1<<(level*4) - 1)
			q.tail = b.n
			b.n = 0
			sortInto(&q.front, b.first.e[:q.tail])
			q.clear(level, digit)
			return
		}
		if level == 0 {
			// Many entries of one time: a chunk of them is a sorted front.
			c := b.first
			if c == b.tail {
				q.tail = copy(q.front[:], c.e[:b.n])
				b.n = 0
				q.clear(level, digit)
				return
			}
			q.tail = copy(q.front[:], c.e[:])
			b.first = c.next
			q.release(c)
			return
		}
		q.last = b.earliest()
		q.clear(level, digit)
		q.drain(b)
	}
}

// sortInto fills f with the entries of e, at most sortLen, in the order of their
// times. It counts for each how many go before it: more compares than an
// insertion sort, but no branch to be guessed wrongly.
func sortInto(f *[2 * frontLen]entry, e []entry) {
	var rank [sortLen]uint64
	e = e[:min(len(e), sortLen)]
	for i := range e {
		at, r := e[i].at, uint64(i)
		for j := range e[:i] {
			before := uint64(at-e[j].at) >> 63
			rank[j] += before
			r -= before
		}
		rank[i] = r
	}
	for i := range e {
		f[rank[i]%frontLen] = e[i]
	}
}

func (q *queue) clear(level, digit uint) {
	q.digits[level] &^= 1 << digit
	if q.digits[level] == 0 {
		q.levels &^= 1 << level
	}
}

// drain puts all entries of b anew, in their order.
func (q *queue) drain(b *bucket) {
	c, tail, n := b.first, b.tail, b.n
	for c != tail {
		for i := range c.e {
			q.put(c.e[i])
		}
		next := c.next
		if c != b.first {
			q.release(c)
		}
		c = next
	}
	for i := range c.e[:n] {
		q.put(c.e[i])
	}
	if c != b.first {
		q.release(c)
		b.first.next = nil
	}
	b.tail, b.n = b.first, 0
}

// sweep removes the entries of cancelled timers.
func (q *queue) sweep(ts *timers) {
	f := slices.DeleteFunc(q.front[q.head:q.tail], ts.drop)
	q.tail = q.head + len(f)
	q.levels = 0
	clear(q.digits[:])
	for i := range q.buckets {
		// With last unchanged, all entries return to this bucket in their order.
		old := q.buckets[i]
		q.buckets[i] = bucket{n: chunkLen}
		for c := old.first; c != nil; {
			n := chunkLen
			if c == old.tail {
				n = old.n
			}
			for _, x := range c.e[:n] {
				if !ts.drop(x) {
					q.put(x)
				}
			}
			next := c.next
			q.release(c)
			c = next
		}
	}
}

// reset empties the queue at time 0 and keeps its chunks.
func (q *queue) reset() {
	for i := range q.buckets {
		for c := q.buckets[i].first; c != nil; {
			next := c.next
			q.release(c)
			c = next
		}
		q.buckets[i] = bucket{n: chunkLen}
	}
	q.last, q.limit, q.head, q.tail = 0, -1, 0, 0
	q.levels = 0
	clear(q.digits[:])
}

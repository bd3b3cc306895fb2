package sim

// FIFO is a queue that reuses its memory: in the steady state it allocates
// nothing. The zero value is empty. Front, Back, At and Pop want what is there.
type FIFO[T any] struct {
	items []T
	head  int
}

// Push appends x.
func (f *FIFO[T]) Push(x T) {
	if f.head > 64 && f.head*2 > len(f.items) {
		f.items = f.items[:copy(f.items, f.items[f.head:])]
		f.head = 0
	}
	f.items = append(f.items, x)
}

// Len returns how many wait.
func (f *FIFO[T]) Len() int { return len(f.items) - f.head }

// At returns the i-th from the front, where it stands until the next Push.
func (f *FIFO[T]) At(i int) *T { return &f.items[f.head+i] }

// Front returns the oldest.
func (f *FIFO[T]) Front() *T { return f.At(0) }

// Back returns the newest.
func (f *FIFO[T]) Back() *T { return &f.items[len(f.items)-1] }

// Pop takes the oldest off.
func (f *FIFO[T]) Pop() T {
	x := f.items[f.head]
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
	return x
}

package workload

import "gdisim/sim"

// Client is what a thread tells of its progress.
type Client interface {
	Posted(c sim.Cause)
	Completed(c sim.Cause)
	Observed(c sim.Cause)
}

// Tour makes one initiating thread out of several, each with a connection of
// its own: it visits them in turn and posts a visit's messages to each.
type Tour struct {
	client  Client
	threads []Thread
	visit   int             // messages of a visit
	at      int             // thread being visited
	posted  int             // messages of this visit
	due     sim.FIFO[int32] // connection of each batch that is out, the oldest first
}

// NewTour returns a tour for client; Add gives it its connections.
func NewTour(client Client, visit int) *Tour { return &Tour{client: client, visit: visit} }

// Add appends the thread of another connection, whose client is the tour.
func (t *Tour) Add(th Thread) { t.threads = append(t.threads, th) }

// Batch returns the messages per post.
func (t *Tour) Batch() int { return t.threads[0].Batch() }

// Settle is false: nobody replies to a tour.
func (t *Tour) Settle(sim.Cause) bool { return false }

// Post issues one batch on the connection that is being visited.
func (t *Tour) Post(c sim.Cause) {
	th := t.threads[t.at]
	t.due.Push(int32(t.at))
	if t.posted += th.Batch(); t.posted >= t.visit {
		t.posted = 0
		t.at = (t.at + 1) % len(t.threads)
	}
	th.Post(c)
}

// AwaitCompletion waits for the oldest batch of all connections.
func (t *Tour) AwaitCompletion(c sim.Cause) { t.threads[*t.due.Front()].AwaitCompletion(c) }

// Retire takes the oldest batch off if its completion is visible.
func (t *Tour) Retire(own sim.Cause) (sim.Cause, bool) {
	c, ok := t.threads[*t.due.Front()].Retire(own)
	if ok {
		t.due.Pop()
	}
	return c, ok
}

// AwaitData is not called: nobody sends to a tour.
func (t *Tour) AwaitData(sim.Cause) { panic("workload: a tour awaits data") }

// Posted passes on.
func (t *Tour) Posted(c sim.Cause) { t.client.Posted(c) }

// Completed has the oldest batch.
func (t *Tour) Completed(c sim.Cause) {
	t.due.Pop()
	t.client.Completed(c)
}

// Observed is not called: nobody sends to a tour.
func (t *Tour) Observed(sim.Cause) { panic("workload: a tour saw data") }

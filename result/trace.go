package result

import (
	"gdisim/sim"
	"gdisim/stage"
)

// TraceSink takes the spans of a run, operation by operation in the order in
// which these began, so that a trace of any length can be written without
// holding it. All spans of an operation come in one piece.
type TraceSink interface {
	// Span takes the next span. Its cause is the span Pred of the same
	// operation, which came before it.
	Span(s TraceSpan)
	// Counter takes a value that holds from its At on.
	Counter(c TraceCounter)
}

// TraceSpan is one span of a run in the run's own time.
type TraceSpan struct {
	Op    int      // operation, from 1
	Begin sim.Time // of the operation; never before that of an earlier one
	Index int      // of the span in its operation, from 0
	Pred  int      // index of the last-arriving predecessor, -1 for the call

	Stage, Wait         stage.Stage // of [Start, End), and of [Arrival, Start)
	Lane                stage.Lane
	Node                int
	Arrival, Start, End sim.Time
	Blocker             string // who held it during the wait, "" if nobody
}

// TraceCounter is one value of a counter.
type TraceCounter struct {
	Node  int
	Name  string
	At    sim.Time
	Value float64
}

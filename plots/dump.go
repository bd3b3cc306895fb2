package plots

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// visit is the time that an operation's entry spent in a queue, as far as its
// spans show: in the proxy's ring from the notification until the CPU has the
// descriptor, in the SQ from the doorbell until the NIC has the WQE, in the CQ
// from the CQE until it is polled.
type visit struct {
	Queue    string
	Node, Op int
	From, To sim.Time
	Index    int // of the entry among the recorded ones, from 0
}

// visits finds the queues that an operation passed, in the order of entry.
func visits(spans []result.TraceSpan) []visit {
	if len(spans) == 0 {
		return nil
	}
	s := slices.Clone(spans)
	slices.SortStableFunc(s, func(a, b result.TraceSpan) int { return cmp.Compare(a.Start, b.Start) })
	var out []visit
	add := func(queue string, in func(*result.TraceSpan) (sim.Time, bool), leaves func(*result.TraceSpan) (sim.Time, bool)) {
		open := map[int]sim.Time{}
		for i := range s {
			if at, ok := leaves(&s[i]); ok {
				if from, waiting := open[s[i].Node]; waiting && at >= from {
					out = append(out, visit{Queue: queue, Node: s[i].Node, Op: s[i].Op, From: from, To: at})
					delete(open, s[i].Node)
				}
			}
			if at, ok := in(&s[i]); ok {
				if _, waiting := open[s[i].Node]; !waiting || queue == "CQ" {
					open[s[i].Node] = at
				}
			}
		}
	}
	start := func(of ...stage.Stage) func(*result.TraceSpan) (sim.Time, bool) {
		return func(s *result.TraceSpan) (sim.Time, bool) { return s.Start, slices.Contains(of, s.Stage) }
	}
	end := func(of ...stage.Stage) func(*result.TraceSpan) (sim.Time, bool) {
		return func(s *result.TraceSpan) (sim.Time, bool) { return s.End, slices.Contains(of, s.Stage) }
	}
	add("ring", start(stage.PCIeNotify), end(stage.CPUDequeue))
	add("SQ", start(stage.PCIeDoorbell), start(stage.NICPayloadFetch, stage.NICTx))
	add("CQ", end(stage.NICCQE), end(stage.GPUPoll, stage.CPUPoll))
	slices.SortStableFunc(out, func(a, b visit) int { return cmp.Compare(a.From, b.From) })
	return out
}

// Dump writes every operation with the times of its spans and queue entries,
// for people or one JSON object a line. It holds one operation.
type Dump struct {
	w    *bufio.Writer
	json bool
	at   sim.Time // of the queues that end a run; negative: none
	run  *DumpRun // open
	err  error
}

// NewDump begins a dump on w. If at is not negative, the contents of the queues
// at that time of a run end it.
func NewDump(w io.Writer, asJSON bool, at sim.Time) *Dump {
	return &Dump{w: bufio.NewWriterSize(w, 1<<16), json: asJSON, at: at}
}

// Close ends the dump. Errors are those of w.
func (d *Dump) Close() error {
	d.flush()
	if err := d.w.Flush(); d.err == nil {
		d.err = err
	}
	return d.err
}

func (d *Dump) printf(format string, args ...any) {
	if d.err == nil {
		_, d.err = fmt.Fprintf(d.w, format, args...)
	}
}

func (d *Dump) line(v any) {
	b, err := json.Marshal(v)
	if d.err == nil {
		d.err = err
	}
	d.printf("%s\n", b)
}

func (d *Dump) flush() {
	if d.run != nil {
		d.run.flush()
		d.run = nil
	}
}

// Run begins a run of that name, and ends the one before.
func (d *Dump) Run(name string) *DumpRun {
	d.flush()
	if !d.json {
		d.printf("run %s\n", name)
	}
	d.run = &DumpRun{d: d, name: name, queues: map[queueID]*queueState{}}
	return d.run
}

// DumpRun is the part of a dump that one run fills. It is a result.TraceSink.
type DumpRun struct {
	d      *Dump
	name   string
	spans  []result.TraceSpan
	queues map[queueID]*queueState
}

type queueID struct {
	node int
	name string
}

// queueState is a queue at Dump.at.
type queueState struct {
	entered            int // in all, for the entries' indexes
	producer, consumer int
	inside             []visit
}

// Span takes a span.
func (r *DumpRun) Span(s result.TraceSpan) {
	if len(r.spans) > 0 && r.spans[0].Op != s.Op {
		r.operation()
	}
	r.spans = append(r.spans, s)
}

// Counter takes a counter, which only the JSON form has.
func (r *DumpRun) Counter(c result.TraceCounter) {
	if r.d.json {
		r.d.line(struct {
			Run     string   `json:"run"`
			Counter string   `json:"counter"`
			Node    int      `json:"node"`
			At      sim.Time `json:"at_ps"`
			Value   float64  `json:"value"`
		}{r.name, c.Name, c.Node, c.At, c.Value})
	}
}

type dumpSpan struct {
	Index   int      `json:"span"`
	Pred    int      `json:"pred"`
	Stage   string   `json:"stage"`
	Lane    string   `json:"lane"`
	Node    int      `json:"node"`
	Arrival sim.Time `json:"arrival_ps"`
	Start   sim.Time `json:"start_ps"`
	End     sim.Time `json:"end_ps"`
	Wait    string   `json:"wait,omitempty"`
	Blocker string   `json:"blocker,omitempty"`
}

type dumpVisit struct {
	Queue string   `json:"queue"`
	Node  int      `json:"node"`
	Index int      `json:"index"`
	From  sim.Time `json:"from_ps"`
	To    sim.Time `json:"to_ps"`
}

// operation writes the operation that is held.
func (r *DumpRun) operation() {
	if len(r.spans) == 0 {
		return
	}
	d := r.d
	op, begin := r.spans[0].Op, r.spans[0].Begin
	vs := visits(r.spans)
	for i := range vs {
		v := &vs[i]
		q := r.queues[queueID{v.Node, v.Queue}]
		if q == nil {
			q = &queueState{}
			r.queues[queueID{v.Node, v.Queue}] = q
		}
		v.Index = q.entered
		q.entered++
		if v.From <= d.at {
			q.producer++
			if v.To <= d.at {
				q.consumer++
			} else {
				q.inside = append(q.inside, *v)
			}
		}
	}
	if d.json {
		spans := make([]dumpSpan, len(r.spans))
		for i, s := range r.spans {
			spans[i] = dumpSpan{s.Index, s.Pred, s.Stage.String(), s.Lane.String(), s.Node, s.Arrival, s.Start, s.End, waited(s), s.Blocker}
		}
		queues := make([]dumpVisit, len(vs))
		for i, v := range vs {
			queues[i] = dumpVisit{v.Queue, v.Node, v.Index, v.From, v.To}
		}
		d.line(struct {
			Run    string      `json:"run"`
			Op     int         `json:"op"`
			Begin  sim.Time    `json:"begin_ps"`
			Spans  []dumpSpan  `json:"spans"`
			Queues []dumpVisit `json:"queues"`
		}{r.name, op, begin, spans, queues})
		r.spans = r.spans[:0]
		return
	}
	d.printf("op %d, begun at %s ns\n  %4s %4s  %-18s %-10s %14s %14s %14s  %s\n", op, nanos(begin), "span", "pred", "stage", "lane", "arrival ns", "start ns", "end ns", "waited for")
	for _, s := range r.spans {
		name := fmt.Sprintf("%s@%d", s.Stage, s.Node)
		d.printf("%s\n", strings.TrimRight(fmt.Sprintf("  %4d %4d  %-18s %-10s %14s %14s %14s  %s", s.Index, s.Pred, name, s.Lane, nanos(s.Arrival), nanos(s.Start), nanos(s.End), strings.TrimSpace(waited(s)+" "+s.Blocker)), " "))
	}
	for _, v := range vs {
		d.printf("  in %s@%d as entry %d from %s to %s ns\n", v.Queue, v.Node, v.Index, nanos(v.From), nanos(v.To))
	}
	r.spans = r.spans[:0]
}

// waited is the stage of a wait that was one.
func waited(s result.TraceSpan) string {
	if s.Start > s.Arrival {
		return s.Wait.String()
	}
	return ""
}

func nanos(t sim.Time) string { return fmt.Sprintf("%d.%03d", int64(t)/1000, int64(t)%1000) }

// flush writes what is held, and the queues at the dump's time.
func (r *DumpRun) flush() {
	r.operation()
	d := r.d
	if d.at < 0 {
		return
	}
	var ids []queueID
	for id := range r.queues {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b queueID) int { return cmp.Or(a.node-b.node, strings.Compare(a.name, b.name)) })
	if !d.json {
		d.printf("queues at %s ns, of the recorded operations\n", nanos(d.at))
	}
	for _, id := range ids {
		q := r.queues[id]
		slices.SortStableFunc(q.inside, func(a, b visit) int { return cmp.Compare(a.Index, b.Index) })
		ops := []int{}
		for _, v := range q.inside {
			ops = append(ops, v.Op)
		}
		if d.json {
			d.line(struct {
				Run      string   `json:"run"`
				Queue    string   `json:"queue"`
				Node     int      `json:"node"`
				At       sim.Time `json:"at_ps"`
				Producer int      `json:"producer"`
				Consumer int      `json:"consumer"`
				Ops      []int    `json:"ops"`
			}{r.name, id.name, id.node, d.at, q.producer, q.consumer, ops})
			continue
		}
		d.printf("  %s@%d: producer %d, consumer %d, holds the entries of operations %v\n", id.name, id.node, q.producer, q.consumer, ops)
	}
}

// DumpGraphs dumps the recorded operations of results. Errors are those of w.
func DumpGraphs(w io.Writer, rs []*result.Result, asJSON bool, at sim.Time) error {
	d := NewDump(w, asJSON, at)
	eachGraph(rs, func(name string, _ *result.Path, g *result.Graph) {
		feed(d.Run(name), g)
	})
	return d.Close()
}

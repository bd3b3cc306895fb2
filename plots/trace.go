package plots

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// Trace writes Chrome's Trace Event format, which Perfetto opens: a process for
// each node of each run, a thread for each lane, split so that no spans of a
// thread overlap, arrows along causes, and counters of what waits where. It
// holds only the operations that are under way.
type Trace struct {
	w          *bufio.Writer
	n          int // events written
	pid, flows int
	run        *TraceRun   // open
	e          eventWriter // reused
	err        error
}

// NewTrace begins a trace on w.
func NewTrace(w io.Writer) *Trace {
	t := &Trace{w: bufio.NewWriterSize(w, 1<<16)}
	t.put(`{"displayTimeUnit":"ns","traceEvents":[`)
	return t
}

// Close ends the trace. Errors are those of w.
func (t *Trace) Close() error {
	t.flush()
	t.put("\n]}\n")
	if err := t.w.Flush(); t.err == nil {
		t.err = err
	}
	return t.err
}

func (t *Trace) put(s string) {
	if t.err == nil {
		_, t.err = t.w.WriteString(s)
	}
}

// event begins an event: its kind, thread and time.
func (t *Trace) event(ph string, pid, tid int, ns int64) *eventWriter {
	e := &t.e
	e.b = e.b[:0]
	if t.n > 0 {
		e.b = append(e.b, ',')
	}
	t.n++
	e.b = append(e.b, "\n{"...)
	e.b = append(e.b, `"ph":"`...)
	e.b = append(append(e.b, ph...), '"')
	e.int("pid", int64(pid)).int("tid", int64(tid))
	if ph != "M" {
		e.micros("ts", ns)
	}
	return e
}

// eventWriter appends keys to an event.
type eventWriter struct{ b []byte }

func (e *eventWriter) key(k string) {
	e.b = append(append(append(e.b, `,"`...), k...), `":`...)
}

func (e *eventWriter) int(k string, v int64) *eventWriter {
	e.key(k)
	e.b = strconv.AppendInt(e.b, v, 10)
	return e
}

// micros writes nanoseconds as microseconds.
func (e *eventWriter) micros(k string, ns int64) *eventWriter {
	e.key(k)
	e.b = strconv.AppendInt(e.b, ns/1000, 10)
	f := ns % 1000
	e.b = append(e.b, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
	return e
}

// raw writes a value that is JSON.
func (e *eventWriter) raw(k, v string) *eventWriter {
	e.key(k)
	e.b = append(e.b, v...)
	return e
}

// end writes the event.
func (t *Trace) end(e *eventWriter) {
	e.b = append(e.b, '}')
	if t.err == nil {
		_, t.err = t.w.Write(e.b)
	}
}

func (t *Trace) flush() {
	if t.run != nil {
		t.run.queues()
		t.run.drain(1<<63 - 1)
		t.run = nil
	}
}

// Run begins the processes of a run, and ends those of the one before; name
// tells it from the others.
func (t *Trace) Run(name string) *TraceRun {
	t.flush()
	t.run = &TraceRun{t: t, name: name, pids: map[int]int{}, lanes: map[laneID]*traceLane{}, ops: map[int]*traceOp{}, depth: map[counterID]int{}, queue: heap[result.TraceSpan]{less: before}, steps: heap[step]{less: sooner}}
	return t.run
}

// TraceRun is the part of a trace that one run fills. It is a result.TraceSink.
type TraceRun struct {
	t     *Trace
	name  string
	pids  map[int]int
	lanes map[laneID]*traceLane
	ops   map[int]*traceOp
	queue heap[result.TraceSpan]
	steps heap[step]
	depth map[counterID]int
	seq   int
	last  []result.TraceSpan // spans of the operation that is being told
}

// meta names a process or a thread and gives it its place.
func (t *Trace) meta(what string, pid, tid, place int, name string) {
	t.end(t.event("M", pid, tid, 0).raw("name", quote(what+"_name")).raw("args", `{"name":`+quote(name)+"}"))
	t.end(t.event("M", pid, tid, 0).raw("name", quote(what+"_sort_index")).raw("args", fmt.Sprintf(`{"sort_index":%d}`, place)))
}

// traceLane is a lane with the ends of its threads.
type traceLane struct {
	ends []sim.Time
	tids []int
}

// traceOp remembers where the spans of an operation under way were drawn.
type traceOp struct {
	left  int
	drawn map[int]mark
}

type mark struct {
	pid, tid int
	at       int64 // nanoseconds, inside the span
}

// counterID names a counter of a node.
type counterID struct {
	node int
	name string
}

// step is a change of a counter.
type step struct {
	at    sim.Time
	id    counterID
	delta int
	seq   int
}

// before orders spans by start, and those of one moment as they were told.
func before(a, b *result.TraceSpan) bool {
	if a.Start != b.Start {
		return a.Start < b.Start
	}
	if a.Op != b.Op {
		return a.Op < b.Op
	}
	return a.Index < b.Index
}

func sooner(a, b *step) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.seq < b.seq
}

// heap is a binary heap without the boxing of container/heap.
type heap[T any] struct {
	items []T
	less  func(a, b *T) bool
}

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	for i := len(h.items) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(&h.items[i], &h.items[up]) {
			return
		}
		h.items[i], h.items[up] = h.items[up], h.items[i]
		i = up
	}
}

func (h *heap[T]) pop() T {
	top, n := h.items[0], len(h.items)-1
	h.items[0] = h.items[n]
	h.items = h.items[:n]
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < n && h.less(&h.items[c], &h.items[least]) {
				least = c
			}
		}
		if least == i {
			return top
		}
		h.items[i], h.items[least] = h.items[least], h.items[i]
		i = least
	}
}

// Span takes a span. Those that start before the operation begins belong to
// earlier operations, all of whose spans are known: they are written.
func (r *TraceRun) Span(s result.TraceSpan) {
	if r.ops[s.Op] == nil {
		r.queues()
		r.drain(s.Begin)
		r.ops[s.Op] = &traceOp{drawn: map[int]mark{}}
	}
	r.ops[s.Op].left++
	r.queue.push(s)
	if s.Start > s.Arrival {
		r.count(counterID{s.Node, "waiting: " + s.Wait.String()}, s.Arrival, s.Start)
	}
	r.last = append(r.last, s)
}

// Counter takes a value of a counter.
func (r *TraceRun) Counter(c result.TraceCounter) {
	e := r.t.event("C", r.pid(c.Node), 0, int64(c.At)/1000)
	r.t.end(e.raw("name", quote(c.Name)).raw("args", `{"value":`+strconv.FormatFloat(c.Value, 'g', -1, 64)+"}"))
}

// queues counts the queues that the operation just told has passed.
func (r *TraceRun) queues() {
	for _, v := range visits(r.last) {
		r.count(counterID{v.Node, v.Queue + " entries"}, v.From, v.To)
	}
	r.last = r.last[:0]
}

// count raises a counter during an interval.
func (r *TraceRun) count(id counterID, from, to sim.Time) {
	if to > from {
		r.seq++
		r.steps.push(step{from, id, 1, r.seq})
		r.steps.push(step{to, id, -1, r.seq})
	}
}

func (r *TraceRun) drain(until sim.Time) {
	for len(r.queue.items) > 0 && r.queue.items[0].Start < until {
		r.draw(r.queue.pop())
	}
	for len(r.steps.items) > 0 && r.steps.items[0].at < until {
		// All changes of a moment make one value.
		first := r.steps.pop()
		changed := []counterID{first.id}
		r.depth[first.id] += first.delta
		for len(r.steps.items) > 0 && r.steps.items[0].at == first.at {
			s := r.steps.pop()
			r.depth[s.id] += s.delta
			if !slices.Contains(changed, s.id) {
				changed = append(changed, s.id)
			}
		}
		for _, id := range changed {
			r.Counter(result.TraceCounter{Node: id.node, Name: id.name, At: first.at, Value: float64(r.depth[id])})
		}
	}
}

// pid is the process of a node; its name is written when it is first needed.
func (r *TraceRun) pid(node int) int {
	if p, ok := r.pids[node]; ok {
		return p
	}
	r.t.pid++
	p := r.t.pid
	r.pids[node] = p
	r.t.meta("process", p, 0, p, fmt.Sprintf("%s node %d", r.name, node))
	return p
}

// thread finds a thread of the span's lane that is free.
//
// Preconditions: spans come in the order of their starts.
func (r *TraceRun) thread(node int, l stage.Lane, from, to sim.Time) (pid, tid int) {
	pid = r.pid(node)
	name := cmp.Or(l.String(), "other")
	id := laneID{node, l}
	lane := r.lanes[id]
	if lane == nil {
		lane = &traceLane{}
		r.lanes[id] = lane
	}
	i := slices.IndexFunc(lane.ends, func(e sim.Time) bool { return e <= from })
	if i < 0 {
		i = len(lane.ends)
		tid = int(id.lane)*1000 + i
		lane.ends = append(lane.ends, 0)
		lane.tids = append(lane.tids, tid)
		if i > 0 {
			name = fmt.Sprintf("%s #%d", name, i+1)
		}
		r.t.meta("thread", pid, tid, tid, name)
	}
	lane.ends[i] = to
	return pid, lane.tids[i]
}

func (r *TraceRun) draw(s result.TraceSpan) {
	pid, tid := r.thread(s.Node, s.Lane, s.Start, s.End)
	// Viewers resolve nanoseconds: both ends go down, so that spans that touch
	// still do. The exact times are in args.
	from, to := int64(s.Start)/1000, int64(s.End)/1000
	e := r.t.event("X", pid, tid, from).micros("dur", to-from).raw("name", quote(s.Stage.String())).raw("args", `{"op":`)
	e.b = strconv.AppendInt(e.b, int64(s.Op), 10)
	e.int("start_ps", int64(s.Start)).int("end_ps", int64(s.End))
	e.b = append(e.b, '}')
	r.t.end(e)
	op := r.ops[s.Op]
	op.drawn[s.Index] = mark{pid, tid, from + max(0, (to-from-1))}
	// Within a thread the order is plain without arrows.
	if p, ok := op.drawn[s.Pred]; ok && (p.pid != pid || p.tid != tid) {
		r.t.flows++
		r.t.end(r.t.event("s", p.pid, p.tid, p.at).raw("name", `"cause"`).raw("cat", `"cause"`).int("id", int64(r.t.flows)))
		r.t.end(r.t.event("f", pid, tid, from).raw("name", `"cause"`).raw("cat", `"cause"`).raw("bp", `"e"`).int("id", int64(r.t.flows)))
	}
	if op.left--; op.left == 0 {
		delete(r.ops, s.Op)
	}
}

// TraceGraphs writes the recorded operations of results, a run for each.
// Errors are those of w.
func TraceGraphs(w io.Writer, rs []*result.Result) error {
	t := NewTrace(w)
	eachGraph(rs, func(name string, _ *result.Path, g *result.Graph) {
		feed(t.Run(name), g)
	})
	return t.Close()
}

// eachGraph calls f for every operation that the results keep.
func eachGraph(rs []*result.Result, f func(name string, p *result.Path, g *result.Graph)) {
	names := labels(rs)
	swept := sweptKeys(rs)
	for _, r := range runs(rs) {
		for i := range r.path.Graphs {
			g := &r.path.Graphs[i]
			f(join(names[r.res], others(r.point, swept), r.path.Name, g.Metric.String()+" "+g.Which), r.path, g)
		}
	}
}

// feed gives a graph's spans to a sink, as operation 1 from time 0.
func feed(s result.TraceSink, g *result.Graph) {
	for i, x := range g.Spans {
		s.Span(result.TraceSpan{
			Op: 1, Index: i, Pred: x.Pred, Stage: x.Stage, Wait: x.Wait, Lane: x.Lane, Node: x.Node,
			Arrival: sim.Time(x.Arrival), Start: sim.Time(x.Start), End: sim.Time(x.End), Blocker: x.Blocker,
		})
	}
}

// quote writes a JSON string.
func quote(s string) string {
	if _, ok := stage.Parse(s); ok {
		return `"` + s + `"` // the names of stages are plain
	}
	b, _ := json.Marshal(s) // a string always has a form
	return string(b)
}

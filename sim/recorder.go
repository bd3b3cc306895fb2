package sim

// Op names an operation that is being recorded, or an unrecorded owner of
// work; 0 stands for neither. Positive values are recorded operations of a
// Recorder, negative ones are owners given by Recorder.Owner.
type Op int32

// SpanID names a span within its operation; 0 is the operation's begin.
type SpanID int32

// Cause is what work carries with it: the operation and the span that led
// here. The zero Cause belongs to no recorded operation, and costs nothing.
type Cause struct {
	Op   Op
	Span SpanID
}

// Span is one recorded interval. [Arrival, Start) is a wait for the blocker
// and belongs to the stage Wait; [Start, End) belongs to Stage. Arrival is the
// end of Pred, the last-arriving predecessor in the same operation, so a walk
// back along Pred covers every picosecond exactly once.
type Span struct {
	Arrival, Start, End Time
	Pred                SpanID
	Blocker             Op
	Stage, Wait         uint8
	Lane, Node          uint8
}

// Kind says what a span is: stages, lane and node as small numbers whose
// meaning belongs to the caller (package stage).
type Kind struct {
	Stage, Wait uint8
	Lane, Node  uint8
}

// Mark is the end of one metric of an operation.
type Mark struct {
	Metric uint8
	Span   SpanID
}

// Record is a finished operation.
type Record struct {
	Begin Time
	Spans []Span // Spans[i] has SpanID i+1
	Marks []Mark
}

// Recorder collects the spans of operations. A nil Recorder records nothing,
// and all its methods may be called on nil.
type Recorder struct {
	recs   []Record
	owners []string
	span0  int
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder { return &Recorder{span0: 32} }

// Owner names a user of resources that is not recorded itself (background
// load, an operating system's tick), so that it can be shown as a blocker.
func (r *Recorder) Owner(name string) Op {
	if r == nil {
		return 0
	}
	r.owners = append(r.owners, name)
	return Op(-len(r.owners))
}

// OwnerName returns the name given to Owner, "" for other operations.
func (r *Recorder) OwnerName(op Op) string {
	if r == nil || op >= 0 {
		return ""
	}
	return r.owners[-op-1]
}

// Begin starts an operation at now and returns its Cause.
func (r *Recorder) Begin(now Time) Cause {
	if r == nil {
		return Cause{}
	}
	r.recs = append(r.recs, Record{Begin: now, Spans: make([]Span, 0, r.span0)})
	return Cause{Op: Op(len(r.recs))}
}

// Span records that c's operation did k during [start, end), after what led to
// c, and was held by blocker before start (0: by nobody). It returns the new
// Cause. A start before the predecessor's end is a broken invariant.
func (r *Recorder) Span(c Cause, k Kind, start, end Time, blocker Op) Cause {
	if r == nil || c.Op <= 0 {
		return c
	}
	rec := &r.recs[c.Op-1]
	arr := rec.end(c.Span)
	if start < arr || end < start {
		panic("sim: span starts before its predecessor ended")
	}
	if k.Wait == 0 {
		k.Wait = k.Stage
	}
	if start == arr {
		blocker = 0
	}
	rec.Spans = append(rec.Spans, Span{Arrival: arr, Start: start, End: end, Pred: c.Span, Blocker: blocker, Stage: k.Stage, Wait: k.Wait, Lane: k.Lane, Node: k.Node})
	return Cause{Op: c.Op, Span: SpanID(len(rec.Spans))}
}

// Later returns the one of two causes of the same operation that ended last;
// a cause of no operation loses, and a wins a tie.
func (r *Recorder) Later(a, b Cause) Cause {
	if r == nil || b.Op <= 0 || a.Op > 0 && a.Op != b.Op {
		return a
	}
	if a.Op <= 0 {
		return b
	}
	rec := &r.recs[a.Op-1]
	if rec.end(b.Span) > rec.end(a.Span) {
		return b
	}
	return a
}

// Mark says that metric of c's operation ended with c's span.
func (r *Recorder) Mark(c Cause, metric uint8) {
	if r == nil || c.Op <= 0 {
		return
	}
	rec := &r.recs[c.Op-1]
	rec.Marks = append(rec.Marks, Mark{Metric: metric, Span: c.Span})
}

// Records returns all operations begun so far, in order; the Op of Records()[i]
// is i+1.
func (r *Recorder) Records() []Record {
	if r == nil {
		return nil
	}
	return r.recs
}

func (rec *Record) end(s SpanID) Time {
	if s == 0 {
		return rec.Begin
	}
	return rec.Spans[s-1].End
}

// Step is one part of a walk: a stage's work, or its wait.
type Step struct {
	Span  SpanID
	Stage uint8
	Wait  bool
	Time  Duration
}

// Walk calls f for every part of the way from m's end back to the operation's
// begin, last first. The parts' times sum to the metric's total.
func (rec *Record) Walk(m Mark, f func(Step)) {
	for id := m.Span; id != 0; {
		s := &rec.Spans[id-1]
		f(Step{Span: id, Stage: s.Stage, Time: s.End.Sub(s.Start)})
		if s.Start > s.Arrival {
			f(Step{Span: id, Stage: s.Wait, Wait: true, Time: s.Start.Sub(s.Arrival)})
		}
		id = s.Pred
	}
}

// Total returns the metric's duration.
func (rec *Record) Total(m Mark) Duration { return rec.end(m.Span).Sub(rec.Begin) }

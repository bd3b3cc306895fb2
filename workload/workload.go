package workload

import (
	"gdisim/sim"
	"gdisim/stage"
)

// Thread is what a workload asks of an initiating thread of a path.
type Thread interface {
	// Post issues one batch of Batch messages; Posted follows.
	Post(c sim.Cause)
	// Batch returns the messages per post.
	Batch() int
	// AwaitCompletion waits for the oldest batch that was neither awaited nor
	// retired; Completed follows.
	AwaitCompletion(c sim.Cause)
	// Retire takes the oldest batch off if its completion is visible already;
	// own's operation has waited for it until now.
	Retire(own sim.Cause) (c sim.Cause, ok bool)
	// AwaitData waits until the peer's next message has been seen; Observed
	// follows.
	AwaitData(c sim.Cause)
	// Settle waits for what the stack wants to know of a round trip's last put
	// before the next one; Completed follows. It reports false if that is nothing.
	Settle(c sim.Cause) bool
}

// Run is what the clients of one run share.
type Run struct {
	Eng *sim.Engine
	Rec *sim.Recorder // nil: nothing is recorded
	// Owner stands for unrecorded work as a blocker.
	Owner sim.Cause
	// Samples collects the durations of measured operations, per metric.
	Samples [stage.MetricCount][]sim.Duration
	// Messages counts all messages that completed, warm-up included.
	Messages uint64
	// Finished counts the foreground's steps, as a sign of life.
	Finished uint64
	// OnMeasure is called when measuring begins, and OnEnd when it ends: what was
	// used before and after is not part of the cost. Both may be nil.
	OnMeasure, OnEnd func()
	measured         bool
	ended            bool
	open             int
}

// Open returns the number of clients that have not finished.
func (r *Run) Open() int { return r.open }

// begin starts an operation, recorded if asked for.
func (r *Run) begin(record bool) sim.Cause {
	if record && r.Rec != nil {
		return r.Rec.Begin(r.Eng.Now())
	}
	return r.Owner
}

// measure begins the measured part of the run, once.
func (r *Run) measure() {
	if !r.measured {
		r.measured = true
		if r.OnMeasure != nil {
			r.OnMeasure()
		}
	}
}

// end ends the measured part of the run, once.
func (r *Run) end() {
	if !r.ended {
		r.ended = true
		if r.OnEnd != nil {
			r.OnEnd()
		}
	}
}

func (r *Run) sample(m stage.Metric, begin sim.Time, c sim.Cause) {
	r.Samples[m] = append(r.Samples[m], r.Eng.Now().Sub(begin))
	r.Rec.Mark(c, uint8(m))
}

func (r *Run) finish() {
	if r.open--; r.open == 0 {
		r.end()
		r.Eng.Stop()
	}
}

// Put posts one batch at a time and waits for its completion; the destination
// looks for the data. An operation ends when both have happened. An answered put
// has no other completion than the message that the destination sends back.
type Put struct {
	run      *Run
	src, dst Thread
	warm     int
	left     int
	at       sim.Time
	measured bool
	metric   stage.Metric
	answered bool
	pending  int
}

// NewPut returns the client of src for iterations puts after warm-up ones; dst
// observes them at the destination (nil for a get, which ends with metric), and
// answers them if they are answered.
func NewPut(r *Run, metric stage.Metric, iterations, warmup int, answered bool) *Put {
	r.open++
	return &Put{run: r, metric: metric, warm: warmup, left: iterations + warmup, answered: answered}
}

// Start begins with the threads; dst may be nil.
func (p *Put) Start(src, dst Thread) {
	p.src, p.dst = src, dst
	p.next()
}

func (p *Put) next() {
	p.run.Finished++
	if p.left == 0 {
		p.run.finish()
		return
	}
	p.left--
	p.measured = p.warm == 0
	if p.warm > 0 {
		p.warm--
	}
	if p.measured {
		p.run.measure()
	}
	p.at = p.run.Eng.Now()
	p.pending = 1
	if p.dst != nil {
		p.pending = 2
		p.dst.AwaitData(sim.Cause{})
	}
	p.src.Post(p.run.begin(p.measured))
}

// Posted marks the issue and waits for the completion, or for the answer.
func (p *Put) Posted(c sim.Cause) {
	if p.measured && p.metric == stage.PutCompletion {
		p.run.sample(stage.Issue, p.at, c)
	}
	if p.answered {
		p.src.AwaitData(c)
		return
	}
	p.src.AwaitCompletion(c)
}

// Completed marks the completion.
func (p *Put) Completed(c sim.Cause) {
	p.run.Messages += uint64(p.src.Batch())
	if p.measured {
		p.run.sample(p.metric, p.at, c)
	}
	p.end()
}

// Observed is the answer.
func (p *Put) Observed(c sim.Cause) {
	if !p.answered {
		panic("workload: a put's source saw data")
	}
	p.src.Retire(sim.Cause{}) // its CQE came before the answer
	p.Completed(c)
}

func (p *Put) end() {
	if p.pending--; p.pending == 0 {
		p.next()
	}
}

// Destination returns the client of the thread that observes the puts.
func (p *Put) Destination() *Observer { return &Observer{put: p} }

// Observer is the destination's side of a Put.
type Observer struct{ put *Put }

// Observed marks the one-way time and answers, in the put's operation.
func (o *Observer) Observed(c sim.Cause) {
	if o.put.measured {
		o.put.run.sample(stage.OneWay, o.put.at, c)
	}
	if o.put.answered {
		o.put.dst.Post(c)
		return
	}
	o.put.end()
}

// Posted says that the answer has left the destination's thread.
func (o *Observer) Posted(sim.Cause) {
	o.put.dst.Retire(sim.Cause{}) // of an earlier one
	o.put.end()
}

// Completed is not called: an observer does not post.
func (o *Observer) Completed(sim.Cause) { panic("workload: an observer posted") }

// PingPong sends a message and waits for the reply, by the stack's own
// notification.
type PingPong struct {
	run      *Run
	me       Thread
	warm     int
	left     int
	at       sim.Time
	measured bool
}

// NewPingPong returns the initiating client.
func NewPingPong(r *Run, iterations, warmup int) *PingPong {
	r.open++
	return &PingPong{run: r, warm: warmup, left: iterations + warmup}
}

// Start begins with the two threads, once each has the client that Responder
// returned.
func (p *PingPong) Start(me Thread) {
	p.me = me
	p.next()
}

func (p *PingPong) next() {
	p.run.Finished++
	if p.left == 0 {
		p.run.finish()
		return
	}
	p.left--
	p.measured = p.warm == 0
	if p.warm > 0 {
		p.warm--
	}
	if p.measured {
		p.run.measure()
	}
	p.at = p.run.Eng.Now()
	p.me.Post(p.run.begin(p.measured))
}

// Posted looks for the reply.
func (p *PingPong) Posted(c sim.Cause) { p.me.AwaitData(c) }

// Observed has the reply, which ends the round trip unless something of its own put
// does.
func (p *PingPong) Observed(c sim.Cause) {
	if !p.me.Settle(c) {
		p.me.Retire(sim.Cause{}) // its CQE came before the reply
		p.Completed(c)
	}
}

// Completed ends the round trip.
func (p *PingPong) Completed(c sim.Cause) {
	p.run.Messages += 2
	if p.measured {
		p.run.sample(stage.RTT, p.at, c)
	}
	p.next()
}

// Responder answers a PingPong's messages.
type Responder struct {
	me   Thread
	owes bool // nothing is known of its last answer
}

// NewResponder returns the responding client.
func NewResponder() *Responder { return &Responder{} }

// Start begins to look for requests.
func (r *Responder) Start(me Thread) {
	r.me = me
	me.AwaitData(sim.Cause{})
}

// Observed answers a request, in the request's operation, once the stack knows
// enough of the last answer.
func (r *Responder) Observed(c sim.Cause) {
	if r.owes {
		r.owes = false
		if r.me.Settle(c) {
			return
		}
		r.me.Retire(sim.Cause{})
	}
	r.me.Post(c)
}

// Completed answers a request.
func (r *Responder) Completed(c sim.Cause) { r.me.Post(c) }

// Posted looks for the next request.
func (r *Responder) Posted(sim.Cause) {
	r.owes = true
	r.me.AwaitData(sim.Cause{})
}

// Stream keeps a window of messages outstanding.
type Stream struct {
	run    *Run
	group  *Group
	me     Thread
	window int
	warm   int // messages still to complete before the stream is warm
	left   int // messages still to complete in the measured part; negative: for ever
	out    int // messages outstanding
	begun  sim.FIFO[begun]
	ended  bool
	fresh  bool // endless, and without a completed message
}

// Group measures the streams that run together: from when all are warm until
// the first has completed its share, so that neither filling nor draining the
// windows is in it.
type Group struct {
	run    *Run
	Metric stage.Metric // latency of each batch; NoMetric for background load
	cold   int
	begin  sim.Time
	end    sim.Time
	count  int
	over   bool
	// Every records one operation of so many, to bound the memory of long
	// streams; 1 records all.
	Every int
	seq   int
	lands bool // the window is one of arrivals
	fresh int  // endless streams without a completed message,
	late  int  // and how many there were when the window opened
}

// maxRecorded bounds the recorded operations of a group that does not end.
const maxRecorded = 100_000

// NewGroup returns an empty group.
func NewGroup(r *Run, m stage.Metric, every int) *Group {
	return &Group{run: r, Metric: m, Every: max(1, every)}
}

// Rate returns the messages completed in the measured window and its length.
func (g *Group) Rate() (messages int, window sim.Duration) { return g.count, g.end.Sub(g.begin) }

// Open and Close set the window of a group whose streams never end.
func (g *Group) Open() { g.begin, g.count, g.cold, g.late = g.run.Eng.Now(), 0, 0, g.fresh }

// Late returns how many of the group's endless streams had not completed a message
// when the window opened.
func (g *Group) Late() int { return g.late }

// Share makes the rate that of one of n nodes that sent alike.
func (g *Group) Share(n int) { g.count /= n }

// Close ends the window.
func (g *Group) Close() {
	if !g.over {
		g.over = true
		g.end = g.run.Eng.Now()
	}
}

// NewStream returns a client that keeps up to window messages outstanding, until
// a stream of its group has completed iterations messages after all were warm.
// A stream is warm when it has completed warmup messages and has filled its
// window once. Negative iterations go on until the run stops.
func NewStream(g *Group, iterations, warmup, window int) *Stream {
	s := &Stream{run: g.run, group: g, window: window, left: iterations}
	if iterations < 0 {
		s.left = -1
		s.fresh = true
		g.fresh++
		return s
	}
	s.warm = max(warmup, window)
	g.run.open++
	g.cold++
	return s
}

// Arrivals makes the group's window one of messages that land at the peer, for
// threads that learn less than the completion of theirs: it opens with the last of
// the warm-up's and closes with the last of so many measured. The streams, of that
// number, go on meanwhile (negative iterations).
type Arrivals struct {
	group         *Group
	warm, measure int
	streams       int
}

// NewArrivals returns the sink for the messages of the group's streams.
func NewArrivals(g *Group, streams, iterations, warmup int) *Arrivals {
	g.lands, g.cold = true, 1
	g.run.open += streams
	return &Arrivals{g, max(1, streams*warmup), streams * iterations, streams}
}

// Landing returns the sink itself: messages are sent to it.
func (a *Arrivals) Landing() sim.Sink { return a }

// Done is a message that has landed.
func (a *Arrivals) Done(uint32, sim.Cause) {
	g := a.group
	g.run.Finished++
	g.run.Messages++
	if g.cold > 0 {
		if a.warm--; a.warm == 0 {
			g.Open()
			g.run.measure()
		}
		return
	}
	if g.over {
		return
	}
	if g.count++; g.count == a.measure {
		g.Close()
		for range a.streams {
			g.run.finish()
		}
	}
}

type begun struct {
	at    sim.Time
	cause sim.Cause
}

// Start begins with the thread.
func (s *Stream) Start(me Thread) {
	s.me = me
	s.next()
}

func (s *Stream) next() {
	for s.out > 0 {
		c, ok := s.me.Retire(s.begun.Front().cause)
		if !ok {
			break
		}
		s.complete(c)
	}
	b := s.me.Batch()
	g := s.group
	switch {
	case !g.over && s.out+b <= s.window:
		// What begins while the windows fill may end in the measured part.
		c := s.run.begin(g.Metric != stage.NoMetric && g.seq%g.Every == 0 && g.seq/g.Every < maxRecorded)
		g.seq++
		s.begun.Push(begun{at: s.run.Eng.Now(), cause: c})
		s.out += b
		s.me.Post(c)
	case s.out > 0:
		s.me.AwaitCompletion(s.begun.Front().cause)
	case !s.ended && s.left >= 0:
		s.ended = true
		s.run.finish()
	}
}

// Posted goes on; the batch's own cause waits for its completion.
func (s *Stream) Posted(c sim.Cause) {
	s.begun.Back().cause = c
	s.next()
}

// Completed has the oldest batch.
func (s *Stream) Completed(c sim.Cause) {
	s.complete(c)
	s.next()
}

func (s *Stream) complete(c sim.Cause) {
	g := s.group
	b := s.begun.Pop()
	if s.fresh {
		s.fresh = false
		g.fresh--
	}
	if s.left >= 0 && (s.warm > 0 || g.cold == 0) { // a warm stream beside one that never warms goes nowhere
		s.run.Finished++
	}
	n := s.me.Batch()
	s.out -= n
	if !g.lands {
		s.run.Messages += uint64(n)
	}
	if s.warm > 0 {
		if s.warm -= n; s.warm > 0 {
			return
		}
		if g.cold--; g.cold == 0 {
			g.begin, g.count = s.run.Eng.Now(), 0
			s.run.measure()
		}
		return
	}
	if g.over || g.cold > 0 {
		return
	}
	if !g.lands {
		g.count += n
	}
	if g.Metric != stage.NoMetric {
		s.run.sample(g.Metric, b.at, c)
	}
	if s.left > 0 {
		if s.left = max(0, s.left-n); s.left == 0 {
			g.Close()
			s.run.end()
		}
	}
}

// Observed is not called: nobody sends to a stream.
func (s *Stream) Observed(sim.Cause) { panic("workload: a stream saw data") }

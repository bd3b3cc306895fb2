package path

import (
	"gdisim/model/pcie"
	"gdisim/sim"
	"gdisim/stage"
)

// What a library's post does with the words that a queue's posters share. Each
// runs at the engine's time.

// hasRoom reports whether n more WQEs fit the send queue, those kept for others
// left out.
func (q *queue) hasRoom(n int) bool {
	if q.path.cfg.Library == LibBare {
		return q.qp.Free()-q.granted >= n
	}
	return int(q.reserved-q.qp.Completed())+q.granted+n <= q.depth
}

// room reports whether the thread may take n slots; if not it waits its turn.
func (t *poster) room(n int) bool {
	q := t.queue
	if t.granted > 0 {
		q.granted -= t.granted
		t.granted = 0
		return true
	}
	if q.room.Len() == 0 && q.hasRoom(n) {
		return true
	}
	if d := &t.path.cfg; d.Library == LibDeepEP || d.Library == LibDOCA && !d.SlotCheck {
		t.env.find(t.node, stage.RingOverflow, stage.Possible, q.qp.ID(), "a thread took a slot of a full send queue: the stack does not look whether it is free; times are as if it had waited")
	}
	q.room.Push(t)
	t.state = parked
	return false
}

// word spends the step's atomics on the queue's management words: those of one
// queue follow each other.
func (t *poster) word(s *Step) {
	if s.N == 0 {
		return
	}
	cfg := t.sm.Config()
	var busy, last sim.Duration
	for range s.N {
		last = t.sm.Draw(cfg.AtomicInterval)
		busy += last
	}
	start, _, by := t.queue.words.Take(t.t, busy, t.c.Op)
	end := start.Add(busy - last + t.sm.Draw(cfg.Atomic))
	t.c = t.env.Rec.Span(t.c, t.kinds[s.Stage], start, end, by)
	t.t = end
}

// publish puts the slots before the NIC and lets the next poster know, which if
// it has waited finds its turn by a later compare-and-swap: of those that spin
// on the word, few succeed at once.
func (t *poster) publish(s *Step) {
	q := t.queue
	before := t.t
	t.word(s)
	t.fill()
	q.ready = t.end
	if t.node.Faults.TwoProducers {
		return
	}
	for i, w := range q.turns {
		if w.base != q.ready {
			continue
		}
		q.turns = append(q.turns[:i], q.turns[i+1:]...)
		w.waited(s.Stage, t.c.Op)
		cfg := w.sm.Config()
		wait := sim.Duration(t.path.cfg.Counts.TurnRounds) * w.sm.Draw(cfg.Atomic)
		if s.N == 0 { // the turn is stored, and loaded until it shows
			wait = w.sm.Phase(w.sm.Draw(cfg.L2Load))
		}
		if at := before.Add(wait); at > w.t {
			w.spend(s.Stage, at.Sub(w.t))
		}
		t.env.Eng.At(w.t, w.h, 0)
		return
	}
}

// mustRing reports whether this post rings the doorbell itself.
func (t *poster) mustRing() bool {
	p := t.path
	unit := uint32(max(1, p.cfg.RingBatch))
	crossed := t.base/unit != t.end/unit
	if p.cfg.Library == LibNVSHMEM {
		return t.queue.reserved == t.end || crossed
	}
	return crossed || p.cfg.Insist && !t.plain
}

// skipTo goes on at the next step of that kind, or at the end.
func (t *poster) skipTo(a Action) {
	for t.pc++; t.pc < len(t.prog) && t.prog[t.pc].Do != a; {
		t.pc++
	}
	t.pc-- // the caller steps on
}

// tell rings: once a lane.
func (t *poster) tell(s *Step) {
	each := (t.end - t.base) / uint32(s.N)
	for i := range s.N {
		head := t.end
		if i < s.N-1 {
			head = t.base + uint32(i+1)*each
		}
		t.ring(head)
	}
	t.spend(s.Stage, sim.Duration(s.N-1)*t.sm.Draw(t.sm.Config().Ring))
}

// pollCQ waits for the CQE of the oldest batch, by itself or as a step of the
// completion routine.
func (t *poster) pollCQ() {
	b := *t.due.Front()
	t.begin = t.env.Eng.Now()
	done, ok := t.Retire(t.c)
	if t.path.cfg.Queues == pcie.Host {
		if t.doing == quieting {
			t.host.next = running
			t.pc++
		}
		t.looks.word = b.queue.cq
		t.pollHost(stage.GPUPoll, &t.looks, ok)
	}
	if ok {
		t.found(done)
		return
	}
	if t.state != pollingHost {
		t.state = polling
	}
	b.queue.polls = append(b.queue.polls, t)
}

// ended goes on behind a program that was no post.
func (t *poster) ended() bool {
	was := t.doing
	t.doing = posting
	switch was {
	case insisting:
		t.await(t.c)
	case quieting:
		t.client.Completed(t.c)
	case posting:
		return true
	}
	return false
}

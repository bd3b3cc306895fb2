package path

import "fmt"

// What a thread that has not finished waits for, in a few words; "" for one that
// waits for nothing.

// Waits says what the GPU thread waits for.
func (t *poster) Waits() string {
	q := t.queue
	switch {
	case t.waitData:
		return "data"
	case t.state == parked:
		return fmt.Sprintf("a lock, a turn or a slot of queue %d", q.qp.ID())
	case t.state == polling && t.due.Len() > 0, t.state == pollingHost && t.due.Len() > 0:
		b := t.due.Front()
		s := fmt.Sprintf("the completion of WQE %d of queue %d", b.upto-1, b.queue.qp.ID())
		if int32(b.upto-b.queue.qp.Rung()) > 0 {
			s += ", for which no doorbell came"
		}
		return s
	}
	return ""
}

// Waits says what the GPU thread waits for.
func (t *producer) Waits() string {
	switch {
	case t.waitData:
		return "data"
	case t.state == parked, t.state == pollingHost && !t.granted && t.ring.free() <= 0 && t.doing == posting:
		return fmt.Sprintf("a slot of ring %d, of whose %d none is free", t.ring.index, t.path.cfg.Depth)
	case t.doing == quieting && t.path.cfg.Quiet != QuietCounter:
		return fmt.Sprintf("the proxy's answer to a quiet of ring %d", t.ring.index)
	case t.state == polling, t.state == pollingHost:
		s := fmt.Sprintf("the proxy's progress in ring %d, which is %d", t.ring.index, t.ring.done)
		if t.due.Len() > 0 {
			s += fmt.Sprintf(" of %d", *t.due.Front())
		}
		return s
	}
	return ""
}

// Waits says what the CPU thread waits for.
func (t *verbsThread) Waits() string {
	switch t.state {
	case verbsWaiting:
		return "data"
	case verbsRoom:
		return fmt.Sprintf("a slot of queue %d", t.qp.ID())
	case verbsPolling:
		s := fmt.Sprintf("a CQE of queue %d", t.qp.ID())
		if t.due.Len() > 0 {
			s = fmt.Sprintf("the completion of WQE %d of queue %d", *t.due.Front()-1, t.qp.ID())
			if int32(*t.due.Front()-t.qp.Rung()) > 0 {
				s += ", for which no doorbell came"
			}
		}
		return s
	case verbsIdle, verbsPosting, verbsReaped, verbsObserved:
	}
	return ""
}

// Unread returns the rings whose descriptors no worker has read.
func (p *ProxyPath) Unread() []int {
	var out []int
	for i, r := range p.rings {
		if r.visible.Len() > 0 || r.requests.Len() > 0 {
			out = append(out, i)
		}
	}
	return out
}

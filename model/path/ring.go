package path

import (
	"gdisim/model/gpu"
	"gdisim/sim"
	"gdisim/stage"
)

// ring is a descriptor ring with its progress counter.
type ring struct {
	path     *ProxyPath
	worker   *worker
	index    int                  // among the worker's rings
	issued   uint32               // slots given to threads
	shown    uint32               // of them, filled without a gap
	order    sim.FIFO[descriptor] // from there on, where one was filled before those ahead of it
	taken    uint32               // descriptors that the worker has read
	visible  sim.FIFO[descriptor]
	requests sim.FIFO[request]
	done     uint32      // progress counter as the GPU may see it
	progress *hostWord   // that counter, if it lies in host memory
	answer   *hostWord   // where quiets are answered
	looks    *hostReader // at progress, of the warp that was added last,
	sm       *gpu.SM     // which is this
	warp     int
	last     sim.Cause
	polls    []*producer
	room     sim.FIFO[*producer] // waiting for a slot
}

// descriptor is a request as the worker sees it.
type descriptor struct {
	cause sim.Cause
	land  sim.Sink
	at    sim.Time  // when it became visible
	there bool      // its slot is filled
	plain bool      // background load
	quiet *producer // who waits for the answer, if it is no message
}

// issue gives the thread the next slot.
func (r *ring) issue(t *producer) {
	t.slot = r.issued
	r.issued++
}

// free is the number of slots that nobody has.
func (r *ring) free() int { return r.path.cfg.Depth - int(r.issued-r.done) }

type arrival struct{ *producer }

// Done is a descriptor visible in its slot.
func (a arrival) Done(slot uint32, c sim.Cause) {
	a.ring.fill(slot, descriptor{cause: c, land: a.land, plain: a.plain})
}

// fill puts a descriptor into its slot. The worker goes by the slots' order: it
// comes past one only once that is filled.
func (r *ring) fill(slot uint32, d descriptor) {
	ahead := int(slot - r.shown)
	if ahead == 0 && r.order.Len() == 0 {
		r.show(d)
		return
	}
	for r.order.Len() <= ahead {
		r.order.Push(descriptor{})
	}
	d.there = true
	*r.order.At(ahead) = d
	for r.order.Len() > 0 && r.order.Front().there {
		r.show(r.order.Pop())
	}
}

// show has the descriptor of the next slot before the worker.
func (r *ring) show(d descriptor) {
	r.shown++
	d.at = r.path.env.Eng.Now()
	if r.visible.Len() == r.path.cfg.Depth { // its slot holds a descriptor that nobody has read
		*r.visible.Front() = d
		r.path.env.find(r.path.node, stage.RingOverflow, stage.Occurred, r.index, "a descriptor overwrote one that the proxy had not read: that message is lost")
		return
	}
	r.visible.Push(d)
	r.worker.notice(r.index)
}

// Done is the progress counter, visible where the GPU polls it.
func (r *ring) Done(done uint32, c sim.Cause) {
	r.done, r.last = done, c
	for i := 0; i < len(r.polls); {
		t := r.polls[i]
		if int32(done-*t.due.Front()) < 0 {
			i++
			continue
		}
		r.polls = append(r.polls[:i], r.polls[i+1:]...)
		t.due.Pop()
		t.found(c)
	}
	for r.room.Len() > 0 && r.free() > 0 {
		t := r.room.Pop()
		t.granted = true
		r.issue(t)
		if t.state == pollingHost {
			t.hostArrived(c)
			continue
		}
		t.waited(stage.GPUReserve, c.Op)
		t.env.Eng.At(t.t, t.h, 0)
	}
}

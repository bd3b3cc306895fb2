package pcie

import "gdisim/sim"

// watcher wants to know when an access has left its unit.
type watcher struct {
	sink  sim.Sink
	arg   uint32
	next  uint32 // free list
	cause sim.Cause
}

func (f *Fabric) watcher(s sim.Sink, arg uint32) uint32 {
	id := f.unwatched
	if id == 0 {
		f.watchers = append(f.watchers, watcher{})
		id = uint32(len(f.watchers) - 1)
	} else {
		f.unwatched = f.watchers[id].next
	}
	f.watchers[id] = watcher{sink: s, arg: arg}
	return id
}

type departure struct{ *Fabric }

// Handle tells that an access is on its first link.
func (d departure) Handle(id uint32) {
	w := d.watchers[id]
	d.watchers[id] = watcher{next: d.unwatched}
	d.unwatched = id
	w.sink.Done(w.arg, w.cause)
}

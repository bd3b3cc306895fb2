package pcie

import "gdisim/sim"

// watcher wants to know when an access has left its unit.
type watcher struct {
	sink  sim.Sink
	arg   uint32
	cause sim.Cause
}

func (f *Fabric) watcher(s sim.Sink, arg uint32) uint32 {
	id := sim.Alloc(&f.watchers, &f.unwatched)
	f.watchers[id] = watcher{sink: s, arg: arg}
	return id
}

type departure struct{ *Fabric }

// Handle tells that an access is on its first link.
func (d departure) Handle(id uint32) {
	w := d.watchers[id]
	sim.Release(&d.watchers, &d.unwatched, id)
	w.sink.Done(w.arg, w.cause)
}

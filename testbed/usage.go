package testbed

import (
	"gdisim/result"
	"gdisim/sim"
	"gdisim/workload"
)

// usage is the state of all counters at one moment; costs are the difference of
// two, so that warm-up and draining are not in them.
type usage struct {
	at         sim.Time
	messages   uint64
	busy       sim.Duration
	workers    int          // CPU threads, each of which keeps a core while it does not sleep
	asleep     sim.Duration // of all of them
	doorbells  int
	wqeFetches int
	links      []result.Link
	linkBusy   []sim.Duration
}

func (m *machine) usage(run *workload.Run, fwd side) usage {
	u := usage{at: m.env.Eng.Now(), messages: run.Messages, doorbells: m.nics[0].Doorbells, wqeFetches: m.nics[0].WQEFetches}
	if fwd != nil { // a step has no path
		u.busy = fwd.busy()
		if x, ok := fwd.(interface{ Asleep() sim.Duration }); ok {
			u.asleep = x.Asleep()
		}
		if x, ok := fwd.(interface{ Workers() int }); ok {
			u.workers = x.Workers()
		}
	}
	add := func(name string, packets int, bytes int64, busy sim.Duration) {
		u.links = append(u.links, result.Link{Name: name, TLPs: packets, Bytes: bytes})
		u.linkBusy = append(u.linkBusy, busy)
	}
	for _, b := range m.buses {
		for _, t := range b.Traffic() {
			add(t.Name, t.TLPs, t.Bytes, t.Busy)
		}
	}
	for _, t := range m.net.Traffic() {
		add(t.Name, t.Packets, t.Bytes, t.Busy)
	}
	return u
}

// since returns the cost of what was done between from and u.
func (u *usage) since(from *usage) result.Cost {
	c := result.Cost{
		Window: u.at.Sub(from.at), Messages: int(u.messages - from.messages), CPUBusy: u.busy - from.busy,
		Doorbells: u.doorbells - from.doorbells, WQEFetches: u.wqeFetches - from.wqeFetches,
	}
	c.CPUCores = float64(u.workers)
	if c.Window > 0 {
		c.CPUCores -= float64(u.asleep-from.asleep) / float64(c.Window)
	}
	for i, l := range u.links {
		l.TLPs -= from.links[i].TLPs
		l.Bytes -= from.links[i].Bytes
		if c.Window > 0 {
			l.Busy = float64(u.linkBusy[i]-from.linkBusy[i]) / float64(c.Window)
		}
		c.Links = append(c.Links, l)
	}
	return c
}

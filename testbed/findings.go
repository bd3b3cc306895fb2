package testbed

import (
	"cmp"
	"fmt"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// findings gathers verdicts of a run, one per kind, grade and cause.
type findings struct{ list []result.Finding }

func (f *findings) add(at sim.Time, h stage.Hazard) {
	for i := range f.list {
		if x := &f.list[i]; x.Finding == h.Finding && x.Grade == h.Grade && x.Cause == h.Cause {
			x.Count++
			return
		}
	}
	f.list = append(f.list, result.Finding{
		Finding: h.Finding, Grade: h.Grade, Count: 1, First: at, Where: where(h), Cause: h.Cause, Avoid: cmp.Or(h.Avoid, h.Finding.Avoid()),
	})
}

// where names the operation: nothing is more specific than a possible finding's
// path.
func where(h stage.Hazard) string {
	switch {
	case h.Grade == stage.Possible || h.Queue < 0:
		return ""
	case h.Index < 0:
		return fmt.Sprintf("queue %d, node %d", h.Queue, h.Node)
	}
	return fmt.Sprintf("entry %d of queue %d, node %d", h.Index, h.Queue, h.Node)
}

// into adds the run's findings to those of the path's runs before it.
func (f *findings) into(all []result.Finding) []result.Finding {
	for _, x := range f.list {
		known := false
		for i := range all {
			if a := &all[i]; a.Finding == x.Finding && a.Grade == x.Grade && a.Cause == x.Cause {
				a.Count += x.Count
				known = true
				break
			}
		}
		if !known {
			all = append(all, x)
		}
	}
	return all
}

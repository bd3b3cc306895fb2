package testbed

import (
	"fmt"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// feedTrace gives a sink the operations that rec holds, one after the other.
func feedTrace(sink result.TraceSink, rec *sim.Recorder) {
	records := rec.Records()
	for i := range records {
		x := &records[i]
		for j, s := range x.Spans {
			sink.Span(result.TraceSpan{
				Op: i + 1, Begin: x.Begin, Index: j, Pred: int(s.Pred) - 1,
				Stage: stage.Stage(s.Stage), Wait: stage.Stage(s.Wait), Lane: stage.Lane(s.Lane), Node: int(s.Node),
				Arrival: s.Arrival, Start: s.Start, End: s.End, Blocker: blockerName(rec, s.Blocker),
			})
		}
	}
}

// watchCredits lets a sink count the free credits of every PCIe link.
func (m *machine) watchCredits(sink result.TraceSink) {
	for node, b := range m.buses {
		b.Watch = func(link, class string, free int) {
			sink.Counter(result.TraceCounter{Node: node, Name: link + " " + class + " credits", At: m.env.Eng.Now(), Value: float64(free)})
		}
	}
}

// blockerName names who held a span, "" for nobody.
func blockerName(rec *sim.Recorder, op sim.Op) string {
	if op > 0 {
		return fmt.Sprintf("operation %d", op)
	}
	if op < 0 {
		return rec.OwnerName(op)
	}
	return ""
}

package testbed

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// collector checks the contract of result.TraceSink.
type collector struct {
	t     *testing.T
	op    int
	begin sim.Time
	next  int
	spans int
	ends  []sim.Time
	marks map[stage.Stage]int
	at    sim.Time // of the last counter
	taken int      // times that a link had fewer credits than at first
}

func (c *collector) Span(s result.TraceSpan) {
	if s.Op != c.op {
		if s.Op != c.op+1 || s.Begin < c.begin {
			c.t.Errorf("operation %d from %v after %d from %v", s.Op, s.Begin, c.op, c.begin)
		}
		c.op, c.begin, c.next, c.ends = s.Op, s.Begin, 0, c.ends[:0]
	}
	arrival := s.Begin
	if s.Pred >= 0 && s.Pred < len(c.ends) {
		arrival = c.ends[s.Pred]
	}
	if s.Index != c.next || s.Pred >= s.Index || s.Arrival != arrival || s.Start < s.Arrival || s.End < s.Start || s.Begin != c.begin {
		c.t.Errorf("span %+v", s)
	}
	c.next++
	c.spans++
	c.ends = append(c.ends, s.End)
	c.marks[s.Stage]++
}

func (c *collector) Counter(x result.TraceCounter) {
	if !strings.HasSuffix(x.Name, " credits") || x.Value < 0 || x.At < c.at {
		c.t.Errorf("counter %+v after %v", x, c.at)
	}
	c.at = x.At
	if x.Value == 511 { // of 512 in this profile
		c.taken++
	}
}

// TestTrace runs an example and looks at what its sinks are told.
func TestTrace(t *testing.T) {
	s, err := scenarios.LoadExample("gda-vs-proxy")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply([]string{"workload.iterations=20", "workload.warmup=2"}); err != nil {
		t.Fatal(err)
	}
	sinks := map[string]*collector{}
	o := Options{Breakdown: true, Workers: 1, Trace: func(point int, path, pass string) result.TraceSink {
		c := &collector{t: t, marks: map[stage.Stage]int{}}
		sinks[fmt.Sprint(point, path, pass)] = c
		return c
	}}
	if _, err := Run(context.Background(), s, o); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Paths {
		for _, pass := range []string{"put", "ping-pong"} {
			c := sinks["0"+p.Name+pass]
			if c == nil || c.op < 20 || c.marks[stage.NICTx] < 20 || c.marks[stage.PCIeDoorbell] < 20 || c.taken < 20 {
				t.Errorf("%s, %s: %+v", p.Name, pass, c)
			}
		}
	}
}

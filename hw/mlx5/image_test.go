//go:build cgo && linux

package mlx5

import (
	"strings"
	"testing"
)

// The poster as a CPU thread, the NIC as another.
func TestImageOnCPU(t *testing.T) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			o, err := c.OnCPU()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Verify(o); err != nil {
				t.Errorf("%v (%+v)", err, o.Report)
			}
			switch {
			case c.EarlyDoorbell && (o.Fault != StaleControl || o.Message != 0 || o.Why != WCError || o.Syndrome != LocalQPOp):
				t.Errorf("%v; %+v", o, o.Report)
			case c.NoRoom && o.Fault != QueueOverrun:
				t.Errorf("%v; %+v", o, o.Report)
			}
		})
	}
}

func TestProgramsThatNeverEnd(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		change     func(*Case)
	}{
		{"window", "would never come", func(c *Case) { c.Window, c.SignalEvery = 3, 4 }},
		{"chain", "WQEBBs, want at least", func(c *Case) { c.Chain, c.Window = 65, 65 }},
		{"depth", "powers of two", func(c *Case) { c.Depth = 48 }},
		{"deep", "powers of two", func(c *Case) { c.Depth = 65536 }},
		{"shapes", "shapes", func(c *Case) { c.Shapes = nil }},
		{"opcode", "opcode", func(c *Case) { c.Shapes[0].Op = 0x10 }},
		{"empty", "message of 0 B", func(c *Case) { c.Shapes[0].Bytes = 0 }},
		{"inline", "message of 973 B", func(c *Case) { c.Shapes[0].Bytes = 973 }},
		{"budget", "must be positive", func(c *Case) { c.Budget = 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Cases()[0]
			tt.change(&c)
			if _, err := c.OnCPU(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

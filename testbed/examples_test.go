package testbed_test

import (
	"context"
	"fmt"
	"testing"

	"gdisim/check"
	"gdisim/scenarios"
	"gdisim/testbed"
)

// TestExamplesHold runs the embedded examples that say what must come out.
func TestExamplesHold(t *testing.T) {
	for _, in := range scenarios.Examples() {
		src, err := scenarios.ReadExample(in.Name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenarios.Parse(in.Name+".yaml", src)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Expect) == 0 {
			continue
		}
		t.Run(in.Name, func(t *testing.T) {
			r, err := testbed.Run(context.Background(), s, testbed.Options{Breakdown: check.NeedsBreakdown(s)})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range check.Run(s, r) {
				if v.Failed() {
					t.Errorf("%s:%d: %s", in.Name, v.Line, fmt.Sprintf("%+v", v))
				}
			}
		})
	}
}

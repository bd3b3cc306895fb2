package cli

import (
	"context"
	"testing"

	"gdisim/check"
	"gdisim/scenarios"
	"gdisim/testbed"
)

// TestExamplesHold: an example that says what must come out is held to it.
func TestExamplesHold(t *testing.T) {
	held := 0
	for _, e := range scenarios.Examples() {
		s, err := scenarios.LoadExample(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Expect) == 0 {
			continue
		}
		held++
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			r, err := testbed.Run(context.Background(), s, testbed.Options{Breakdown: check.NeedsBreakdown(s)})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range check.Run(s, r) {
				if v.Failed() {
					t.Errorf("line %d: %s %v: expected %s, got %s", v.Line, v.Subject, v.At, v.Want, v.Got)
				}
			}
		})
	}
	if held == 0 {
		t.Error("no example expects anything")
	}
}

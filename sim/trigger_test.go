package sim

import (
	"math/rand/v2"
	"testing"
)

// TestTrigger: chances count while the trigger is open, struck or not.
func TestTrigger(t *testing.T) {
	for _, tt := range []struct {
		name            string
		trigger         Trigger
		struck, chances int
	}{
		{"all", Trigger{Rate: 1}, 10, 10},
		{"none drawn", Trigger{Rate: 0}, 0, 10},
		{"so many", Trigger{Rate: 1, Count: 3}, 3, 3},
		{"from", Trigger{Rate: 1, From: 7}, 3, 3},
		{"a window", Trigger{Rate: 1, From: 2, Until: 4}, 2, 2},
		{"too late", Trigger{Rate: 1, From: 10}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := tt.trigger
			x.Rand = rand.New(rand.NewPCG(1, 0))
			n := 0
			for now := range Time(10) {
				if x.Strikes(now) {
					n++
				}
			}
			if n != tt.struck || x.Struck != tt.struck || x.Chances != tt.chances {
				t.Errorf("struck %d and counted %d in %d chances, want %d in %d", n, x.Struck, x.Chances, tt.struck, tt.chances)
			}
		})
	}
}

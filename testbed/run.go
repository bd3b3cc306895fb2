package testbed

import (
	"context"
	"errors"

	"gdisim/result"
	"gdisim/scenarios"
)

// Options say how a scenario is run.
type Options struct {
	Breakdown bool                  // record spans
	Workers   int                   // points at the same time; 0: all cores
	Progress  func(done, total int) // may be nil
}

// Run is not written yet.
func Run(_ context.Context, _ *scenarios.Scenario, _ Options) (*result.Result, error) {
	return nil, errors.New("testbed: not available yet")
}

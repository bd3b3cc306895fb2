package testbed

import (
	"errors"

	"gdisim/result"
	"gdisim/stage"
)

// blocked says why NIC and GPU cannot reach each other as a path needs it, and
// what to want instead. Other paths of the scenario may still run.
type blocked string

func (b blocked) Error() string { return string(b) }

// refuse turns a path that the platform blocks into its result; other errors
// stay errors of the scenario.
func (r *runner) refuse(err error) (result.Path, error) {
	var b blocked
	if !errors.As(err, &b) {
		return r.out, err
	}
	var find findings
	find.add(0, stage.Hazard{Finding: stage.P2PBlocked, Grade: stage.Occurred, Queue: -1, Cause: string(b)})
	r.out.Findings = find.into(r.out.Findings)
	r.out.Err = "refused: " + string(b)
	return r.finish(), nil
}

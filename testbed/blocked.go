package testbed

import (
	"errors"
	"fmt"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/stage"
)

// blocked says why NIC and GPU cannot reach each other as a path needs it, and
// what to want instead. Other paths of the scenario may still run.
type blocked string

func (b blocked) Error() string { return string(b) }

// block keeps the first reason, until all that the scenario combines is checked.
func (p *plan) block(why blocked) {
	if p.blocked == "" {
		p.blocked = why
	}
}

// refuse is a combination of keys that no machine could run; what names no key,
// and ends in what is wanted.
func refuse(key, what string, args ...any) error {
	return &scenarios.Refusal{Key: key, What: fmt.Sprintf(what, args...)}
}

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

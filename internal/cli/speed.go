package cli

import (
	"fmt"
	"strconv"
	"time"

	"gdisim/result"
)

// speedLine is the simulator's own speed. Without a measure of processor time
// the rates are by the clock on the wall.
func speedLine(r *result.Result, wall, cpu time.Duration) string {
	per, base := "CPU-s", cpu
	s := fmt.Sprintf("simulated %s messages, %s events in %.2f s", metric(float64(r.Messages)), metric(float64(r.Events)), wall.Seconds())
	if cpu > 0 {
		s += fmt.Sprintf(" (%.2f s CPU)", cpu.Seconds())
	} else {
		per, base = "s", wall
	}
	if base <= 0 {
		return s
	}
	rate := func(n uint64) string { return metric(float64(n) / base.Seconds()) }
	return s + fmt.Sprintf(": %s messages/%s, %s events/%s", rate(r.Messages), per, rate(r.Events), per)
}

// metric writes v in two or three digits with k, M or G.
func metric(v float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, u
	}
	if unit != "" && v < 9.95 {
		return strconv.FormatFloat(v, 'f', 1, 64) + unit
	}
	return strconv.FormatFloat(v, 'f', 0, 64) + unit
}

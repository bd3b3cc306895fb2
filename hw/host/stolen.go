package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"gdisim/result"
	"gdisim/sim"
)

// stolen is the time since boot that the hypervisor gave to others while a core
// wanted to run, per second of core time.
func stolen() result.Measured {
	m := result.Measured{Name: "stolen-per-second", Method: "steal column of /proc/stat since boot, over all core time"}
	text, err := os.ReadFile("/proc/stat")
	if err == nil {
		var share float64
		if share, err = stealShare(string(text)); err == nil {
			d := sim.Duration(share * float64(sim.Second))
			return result.Measure(m.Name, m.Method, 0, []sim.Duration{d})
		}
	}
	m.Err = err.Error()
	return m
}

// stealShare reads the first line of /proc/stat: user, nice, system, idle,
// iowait, irq, softirq, steal, in ticks.
func stealShare(text string) (float64, error) {
	first, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(first)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat: first line %q has no steal time", first)
	}
	var all, steal float64
	for i, s := range f[1:9] {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		all += float64(v)
		if i == 7 {
			steal = float64(v)
		}
	}
	if all == 0 {
		return 0, fmt.Errorf("/proc/stat: no time has passed")
	}
	return steal / all, nil
}

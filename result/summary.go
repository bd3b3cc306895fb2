package result

import (
	"slices"

	"gdisim/sim"
)

// Summarise returns the quantiles of the samples by nearest rank, and their
// mean, rounded down. The caller names the metric; the samples keep their
// order. No samples give the zero Metric.
func Summarise(samples []sim.Duration) Metric {
	n := len(samples)
	if n == 0 {
		return Metric{}
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	// Quotients and remainders apart: a plain sum of long times may not fit.
	var quo, rem sim.Duration
	for _, d := range s {
		quo += d / sim.Duration(n)
		rem += d % sim.Duration(n)
	}
	m := Metric{
		N: n, Min: s[0], P50: s[Rank(n, 500)], P99: s[Rank(n, 990)], P999: s[Rank(n, 999)], Max: s[n-1],
		Mean: quo + rem/sim.Duration(n),
	}
	if n > 1 {
		for _, ppm := range Levels() {
			m.Quantiles = append(m.Quantiles, s[rank(n, ppm, 1e6)])
		}
	}
	return m
}

// Levels returns the levels of Metric.Quantiles in millionths, ascending: the
// whole percents, and finer ones in the tail, where a distribution is told
// from another.
func Levels() []int {
	var out []int
	for p := 0; p <= 99; p++ {
		out = append(out, p*10_000)
	}
	for p := 991; p <= 999; p++ {
		out = append(out, p*1000)
	}
	return append(out, 999_500, 999_900, 999_990, 1_000_000)
}

// Rank returns the index of a quantile by nearest rank in n sorted samples:
// the smallest sample such that at least permille/1000 of all are not larger.
//
// Preconditions: n > 0, 0 <= permille <= 1000.
func Rank(n, permille int) int { return rank(n, permille, 1000) }

func rank(n, part, whole int) int { return max((n*part+whole-1)/whole, 1) - 1 }

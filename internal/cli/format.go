package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// micro writes d in microseconds, with fewer decimals where they say nothing.
func micro(d sim.Duration) string {
	if d >= 10*sim.Millisecond {
		return fixed(int64(d), int64(sim.Microsecond), 1)
	}
	return fixed(int64(d), int64(sim.Microsecond), 3)
}

// fixed writes n/unit with that many decimals, rounded half up, in integers.
//
// Preconditions: n >= 0, and unit is a multiple of 10^decimals.
func fixed(n, unit int64, decimals int) string {
	scale := int64(1)
	for range decimals {
		scale *= 10
	}
	q := unit / scale
	n = (n + q/2) / q
	if decimals == 0 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%d.%0*d", n/scale, decimals, n%scale)
}

// number writes v with about four digits.
func number(v float64) string {
	switch {
	case v == float64(int64(v)) && v < 1e15:
		return strconv.FormatInt(int64(v), 10)
	case v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// quanta rounds parts to whole quanta so that they still sum to the rounded
// total: each goes down, and the largest remainders take what is left.
//
// Preconditions: parts are not negative and sum to about total; quantum > 0.
func quanta(parts []int64, total, quantum int64) []int64 {
	out := make([]int64, len(parts))
	order := make([]int, len(parts))
	left := (total + quantum/2) / quantum
	for i, p := range parts {
		out[i] = p / quantum
		left -= out[i]
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(parts[b]%quantum, parts[a]%quantum) })
	for i := 0; i < len(order) && int64(i) < left; i++ {
		out[order[i]]++
	}
	return out
}

// scale is the unit of a breakdown's times.
type scale struct {
	unit     string
	ps       int64
	decimals int
}

func scaleOf(total sim.Duration) scale {
	if total < 100*sim.Microsecond {
		return scale{"ns", int64(sim.Nanosecond), 1}
	}
	return scale{"us", int64(sim.Microsecond), 3}
}

// column writes times that sum to total so that what is printed sums as well;
// the last string is the total.
func (s scale) column(times []sim.Duration, total sim.Duration) []string {
	quantum := s.ps
	for range s.decimals {
		quantum /= 10
	}
	parts := make([]int64, len(times))
	for i, t := range times {
		parts[i] = int64(t)
	}
	out := make([]string, 0, len(times)+1)
	for _, q := range quanta(parts, int64(total), quantum) {
		out = append(out, fixed(q*quantum, s.ps, s.decimals))
	}
	return append(out, s.time(total))
}

func (s scale) time(d sim.Duration) string { return fixed(int64(d), s.ps, s.decimals) }

// shares writes each time's part of total in percent, summing to 100.0.
func shares(times []sim.Duration, total sim.Duration) []string {
	out := make([]string, len(times))
	if total == 0 {
		return out
	}
	parts := make([]int64, len(times))
	for i, t := range times {
		parts[i] = int64(t) * 1000
	}
	for i, q := range quanta(parts, int64(total)*1000, int64(total)) {
		out[i] = fixed(q, 10, 1) + " %"
	}
	return out
}

// bar draws n of most in at most width cells; what is not 0 can be seen.
func bar(n, most sim.Duration, width int, ascii bool) string {
	if n <= 0 || most <= 0 {
		return ""
	}
	part := float64(n) / float64(most) * float64(width)
	if ascii {
		return strings.Repeat("#", max(1, int(part+0.5)))
	}
	eighths := max(1, int(part*8+0.5))
	s := strings.Repeat("█", eighths/8)
	if r := eighths % 8; r > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[r-1])
	}
	return s
}

// stageName marks the nodes that did not initiate.
func stageName(s stage.Stage, node int) string {
	if node == 0 {
		return s.String()
	}
	return s.String() + "@" + strconv.Itoa(node)
}

// settings writes a point's place in the sweep, keys in short.
func settings(at []result.Setting) string {
	keys := make([]string, len(at))
	for i, s := range at {
		keys[i] = s.Key
	}
	short := shortKeys(keys)
	parts := make([]string, len(at))
	for i, s := range at {
		parts[i] = short[i] + "=" + s.Value
	}
	return strings.Join(parts, " ")
}

// shortKeys cuts dotted keys from the left as long as they differ.
func shortKeys(keys []string) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		parts := strings.Split(k, ".")
		for n := 1; n <= len(parts); n++ {
			out[i] = strings.Join(parts[len(parts)-n:], ".")
			clash := func(o string) bool { return o != k && (o == out[i] || strings.HasSuffix(o, "."+out[i])) }
			if !slices.ContainsFunc(keys, clash) {
				break
			}
		}
	}
	return out
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

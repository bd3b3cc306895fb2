package sim

import (
	"strconv"
	"strings"
)

// Time is a moment of simulated time: picoseconds since the start of the run.
type Time int64

// Duration is a length of simulated time in picoseconds.
type Duration int64

// Units of Duration.
const (
	Picosecond  Duration = 1
	Nanosecond           = 1000 * Picosecond
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
)

// Add returns t+d.
func (t Time) Add(d Duration) Time { return t + Time(d) }

// Sub returns t-u.
func (t Time) Sub(u Time) Duration { return Duration(t - u) }

// String returns t as the time since the start of the run.
func (t Time) String() string { return Duration(t).String() }

var units = [...]struct {
	size Duration
	name string
}{{Second, "s"}, {Millisecond, "ms"}, {Microsecond, "us"}, {Nanosecond, "ns"}, {Picosecond, "ps"}}

// String returns d exactly, in the largest unit of ps, ns, us, ms and s that is
// not above it: "1.5us". Zero is "0s".
func (d Duration) String() string {
	if d == 0 {
		return "0s"
	}
	sign, abs := "", uint64(d)
	if d < 0 {
		sign, abs = "-", -abs
	}
	for _, u := range units {
		size := uint64(u.size)
		if abs < size {
			continue
		}
		s := sign + strconv.FormatUint(abs/size, 10)
		if rest := abs % size; rest != 0 {
			// size+rest prints as a 1 followed by the zero-padded fraction.
			s += "." + strings.TrimRight(strconv.FormatUint(size+rest, 10)[1:], "0")
		}
		return s + u.name
	}
	panic("sim: no unit below one picosecond")
}

// Seconds returns d in seconds.
func (d Duration) Seconds() float64 { return float64(d) / float64(Second) }

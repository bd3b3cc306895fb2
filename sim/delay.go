package sim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Delay is a duration or a distribution of durations. The zero Delay is 0.
// Delays can be compared with ==.
type Delay struct {
	shape shape
	shift Duration // added to what the shape gives; a fixed delay's value
	a, b  float64  // the shape's parameters
	pool  *[]Duration
}

type shape uint8

const (
	fixed       shape = iota
	uniform           // from a to b
	exponential       // mean a
	lognormal         // mean a and deviation b of the logarithm
	normal            // mean a, deviation b
	empirical         // one of pool
)

// z99 is the standard normal distribution's 99th percentile.
const z99 = 2.3263478740408408

// Fixed returns the delay that is always d.
func Fixed(d Duration) Delay { return Delay{shift: d} }

// Uniform returns a delay of any picosecond from lo to hi, both included, with
// the same probability.
func Uniform(lo, hi Duration) Delay {
	if lo >= hi {
		return Fixed(lo)
	}
	return Delay{shape: uniform, shift: lo, b: float64(hi - lo)}
}

// Exponential returns an exponentially distributed delay.
func Exponential(mean Duration) Delay { return Delay{shape: exponential, a: float64(mean)} }

// Lognormal returns the lognormal delay with this median and 99th percentile.
// It is an error if the median is not above 0 or above the percentile.
func Lognormal(median, p99 Duration) (Delay, error) {
	if median <= 0 {
		return Delay{}, fmt.Errorf("lognormal median %v is not above 0", median)
	}
	if p99 < median {
		return Delay{}, fmt.Errorf("lognormal p99 %v is below the median %v", p99, median)
	}
	mu := math.Log(float64(median))
	return Delay{shape: lognormal, a: mu, b: (math.Log(float64(p99)) - mu) / z99}, nil
}

// Normal returns a normally distributed delay with what lies below 0 cut to 0.
// mean and sd are those before the cut.
func Normal(mean, sd Duration) Delay {
	return Delay{shape: normal, a: float64(mean), b: float64(sd)}
}

// Empirical returns a delay that is one of samples, each with the same
// probability. It is an error if there is none or if one is negative.
func Empirical(samples []Duration) (Delay, error) {
	if len(samples) == 0 {
		return Delay{}, errors.New("empirical distribution without samples")
	}
	if low := slices.Min(samples); low < 0 {
		return Delay{}, fmt.Errorf("empirical distribution with negative sample %v", low)
	}
	pool := slices.Clone(samples)
	return Delay{shape: empirical, pool: &pool}, nil
}

// Draw returns one duration, never below 0. A fixed delay takes nothing from r,
// which may then be nil.
func (d Delay) Draw(r *rand.Rand) Duration {
	v := d.shift
	switch d.shape {
	case uniform:
		v += Duration(r.Int64N(int64(d.b) + 1))
	case exponential:
		v += round(d.a * r.ExpFloat64())
	case lognormal:
		v += round(math.Exp(d.a + d.b*r.NormFloat64()))
	case normal:
		v += max(0, round(d.a+d.b*r.NormFloat64()))
	case empirical:
		v += (*d.pool)[r.IntN(len(*d.pool))]
	}
	return max(0, v)
}

// round returns the nearest picosecond, with an outlier cut to about 26 days.
func round(ps float64) Duration { return Duration(math.Round(min(ps, 1<<61))) }

// IsFixed reports whether Draw always returns the same.
func (d Delay) IsFixed() bool { return d.shape == fixed }

// Mean returns the expected value.
func (d Delay) Mean() Duration {
	m := 0.0
	switch d.shape {
	case uniform:
		m = d.b / 2
	case exponential:
		m = d.a
	case lognormal:
		m = math.Exp(d.a + d.b*d.b/2)
	case normal:
		m = max(0, d.a)
		if d.b > 0 {
			z := d.a / d.b
			m = d.a*math.Erfc(-z/math.Sqrt2)/2 + d.b*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
		}
	case empirical:
		for _, s := range *d.pool {
			m += float64(s) / float64(len(*d.pool))
		}
	}
	return max(0, d.shift+round(m))
}

// Plus returns the delay that is longer by extra, which must not be negative.
func (d Delay) Plus(extra Duration) Delay {
	d.shift += extra
	return d
}

// String returns a short description with units, such as "1.2us" or
// "lognormal(median 1.2us, p99 4us)".
func (d Delay) String() string {
	var s string
	switch d.shape {
	case fixed:
		return d.shift.String()
	case uniform:
		return fmt.Sprintf("uniform(%v to %v)", d.shift, d.shift+round(d.b))
	case exponential:
		s = fmt.Sprintf("exponential(mean %v)", round(d.a))
	case lognormal:
		s = fmt.Sprintf("lognormal(median %v, p99 %v)", round(math.Exp(d.a)), round(math.Exp(d.a+d.b*z99)))
	case normal:
		s = fmt.Sprintf("normal(mean %v, sd %v)", round(d.a), round(d.b))
	case empirical:
		s = fmt.Sprintf("empirical(%d samples, mean %v)", len(*d.pool), Delay{shape: empirical, pool: d.pool}.Mean())
	}
	if d.shift != 0 {
		s += " + " + d.shift.String()
	}
	return s
}

// Identity is the distribution in full: equal texts are equal distributions.
func (d Delay) Identity() string {
	var pool []Duration
	if d.pool != nil {
		pool = *d.pool
	}
	return fmt.Sprint(d.shape, int64(d.shift), d.a, d.b, pool)
}

package sim

import (
	"math"
	"slices"
	"testing"
)

// The values of the streams are part of what "the same seed, the same bytes"
// promises, so they must not change.
func TestStreamsGolden(t *testing.T) {
	tests := []struct {
		seed, point uint64
		name        string
		want        [3]uint64
	}{
		{0, 0, "", [3]uint64{0xd9b91a13f454c481, 0xc2d9f3d0d0318c96, 0xe09f09b38ce40666}},
		{1, 0, "cpu.proxy", [3]uint64{0x8333e9626e1b6b3b, 0x1aed4c3305b26f67, 0x27a7724547cf8c65}},
		{1, 1, "cpu.proxy", [3]uint64{0x5a7111bb89a1f48d, 0x7f295bded60a3535, 0x523f817bbc7f121e}},
		{1, 0, "cpu.proxy2", [3]uint64{0xdf970b1b5df5e758, 0x48498a5c43d2156c, 0xe01fd0f49a95df56}},
		{0, 1, "cpu.proxy", [3]uint64{0x5bce17c99d8fdea1, 0xbaa6dd12006a818f, 0x86e6fa1b48345206}},
	}
	seen := map[uint64]bool{}
	for _, tt := range tests {
		r := NewStreams(tt.seed, tt.point).Stream(tt.name)
		got := [3]uint64{r.Uint64(), r.Uint64(), r.Uint64()}
		if got != tt.want {
			t.Errorf("stream (%d, %d, %q) gives %#x, want %#x", tt.seed, tt.point, tt.name, got, tt.want)
		}
		if seen[got[0]] {
			t.Errorf("stream (%d, %d, %q) is another's", tt.seed, tt.point, tt.name)
		}
		seen[got[0]] = true
	}
}

func TestDelays(t *testing.T) {
	lognormal, err := Lognormal(1200*Nanosecond, 4*Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	empirical, err := Empirical([]Duration{30, 10, 20, 40})
	if err != nil {
		t.Fatal(err)
	}
	us := Microsecond
	tests := []struct {
		delay              Delay
		text               string
		mean, median, tail Duration // tail: the 99th percentile
		lowest, highest    Duration
		fixed              bool
	}{
		{delay: Delay{}, text: "0s", fixed: true},
		{delay: Fixed(250 * Nanosecond), text: "250ns", mean: us / 4, median: us / 4, tail: us / 4, lowest: us / 4, highest: us / 4, fixed: true},
		{delay: Uniform(us, 3*us), text: "uniform(1us to 3us)", mean: 2 * us, median: 2 * us, tail: 2980 * Nanosecond, lowest: us, highest: 3 * us},
		{delay: Uniform(7, 8), text: "uniform(7ps to 8ps)", mean: 8, median: 8, tail: 8, lowest: 7, highest: 8},
		{delay: Uniform(5, 5), text: "5ps", mean: 5, median: 5, tail: 5, lowest: 5, highest: 5, fixed: true},
		{delay: Exponential(us), text: "exponential(mean 1us)", mean: us, median: 693147, tail: 4605170, highest: 40 * us},
		{delay: lognormal, text: "lognormal(median 1.2us, p99 4us)", mean: 1371965, median: 1200000, tail: 4 * us, highest: 100 * us},
		{delay: Normal(us, us), text: "normal(mean 1us, sd 1us)", mean: 1083315, median: us, tail: 3326348, highest: 10 * us},
		{delay: Normal(us, 0), text: "normal(mean 1us, sd 0s)", mean: us, median: us, tail: us, lowest: us, highest: us},
		{delay: empirical, text: "empirical(4 samples, mean 25ps)", mean: 25, median: 20, tail: 40, lowest: 10, highest: 40},
		{delay: Exponential(us).Plus(2 * us), text: "exponential(mean 1us) + 2us", mean: 3 * us, median: 2693147, tail: 6605170, lowest: 2 * us, highest: 40 * us},
		{delay: Fixed(us).Plus(us / 2), text: "1.5us", mean: 3 * us / 2, median: 3 * us / 2, tail: 3 * us / 2, lowest: 3 * us / 2, highest: 3 * us / 2, fixed: true},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			if got := tt.delay.String(); got != tt.text {
				t.Errorf("String = %q", got)
			}
			if got := tt.delay.IsFixed(); got != tt.fixed {
				t.Errorf("IsFixed = %v", got)
			}
			if got := tt.delay.Mean(); got != tt.mean {
				t.Errorf("Mean = %d, want %d", got, tt.mean)
			}
			const n = 200_000
			r := NewStreams(7, 0).Stream(tt.text)
			draws := make([]Duration, n)
			sum := 0.0
			for i := range draws {
				draws[i] = tt.delay.Draw(r)
				sum += float64(draws[i])
			}
			slices.Sort(draws)
			if draws[0] < tt.lowest || draws[n-1] > tt.highest {
				t.Errorf("draws from %v to %v, want %v to %v", draws[0], draws[n-1], tt.lowest, tt.highest)
			}
			near(t, "mean", sum/n, float64(tt.mean), 0.01)
			near(t, "median", float64(draws[n/2]), float64(tt.median), 0.02)
			near(t, "p99", float64(draws[n*99/100]), float64(tt.tail), 0.03)
		})
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want+0.51 { // means are rounded
		t.Errorf("%s of the draws = %g, want %g", what, got, want)
	}
}

func TestFixedDelayTakesNothingFromTheStream(t *testing.T) {
	if got := Fixed(5).Draw(nil); got != 5 {
		t.Errorf("Draw = %d, want 5", got)
	}
	if got := Fixed(-5).Draw(nil); got != 0 {
		t.Errorf("Draw of a negative delay = %d, want 0", got)
	}
}

func TestDelayOutliersFitTheClock(t *testing.T) {
	d := Exponential(math.MaxInt64 / 2)
	r := NewStreams(1, 0).Stream("far")
	for range 1000 {
		if got := d.Draw(r); got < 0 || got > 1<<61 {
			t.Fatalf("Draw = %d", got)
		}
	}
}

func TestDelayErrors(t *testing.T) {
	tests := []struct {
		name string
		f    func() (Delay, error)
		want string
	}{
		{"no median", func() (Delay, error) { return Lognormal(0, 5) }, "lognormal median 0s is not above 0"},
		{"tail below", func() (Delay, error) { return Lognormal(2*Nanosecond, 1500) }, "lognormal p99 1.5ns is below the median 2ns"},
		{"no samples", func() (Delay, error) { return Empirical(nil) }, "empirical distribution without samples"},
		{"negative", func() (Delay, error) { return Empirical([]Duration{3, -1000}) }, "empirical distribution with negative sample -1ns"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d, err := tt.f(); err == nil || err.Error() != tt.want || d != (Delay{}) {
				t.Errorf("got %v, error %v, want error %q", d, err, tt.want)
			}
		})
	}
}

// A caller may change its samples later.
func TestEmpiricalKeepsItsSamples(t *testing.T) {
	s := []Duration{10}
	d, err := Empirical(s)
	s[0] = 99
	if err != nil || d.Mean() != 10 {
		t.Errorf("mean %v, error %v", d.Mean(), err)
	}
}

func TestDurationString(t *testing.T) {
	tests := []struct {
		d    Duration
		want string
	}{
		{0, "0s"},
		{1, "1ps"},
		{999, "999ps"},
		{1000, "1ns"},
		{1050, "1.05ns"},
		{-1500, "-1.5ns"},
		{1234567, "1.234567us"},
		{10 * Microsecond, "10us"},
		{Millisecond + 1, "1.000000001ms"},
		{90 * Second, "90s"},
		{math.MinInt64, "-9223372.036854775808s"},
		{math.MaxInt64, "9223372.036854775807s"},
	}
	for _, tt := range tests {
		if got := tt.d.String(); got != tt.want {
			t.Errorf("%d ps = %q, want %q", int64(tt.d), got, tt.want)
		}
		if got := Time(tt.d).String(); got != tt.want {
			t.Errorf("time %d ps = %q, want %q", int64(tt.d), got, tt.want)
		}
	}
}

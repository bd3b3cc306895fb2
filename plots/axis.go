package plots

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gdisim/sim"
)

// form is how an axis maps values.
type form uint8

const (
	linear form = iota
	logarithmic
	tail // of a probability p: -log10(1-p)
)

// tick is a mark on an axis; without a label it is a minor one.
type tick struct {
	at    float64
	label string
}

// axis maps values from lo to hi to a fraction of its length.
type axis struct {
	title  string
	form   form
	lo, hi float64
	ticks  []tick
}

func (a *axis) warp(v float64) float64 {
	switch a.form {
	case logarithmic:
		return math.Log(max(v, math.SmallestNonzeroFloat64))
	case tail:
		return -math.Log10(max(1-v, 1e-12))
	}
	return v
}

// at returns where v lies, from 0 to 1 where it is inside.
func (a *axis) at(v float64) float64 {
	lo, hi := a.warp(a.lo), a.warp(a.hi)
	if hi <= lo {
		return 0.5
	}
	return (a.warp(v) - lo) / (hi - lo)
}

// steps returns the multiples of a round step from lo to hi, about n of them.
func steps(lo, hi float64, n int) (at []float64, step float64) {
	if hi <= lo || n < 1 {
		return []float64{lo}, 1
	}
	raw := (hi - lo) / float64(n)
	mag := math.Pow(10, math.Floor(math.Log10(raw)))
	step = 10 * mag
	for _, m := range []float64{1, 2, 5} {
		if m*mag >= raw*0.999 {
			step = m * mag
			break
		}
	}
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi*(1+1e-12)+1e-12; i++ {
		at = append(at, i*step+0) // +0: no negative zero
	}
	return at, step
}

// linearAxis spans 0 or lo to hi with round ticks.
func linearAxis(title string, lo, hi float64, n int) axis {
	if hi <= lo {
		hi = lo + 1
	}
	a := axis{title: title, lo: lo, hi: hi}
	at, step := steps(lo, hi, n)
	for _, v := range at {
		a.ticks = append(a.ticks, tick{v, plain(v, step)})
	}
	return a
}

// plain writes v with the decimals that step needs, and thousands apart.
func plain(v, step float64) string {
	d := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	s := strconv.FormatFloat(v, 'f', d, 64)
	whole, rest, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + space + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole
}

// logAxis spans lo to hi with ticks at 1, 2 and 5, or at the powers of ten
// alone where those suffice. Its ends are the ticks around the data.
func logAxis(title string, lo, hi float64, label func(float64) string) axis {
	if lo <= 0 {
		lo = hi / 1e6
	}
	if lo <= 0 {
		lo, hi = 0.1, 10
	}
	if hi < lo*1.3 {
		lo, hi = lo/1.3, hi*1.3
	}
	a := axis{title: title, form: logarithmic, lo: lo * 0.93, hi: hi * 1.07}
	decades := math.Log10(hi / lo)
	every := map[int]bool{1: true, 2: decades < 3.5, 5: decades < 3.5}
	if decades < 0.8 {
		for _, k := range []int{3, 4, 6, 8} {
			every[k] = true
		}
		if decades < 0.3 {
			at, step := steps(a.lo, a.hi, 5)
			for _, v := range at {
				a.ticks = append(a.ticks, tick{v, plain(v, step)})
			}
			return a
		}
	}
	for e := math.Floor(math.Log10(a.lo)); e <= math.Ceil(math.Log10(a.hi)); e++ {
		for k := 1; k <= 9; k++ {
			v := float64(k) * math.Pow(10, e)
			if v < a.lo || v > a.hi {
				continue
			}
			t := tick{at: v}
			if every[k] {
				t.label = label(v)
			}
			a.ticks = append(a.ticks, t)
		}
	}
	return a
}

// count writes a plain number without an exponent.
func count(v float64) string {
	if v >= 1000 {
		return plain(v, 1)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// byteAxis has its ticks at powers of two.
func byteAxis(lo, hi float64) axis {
	if lo <= 0 {
		lo = 1
	}
	if hi < lo*2 {
		lo, hi = lo/2, hi*2
	}
	a := axis{title: "message size", form: logarithmic, lo: lo * 0.85, hi: hi * 1.18}
	n := int(math.Round(math.Log2(hi / lo)))
	every := (n + 8) / 9
	for i := 0; ; i++ {
		v := math.Pow(2, math.Ceil(math.Log2(lo)-1e-9)+float64(i))
		if v > a.hi {
			return a
		}
		t := tick{at: v}
		if i%every == 0 {
			t.label = byteText(v)
		}
		a.ticks = append(a.ticks, t)
	}
}

func byteText(v float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + space + units[i]
}

// tailAxis is that of a cumulative distribution, down to the resolution of n
// samples.
func tailAxis(n int) axis {
	a := axis{title: "share of operations that are not slower", form: tail, lo: 0, hi: 0.99}
	all := []tick{{0, "0"}, {0.5, "50 %"}, {0.9, "90 %"}, {0.99, "99 %"}, {0.999, "99.9 %"}, {0.9999, "99.99 %"}, {0.99999, "99.999 %"}}
	for _, p := range []float64{0.999, 0.9999, 0.99999} {
		if float64(n)*(1-p) > 0.99 {
			a.hi = p
		}
	}
	for _, t := range all {
		if t.at <= a.hi {
			a.ticks = append(a.ticks, t)
		}
	}
	return a
}

// micros is d in microseconds.
func micros(d sim.Duration) float64 { return float64(d) / float64(sim.Microsecond) }

// space keeps a number and its unit on one line.
const space = "\u00a0"

// timeText writes d with three digits: 434 ns, 3.97 µs.
func timeText(d sim.Duration) string {
	switch {
	case d == 0:
		return "0" + space + "ns"
	case d < 1000*sim.Picosecond:
		return fmt.Sprintf("%d%sps", int64(d), space)
	case d < 999500*sim.Picosecond:
		return digits(float64(d)/float64(sim.Nanosecond)) + space + "ns"
	case d < 999500*sim.Nanosecond:
		return digits(micros(d)) + space + "µs"
	case d < 999500*sim.Microsecond:
		return digits(float64(d)/float64(sim.Millisecond)) + space + "ms"
	}
	return digits(d.Seconds()) + space + "s"
}

// digits writes v with three significant digits and no exponent.
func digits(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 99.95:
		return plain(v, 1)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.9995 || a == 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

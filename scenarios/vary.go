package scenarios

import (
	"math/big"
	"regexp"
	"strings"
)

// inDist are the durations of a distribution as written.
var inDist = regexp.MustCompile(`: (` + decimal + `(?:ps|ns|us|ms|s))`)

// Vary returns a numeric value of the field, as written, changed by so many
// percent, and what it was multiplied by: whole numbers change by 1 at least, and
// powers of two by a factor of 2. ok is false for words, for zero, and where the
// field does not take the changed value.
func (f *Field) Vary(text string, percent int64) (varied string, factor float64, ok bool) {
	t := fieldTable()
	if strings.HasPrefix(text, "{dist: ") {
		ok = true
		varied = inDist.ReplaceAllStringFunc(text, func(m string) string {
			v, err := parse(Duration, m[2:])
			n, changed := vary(v.n, percent)
			ok = ok && err == nil && changed
			return ": " + format(Duration, n)
		})
		return varied, 1 + float64(percent)/100, ok && varied != text
	}
	kind := f.Kind
	v, err := parse(kind, text)
	if err != nil || kind == Enum && f.Alt != 0 {
		if f.Alt == 0 {
			return "", 0, false
		}
		kind = f.Alt
		if v, err = parse(kind, text); err != nil {
			return "", 0, false
		}
	}
	n, changed := vary(v.n, percent)
	if f.Pow2 {
		if n = 2 * v.n; percent < 0 {
			n = v.n / 2
		}
	}
	switch kind {
	case Duration, Bytes, Rate, Frequency, Ratio, Count, Integer:
		if !changed {
			return "", 0, false
		}
		varied, factor = format(kind, n), float64(n)/float64(v.n)
	case Cost:
		fixed, more := vary(v.fixed, percent)
		if !changed && !more {
			return "", 0, false
		}
		factor = 1 + float64(percent)/100
		switch {
		case !more:
			varied = format(Cost, n)
		case !changed:
			varied = format(Duration, fixed)
		default:
			varied = format(Cost, n) + "+" + format(Duration, fixed)
		}
	default:
		return "", 0, false
	}
	if _, err := t.parse(f, varied); err != nil {
		return "", 0, false
	}
	return varied, factor, true
}

// vary returns n changed by so many percent, rounded to the nearest, and by 1 at
// least; changed is false for 0.
func vary(n, percent int64) (_ int64, changed bool) {
	if n == 0 {
		return 0, false
	}
	x := new(big.Int).Mul(big.NewInt(n), big.NewInt(100+percent)) // rates times 110 may not fit
	d := x.Add(x, big.NewInt(50)).Div(x, big.NewInt(100)).Int64()
	switch {
	case d != n:
	case percent > 0:
		d++
	default:
		d--
	}
	return d, true
}

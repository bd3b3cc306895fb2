package scenarios

import (
	"fmt"
	"math"
)

// size is what bounds of a value compare by: its number, or the cycles of a cost
// that has some; 0 for a value without a size.
func size(v value) int64 {
	switch {
	case v.dist != nil:
		return 0
	case v.kind == Cost && v.n == 0:
		return v.fixed
	}
	return v.n
}

// numbered returns the field and the value of a text that has a size.
func numbered(key, text string) (f *Field, v value, err error) {
	if f = fieldTable().byKey[key]; f == nil {
		return nil, v, fmt.Errorf("%s is no field", key)
	}
	switch f.Kind {
	case Duration, Cost, Bytes, Rate, Frequency, Ratio, Count:
	default:
		return nil, v, fmt.Errorf("%s is %s, which has no size", key, article(f.Kind.String()))
	}
	if v, err = fieldTable().parse(f, text); err == nil && size(v) <= 0 {
		err = fmt.Errorf("%s: %q has no size", key, text)
	}
	return f, v, err
}

// Times returns a value of the field multiplied by x, to four digits, as a scenario
// writes it. A cost's cycles and its fixed part grow alike, and a count is rounded.
func Times(key, text string, x float64) (string, error) {
	f, v, err := numbered(key, text)
	if err != nil {
		return "", err
	}
	n := times(v.n, x)
	if f.Kind != Cost {
		return format(f.Kind, n), nil
	}
	fixed := times(v.fixed, x)
	switch {
	case n == 0:
		return format(Duration, fixed), nil
	case fixed == 0:
		return format(Cost, n), nil
	}
	return format(Cost, n) + "+" + format(Duration, fixed), nil
}

// times returns n x, rounded to four digits unless x is 1.
func times(n int64, x float64) int64 {
	if x == 1 {
		return n
	}
	y := math.Round(float64(n) * x)
	digit := 1.0
	for y >= 1e4*digit {
		digit *= 10
	}
	return int64(math.Round(y/digit) * digit)
}

// Over returns the size of a over that of b, both values of the field.
func Over(key, a, b string) (float64, error) {
	_, va, err := numbered(key, a)
	if err != nil {
		return 0, err
	}
	_, vb, err := numbered(key, b)
	if err != nil {
		return 0, err
	}
	return float64(size(va)) / float64(size(vb)), nil
}

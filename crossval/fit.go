package crossval

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

const (
	sigma  = 0.02 // what a figure may be off by, against a parameter's half range
	step   = 1.1  // of the finite differences, as a factor
	rounds = 4    // corrections at most, by the slope at the shipped values
	still  = 0.01 // a round that moves no parameter by more, in its logarithm, is the last
)

// fit finds the values, over the shipped ones, that the figures and the bounds
// want: least squares of the figures' errors, and of each parameter's distance
// from the middle of its bounds, in logarithms. What figures determine hardly
// feels the bounds; what none determines goes to the middle.
func (s *study) fit(free []*param, rest []*row) (map[*param]float64, error) {
	n := len(free)
	slope := mat.NewDense(max(1, len(rest)), n, nil) // of no figures: a row of zeros
	for k, p := range free {
		by := p.step()
		for i, r := range rest {
			at, err := s.off(r, nil)
			if err != nil {
				return nil, err
			}
			to, err := s.off(r, map[*param]float64{p: by})
			if err != nil {
				return nil, err
			}
			slope.Set(i, k, (to-at)/math.Log(by))
		}
	}
	var normal mat.Dense
	normal.Mul(slope.T(), slope)
	normal.Scale(1/(sigma*sigma), &normal)
	for k, p := range free {
		_, half := p.middle()
		normal.Set(k, k, normal.At(k, k)+1/(half*half))
	}
	x := map[*param]float64{}
	for _, p := range free {
		x[p] = 1
	}
	best, least := x, math.Inf(1)
	for range rounds + 1 {
		cost := 0.0
		right := mat.NewVecDense(n, nil)
		for i, r := range rest {
			off, err := s.off(r, x)
			if err != nil {
				return nil, err
			}
			cost += off * off / (sigma * sigma)
			for k := range free {
				right.SetVec(k, right.AtVec(k)-slope.At(i, k)*off/(sigma*sigma))
			}
		}
		for k, p := range free {
			middle, half := p.middle()
			d := math.Log(x[p]) - middle
			cost += d * d / (half * half)
			right.SetVec(k, right.AtVec(k)-d/(half*half))
		}
		if cost < least {
			best, least = x, cost
		}
		var d mat.VecDense
		if err := d.SolveVec(&normal, right); err != nil {
			return nil, errors.New("the figures and bounds determine no fit")
		}
		next, moved := map[*param]float64{}, 0.0
		for k, p := range free {
			next[p] = min(max(x[p]*math.Exp(d.AtVec(k)), p.low), p.high)
			moved = max(moved, math.Abs(math.Log(next[p]/x[p])))
		}
		if x = next; moved < still {
			break
		}
	}
	return best, nil
}

// step is the factor of the finite difference, away from a bound that is near.
func (p *param) step() float64 {
	by := step
	if p.whole { // the next whole number
		by = 1 + 1/p.count
	}
	if by > p.high {
		by = 1 / by
		if p.whole {
			by = 1 - 1/p.count
		}
	}
	return by
}

// middle returns the middle of the bounds and half their distance, in logarithms
// over the shipped value.
func (p *param) middle() (middle, half float64) {
	low, high := math.Log(p.low), math.Log(p.high)
	return (low + high) / 2, (high - low) / 2
}

package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat/distuv"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// Bounds of a parameter, as scales of its prior.
const (
	lowest  = 0.1
	highest = 10.0
)

const (
	step      = 0.2  // of the finite differences: times add up, so the model is nearly linear
	rounds    = 6    // Gauss-Newton rounds at most
	settled   = 2e-3 // a round that moves no scale by more is the last
	holdOut   = 0.25 // of the rows are not fitted, where there are enough
	fewRows   = 8
	parallel  = 0.2  // a column with less of its own than this is seen only together with others
	tooUnsure = 0.35 // a standard deviation above this, as a scale, tells nothing
)

// fit finds the parameters that the rows identify, and their values.
func (f *Fit) fit(m *model, taken map[string]bool) error {
	base, err := m.simulate(nil)
	if err != nil {
		return err
	}
	first, source := 0, 0
	for _, set := range m.sets {
		of := result.Result{Points: base.Points[first:][:len(set.Scenario.Points())]}
		for _, r := range set.Results {
			got, notices := rows(r, &of)
			for _, row := range got {
				row.point += first
				row.source = source
				if len(m.sets) > 1 {
					row.What = set.Scenario.Name + " " + row.What
				}
				f.Rows = append(f.Rows, row)
			}
			for _, n := range notices {
				if !slices.Contains(f.Notices, n) {
					f.Notices = append(f.Notices, n)
				}
			}
			source++
		}
		first += len(of.Points)
	}
	f.twice()
	if n := len(f.Rows); n > 0 && n < fewRows {
		f.Notices = append(f.Notices, fmt.Sprintf("nothing is held out, so nothing checks the fit: %d numbers, and a quarter is kept back from %d on", n, fewRows))
	}
	m.plain = !slices.ContainsFunc(f.Rows, func(r Row) bool { return r.name.Stage != stage.None })
	for i := range f.Rows {
		f.Rows[i].HeldOut = len(f.Rows) >= fewRows && heldOut(i)
		f.Rows[i].Before, _ = f.Rows[i].of(base)
		f.Rows[i].After = f.Rows[i].Before
	}
	left := func(p *param, why string) {
		if !taken[p.key] {
			f.Params = append(f.Params, Param{Key: p.key, Prior: p.text(1), Value: p.text(1), Scale: 1, Low: 1, High: 1, Why: why})
		}
	}
	// What a trial never reads cannot matter, and need not be tried.
	used := map[string]bool{}
	for i := range base.Points {
		for _, p := range base.Points[i].Paths {
			for _, q := range p.Params {
				used[q.Key] = true
			}
		}
	}
	var tried []*param
	for _, key := range slices.Sorted(maps.Keys(m.params)) {
		p := m.params[key]
		asked := len(m.o.Fit) == 0 || slices.Contains(m.o.Fit, key)
		switch {
		case taken[key] || !asked && !used[key]:
		case p.why != "":
			if asked {
				left(p, p.why)
			}
		case !asked:
		case len(f.Rows) == 0:
			if len(m.o.Fit) > 0 {
				left(p, "no number of the results can be held against the model")
			}
		case p.prior.MilliCycles == 0 && p.prior.Fixed.Mean() == 0:
			left(p, "its prior is 0, which no scale changes")
		case !used[key]:
			left(p, "no path of the scenario uses it")
		default:
			tried = append(tried, p)
		}
	}
	if len(f.Rows) == 0 && len(m.o.Fit) == 0 {
		f.Notices = append(f.Notices, "no total or stage of the results can be held against the model: every parameter that is not above stays at its prior")
	}
	if len(f.Rows) == 0 || len(tried) == 0 {
		f.errors()
		return nil
	}
	x := map[string]float64{}
	for _, p := range tried {
		x[p.key] = 1
	}
	m.o.Progress(fmt.Sprintf("%d rows, %d parameters to try", len(f.Rows), len(tried)))
	j, _, err := f.jacobian(m, tried, x)
	if err != nil {
		return err
	}
	keep := identify(tried, j, left)
	if len(keep) == 0 {
		f.errors()
		return nil
	}
	return f.solve(m, keep)
}

// twice names numbers that two results give, and that differ by more than both
// may be off.
func (f *Fit) twice() {
	seen := map[string]*Row{}
	for i := range f.Rows {
		r := &f.Rows[i]
		s, ok := seen[r.What]
		if !ok {
			seen[r.What] = r
			continue
		}
		off := distuv.UnitNormal.Quantile(1-(1-Confidence)/2) * math.Hypot(float64(r.Sigma), float64(s.Sigma))
		if math.Abs(float64(r.Measured-s.Measured)) > off {
			f.Notices = append(f.Notices, fmt.Sprintf("CONTRADICTION: %s is %v in %s and %v in %s: the fit lies between them", r.What, s.Measured, label(s.source), r.Measured, label(r.source)))
		}
	}
}

// heldOut picks the rows that are not fitted: spread evenly, and in no step with
// what a sweep repeats, as every fourth would be.
func heldOut(i int) bool {
	_, part := math.Modf(float64(i+1) * (math.Phi - 1))
	return part >= 1-holdOut
}

// errors sums up the relative errors of all rows.
func (f *Fit) errors() {
	rms := func(held bool, of func(r *Row) sim.Duration) float64 {
		sum, n := 0.0, 0
		for i := range f.Rows {
			if r := &f.Rows[i]; r.HeldOut == held {
				e := float64(of(r)-r.Measured) / float64(r.Measured)
				sum += e * e
				n++
			}
		}
		if n == 0 {
			return math.NaN()
		}
		return math.Sqrt(sum / float64(n))
	}
	before, after := func(r *Row) sim.Duration { return r.Before }, func(r *Row) sim.Duration { return r.After }
	f.Before, f.After, f.HeldBefore, f.HeldAfter = rms(false, before), rms(false, after), rms(true, before), rms(true, after)
}

// fitted returns the rows that are not held out.
func (f *Fit) fitted() []*Row {
	var out []*Row
	for i := range f.Rows {
		if !f.Rows[i].HeldOut {
			out = append(out, &f.Rows[i])
		}
	}
	return out
}

// values returns the model's numbers for the fitted rows, in sigmas.
func (f *Fit) values(s *result.Result) ([]float64, error) {
	var out []float64
	for _, r := range f.fitted() {
		v, ok := r.of(s)
		if !ok {
			return nil, fmt.Errorf("the model has no %s any more", r.What)
		}
		out = append(out, float64(v)/float64(r.Sigma))
	}
	return out, nil
}

// at returns the model's numbers for the fitted rows at x, in sigmas.
func (f *Fit) at(m *model, x map[string]float64) ([]float64, error) {
	s, err := m.simulate(x)
	if err != nil {
		return nil, err
	}
	return f.values(s)
}

// jacobian is the change of the fitted rows, in sigmas, by a parameter's scale,
// and the rows at x.
func (f *Fit) jacobian(m *model, ps []*param, x map[string]float64) (*mat.Dense, []float64, error) {
	base, err := f.at(m, x)
	if err != nil {
		return nil, nil, err
	}
	j := mat.NewDense(len(base), len(ps), nil)
	for k, p := range ps {
		// Both ways where the bounds allow, so that a step of the model's own
		// (a polling loop that just misses) does not decide.
		up, down := maps.Clone(x), maps.Clone(x)
		up[p.key], down[p.key] = min(highest, x[p.key]*(1+step)), max(lowest, x[p.key]*(1-step))
		hi, err := f.at(m, up)
		if err != nil {
			return nil, nil, err
		}
		lo, err := f.at(m, down)
		if err != nil {
			return nil, nil, err
		}
		for i := range hi {
			j.Set(i, k, (hi[i]-lo[i])/(up[p.key]-down[p.key]))
		}
	}
	return j, base, nil
}

// identify keeps the parameters that the rows tell apart, the plainest first, and
// says of each other why it is left.
func identify(ps []*param, j *mat.Dense, left func(*param, string)) []*param {
	n, _ := j.Dims()
	type column struct {
		p    *param
		v    []float64 // what is left of it beside those kept
		full float64   // its norm
	}
	var open []*column
	for k, p := range ps {
		c := &column{p: p, v: mat.Col(nil, k, j)}
		c.full = norm(c.v)
		if c.full*tooUnsure < 1 {
			why := "no number depends on it"
			if c.full > 0 {
				why = "the numbers depend on it by less than they may be off"
			}
			left(p, why)
			continue
		}
		open = append(open, c)
	}
	var kept []*column
	var out []*param
	for len(open) > 0 && len(kept) < n-1 {
		best := slices.MaxFunc(open, func(a, b *column) int { return cmp.Compare(norm(a.v), norm(b.v)) })
		if r := norm(best.v); r < parallel*best.full || r*tooUnsure < 1 {
			break
		}
		kept = append(kept, best)
		out = append(out, best.p)
		open = slices.DeleteFunc(open, func(c *column) bool { return c == best })
		r := norm(best.v)
		for _, c := range open {
			d := 0.0
			for i := range c.v {
				d += c.v[i] * best.v[i] / r
			}
			for i := range c.v {
				c.v[i] -= d * best.v[i] / r
			}
		}
	}
	var names []string
	for _, c := range kept {
		names = append(names, strings.TrimPrefix(c.p.key, "hardware."))
	}
	for _, c := range open {
		why := "seen only together with " + strings.Join(names, ", ")
		if len(kept) >= n-1 {
			why = "fewer numbers than parameters"
		}
		left(c.p, why)
	}
	return out
}

func norm(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x * x
	}
	return math.Sqrt(s)
}

// solve runs Gauss-Newton rounds on the kept parameters, then bootstraps.
func (f *Fit) solve(m *model, ps []*param) error {
	want := []float64{}
	for _, r := range f.fitted() {
		want = append(want, float64(r.Measured)/float64(r.Sigma))
	}
	x := map[string]float64{}
	for _, p := range ps {
		x[p.key] = 1
	}
	vector := func() []float64 {
		v := make([]float64, len(ps))
		for k, p := range ps {
			v[k] = x[p.key]
		}
		return v
	}
	var j *mat.Dense
	var at []float64
	for round := range rounds {
		var err error
		if round%3 == 0 { // the slope hardly changes: it is seldom worth its trials
			j, at, err = f.jacobian(m, ps, x)
		} else {
			at, err = f.at(m, x)
		}
		if err != nil {
			return err
		}
		old := vector()
		next, err := bounded(j, residuals(want, at), old)
		if err != nil {
			return err
		}
		moved := 0.0
		for k, p := range ps {
			x[p.key] = next[k]
			moved = max(moved, math.Abs(next[k]-old[k])/old[k])
		}
		m.o.Progress(fmt.Sprintf("moved by %.2f %%", 100*moved))
		if moved < settled {
			break
		}
	}
	final, err := m.simulate(x)
	if err != nil {
		return err
	}
	if at, err = f.values(final); err != nil {
		return err
	}
	for i := range f.Rows {
		f.Rows[i].After, _ = f.Rows[i].of(final)
	}
	f.errors()

	low, high, err := f.intervals(m, j, residuals(want, at), vector())
	if err != nil {
		return err
	}
	for k, p := range ps {
		v := x[p.key]
		q := Param{
			Key: p.key, Prior: p.text(1), Value: p.text(v), Scale: v, Low: low[k], High: high[k], LowValue: p.text(low[k]), HighValue: p.text(high[k]),
			Fitted: true, AtBound: v < lowest*1.01 || v > highest*0.99,
		}
		if q.AtBound {
			q.Why = "at its bound: the model lacks something"
			f.Notices = append(f.Notices, fmt.Sprintf("AT ITS BOUND: %s wants to leave %g to %g times its prior: its value is no fit, the model lacks something or the numbers are not of this path", p.key, lowest, highest))
		}
		f.Params = append(f.Params, q)
	}
	return nil
}

func residuals(want, got []float64) []float64 {
	out := make([]float64, len(want))
	for i := range want {
		out[i] = want[i] - got[i]
	}
	return out
}

// bounded returns the scales that minimise |r - J (x - x0)| within the bounds:
// least squares where that stays inside, else a search in coordinates that cannot
// leave.
func bounded(j *mat.Dense, r, x0 []float64) ([]float64, error) {
	n := len(x0)
	var d mat.VecDense
	x := make([]float64, n)
	inside := d.SolveVec(j, mat.NewVecDense(len(r), slices.Clone(r))) == nil
	for k := range x {
		if inside {
			x[k] = x0[k] + d.AtVec(k)
			inside = x[k] > lowest && x[k] < highest
		}
	}
	if inside {
		return x, nil
	}
	// x = lowest + (highest - lowest) / (1 + exp(-u)), in the logarithm of the scale.
	const ll, lh = -2.302585092994046, 2.302585092994046 // ln of the bounds
	to := func(u float64) float64 { return math.Exp(ll + (lh-ll)/(1+math.Exp(-u))) }
	from := func(x float64) float64 {
		s := min(max((math.Log(x)-ll)/(lh-ll), 1e-6), 1-1e-6)
		return math.Log(s / (1 - s))
	}
	cost := func(u []float64) float64 {
		sum := 0.0
		for i := range r {
			e := r[i]
			for k := range u {
				e -= j.At(i, k) * (to(u[k]) - x0[k])
			}
			sum += e * e
		}
		return sum
	}
	start := make([]float64, n)
	for k := range x0 {
		start[k] = from(x0[k])
	}
	res, err := optimize.Minimize(optimize.Problem{Func: cost}, start, &optimize.Settings{FuncEvaluations: 4000 * n}, &optimize.NelderMead{})
	if err != nil && res == nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	for k := range x {
		x[k] = min(max(to(res.X[k]), lowest), highest)
	}
	return x, nil
}

// intervals are percentiles of a bootstrap: the rows are drawn again around the
// fit, with what they were found to be off by, and fitted again with the model's
// slope at the fit.
func (f *Fit) intervals(m *model, j *mat.Dense, r, x []float64) (low, high []float64, err error) {
	n, k := len(r), len(x)
	dof := max(n-k, 1)
	// The rows' own sigmas, or more if the fit is worse than they say. Few rows say
	// little about that: Student's factor widens it.
	scale := max(1, norm(r)/math.Sqrt(float64(dof)))
	scale *= distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(dof)}.Quantile(1-(1-Confidence)/2) / distuv.UnitNormal.Quantile(1-(1-Confidence)/2)
	rng := rand.New(rand.NewPCG(m.o.Seed, 0x626f6f74))
	draws := make([][]float64, k)
	noise := make([]float64, n)
	for range m.o.Bootstrap {
		for i := range noise {
			noise[i] = rng.NormFloat64() * scale
		}
		b, err := bounded(j, noise, x)
		if err != nil {
			return nil, nil, err
		}
		for c := range b {
			draws[c] = append(draws[c], b[c])
		}
	}
	low, high = make([]float64, k), make([]float64, k)
	for c, d := range draws {
		slices.Sort(d)
		tail := int(float64(len(d)) * (1 - Confidence) / 2)
		low[c], high[c] = d[tail], d[len(d)-1-tail]
		if math.IsNaN(low[c]) || math.IsNaN(high[c]) {
			return nil, nil, errors.New("fit: the rows determine no interval")
		}
	}
	return low, high, nil
}

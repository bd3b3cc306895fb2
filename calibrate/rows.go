package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// floor of a row's uncertainty: no clock and no machine repeats better.
const (
	floorShare = 0.005
	floor      = 1 * sim.Nanosecond
)

// seenWith are stages that a clock on hardware sees as one: around ibv_post_send,
// and from the device's time stamp of a CQE until the poll.
var seenWith = map[stage.Stage]stage.Stage{stage.CPUPost: stage.CPURing, stage.NICCQE: stage.CPUPoll}

// rows picks the numbers of a result that the model can be held against: metrics
// of paths with the same stack, and stages that were measured by themselves.
func rows(r, of *result.Result) ([]Row, []string) {
	var out []Row
	var notices []string
	other := map[string]bool{}
	for i := range r.Points {
		k := slices.IndexFunc(of.Points, func(p result.Point) bool { return slices.Equal(p.At, r.Points[i].At) })
		if k < 0 {
			notices = append(notices, fmt.Sprintf("point %d of a result is not one of the scenario: left out", r.Points[i].Index))
			continue
		}
		var at []string
		for _, s := range r.Points[i].At {
			at = append(at, s.Key[strings.LastIndexByte(s.Key, '.')+1:]+"="+s.Value)
		}
		for j := range r.Points[i].Paths {
			p := &r.Points[i].Paths[j]
			q := slices.IndexFunc(of.Points[k].Paths, func(x result.Path) bool { return x.Name == p.Name })
			if q < 0 || p.Err != "" {
				continue
			}
			add := func(n result.Name, v, sigma sim.Duration, with stage.Stage) {
				row := Row{What: strings.Join(append(slices.Clone(at), p.Name, n.String()), " "), Measured: v, point: k, path: q, name: n, with: with}
				// The model draws phases and ticks: its median is one of a sample too.
				if m := of.Points[k].Paths[q].Metric(n.Metric); m != nil && n.Stage == stage.None {
					sigma = sim.Duration(math.Hypot(float64(sigma), float64(medianSigma(m.N, m.Quantiles))))
				}
				row.Sigma = max(sigma, sim.Duration(float64(v)*floorShare), floor)
				if got, ok := row.of(of); ok && got > 0 && v > 0 {
					out = append(out, row)
				}
			}
			if p.Stack == of.Points[k].Paths[q].Stack {
				for _, m := range p.Metrics {
					if m.Metric.IsTime() {
						add(result.Name{Metric: m.Metric, Node: -1, Stat: result.P50}, m.P50, medianSigma(m.N, m.Quantiles), stage.None)
					}
				}
			} else {
				other[p.Name] = true
			}
			for _, b := range p.Breakdowns {
				for _, s := range b.Stages {
					// A simulated stage has no method and tells nothing beyond its metric.
					// What a clock saw of the acknowledgement is not the model's stage: it
					// begins at the delivery, and has the CQE and the poll in it.
					if s.Method != "" && s.Stage != stage.Unresolved && s.Stage != stage.NICAck {
						add(result.Name{Metric: b.Metric, Stage: s.Stage, Node: s.Node, Stat: result.P50}, s.Time, sim.Duration(float64(s.Spread)/1.96), seenWith[s.Stage])
					}
				}
			}
		}
	}
	if len(other) > 0 {
		notices = append(notices, "the results measured another stack than the scenario simulates: of those paths only stages are compared, no totals")
	}
	return out, notices
}

// perMessage is the time of one message at a rate in millions a second: a rate is
// fitted as a time, since times add up.
func perMessage(rate float64) sim.Duration {
	if rate <= 0 {
		return 0
	}
	return sim.Duration(math.Round(float64(sim.Microsecond) / rate))
}

// medianSigma is the standard deviation of a median, from the order statistics
// around it.
func medianSigma(n int, quantiles []sim.Duration) sim.Duration {
	levels := result.Levels()
	if n < 2 || len(quantiles) != len(levels) {
		return 0
	}
	d := 0.5 / math.Sqrt(float64(n)) * 1e6
	at := func(ppm float64) float64 {
		i, _ := slices.BinarySearch(levels, int(ppm))
		return float64(quantiles[min(i, len(levels)-1)])
	}
	return sim.Duration((at(min(5e5+d, 1e6)) - at(max(5e5-d, 0))) / 2)
}

// of returns the row's number in a simulated result.
func (r *Row) of(s *result.Result) (sim.Duration, bool) {
	if r.point >= len(s.Points) || r.path >= len(s.Points[r.point].Paths) {
		return 0, false
	}
	p := &s.Points[r.point].Paths[r.path]
	if r.name.Stage != stage.None && p.Breakdown(r.name.Metric) == nil {
		return 0, false
	}
	v, err := p.Get(r.name)
	if err != nil || p.Err != "" {
		return 0, false
	}
	if r.name.Metric == stage.MessageRate {
		return perMessage(v.Number), v.Number > 0
	}
	if r.with != stage.None {
		n := r.name
		n.Stage = r.with
		also, err := p.Get(n)
		if err != nil {
			return 0, false
		}
		v.Time += also.Time
	}
	return v.Time, true
}

package plots

import (
	"cmp"
	"fmt"
	"slices"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

const (
	barTall  = 24.0
	besTall  = 8.0
	barPitch = barTall + besTall + 12
	thinnest = 0.3 // of what is drawn
)

// bar is one breakdown of the figure.
type bar struct {
	label  string
	run    run
	b      *result.Breakdown
	beside []piece // work off the walk, at its time
}

// piece is an interval of a stage, in time since the call.
type piece struct {
	stage      stage.Stage
	start, end sim.Duration
}

func drawBreakdown(rs []*result.Result, o Options) (*Figure, error) {
	all := runs(rs)
	m, err := breakdownMetric(all, o)
	if err != nil {
		return nil, err
	}
	swept := sweptKeys(rs)
	names := labels(rs)
	// One path is followed over the points, several are compared at the first.
	onePath := len(pathNames(rs)) == 1
	var bars []bar
	first := map[int]*result.Point{}
	for _, r := range all {
		b := r.path.Breakdown(m)
		if b == nil {
			continue
		}
		if p := first[r.res]; p == nil {
			first[r.res] = r.point
		} else if p != r.point && !onePath {
			continue
		}
		l := join(r.path.Name, names[r.res])
		if onePath && len(swept) > 0 {
			l = join(others(r.point, swept), names[r.res])
		}
		bars = append(bars, bar{label: l, run: r, b: b, beside: besides(r.path, m)})
	}
	n := len(bars)
	bars = thin(bars, maxBars)
	where := ""
	if !onePath && len(swept) > 0 && len(bars) > 0 {
		where = others(bars[0].run.point, swept)
	}
	return barsFigure(m, bars, breakdownTitle(m, bars, where, onePath), sentences(
		m.String()+": "+m.Text()+". The operation at the nearest-rank p50; the stages sum to the total.",
		twiceText(bars), besideText(bars), thinned(len(bars), n, "bars"))), nil
}

func breakdownMetric(all []run, o Options) (stage.Metric, error) {
	has := func(m stage.Metric) bool {
		return slices.ContainsFunc(all, func(r run) bool { return r.path.Breakdown(m) != nil })
	}
	if o.Metric != stage.NoMetric {
		if !has(o.Metric) {
			return o.Metric, notFit("no path has a breakdown of %s", o.Metric)
		}
		return o.Metric, nil
	}
	for _, m := range []stage.Metric{stage.PutCompletion, stage.Get, stage.Latency, stage.OneWay, stage.RTT, stage.Issue} {
		if has(m) {
			return m, nil
		}
	}
	return stage.NoMetric, notFit("no path has a breakdown (was it run with --no-breakdown?)")
}

func twiceText(bars []bar) string {
	for _, b := range bars {
		var nodes [stage.Count]map[int]bool
		for _, s := range b.b.Stages {
			if nodes[s.Stage] == nil {
				nodes[s.Stage] = map[int]bool{}
			}
			if nodes[s.Stage][s.Node] = true; len(nodes[s.Stage]) > 1 {
				return "A stage that stands twice ran on both nodes."
			}
		}
	}
	return ""
}

func besideText(bars []bar) string {
	for _, b := range bars {
		if len(b.beside) > 0 {
			return "Hatched, below a bar: work of the same operation that it did not wait for, at its time."
		}
	}
	return ""
}

// besides takes the spans off the walk from the recorded p50 operation.
func besides(p *result.Path, m stage.Metric) []piece {
	g := graphOf(p, m, "p50")
	if g == nil {
		return nil
	}
	var out []piece
	for _, s := range g.Spans {
		if !s.OnWalk && s.End > s.Start {
			out = append(out, piece{s.Stage, s.Start, s.End})
		}
	}
	slices.SortStableFunc(out, func(a, b piece) int { return cmp.Compare(a.start, b.start) })
	return merged(out)
}

// merged joins pieces of a stage that touch.
func merged(in []piece) []piece {
	var out []piece
	last := map[stage.Stage]int{}
	for _, p := range in {
		if i, ok := last[p.stage]; ok && out[i].end >= p.start {
			out[i].end = max(out[i].end, p.end)
			continue
		}
		last[p.stage] = len(out)
		out = append(out, p)
	}
	return out
}

func graphOf(p *result.Path, m stage.Metric, which string) *result.Graph {
	for i := range p.Graphs {
		if g := &p.Graphs[i]; g.Metric == m && g.Which == which {
			return g
		}
	}
	return nil
}

// heaviest is the largest stage of a breakdown, nodes together.
func heaviest(b *result.Breakdown) (stage.Stage, sim.Duration) {
	var sum [stage.Count]sim.Duration
	best := stage.None
	for _, s := range b.Stages {
		sum[s.Stage] += s.Time
	}
	for s := range sum {
		if sum[s] > sum[best] {
			best = stage.Stage(s)
		}
	}
	return best, sum[best]
}

func breakdownTitle(m stage.Metric, bars []bar, where string, onePath bool) string {
	best := slices.MinFunc(bars, func(a, b bar) int { return cmp.Compare(a.b.Total, b.b.Total) })
	worst := slices.MaxFunc(bars, func(a, b bar) int { return cmp.Compare(a.b.Total, b.b.Total) })
	name := func(b bar) string {
		if onePath {
			return join(b.run.path.Name, b.label)
		}
		return b.label
	}
	s := fmt.Sprintf("%s: %s takes %s", m, name(best), timeText(best.b.Total))
	if len(bars) == 1 {
		s = fmt.Sprintf("%s of %s takes %s", m, best.run.path.Name, timeText(best.b.Total))
	} else if best.b.Total < worst.b.Total {
		s += fmt.Sprintf(", %.2f× less than %s", ratio(float64(best.b.Total), float64(worst.b.Total)), name(worst))
	}
	if where != "" {
		s += " (" + where + ")"
	}
	if st, t := heaviest(best.b); t > 0 {
		s += fmt.Sprintf("; its largest stage is %s, %.0f%s%%", st, 100*float64(t)/float64(best.b.Total), space)
	}
	return s
}

// barsFigure draws stacked bars over a common axis of time, and the stages'
// numbers and colours in a strip below.
func barsFigure(m stage.Metric, bars []bar, title, caption string) *Figure {
	var present [stage.Count]bool
	var most sim.Duration
	for _, b := range bars {
		for _, s := range b.b.Stages {
			present[s.Stage] = present[s.Stage] || s.Time > 0
		}
		most = max(most, b.b.Total)
		for _, p := range b.beside {
			present[p.stage] = true
			most = max(most, p.end)
		}
	}
	leg := legendOf(present)
	body := float64(len(bars))*barPitch + 38
	f := &Figure{Kind: "breakdown", Title: title, Caption: caption, height: body + leg.height(figureWidth-2*margin)}
	f.body = func(c *canvas, b box) {
		left := 0.0
		for _, x := range bars {
			left = max(left, textWidth(x.label, normal, false))
		}
		left = min(left, 150)
		unit, scale := unitFor(most)
		ax := linearAxis(m.String()+", "+unit, 0, float64(most)/scale*1.01, 6)
		area := box{b.x + left + 8, b.y, 0, body - 38}
		area.w = b.right() - area.x - 52 // totals stand at the bars' ends
		xTicks(c, &ax, area, true)
		px := func(t sim.Duration) float64 { return area.x + ax.at(float64(t)/scale)*area.w }
		for i, x := range bars {
			y := area.y + float64(i)*barPitch + 6
			c.text(area.x-6, y+barTall/2, clip(x.label, left, normal, false), style{size: normal, colour: ink, ax: 1, ay: 0.5})
			at, drawn := sim.Duration(0), sim.Duration(0)
			for _, s := range x.b.Stages {
				at += s.Time
				// What is too thin to be seen goes into what follows.
				if w := px(at) - px(drawn); w >= thinnest || at == x.b.Total && w > 0 {
					segment(c, box{px(drawn), y, w, barTall}, s.Stage, s.Time)
					drawn = at
				}
			}
			c.text(px(x.b.Total)+5, y+barTall/2, timeText(x.b.Total), style{size: normal, bold: true, colour: ink, ay: 0.5})
			seen := sim.Duration(-1)
			for _, p := range x.beside {
				if px(p.end) < px(seen)+thinnest {
					continue
				}
				seen = p.end
				r := box{px(p.start), y + barTall + 2, px(p.end) - px(p.start), besTall}
				c.rect(r, mix(lookOf(p.stage).fill, 0.6))
				c.hatch(r, diagonal, mix(lookOf(p.stage).fill, -0.3))
				c.frame(r, mix(lookOf(p.stage).fill, -0.3), 0.5)
			}
		}
		c.stroke([]point{{area.x, area.y}, {area.x, area.bottom()}}, muted, 0.6)
		leg.draw(c, box{b.x, b.y + body, b.w, b.h - body})
	}
	return f
}

// unitFor chooses the unit of an axis of time up to most: its name and its
// length in picoseconds.
func unitFor(most sim.Duration) (string, float64) {
	switch {
	case most < 2*sim.Microsecond:
		return "ns", float64(sim.Nanosecond)
	case most < 2*sim.Millisecond:
		return "µs", float64(sim.Microsecond)
	}
	return "ms", float64(sim.Millisecond)
}

// segment draws a stage's part of a bar, with its number and its time where
// they fit.
func segment(c *canvas, r box, s stage.Stage, t sim.Duration) {
	l := lookOf(s)
	gap := min(0.6, r.w*0.2)
	inner := box{r.x, r.y, r.w - gap, r.h}
	c.block(inner, l)
	id := fmt.Sprint(int(s))
	if w := textWidth(id, small, true); w+2 < inner.w {
		tag(c, inner.x+inner.w/2, r.y+7.5, id, true, l)
	}
	if text := digits(float64(t) / float64(sim.Nanosecond)); textWidth(text, small-1, false)+2 < inner.w {
		tag(c, inner.x+inner.w/2, r.y+17, text, false, l)
	}
}

// tag writes on a look; a pattern is cleared behind the letters.
func tag(c *canvas, x, y float64, s string, bold bool, l look) {
	size := small
	if !bold {
		size = small - 1
	}
	if l.pattern != solid {
		w := textWidth(s, size, bold)
		c.rect(box{x - w/2 - 0.7, y - 3.4, w + 1.4, 6.8}, l.fill)
	}
	c.text(x, y, s, style{size: size, bold: bold, colour: on(l.fill), ax: 0.5, ay: 0.5})
}

// stageLegend is a strip of the stages that a figure shows.
type stageLegend []stage.Stage

func legendOf(present [stage.Count]bool) stageLegend {
	var out stageLegend
	for s := stage.Stage(1); s < stage.Count; s++ {
		if present[s] {
			out = append(out, s)
		}
	}
	return out
}

func (l stageLegend) grid(width float64) (cols, rows int, w float64) {
	w = 70
	for _, s := range l {
		w = max(w, textWidth(s.String(), small, false)+46)
	}
	cols = max(1, int(width/w))
	rows = (len(l) + cols - 1) / cols
	return cols, rows, width / float64(cols)
}

func (l stageLegend) height(width float64) float64 {
	_, rows, _ := l.grid(width)
	return float64(rows) * rowGap
}

// draw fills the columns first, so that the stages read in their order.
func (l stageLegend) draw(c *canvas, b box) {
	_, rows, w := l.grid(b.w)
	for i, s := range l {
		x, y := b.x+float64(i/rows)*w, b.y+float64(i%rows)*rowGap
		c.block(box{x, y + 1, 18, 9}, lookOf(s))
		tag(c, x+9, y+5.5, fmt.Sprint(int(s)), true, lookOf(s))
		c.text(x+22, y+5.5, s.String(), style{size: small, colour: ink, ay: 0.5})
	}
}

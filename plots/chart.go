package plots

import (
	"math"
	"slices"
)

// series is one line of a chart. lo and hi are its band, or nil.
type series struct {
	name   string
	line   line
	pts    []point // in data units
	lo, hi []float64
	plain  bool // no markers
	lone   bool // no line
}

// callout is a place on a chart that is named: a vertical dashed line.
type callout struct {
	x, y float64
	text string
}

// chart is lines over two axes.
type chart struct {
	x, y     axis
	series   []series
	callouts []callout
	identity float64 // draws x = y, and a band of that fraction around it
	notes    []label
}

// label is a text beside a point.
type label struct {
	x, y float64
	text string
}

const (
	tickGap  = 4.0
	rowGap   = 13.0
	plotTall = 235.0
)

// legendRows lays names out in columns as wide as the widest.
func legendRows(names []string, width float64) (cols int, colWidth float64, rows int) {
	w := 60.0
	for _, n := range names {
		w = max(w, textWidth(n, normal, false)+34)
	}
	w = min(w, width)
	cols = max(1, int(width/w))
	return cols, w, (len(names) + cols - 1) / cols
}

func (ch *chart) names() []string {
	var out []string
	for i := range ch.series {
		out = append(out, ch.series[i].name)
	}
	return out
}

// figure makes the picture; its legend is a strip below the axes.
func (ch *chart) figure(kind, title, caption string) *Figure {
	names := ch.names()
	if len(names) == 1 && names[0] == "" {
		names = nil
	}
	_, _, rows := legendRows(names, figureWidth-2*margin)
	f := &Figure{Kind: kind, Title: title, Caption: caption, height: plotTall + 50 + float64(rows)*rowGap}
	f.body = func(c *canvas, b box) {
		area := ch.axes(c, box{b.x, b.y, b.w, plotTall + 44})
		ch.lines(c, area)
		ch.legend(c, names, box{b.x, b.y + plotTall + 50, b.w, float64(rows) * rowGap})
	}
	return f
}

// axes draws both axes in b and returns the area between them. The title of
// the vertical one stands above it, where it reads as text.
func (ch *chart) axes(c *canvas, b box) box {
	left := 0.0
	for _, t := range ch.y.ticks {
		left = max(left, textWidth(t.label, normal, false))
	}
	area := box{b.x + left + tickGap + 3, b.y + 16, 0, 0}
	area.w = b.right() - area.x - 12
	area.h = b.bottom() - area.y - 30
	c.text(b.x, b.y, ch.y.title, style{size: normal, colour: muted})
	last := math.Inf(1)
	for _, t := range ch.y.ticks {
		f := ch.y.at(t.at)
		if f < -1e-9 || f > 1+1e-9 {
			continue
		}
		y := area.bottom() - f*area.h
		if t.label == "" {
			c.stroke([]point{{area.x - 2, y}, {area.x, y}}, muted, 0.5)
			continue
		}
		c.stroke([]point{{area.x, y}, {area.right(), y}}, grid, 0.5)
		if last-y > normal {
			c.text(area.x-tickGap, y, t.label, style{size: normal, colour: ink, ax: 1, ay: 0.5})
			last = y
		}
	}
	xTicks(c, &ch.x, area, false)
	c.stroke([]point{{area.x, area.y}, {area.x, area.bottom()}, {area.right(), area.bottom()}}, muted, 0.6)
	return area
}

// xTicks draws the horizontal axis below area, without labels that would
// touch.
func xTicks(c *canvas, a *axis, area box, gridlines bool) {
	free := math.Inf(-1)
	for _, t := range a.ticks {
		f := a.at(t.at)
		if f < -1e-9 || f > 1+1e-9 {
			continue
		}
		x := area.x + f*area.w
		if gridlines {
			c.stroke([]point{{x, area.y}, {x, area.bottom()}}, grid, 0.5)
		}
		if t.label == "" {
			c.stroke([]point{{x, area.bottom()}, {x, area.bottom() + 2}}, muted, 0.5)
			continue
		}
		c.stroke([]point{{x, area.bottom()}, {x, area.bottom() + 3}}, muted, 0.6)
		w := textWidth(t.label, normal, false)
		if x-w/2 < free {
			continue
		}
		ax := 0.5
		if over := x + w/2 - (area.right() + 12); over > 0 {
			ax += over / w
		}
		c.text(x, area.bottom()+6, t.label, style{size: normal, colour: ink, ax: ax})
		free = x + w/2 + 6
	}
	c.text(area.x+area.w/2, area.bottom()+19, a.title, style{size: normal, colour: muted, ax: 0.5})
}

func (ch *chart) lines(c *canvas, area box) {
	place := func(p point) point {
		return point{area.x + ch.x.at(p.x)*area.w, area.bottom() - min(max(ch.y.at(p.y), -0.02), 1.02)*area.h}
	}
	if ch.identity > 0 {
		lo, hi := max(ch.x.lo, ch.y.lo), min(ch.x.hi, ch.y.hi)
		f := ch.identity
		if lo < hi {
			const n = 48
			var upper, lower []point
			for i := 0; i <= n; i++ {
				v := lo * math.Pow(hi/lo, float64(i)/n)
				upper = append(upper, place(point{v, min(v*(1+f), ch.y.hi)}))
				lower = append(lower, place(point{v, max(v*(1-f), ch.y.lo)}))
			}
			slices.Reverse(lower)
			band := append(upper, lower...)
			c.fill(band, soft)
			c.stroke([]point{place(point{lo, lo}), place(point{hi, hi})}, muted, 0.9, 4, 2)
		}
	}
	for i := range ch.series {
		s := &ch.series[i]
		if s.lo == nil || len(s.pts) < 2 {
			continue
		}
		var band []point
		for j, p := range s.pts {
			band = append(band, place(point{p.x, s.hi[j]}))
		}
		for j := len(s.pts) - 1; j >= 0; j-- {
			band = append(band, place(point{s.pts[j].x, s.lo[j]}))
		}
		col := s.line.colour
		col.A = 0x38
		c.fill(band, premultiplied(col))
	}
	for _, k := range ch.callouts {
		p := place(point{k.x, k.y})
		c.stroke([]point{{p.x, area.y + 12}, {p.x, area.bottom()}}, ink, 0.8, 3, 2)
	}
	for i := range ch.series {
		s := &ch.series[i]
		pts := make([]point, len(s.pts))
		for j, p := range s.pts {
			pts[j] = place(p)
		}
		if !s.lone {
			c.stroke(pts, s.line.colour, 1.5, s.line.dash...)
		}
		if s.plain && len(pts) > 1 {
			continue
		}
		for _, p := range pts {
			c.mark(p, s.line.marker, 2.6, s.line.colour)
		}
	}
	// Names of callouts stand in a row above the data.
	free := math.Inf(-1)
	for _, k := range ch.callouts {
		x := place(point{k.x, k.y}).x
		text := clip(k.text, area.w*0.6, small, true)
		w := textWidth(text, small, true)
		left := min(max(x-w/2, area.x+2, free), area.right()-w)
		if left < free {
			continue // its line stays; the caption lists all
		}
		c.text(left, area.y+1, text, style{size: small, bold: true, colour: ink})
		free = left + w + 8
	}
	for _, n := range ch.notes {
		p := place(point{n.x, n.y})
		w := textWidth(n.text, small, false)
		ax := 0.0
		dx := 5.0
		if p.x+dx+w > area.right() {
			ax, dx = 1, -5
		}
		dy := -6.0 // on the side away from the identity
		if n.y < n.x {
			dy = 6
		}
		c.rect(box{p.x + dx - ax*w, p.y + dy - 3.5, w, 7}, paper)
		c.text(p.x+dx, p.y+dy, n.text, style{size: small, colour: ink, ax: ax, ay: 0.5})
	}
}

func (ch *chart) legend(c *canvas, names []string, b box) {
	cols, w, _ := legendRows(names, b.w)
	for i := range names {
		s := &ch.series[i]
		x, y := b.x+float64(i%cols)*w, b.y+float64(i/cols)*rowGap+rowGap/2
		if !s.lone {
			c.stroke([]point{{x, y}, {x + 22, y}}, s.line.colour, 1.5, s.line.dash...)
		}
		if !s.plain || s.lone {
			c.mark(point{x + 11, y}, s.line.marker, 2.6, s.line.colour)
		}
		c.text(x+26, y, clip(names[i], w-34, normal, false), style{size: normal, colour: ink, ay: 0.5})
	}
}

// interactive is the chart's data for the report's script, which has the tail's
// axis as -log10(1-p).
func (ch *chart) interactive(kind string, tail bool) *interactive {
	out := &interactive{Kind: kind, XLabel: ch.x.title, YLabel: ch.y.title}
	for i := range ch.series {
		s := &ch.series[i]
		c := activeCurve{Name: s.name, Color: hex(s.line.colour), Dash: s.line.dash, P99: s.hi}
		for _, p := range s.pts {
			y := p.y
			if tail {
				y = ch.y.warp(p.y)
				// The script's chart has one value for each x: the step's top.
				if n := len(c.X); n > 0 && c.X[n-1] == p.x {
					c.Y[n-1] = y
					continue
				}
			}
			c.X, c.Y = append(c.X, p.x), append(c.Y, y)
		}
		out.Series = append(out.Series, c)
	}
	return out
}

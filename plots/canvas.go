package plots

import (
	"image/color"
	"math"
	"strings"
	"sync"

	"golang.org/x/image/font"
	plotfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/vg"
)

// canvas draws in points (1/72 inch) from the upper left corner.
type canvas struct {
	vg vg.Canvas
	h  float64
}

// point is a place on the canvas.
type point struct{ x, y float64 }

// box is a rectangle on the canvas.
type box struct{ x, y, w, h float64 }

func (b box) right() float64  { return b.x + b.w }
func (b box) bottom() float64 { return b.y + b.h }

// Sizes of type, in points.
const (
	small  = 7.5
	normal = 9
	large  = 12
)

// style is how a text is set: size and weight, and where its place is in it,
// from 0 (left, top) over 0.5 (middle) to 1.
type style struct {
	size   float64
	bold   bool
	colour color.RGBA
	ax, ay float64
}

// The parsed fonts are read only.
var fonts = sync.OnceValue(func() *plotfont.Cache { return plotfont.NewCache(liberation.Collection()) })

func face(size float64, bold bool) plotfont.Face {
	f := plotfont.Font{Typeface: "Liberation", Variant: "Sans"}
	if bold {
		f.Weight = font.WeightBold
	}
	return fonts().Lookup(f, vg.Length(size))
}

// textWidth is the width of s in points.
func textWidth(s string, size float64, bold bool) float64 {
	f := face(size, bold)
	return float64(f.Width(s))
}

// capHeight is the height of capitals in parts of the size.
const capHeight = 0.70

func (c *canvas) text(x, y float64, s string, st style) {
	if s == "" {
		return
	}
	f := face(st.size, st.bold)
	x -= st.ax * float64(f.Width(s))
	y += (1 - st.ay) * capHeight * st.size
	c.vg.SetColor(st.colour)
	c.vg.FillString(f, vg.Point{X: vg.Length(x), Y: vg.Length(c.h - y)}, s)
}

func (c *canvas) path(pts []point, closed bool) vg.Path {
	var p vg.Path
	for i, q := range pts {
		v := vg.Point{X: vg.Length(q.x), Y: vg.Length(c.h - q.y)}
		if i == 0 {
			p.Move(v)
		} else {
			p.Line(v)
		}
	}
	if closed {
		p.Close()
	}
	return p
}

func (c *canvas) fill(pts []point, col color.Color) {
	if len(pts) < 3 {
		return
	}
	c.vg.SetColor(col)
	c.vg.Fill(c.path(pts, true))
}

func (c *canvas) stroke(pts []point, col color.Color, width float64, dash ...float64) {
	if len(pts) < 2 {
		return
	}
	c.pen(col, width, dash...)
	c.vg.Stroke(c.path(pts, false))
}

func (c *canvas) pen(col color.Color, width float64, dash ...float64) {
	c.vg.SetColor(col)
	c.vg.SetLineWidth(vg.Length(width))
	d := make([]vg.Length, len(dash))
	for i := range dash {
		d[i] = vg.Length(dash[i])
	}
	c.vg.SetLineDash(d, 0)
}

func corners(b box) []point {
	return []point{{b.x, b.y}, {b.right(), b.y}, {b.right(), b.bottom()}, {b.x, b.bottom()}}
}

func (c *canvas) rect(b box, col color.Color) { c.fill(corners(b), col) }

func (c *canvas) frame(b box, col color.Color, width float64) {
	c.pen(col, width)
	c.vg.Stroke(c.path(corners(b), true))
}

// block fills b with a look; all of its pattern is one path.
func (c *canvas) block(b box, l look) {
	c.rect(b, l.fill)
	c.hatch(b, l.pattern, mix(l.fill, map[bool]float64{true: -0.45, false: 0.55}[luminance(l.fill) > 0.35]))
}

func (c *canvas) hatch(b box, p pattern, col color.Color) {
	if p == solid || b.w < 1.2 || b.h < 1.2 {
		return
	}
	var path vg.Path
	add := func(x0, y0, x1, y1 float64) {
		path.Move(vg.Point{X: vg.Length(x0), Y: vg.Length(c.h - y0)})
		path.Line(vg.Point{X: vg.Length(x1), Y: vg.Length(c.h - y1)})
	}
	const gap = 3.2
	switch p {
	case vertical:
		for x := b.x + gap/2; x < b.right(); x += gap {
			add(x, b.y, x, b.bottom())
		}
	case horizontal:
		for y := b.y + gap/2; y < b.bottom(); y += gap {
			add(b.x, y, b.right(), y)
		}
	case dots:
		for y := b.y + gap/2; y < b.bottom(); y += gap {
			for x := b.x + gap/2; x+0.9 < b.right(); x += gap {
				add(x, y, x+0.9, y)
			}
		}
	case diagonal:
		for d := gap; d < b.w+b.h; d += gap {
			x0, y0 := b.x+d, b.y
			if d > b.w {
				x0, y0 = b.right(), b.y+d-b.w
			}
			x1, y1 := b.x, b.y+d
			if d > b.h {
				x1, y1 = b.x+d-b.h, b.bottom()
			}
			add(x0, y0, x1, y1)
		}
	}
	if len(path) == 0 {
		return
	}
	c.pen(col, 0.7)
	c.vg.Stroke(path)
}

const markers = 5

// mark draws the k-th marker, r points from its middle to its edge.
func (c *canvas) mark(p point, k uint8, r float64, col color.RGBA) {
	switch k % markers {
	case 0:
		pts := make([]point, 16)
		for i := range pts {
			sin, cos := math.Sincos(float64(i) * math.Pi / 8)
			pts[i] = point{p.x + r*cos, p.y + r*sin}
		}
		c.fill(pts, col)
	case 1:
		c.rect(box{p.x - 0.85*r, p.y - 0.85*r, 1.7 * r, 1.7 * r}, col)
	case 2:
		c.fill([]point{{p.x, p.y - 1.15*r}, {p.x + 1.05*r, p.y + 0.8*r}, {p.x - 1.05*r, p.y + 0.8*r}}, col)
	case 3:
		c.fill([]point{{p.x, p.y - 1.25*r}, {p.x + 1.25*r, p.y}, {p.x, p.y + 1.25*r}, {p.x - 1.25*r, p.y}}, col)
	case 4:
		c.fill([]point{{p.x, p.y + 1.15*r}, {p.x + 1.05*r, p.y - 0.8*r}, {p.x - 1.05*r, p.y - 0.8*r}}, col)
	}
}

// clip cuts s from its middle until it is at most width points wide.
func clip(s string, width, size float64, bold bool) string {
	if textWidth(s, size, bold) <= width {
		return s
	}
	r := []rune(s)
	// A name of thousands of letters is measured from near its end.
	if most := int(width/size*4) + 4; len(r) > most {
		r = append(append([]rune(nil), r[:most/2]...), r[len(r)-most/2:]...)
	}
	for n := len(r) - 1; n > 1; n-- {
		t := string(r[:(n+1)/2]) + "…" + string(r[len(r)-n/2:])
		if textWidth(t, size, bold) <= width {
			return t
		}
	}
	return "…"
}

// wrap breaks s into at most most lines of that width; the last is clipped.
func wrap(s string, width, size float64, bold bool, most int) []string {
	var out []string
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' })
	for len(words) > 0 {
		if len(out) == most-1 {
			return append(out, clip(strings.Join(words, " "), width, size, bold))
		}
		n := 1
		for n < len(words) && n < 200 && textWidth(strings.Join(words[:n+1], " "), size, bold) <= width {
			n++
		}
		out = append(out, clip(strings.Join(words[:n], " "), width, size, bold))
		words = words[n:]
	}
	return out
}

// premultiplied turns a colour with plain components into the form that
// image/color defines.
func premultiplied(c color.RGBA) color.NRGBA { return color.NRGBA(c) }

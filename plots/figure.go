package plots

import (
	"bufio"
	"bytes"
	"fmt"
	"html"
	"image/png"
	"io"
	"regexp"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is a picture with its words: the title says what is found, the
// caption how to read it and what was left out.
type Figure struct {
	Kind    string
	Title   string
	Caption string

	data   *interactive // for zoom and hover in the report; may be nil
	height float64      // of the body, in points
	body   func(c *canvas, b box)
}

const (
	figureWidth = 504.0 // 7 inches, in points
	margin      = 10.0
	dpi         = 200
)

// layout is the figure's size and its parts.
type layout struct {
	w, h           float64
	title, caption []string
	body           box
}

func (f *Figure) layout(bare bool) layout {
	l := layout{w: figureWidth}
	inner := l.w - 2*margin
	y := margin
	if !bare {
		l.title = wrap(f.Title, inner, large, true, 3)
		l.caption = wrap(f.Caption, inner, small, false, 5)
		y += float64(len(l.title))*large*1.25 + 6
	}
	l.body = box{margin, y, inner, f.height}
	y += f.height
	if len(l.caption) > 0 {
		y += 7 + float64(len(l.caption))*small*1.3
	}
	l.h = y + margin
	return l
}

func (f *Figure) draw(v vg.Canvas, l layout) {
	c := &canvas{v, l.h}
	c.rect(box{0, 0, l.w, l.h}, paper)
	for i, s := range l.title {
		c.text(margin, margin+float64(i)*large*1.25, s, style{size: large, bold: true, colour: ink})
	}
	f.body(c, l.body)
	for i, s := range l.caption {
		c.text(margin, l.body.bottom()+8+float64(i)*small*1.3, s, style{size: small, colour: muted})
	}
}

// PNG writes the figure at 200 dpi. Errors are those of w.
func (f *Figure) PNG(w io.Writer) error {
	l := f.layout(false)
	c := vgimg.NewWith(vgimg.UseWH(vg.Length(l.w), vg.Length(l.h)), vgimg.UseDPI(dpi))
	f.draw(c, l)
	return (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(w, c.Image())
}

// SVG writes the figure as SVG. Errors are those of w.
func (f *Figure) SVG(w io.Writer) error {
	b := bufio.NewWriter(w)
	_, _ = b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	_, _ = b.Write(f.svg(false))
	return b.Flush()
}

var (
	svgHead = regexp.MustCompile(`(?s)^.*?<svg width="([^"]*)" height="([^"]*)" viewBox="([^"]*)"[^>]*>`)
	svgFont = regexp.MustCompile(`font-family:[^;]*;font-variant:[^;]*;`)
)

// svg draws without the XML header; bare is without title and caption, which
// the report sets itself.
func (f *Figure) svg(bare bool) []byte {
	l := f.layout(bare)
	c := vgsvg.New(vg.Length(l.w), vg.Length(l.h))
	f.draw(c, l)
	var b bytes.Buffer
	_, _ = c.WriteTo(&b) // a buffer takes all
	// The library's head lacks what screen readers read, and names one font.
	out := svgHead.ReplaceAll(b.Bytes(), []byte(fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="$1" height="$2" viewBox="$3" role="img"><title>%s</title><desc>%s</desc>`,
		dollar(html.EscapeString(f.Title)), dollar(html.EscapeString(f.Caption)))))
	return svgFont.ReplaceAll(out, []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
}

func dollar(s string) string { return string(bytes.ReplaceAll([]byte(s), []byte("$"), []byte("$$"))) }

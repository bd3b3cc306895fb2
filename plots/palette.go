package plots

import (
	"image/color"

	"gdisim/stage"
)

// pattern is what is drawn over a fill, so that it is known without colour.
// Diagonal strokes are kept for work that nobody waited for.
type pattern uint8

const (
	solid pattern = iota
	vertical
	horizontal
	dots
	diagonal
)

// look is how a stage is drawn, in every figure.
type look struct {
	fill    color.RGBA
	pattern pattern
}

// The Okabe-Ito colours, one a family of stages.
var (
	orange     = color.RGBA{0xE6, 0x9F, 0x00, 0xFF}
	sky        = color.RGBA{0x56, 0xB4, 0xE9, 0xFF}
	green      = color.RGBA{0x00, 0x9E, 0x73, 0xFF}
	yellow     = color.RGBA{0xF0, 0xE4, 0x42, 0xFF}
	blue       = color.RGBA{0x00, 0x72, 0xB2, 0xFF}
	vermillion = color.RGBA{0xD5, 0x5E, 0x00, 0xFF}
	purple     = color.RGBA{0xCC, 0x79, 0xA7, 0xFF}
	grey       = color.RGBA{0x9A, 0x9A, 0x9C, 0xFF}
)

// The colours of everything else. The report replaces them by variables of its
// style sheet, so no stage and no series may have one of them.
var (
	ink   = color.RGBA{0x1B, 0x1B, 0x1C, 0xFF}
	muted = color.RGBA{0x5B, 0x5B, 0x5C, 0xFF}
	grid  = color.RGBA{0xDD, 0xDD, 0xDE, 0xFF}
	soft  = color.RGBA{0xE9, 0xE9, 0xEA, 0xFF}
	paper = color.RGBA{0xFF, 0xFF, 0xFE, 0xFF}
)

// mix moves c towards white by t, or towards black by -t.
func mix(c color.RGBA, t float64) color.RGBA {
	to := 255.0
	if t < 0 {
		to, t = 0, -t
	}
	f := func(v uint8) uint8 { return uint8(float64(v) + (to-float64(v))*t + 0.5) }
	return color.RGBA{f(c.R), f(c.G), f(c.B), 0xFF}
}

// luminance is how light c is, from 0 to 1.
func luminance(c color.RGBA) float64 {
	return (0.2126*float64(c.R) + 0.7152*float64(c.G) + 0.0722*float64(c.B)) / 255
}

// on is the colour of writing on c.
func on(c color.RGBA) color.RGBA {
	if luminance(c) > 0.45 {
		return color.RGBA{0, 0, 0, 0xFF}
	}
	return color.RGBA{0xFF, 0xFF, 0xFF, 0xFF}
}

// lookOf gives each stage its colour: the family by the unit that works, light
// and dark in turn by the order of a message's way.
func lookOf(s stage.Stage) look {
	l := looks[s]
	return look{mix(l.base, l.tint), l.pattern}
}

var looks = [stage.Count]struct {
	base    color.RGBA
	tint    float64
	pattern pattern
}{
	stage.None:            {color.RGBA{0x99, 0x99, 0x99, 0xFF}, 0, solid},
	stage.GPUProduce:      {green, 0.80, solid},
	stage.GPUReserve:      {green, -0.35, solid},
	stage.GPUBuild:        {green, 0.35, solid},
	stage.GPUFence:        {green, -0.10, vertical},
	stage.GPUDrain:        {green, -0.40, dots},
	stage.GPURing:         {green, 0.65, solid},
	stage.GPUKernelExit:   {green, -0.55, horizontal},
	stage.GPULaunch:       {green, 0.55, dots},
	stage.GPUStore:        {green, 0.25, vertical},
	stage.GPULoad:         {green, -0.25, horizontal},
	stage.GPUPause:        {green, 0.75, dots},
	stage.GPUPoll:         {green, 0.10, horizontal},
	stage.PCIeNotify:      {sky, -0.30, solid},
	stage.PCIeDoorbell:    {sky, 0.30, solid},
	stage.PCIeDeliver:     {sky, -0.10, vertical},
	stage.CPUWait:         {orange, 0.60, solid},
	stage.CPUInterrupt:    {orange, -0.15, horizontal},
	stage.CPUWake:         {orange, 0.30, dots},
	stage.CPUCall:         {orange, 0.10, vertical},
	stage.CPUDequeue:      {vermillion, 0.00, solid},
	stage.CPUPost:         {vermillion, 0.55, solid},
	stage.CPURing:         {vermillion, -0.30, solid},
	stage.CPUCopy:         {vermillion, 0.35, vertical},
	stage.CPUPoll:         {vermillion, -0.10, horizontal},
	stage.CPUPublish:      {vermillion, 0.75, solid},
	stage.GPUCopy:         {yellow, -0.25, solid},
	stage.GPUObserve:      {yellow, 0.10, solid},
	stage.NICSched:        {blue, 0.70, solid},
	stage.NICWQEFetch:     {blue, 0.00, solid},
	stage.NICPayloadFetch: {blue, 0.45, vertical},
	stage.NICTx:           {blue, -0.40, solid},
	stage.NICRx:           {blue, -0.10, horizontal},
	stage.NICCQE:          {blue, 0.55, dots},
	stage.FabricSerialise: {purple, -0.45, solid},
	stage.FabricPropagate: {purple, 0.55, solid},
	stage.FabricSwitch:    {purple, -0.15, solid},
	stage.FabricQueue:     {purple, 0.40, dots},
	stage.NICAck:          {purple, 0.15, vertical},
	stage.Unresolved:      {grey, 0, dots}, // of no family: what hardware cannot tell apart
}

// line is how a series is drawn: by colour, dash and marker.
type line struct {
	colour color.RGBA
	dash   []float64
	marker uint8
}

// lineOf gives the i-th path its line, the same in every figure of a result.
func lineOf(i int) line {
	colours := [...]color.RGBA{blue, vermillion, green, purple, orange, sky, {0x77, 0x77, 0x77, 0xFF}, mix(yellow, -0.35)}
	dashes := [...][]float64{nil, {5, 2}, {1.5, 1.5}, {7, 2, 1.5, 2}}
	return line{colours[i%len(colours)], dashes[i%len(dashes)], uint8(i % markers)}
}

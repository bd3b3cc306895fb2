package plots

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gdisim/result"
	"gdisim/stage"
)

func drawHeatmap(rs []*result.Result, o Options) (*Figure, error) {
	keys := sweptKeys(rs)
	if len(keys) < 2 {
		return nil, notFit("%d swept keys (want two)", len(keys))
	}
	all := runs(rs)
	m := o.Metric
	if m == stage.NoMetric {
		m = stage.MessageRate
		if !slices.ContainsFunc(all, func(r run) bool { return r.path.Metric(m) != nil }) {
			m, _ = preferred(all)
		}
	}
	// The axes with the most values; the other keys stay at their first one.
	slices.SortStableFunc(keys, func(a, b key) int { return len(b.values) - len(a.values) })
	kx, ky := keys[0], keys[1]
	rest := ""
	for _, k := range keys[2:] {
		rest = join(rest, k.short+" "+k.values[0])
	}
	nx, ny := len(kx.values), len(ky.values)
	kx.values, ky.values = thin(kx.values, maxCells), thin(ky.values, maxCells)
	paths := pathNames(rs)
	value2 := func(path string) map[[2]string]float64 {
		out := map[[2]string]float64{}
		for _, r := range all {
			if r.res != 0 || r.path.Name != path {
				continue
			}
			v, ok := value(r.path, m)
			for _, k := range keys[2:] {
				ok = ok && setting(r.point, k.name) == k.values[0]
			}
			if ok {
				out[[2]string{setting(r.point, kx.name), setting(r.point, ky.name)}] = v
			}
		}
		return out
	}
	cells := value2(paths[0])
	if len(cells) == 0 {
		return nil, notFit("no path has %s over %s and %s", cmp.Or(m.String(), "a metric"), kx.name, ky.name)
	}
	versus := ""
	if len(paths) > 1 {
		if b := value2(paths[1]); len(b) > 0 {
			versus = paths[1]
			for k, v := range cells {
				if b[k] > 0 && v > 0 {
					cells[k] = v / b[k]
				} else {
					delete(cells, k)
				}
			}
		}
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	wins, losses := 0, 0
	var loAt, hiAt [2]string
	for _, y := range ky.values {
		for _, x := range kx.values {
			v, ok := cells[[2]string{x, y}]
			if !ok {
				continue
			}
			if v < lo {
				lo, loAt = v, [2]string{x, y}
			}
			if v > hi {
				hi, hiAt = v, [2]string{x, y}
			}
			if m.IsTime() && v < 1-even || !m.IsTime() && v > 1+even {
				wins++
			} else if math.Abs(v-1) > even {
				losses++
			}
		}
	}
	if math.IsInf(lo, 1) {
		return nil, notFit("no cell of %s over %s has both paths", kx.name, ky.name)
	}
	at := func(c [2]string) string { return fmt.Sprintf("%s %s, %s %s", kx.short, c[0], ky.short, c[1]) }
	f := &Figure{Kind: "heatmap"}
	what := metricText(m)
	shade := func(v float64) color.RGBA {
		if hi <= lo {
			return mix(blue, 0.6)
		}
		return mix(blue, 0.92-1.12*(v-lo)/(hi-lo))
	}
	if versus == "" {
		best, bestAt := lo, loAt
		if !m.IsTime() {
			best, bestAt = hi, hiAt
		}
		f.Title = fmt.Sprintf("%s of %s is best at %s: %s (worst %s)", m, paths[0], at(bestAt), valueText(m, best), valueText(m, lo+hi-best))
	} else {
		what = fmt.Sprintf("%s: %s / %s", m, paths[0], versus)
		winner, loser := paths[0], versus
		if losses > wins {
			winner, loser, wins = versus, paths[0], losses
		}
		f.Title = fmt.Sprintf("%s beats %s in %s at %d of %d combinations; %[6]s / %[7]s is %[8]s to %[9]s, highest at %[10]s", winner, loser, m, wins, len(cells), paths[0], versus, digits(lo), digits(hi), at(hiAt))
		span := max(math.Abs(math.Log(lo)), math.Abs(math.Log(hi)), 0.01)
		shade = func(v float64) color.RGBA {
			d := math.Log(v) / span
			if !m.IsTime() {
				d = -d
			}
			if d < 0 {
				return mix(blue, 0.95+0.95*d)
			}
			return mix(vermillion, 0.95-0.95*d)
		}
	}
	which := ""
	if versus != "" {
		which = fmt.Sprintf("Blue: %s is better; red: %s. Below 1%s%% apart counts as even.", paths[0], versus, space)
	}
	if len(paths) > 2 && versus != "" {
		which += " Other paths are not shown."
	}
	if rest != "" {
		rest = "At " + rest + "."
	}
	f.Caption = sentences("Cells: "+what+".", which, rest, thinned(len(kx.values), nx, "values of "+kx.short), thinned(len(ky.values), ny, "values of "+ky.short))
	cell := min(26.0, max(12.0, 240/float64(len(ky.values))))
	f.height = float64(len(ky.values))*cell + 46
	f.body = func(c *canvas, b box) {
		c.text(b.x, b.y, ky.short, style{size: normal, colour: muted})
		left := 0.0
		for _, y := range ky.values {
			left = max(left, textWidth(y, normal, false))
		}
		left = min(left, 110)
		a := box{b.x + left + 6, b.y + 16, 0, float64(len(ky.values)) * cell}
		a.w = b.right() - a.x
		w := a.w / float64(len(kx.values))
		for j, y := range ky.values {
			// The first value below, as on an axis.
			top := a.bottom() - float64(j+1)*cell
			c.text(a.x-5, top+cell/2, clip(y, left, normal, false), style{size: normal, colour: ink, ax: 1, ay: 0.5})
			for i, x := range kx.values {
				r := box{a.x + float64(i)*w, top, w - 1, cell - 1}
				v, ok := cells[[2]string{x, y}]
				if !ok {
					c.hatch(r, diagonal, grid)
					continue
				}
				c.rect(r, shade(v))
				if s := digits(v); textWidth(s, small, false)+2 < r.w {
					c.text(r.x+r.w/2, r.y+r.h/2, s, style{size: small, colour: on(shade(v)), ax: 0.5, ay: 0.5})
				}
			}
		}
		every := 1
		for _, x := range kx.values {
			for textWidth(x, normal, false)+4 > w*float64(every) && every < len(kx.values) {
				every++
			}
		}
		for i, x := range kx.values {
			if i%every == 0 {
				c.text(a.x+(float64(i)+0.5)*w, a.bottom()+5, clip(x, w*float64(every), normal, false), style{size: normal, colour: ink, ax: 0.5})
			}
		}
		c.text(a.x+a.w/2, a.bottom()+19, kx.short, style{size: normal, colour: muted, ax: 0.5})
	}
	return f, nil
}

// effect is what one key does to a metric, all others as in the first point.
type effect struct {
	key    string
	lo, hi float64 // the metric
	at     [2]string
}

// settingsOf are all that a run was made of: the point's and the path's.
func settingsOf(r run) map[string]string {
	out := map[string]string{}
	for _, p := range r.path.Params {
		out[p.Key] = p.Value
	}
	for _, s := range r.point.At {
		out[s.Key] = s.Value
	}
	return out
}

// effects compares the path's first run with those that differ in one key.
func effects(rs []*result.Result, path string, m stage.Metric) (base float64, out []effect) {
	var first map[string]string
	index := map[string]int{}
	for _, r := range runs(rs) {
		v, ok := value(r.path, m)
		if !ok || r.path.Name != path {
			continue
		}
		s := settingsOf(r)
		if first == nil {
			first, base = s, v
			continue
		}
		diff := ""
		n := 0
		for k, x := range s {
			// A parameter that follows from the point's setting is no second key.
			if y, ok := first[k]; ok && x != y {
				if diff == "" || k < diff {
					diff = k
				}
				n++
			}
		}
		if n > 1 {
			n = 0
			for _, a := range r.point.At {
				if first[a.Key] != a.Value {
					diff = a.Key
					n++
				}
			}
		}
		if n != 1 {
			continue
		}
		i, ok := index[diff]
		if !ok {
			i = len(out)
			index[diff] = i
			out = append(out, effect{diff, base, base, [2]string{first[diff], first[diff]}})
		}
		e := &out[i]
		if v < e.lo {
			e.lo, e.at[0] = v, s[diff]
		}
		if v > e.hi {
			e.hi, e.at[1] = v, s[diff]
		}
	}
	slices.SortStableFunc(out, func(a, b effect) int {
		return cmp.Or(cmp.Compare(b.hi-b.lo, a.hi-a.lo), cmp.Compare(a.key, b.key))
	})
	return base, out
}

func drawTornado(rs []*result.Result, o Options) (*Figure, error) {
	m, err := metricOf(runs(rs), o, false)
	if err != nil {
		return nil, err
	}
	path := cmp.Or(o.Path, pathNames(rs)[0])
	base, es := effects(rs, path, m)
	if len(es) < 2 {
		return nil, notFit("%d keys of %s change with all others kept (want two)", len(es), path)
	}
	n := len(es)
	es = es[:min(n, maxBars)]
	f := &Figure{Kind: "tornado"}
	top := es[0]
	f.Title = fmt.Sprintf("%s of %s: %s moves it most, from %s (%s) to %s (%s)", m, path, shortKey(top.key, 1), valueText(m, top.lo), top.at[0], valueText(m, top.hi), top.at[1])
	if top.lo == top.hi {
		f.Title = fmt.Sprintf("%s of %s: none of %d keys moves it", m, path, n)
	}
	f.Caption = sentences(fmt.Sprintf("Each bar: one key changed, all others as in the first point (line, %s).", valueText(m, base)), thinned(len(es), n, "keys"))
	const pitch = 24.0
	f.height = float64(len(es))*pitch + 34
	f.body = func(c *canvas, b box) {
		left := 0.0
		lo, hi := base, base
		for _, e := range es {
			left = max(left, textWidth(e.key, normal, false))
			lo, hi = bounds(lo, hi, e.lo, e.hi)
		}
		left = min(left, 170)
		pad := max((hi-lo)*0.22, base*0.01, 1e-9)
		ax := linearAxis(metricText(m), max(0, lo-pad), hi+pad, 6)
		a := box{b.x + left + 8, b.y, 0, float64(len(es)) * pitch}
		a.w = b.right() - a.x - 12
		xTicks(c, &ax, a, true)
		px := func(v float64) float64 { return a.x + ax.at(v)*a.w }
		for i, e := range es {
			y := a.y + float64(i)*pitch + 4
			c.text(a.x-6, y+8, clip(e.key, left, normal, false), style{size: normal, colour: ink, ax: 1, ay: 0.5})
			c.block(box{px(e.lo), y, px(base) - px(e.lo), 16}, look{blue, solid})
			c.block(box{px(base), y, px(e.hi) - px(base), 16}, look{orange, vertical})
			if e.lo < base {
				c.text(px(e.lo)-3, y+8, clip(e.at[0], px(e.lo)-a.x-3, small, false), style{size: small, colour: ink, ax: 1, ay: 0.5})
			}
			if e.hi > base {
				c.text(px(e.hi)+3, y+8, clip(e.at[1], b.right()-px(e.hi)-3, small, false), style{size: small, colour: ink, ay: 0.5})
			}
		}
		c.stroke([]point{{px(base), a.y}, {px(base), a.bottom()}}, ink, 1)
	}
	return f, nil
}

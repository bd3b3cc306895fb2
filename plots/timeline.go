package plots

import (
	"cmp"
	"fmt"
	"slices"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// block is a bar of a timeline: spans of one stage that touch.
type block struct {
	piece
	lane   stage.Lane
	node   int
	row    int // within its lane
	onWalk bool
	wait   bool // held by something, of the stage that waits
}

// laneID is a unit of a node.
type laneID struct {
	node int
	lane stage.Lane
}

func drawTimeline(rs []*result.Result, o Options) (*Figure, error) {
	which := cmp.Or(o.Which, "p50")
	if !slices.Contains([]string{"p50", "p99", "max"}, which) {
		return nil, fmt.Errorf("no operation %q is kept (want p50, p99 or max)", which)
	}
	all := runs(rs)
	metrics := []stage.Metric{o.Metric}
	if o.Metric == stage.NoMetric {
		metrics = []stage.Metric{stage.PutCompletion, stage.Get, stage.Latency, stage.OneWay, stage.RTT, stage.Issue}
	}
	for _, m := range metrics {
		for _, r := range all {
			if g := graphOf(r.path, m, which); g != nil && len(g.Spans) > 0 {
				return timelineFigure(r, g, sweptKeys(rs)), nil
			}
		}
	}
	return nil, notFit("no path has a recorded operation (was it run with --no-breakdown?)")
}

// blocks joins the spans that touch, and finds each a row of its lane.
func blocks(g *result.Graph) []block {
	order := make([]int, len(g.Spans))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.Spans[a].Start, g.Spans[b].Start) })
	type id struct {
		laneID
		s            stage.Stage
		onWalk, wait bool
	}
	last := map[id]int{}
	var out []block
	add := func(s *result.Span, p piece, wait bool) {
		k := id{laneID{s.Node, s.Lane}, p.stage, s.OnWalk, wait}
		if j, ok := last[k]; ok && out[j].end >= p.start {
			out[j].end = max(out[j].end, p.end)
			return
		}
		last[k] = len(out)
		out = append(out, block{piece: p, lane: s.Lane, node: s.Node, onWalk: s.OnWalk, wait: wait})
	}
	for _, i := range order {
		s := &g.Spans[i]
		if s.OnWalk && s.Start > s.Arrival && s.Wait != stage.None {
			add(s, piece{s.Wait, s.Arrival, s.Start}, true)
		}
		add(s, piece{s.Stage, s.Start, s.End}, false)
	}
	slices.SortStableFunc(out, func(a, b block) int { return cmp.Compare(a.start, b.start) })
	ends := map[laneID][]sim.Duration{}
	for i := range out {
		b := &out[i]
		l := laneID{b.node, b.lane}
		row := slices.IndexFunc(ends[l], func(e sim.Duration) bool { return e <= b.start })
		if row < 0 {
			row = len(ends[l])
			ends[l] = append(ends[l], 0)
		}
		ends[l][row] = b.end
		b.row = row
	}
	return out
}

const rowTall = 17.0

func timelineFigure(r run, g *result.Graph, swept []key) *Figure {
	bs := blocks(g)
	all := len(bs)
	bs = bs[:min(all, maxBlocks)]
	// Rows in the order of the lanes, the initiator's first.
	var lanes []laneID
	rows := map[laneID]int{}
	var present [stage.Count]bool
	end := g.Total
	var off sim.Duration
	for _, b := range bs {
		l := laneID{b.node, b.lane}
		if rows[l] == 0 {
			lanes = append(lanes, l)
		}
		rows[l] = max(rows[l], b.row+1)
		present[b.stage] = true
		end = max(end, b.end)
		if !b.onWalk {
			off += b.end - b.start
		}
	}
	slices.SortFunc(lanes, func(a, b laneID) int { return cmp.Or(a.node-b.node, int(a.lane)-int(b.lane)) })
	top := map[laneID]int{}
	n := 0
	for _, l := range lanes {
		top[l] = n
		n += min(rows[l], 4)
	}
	leg := legendOf(present)
	area := float64(n)*rowTall + float64(len(lanes))*3
	f := &Figure{Kind: "timeline", height: area + 44 + leg.height(figureWidth-2*margin)}
	f.Title = fmt.Sprintf("%s of %s at %s: %s", g.Metric, r.path.Name, g.Which, timeText(g.Total))
	if s := others(r.point, swept); s != "" {
		f.Title += " (" + s + ")"
	}
	if longest := slices.MaxFunc(bs, func(a, b block) int { return cmp.Compare(a.walk(), b.walk()) }); longest.walk() > 0 && g.Total > 0 {
		f.Title += fmt.Sprintf("; the longest step is %s on %s, %s", longest.stage, laneText(laneID{longest.node, longest.lane}), timeText(longest.end-longest.start))
	}
	f.Caption = sentences("Solid: what the operation waited for, joined by the thin line; half as high: waiting.", "Hatched: its other work, "+timeText(off)+" in all.", thinned(len(bs), all, "steps"), crowded(rows))
	f.body = func(c *canvas, b box) {
		left := 0.0
		for _, l := range lanes {
			left = max(left, textWidth(laneText(l), normal, false))
		}
		unit, scale := unitFor(end)
		ax := linearAxis("time since the call, "+unit, 0, float64(end)/scale*1.005, 7)
		a := box{b.x + left + 8, b.y + 4, 0, area}
		a.w = b.right() - a.x - 12
		xTicks(c, &ax, a, true)
		px := func(t sim.Duration) float64 { return a.x + ax.at(float64(t)/scale)*a.w }
		py := func(l laneID, row int) float64 {
			i := slices.Index(lanes, l)
			return a.y + float64(top[l]+min(row, 3))*rowTall + float64(i)*3 + 2
		}
		for i, l := range lanes {
			y := py(l, 0)
			c.text(a.x-6, y+rowTall/2-1, laneText(l), style{size: normal, colour: ink, ax: 1, ay: 0.5})
			if i > 0 {
				line := grid
				if lanes[i-1].node != l.node {
					line = muted
				}
				c.stroke([]point{{a.x, y - 3}, {a.right(), y - 3}}, line, 0.5)
			}
		}
		c.stroke([]point{{a.x, a.y}, {a.x, a.bottom()}}, muted, 0.6)
		for _, x := range bs {
			box := box{px(x.start), py(laneID{x.node, x.lane}, x.row), max(px(x.end)-px(x.start), 0.6), rowTall - 3}
			switch {
			case x.wait:
				// Low, as nobody works.
				box.y, box.h = box.y+box.h*0.6, box.h*0.4
				c.block(box, lookOf(x.stage))
				continue
			case x.onWalk:
				c.block(box, lookOf(x.stage))
			default:
				c.rect(box, mix(lookOf(x.stage).fill, 0.6))
				c.hatch(box, diagonal, mix(lookOf(x.stage).fill, -0.3))
				c.frame(box, mix(lookOf(x.stage).fill, -0.3), 0.5)
			}
			l := lookOf(x.stage)
			if !x.onWalk {
				l = look{mix(l.fill, 0.6), diagonal}
			}
			middle := box.y + box.h/2
			switch id := fmt.Sprint(int(x.stage)); {
			case textWidth(x.stage.String(), small-1, false)+4 < box.w:
				tag(c, box.x+box.w/2, middle, x.stage.String(), false, l)
			case textWidth(id, small, true)+1.5 < box.w:
				tag(c, box.x+box.w/2, middle, id, true, l)
			}
		}
		// The walk, from lane to lane.
		var walk []point
		for _, x := range bs {
			if x.onWalk {
				y := py(laneID{x.node, x.lane}, x.row) + rowTall - 3
				walk = append(walk, point{px(x.start), y}, point{px(x.end), y})
			}
		}
		c.stroke(walk, ink, 0.8)
		if g.Total < end {
			x := px(g.Total)
			c.stroke([]point{{x, a.y}, {x, a.bottom()}}, ink, 0.8, 3, 2)
		}
		leg.draw(c, box{b.x, b.y + area + 44, b.w, b.h - area - 44})
	}
	return f
}

// walk is the block's length where the operation waited for it.
func (b block) walk() sim.Duration {
	if !b.onWalk {
		return 0
	}
	return b.end - b.start
}

func crowded(rows map[laneID]int) string {
	for _, n := range rows {
		if n > 4 {
			return "Where more than four steps overlap in a lane, they are drawn over each other."
		}
	}
	return ""
}

func laneText(l laneID) string {
	return fmt.Sprintf("%s @%d", cmp.Or(l.lane.String(), "?"), l.node)
}

package plots

import (
	"cmp"
	_ "embed" // the parts of the page
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

var (
	//go:embed assets/report.html
	reportHTML string
	//go:embed assets/report.css
	reportCSS string
	//go:embed assets/report.js
	reportJS string
	//go:embed assets/uPlot.iife.min.js
	uplotJS string
	//go:embed assets/uPlot.LICENSE
	uplotLicence string
	//go:embed assets/uPlot.min.css
	uplotCSS string
)

// Bounds of the report's tables; what they cut is said.
const (
	maxRows   = 200
	maxPanels = 24
)

// page is what the template shows.
type page struct {
	Title, Subtitle string
	Summary         []string
	Figures         []pageFigure
	Panels          []panel
	Metrics         [][2]string // name and definition
	Head            []string
	Rows            [][]string
	RowsNote        string
	Findings        []pageFinding
	Params          []pageParam
	Provenance      [][2]string
	CSS, UPlotCSS   template.CSS
	JS, UPlotJS     template.JS
	Notices         []string
}

type pageFigure struct {
	ID, Title, Caption string
	SVG                template.HTML
	Data               *interactive
}

// interactive is a figure's data for zoom and hover.
type interactive struct {
	Kind   string        `json:"kind"`
	XLabel string        `json:"xlabel"`
	YLabel string        `json:"ylabel"`
	Series []activeCurve `json:"series"`
}

type activeCurve struct {
	Name  string    `json:"name"`
	Color string    `json:"color"`
	Dash  []float64 `json:"dash,omitempty"`
	X     []float64 `json:"x"`
	Y     []float64 `json:"y"`
	P99   []float64 `json:"p99,omitempty"`
}

// panel is the breakdowns of one path at one point.
type panel struct {
	ID, Name, Note string
	Tables         []panelTable
}

type panelTable struct {
	Metric, Total, Mean string
	Rows                []panelRow
	Beside              []string
}

type panelRow struct {
	Stage, Text, Lane, Time, Mean, Share string
	Width                                string
	Colour                               template.CSS
}

type pageFinding struct {
	Name, Grade, Where, Text, Cause, Avoid string
	Count                                  int
}

type pageParam struct{ Key, Value, Unit, Source, Kind string }

// Report writes one self-contained HTML page about the results. It needs no
// network and, but for zoom and hover, no scripts. The error is ErrNotFit where
// no path finished, or w's.
func Report(w io.Writer, rs []*result.Result) error {
	if len(rs) == 0 || len(runs(rs)) == 0 && !anyFailed(rs) {
		return notFit("there is nothing to report: no path at any point")
	}
	p := page{
		Title: rs[0].Name, Subtitle: rs[0].Title, Summary: summary(rs), Findings: pageFindings(rs), Params: pageParams(rs),
		CSS: template.CSS(reportCSS), UPlotCSS: template.CSS(uplotCSS), JS: template.JS(reportJS), UPlotJS: template.JS("/* uPlot\n" + uplotLicence + "*/\n" + uplotJS),
	}
	for _, r := range rs {
		p.Provenance = append(p.Provenance, provenance(r, len(rs) > 1)...)
		p.Notices = append(p.Notices, r.Notices...)
	}
	seen := map[string]bool{}
	add := func(kind string, o Options) {
		f, err := Draw(kind, rs, o)
		if err != nil || seen[kind+f.Title] {
			return
		}
		seen[kind+f.Title] = true
		x := pageFigure{ID: fmt.Sprintf("figure-%d", len(p.Figures)+1), Title: f.Title, Caption: f.Caption, SVG: themed(f.svg(true))}
		if kind == "latency" || kind == "cdf" {
			x.Data = f.data
		}
		p.Figures = append(p.Figures, x)
	}
	for _, k := range Kinds() {
		add(k.Name, Options{})
		switch k.Name {
		case "latency":
			for _, m := range []stage.Metric{stage.OneWay, stage.RTT} {
				add(k.Name, Options{Metric: m})
			}
		case "breakdown":
			add(k.Name, Options{Metric: stage.RTT})
		case "tornado":
			for _, n := range thin(pathNames(rs), 4)[min(1, len(pathNames(rs))):] {
				add(k.Name, Options{Path: n})
			}
		}
	}
	p.panels(rs)
	p.table(rs)
	t, err := template.New("report").Parse(reportHTML)
	if err != nil {
		return err
	}
	return t.Execute(w, &p)
}

func anyFailed(rs []*result.Result) bool {
	for _, r := range rs {
		for i := range r.Points {
			if len(r.Points[i].Paths) > 0 {
				return true
			}
		}
	}
	return false
}

// themed makes a figure follow the page's light and dark.
func themed(svg []byte) template.HTML {
	s := string(svg)
	for name, c := range map[string]string{"ink": hex(ink), "muted": hex(muted), "grid": hex(grid), "band": hex(soft), "paper": hex(paper)} {
		s = strings.ReplaceAll(s, strings.ToUpper(c), "var(--"+name+")")
	}
	return template.HTML(svgIDs.ReplaceAllString(s, "<svg$1 preserveAspectRatio=\"xMidYMid meet\" viewBox"))
}

var svgIDs = regexp.MustCompile(`<svg( xmlns="[^"]*") width="[^"]*" height="[^"]*" viewBox`)

func hex(c interface{ RGBA() (r, g, b, a uint32) }) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02X%02X%02X", r>>8, g>>8, b>>8)
}

// summary says in words what the results show.
func summary(rs []*result.Result) []string {
	all := runs(rs)
	var out []string
	swept := sweptKeys(rs)
	for m := stage.Metric(1); m < stage.MetricCount; m++ {
		if m == stage.BackgroundRate || m == stage.CPUCores || m == stage.SMCount {
			continue
		}
		if i := slices.IndexFunc(swept, func(k key) bool { return k.isBytes() }); i >= 0 && m.IsTime() {
			ts := tracks(rs, m, swept[i].name)
			if len(ts) > 1 && len(ts) <= maxSeries {
				s := leaders(ts, m, func(v float64) string { return byteText(v) }, "size")
				cs := allCrossings(ts, m)
				if strings.HasSuffix(s, " above") {
					cs = nil // s has said it
				}
				for j, c := range cs {
					if j == 0 {
						s += "; it crosses"
					}
					if j < 3 {
						s += fmt.Sprintf("%s from %s to %s at %s", map[bool]string{true: ",", false: ""}[j > 0], c.a.name, c.b.name, byteText(float64(int64(c.x+0.5))))
					}
				}
				out = append(out, s+".")
				continue
			}
		}
		if s := ranking(rs, all, swept, m); s != "" {
			out = append(out, s)
		}
	}
	if m, err := breakdownMetric(all, Options{}); err == nil {
		told := map[string]bool{}
		for _, r := range all {
			b := r.path.Breakdown(m)
			if b == nil || told[r.path.Name] || len(told) >= maxSeries {
				continue
			}
			told[r.path.Name] = true
			if s, t := heaviest(b); t > 0 && b.Total > 0 {
				out = append(out, fmt.Sprintf("%s of %s is dominated by %s, %.0f%s%% of %s%s: %s.", m, r.path.Name, s, 100*float64(t)/float64(b.Total), space, timeText(b.Total), atPlace(others(r.point, swept)), s.Text()))
			}
		}
	}
	cores := map[string]bool{}
	for _, r := range all {
		if c := r.path.Cost.CPUCores; c > 0 && !cores[r.path.Name] && len(cores) < maxSeries {
			cores[r.path.Name] = true
			out = append(out, fmt.Sprintf("%s keeps %s CPU cores of the initiating node busy or polling%s.", r.path.Name, digits(c), atPlace(others(r.point, swept))))
		}
	}
	failed := 0
	for _, r := range rs {
		if r.Partial {
			out = append(out, fmt.Sprintf("The run of %s was interrupted: it shows %d points.", r.Name, len(r.Points)))
		}
		for i := range r.Points {
			for j := range r.Points[i].Paths {
				if x := &r.Points[i].Paths[j]; x.Err != "" {
					if failed++; failed <= 3 {
						out = append(out, fmt.Sprintf("%s did not finish%s: %s.", x.Name, atPlace(others(&r.Points[i], swept)), strings.TrimSuffix(x.Err, ".")))
					}
				}
			}
		}
	}
	if failed > 3 {
		out = append(out, fmt.Sprintf("In all, %d runs did not finish.", failed))
	}
	return out
}

func atPlace(where string) string {
	if where == "" {
		return ""
	}
	return " at " + where
}

// ranking says who is best in a metric, at the one point or over all.
func ranking(rs []*result.Result, all []run, swept []key, m stage.Metric) string {
	wins := map[string]int{}
	contests := 0
	var only []run
	type id struct {
		res   int
		point *result.Point
	}
	groups := map[id][]run{}
	var order []id
	for _, r := range all {
		k := id{r.res, r.point}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	for _, k := range order {
		best := bestFirst(groups[k], m)
		if len(best) < 2 {
			continue
		}
		contests++
		wins[best[0].path.Name]++
		only = best
	}
	word := "lowest"
	if !m.IsTime() {
		word = "highest"
	}
	switch contests {
	case 0:
		return ""
	case 1:
		a, _ := value(only[0].path, m)
		s := fmt.Sprintf("%s has the %s %s: %s", only[0].path.Name, word, m, valueText(m, a))
		for i, r := range only[1:min(len(only), 5)] {
			b, _ := value(r.path, m)
			s += fmt.Sprintf("%s %s× %s than %s (%s)", map[bool]string{true: ";", false: ","}[i == 0], digits(ratio(a, b)), map[bool]string{true: "less", false: "more"}[m.IsTime()], r.path.Name, valueText(m, b))
		}
		return s + "."
	}
	var parts []string
	for _, n := range pathNames(rs) {
		if wins[n] > 0 {
			parts = append(parts, fmt.Sprintf("%s at %d", n, wins[n]))
		}
	}
	return fmt.Sprintf("The %s %s of %d points: %s.", word, m, contests, strings.Join(thin(parts, 6), ", "))
}

// panels are the breakdowns of all paths at the first point.
func (p *page) panels(rs []*result.Result) {
	swept := sweptKeys(rs)
	names := labels(rs)
	told := map[string]bool{}
	for _, r := range runs(rs) {
		name := join(r.path.Name, names[r.res])
		if told[name] || len(r.path.Breakdowns) == 0 {
			continue
		}
		told[name] = true
		if len(p.Panels) == maxPanels {
			continue
		}
		x := panel{ID: fmt.Sprintf("panel-%d", len(p.Panels)), Name: name, Note: join(r.path.Workload, others(r.point, swept))}
		for i := range r.path.Breakdowns {
			x.Tables = append(x.Tables, tableOf(&r.path.Breakdowns[i]))
		}
		p.Panels = append(p.Panels, x)
	}
}

func tableOf(b *result.Breakdown) panelTable {
	t := panelTable{Metric: b.Metric.String(), Total: nanosText(b.Total), Mean: nanosText(b.MeanTotal)}
	var most sim.Duration
	for _, s := range b.Stages {
		most = max(most, s.Time)
	}
	for _, s := range b.Stages {
		name := s.Stage.String()
		if s.Node != 0 {
			name = fmt.Sprintf("%s@%d", name, s.Node)
		}
		row := panelRow{Stage: name, Text: s.Stage.Text(), Lane: s.Lane.String(), Time: nanosText(s.Time), Mean: nanosText(s.Mean), Width: "0", Colour: template.CSS(hex(lookOf(s.Stage).fill))}
		if b.Total > 0 {
			row.Share = fmt.Sprintf("%.1f%s%%", 100*float64(s.Time)/float64(b.Total), space)
		}
		if most > 0 {
			row.Width = fmt.Sprintf("%.1f", 100*float64(s.Time)/float64(most))
		}
		t.Rows = append(t.Rows, row)
	}
	for _, o := range b.Overlaps {
		s := fmt.Sprintf("%s@%d %s ns", o.Stage, o.Node, nanosText(o.Time))
		if o.After > 0 {
			s += ", and " + nanosText(o.After) + " ns after the end"
		}
		t.Beside = append(t.Beside, s)
	}
	return t
}

// nanosText writes d in nanoseconds with one decimal.
func nanosText(d sim.Duration) string { return plain(float64(d)/float64(sim.Nanosecond), 0.1) }

// table is every path at every point, in numbers.
func (p *page) table(rs []*result.Result) {
	all := runs(rs)
	swept := sweptKeys(rs)
	names := labels(rs)
	var ms []stage.Metric
	for m := stage.Metric(1); m < stage.MetricCount; m++ {
		if slices.ContainsFunc(all, func(r run) bool { return r.path.Metric(m) != nil }) {
			ms = append(ms, m)
			p.Metrics = append(p.Metrics, [2]string{m.String(), m.Text()})
		}
	}
	for _, k := range swept {
		p.Head = append(p.Head, k.short)
	}
	p.Head = append(p.Head, "path")
	for _, m := range ms {
		if m.IsTime() {
			p.Head = append(p.Head, m.String()+" p50 µs", "p99 µs")
		} else {
			p.Head = append(p.Head, m.String()+" "+m.Unit())
		}
	}
	shown := thin(all, maxRows)
	for _, r := range shown {
		var row []string
		for _, k := range swept {
			row = append(row, setting(r.point, k.name))
		}
		row = append(row, join(r.path.Name, names[r.res]))
		for _, m := range ms {
			x := r.path.Metric(m)
			switch {
			case x == nil && m.IsTime():
				row = append(row, "", "")
			case x == nil:
				row = append(row, "")
			case m.IsTime():
				row = append(row, fmt.Sprintf("%.3f", micros(x.P50)), fmt.Sprintf("%.3f", micros(x.P99)))
			default:
				row = append(row, digits(x.Value))
			}
		}
		p.Rows = append(p.Rows, row)
	}
	p.RowsNote = thinned(len(shown), len(all), "rows")
}

func pageFindings(rs []*result.Result) []pageFinding {
	swept := sweptKeys(rs)
	var out []pageFinding
	for _, r := range rs {
		for i := range r.Points {
			for j := range r.Points[i].Paths {
				x := &r.Points[i].Paths[j]
				for _, f := range x.Findings {
					k := slices.IndexFunc(out, func(o pageFinding) bool {
						return o.Name == f.Finding.String() && o.Grade == f.Grade.String() && o.Cause == f.Cause && strings.HasPrefix(o.Where, x.Name)
					})
					if k >= 0 {
						out[k].Count += f.Count
						continue
					}
					out = append(out, pageFinding{Name: f.Finding.String(), Grade: f.Grade.String(), Where: x.Name + atPlace(others(&r.Points[i], swept)), Text: f.Finding.Text(), Cause: f.Cause, Avoid: f.Avoid, Count: f.Count})
				}
			}
		}
	}
	return out
}

// pageParams are all parameters that the paths read; one that differs shows
// its values.
func pageParams(rs []*result.Result) []pageParam {
	type entry struct {
		result.Param
		values []string
		more   int
	}
	index := map[string]*entry{}
	var keys []string
	for _, r := range runs(rs) {
		for _, p := range r.path.Params {
			e := index[p.Key]
			if e == nil {
				e = &entry{Param: p}
				index[p.Key] = e
				keys = append(keys, p.Key)
			}
			switch {
			case slices.Contains(e.values, p.Value):
			case len(e.values) < 6:
				e.values = append(e.values, p.Value)
			default:
				e.more++
			}
		}
	}
	slices.Sort(keys)
	var out []pageParam
	for _, k := range keys {
		e := index[k]
		v := strings.Join(e.values, " | ")
		if e.more > 0 {
			v += " | …"
		}
		out = append(out, pageParam{k, v, e.Unit, e.Source, e.Kind})
	}
	return out
}

func provenance(r *result.Result, several bool) [][2]string {
	mark := func(s string) string {
		if several {
			return r.Name + ": " + s
		}
		return s
	}
	hardware := map[string]bool{}
	var hw []string
	for i := range r.Points {
		for j := range r.Points[i].Paths {
			if h := r.Points[i].Paths[j].Hardware; h != "" && !hardware[h] {
				hardware[h] = true
				hw = append(hw, h)
			}
		}
	}
	out := [][2]string{
		{mark("scenario"), r.Name + " (" + cmp.Or(r.Source, "no file") + ")"},
		{mark("digest of the scenario"), r.Digest},
		{mark("made by"), cmp.Or(r.Tool, "unknown") + ", " + r.How()},
		{mark("machine"), strings.Join(thin(hw, 6), ", ")},
		{mark("seed"), fmt.Sprint(r.Seed)},
		{mark("points"), fmt.Sprint(len(r.Points))},
	}
	if r.Messages > 0 {
		out = append(out, [2]string{mark("messages, events"), plain(float64(r.Messages), 1) + ", " + plain(float64(r.Events), 1)})
	}
	return out
}

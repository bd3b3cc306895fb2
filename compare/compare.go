package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// Verdict says what a row's difference means.
type Verdict uint8

// The verdicts.
const (
	Same        Verdict = iota // the interval of the difference contains 0
	Lower                      // B is below A by more than the interval
	Higher                     // B is above A by more than the interval
	OnlyA                      // B has no such number
	OnlyB                      // A has no such number
	OtherStack                 // both have it, of different stacks: not the same thing
	Unmeasured                 // B is of hardware, which cannot see the stage by itself
	OtherExtent                // both have the stage, but B's clock saw it begin or end elsewhere
	NoInterval                 // they differ, but one has no samples to say by how much it may be off
)

var verdictNames = [...]string{"same", "B lower", "B higher", "only A", "only B", "other stack", "in B's unresolved", "other extent", "no interval"}

// String returns the verdict's words.
func (v Verdict) String() string { return verdictNames[v] }

// Row is one number of both results.
type Row struct {
	Point   string // the swept keys, "" where nothing is swept
	Path    string // "" for costs of the machine
	What    string // METRIC, METRIC/STAGE[@NODE] or the name of a measured cost
	Unit    string // "time" or the metric's unit
	A, B    float64
	Verdict Verdict
	// Half is the half width of the difference's 95 % interval; Known says whether
	// there is one: both sides have samples, or one and the other is a simulated
	// stage or rate, which is exact.
	Half  float64
	Known bool
}

// Diff returns B - A, in picoseconds for times.
func (r *Row) Diff() float64 { return r.B - r.A }

// Comparison is two results, row by row.
type Comparison struct {
	A, B    string // how they are named
	Notices []string
	Rows    []Row
	// Brief leaves what only one of the two has out of Text and Markdown, but for a
	// count.
	Brief bool
}

// Common counts the rows that both have.
func (c *Comparison) Common() int {
	n := 0
	for i := range c.Rows {
		if c.Rows[i].hasA() && c.Rows[i].hasB() {
			n++
		}
	}
	return n
}

// hidden says what Brief leaves out, "" for nothing.
func (c *Comparison) hidden() string {
	var a, b int
	for i := range c.Rows {
		switch c.Rows[i].Verdict {
		case OnlyA:
			a++
		case OnlyB:
			b++
		}
	}
	if !c.Brief || a+b == 0 {
		return ""
	}
	return fmt.Sprintf("Not shown: %d numbers that only A has, %d that only B has (--all shows them).", a, b)
}

// value is one number with the half width of its interval.
type value struct {
	v, half float64
	known   bool // it has one
	exact   bool // it needs none
	stack   string
	unit    string
}

// Results compares b with a, which the names stand for. The rows are in the
// order of a, then what only b has.
func Results(nameA, nameB string, a, b *result.Result) *Comparison {
	c := &Comparison{A: nameA, B: nameB}
	note := func(name string, r *result.Result) {
		text := fmt.Sprintf("%s: %s, %s", name, r.Name, r.How())
		if r.Emulated != "" {
			text += "; " + r.Emulated
		}
		if r.Partial {
			text += "; incomplete"
		}
		c.Notices = append(c.Notices, text)
		if r.Backend != "sim" { // what was measured in another way than the scenario says
			for _, n := range r.Notices {
				c.Notices = append(c.Notices, name+": "+n)
			}
		}
	}
	note("A "+nameA, a)
	note("B "+nameB, b)
	if a.Digest != b.Digest && a.Digest != "" && b.Digest != "" {
		c.Notices = append(c.Notices, "the results are of different scenario texts")
	}
	// A clock around ibv_post_send sees the doorbell's store in it.
	mixed := a.Backend != b.Backend
	fold := map[stage.Stage]stage.Stage{}
	if mixed {
		fold[stage.CPURing] = stage.CPUPost
		if stamped(a) || stamped(b) {
			fold[stage.CPUPoll] = stage.NICCQE
		}
	}
	va, orderA := numbers(a, fold)
	vb, orderB := numbers(b, fold)
	if mixed {
		c.Notices = append(c.Notices, "cpu.post has cpu.ring in it on both sides, as a clock around ibv_post_send does; so has nic.cqe cpu.poll, where the device's time stamps tell it")
	}
	for _, k := range orderB {
		if _, ok := va[k]; !ok {
			orderA = append(orderA, k)
		}
	}
	for _, k := range orderA {
		x, inA := va[k]
		y, inB := vb[k]
		r := Row{Point: k.point, Path: k.path, What: k.what, Unit: x.unit, A: x.v, B: y.v}
		if !inA {
			r.Unit = y.unit
		}
		switch {
		case !inB && k.staged && lumped(vb, k, x.stack):
			r.Verdict = Unmeasured
		case !inB:
			r.Verdict = OnlyA
		case !inA:
			r.Verdict = OnlyB
		default:
			r.Half, r.Known = math.Hypot(x.half, y.half), x.known && (y.known || y.exact) || x.exact && y.known
			switch d := r.Diff(); {
			case x.stack != y.stack && !strings.Contains(k.what, "/"):
				r.Verdict = OtherStack
			case mixed && k.staged && strings.HasSuffix(k.what, "/"+stage.NICAck.String()):
				r.Verdict = OtherExtent
			case d == 0 || r.Known && math.Abs(d) <= r.Half:
				r.Verdict = Same
			case !r.Known && !(x.exact && y.exact):
				r.Verdict, r.Half = NoInterval, 0
			case d < 0:
				r.Verdict = Lower
			default:
				r.Verdict = Higher
			}
		}
		c.Rows = append(c.Rows, r)
	}
	return c
}

// key is what makes two numbers the same row.
type key struct {
	point, path, what string
	staged            bool
}

// handOver are stages between a GPU thread and a proxy, which a thread that has
// the message already does not take.
var handOver = []stage.Stage{stage.PCIeNotify, stage.CPUWait, stage.CPUDequeue, stage.CPUPublish}

// lumped reports whether the numbers of hardware have a lump that the stage k of
// that stack is in.
func lumped(of map[key]value, k key, stack string) bool {
	metric, rest, _ := strings.Cut(k.what, "/")
	name, _, _ := strings.Cut(rest, "@")
	lump, ok := of[key{k.point, k.path, metric + "/" + stage.Unresolved.String(), false}]
	st, _ := stage.Parse(name)
	return ok && !strings.HasPrefix(name, "gpu.") && (lump.stack == stack || !slices.Contains(handOver, st))
}

// stamped reports whether a device's clock told when its CQEs were written.
func stamped(r *result.Result) bool {
	for i := range r.Points {
		for j := range r.Points[i].Paths {
			for _, b := range r.Points[i].Paths[j].Breakdowns {
				if slices.ContainsFunc(b.Stages, func(s result.StageTime) bool { return s.Stage == stage.NICCQE && s.Method != "" }) {
					return true
				}
			}
		}
	}
	return false
}

// numbers are those of a result, with the stages that fold names added to others.
func numbers(r *result.Result, fold map[stage.Stage]stage.Stage) (map[key]value, []key) {
	out := map[key]value{}
	var order []key
	add := func(k key, v value) {
		if _, dup := out[k]; !dup {
			order = append(order, k)
		}
		out[k] = v
	}
	measured := func(point, path string, ms []result.Measured) {
		for i := range ms {
			m := &ms[i]
			if m.Err != "" || m.N == 0 {
				continue
			}
			half, known := half(m.N, m.Quantiles)
			if !known && m.Max > m.Min { // a difference carries its interval
				half, known = float64(m.Max-m.Min)/2, true
			}
			add(key{point, path, m.Name, false}, value{v: float64(m.P50), half: half, known: known, unit: "time"})
		}
	}
	for i := range r.Points {
		pt := &r.Points[i]
		var at []string
		for _, s := range pt.At {
			at = append(at, s.Key+"="+s.Value)
		}
		point := strings.Join(at, " ")
		for j := range pt.Paths {
			p := &pt.Paths[j]
			for k := range p.Metrics {
				m := &p.Metrics[k]
				v := value{v: m.Value, exact: r.Backend == "sim" && !m.Metric.IsTime(), stack: p.Stack, unit: m.Metric.Unit()}
				if m.Metric.IsTime() {
					v.v = float64(m.P50)
					v.half, v.known = half(m.N, m.Quantiles)
				}
				add(key{point, p.Name, m.Metric.String(), false}, v)
			}
			for _, b := range p.Breakdowns {
				for _, s := range folded(b.Stages, fold) {
					if s.Time == 0 && s.Mean == 0 {
						continue
					}
					what := b.Metric.String() + "/" + s.Stage.String()
					if s.Node > 0 {
						what += fmt.Sprintf("@%d", s.Node)
					}
					add(key{point, p.Name, what, s.Stage != stage.Unresolved}, value{v: float64(s.Time), half: float64(s.Spread), known: s.Method != "", exact: r.Backend == "sim" && s.Method == "", stack: p.Stack, unit: "time"})
				}
			}
			measured(point, p.Name, p.Measured)
		}
	}
	measured("", "", r.Measured)
	return out, order
}

// folded adds each stage that fold names to the other of the same node, where that
// is there.
func folded(in []result.StageTime, fold map[stage.Stage]stage.Stage) []result.StageTime {
	var out []result.StageTime
	for _, s := range in {
		if into, ok := fold[s.Stage]; ok {
			if i := slices.IndexFunc(out, func(x result.StageTime) bool { return x.Stage == into && x.Node == s.Node }); i >= 0 {
				out[i].Time += s.Time
				out[i].Mean += s.Mean
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// half returns the half width of the median's 95 % interval, from the order
// statistics that the quantiles keep.
func half(n int, quantiles []sim.Duration) (float64, bool) {
	levels := result.Levels()
	if n < 2 || len(quantiles) != len(levels) {
		return 0, false
	}
	d := 0.98 / math.Sqrt(float64(n)) * 1e6
	at := func(ppm float64) float64 {
		i, _ := slices.BinarySearch(levels, int(ppm))
		return float64(quantiles[min(i, len(levels)-1)])
	}
	return (at(min(5e5+d, 1e6)) - at(max(5e5-d, 0))) / 2, true
}

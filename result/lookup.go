package result

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdisim/sim"
	"gdisim/stage"
)

// Stat is what is taken of a distribution.
type Stat uint8

// The statistics. P50 is what a name without a statistic means; Share is a
// stage's fraction of its metric.
const (
	P50 Stat = iota
	P99
	P999
	Max
	Min
	Mean
	Share
)

var statNames = [...]string{P50: "p50", P99: "p99", P999: "p99.9", Max: "max", Min: "min", Mean: "mean", Share: "share"}

// String returns the statistic's name as scenarios spell it.
func (s Stat) String() string { return statNames[s] }

// Of returns the statistic of a metric of time.
//
// Preconditions: s is not Share.
func (s Stat) Of(m *Metric) sim.Duration {
	return [...]sim.Duration{P50: m.P50, P99: m.P99, P999: m.P999, Max: m.Max, Min: m.Min, Mean: m.Mean}[s]
}

// Name is a parsed metric name: METRIC[.STAT] or METRIC/STAGE[@NODE][.STAT].
type Name struct {
	Metric stage.Metric
	Stage  stage.Stage // None for the metric itself
	Node   int         // of the stage; -1 for all nodes together
	Stat   Stat
}

// ParseName reads names such as "rtt", "put+completion.p99", "cpu.cores",
// "one-way/nic.tx", "one-way/nic.tx@1.share". A stage has p50, mean and share;
// a value has no statistics. The error says what is unknown.
func ParseName(s string) (Name, error) {
	n := Name{Node: -1}
	head, tail, staged := strings.Cut(s, "/")
	if !staged {
		base, stat, hasStat := cutStat(head, func(b string) bool { _, ok := stage.ParseMetric(b); return ok })
		m, ok := stage.ParseMetric(base)
		switch {
		case !ok:
			return n, fmt.Errorf("unknown metric %q", head)
		case hasStat && (!m.IsTime() || stat == Share):
			return n, fmt.Errorf("%s has no %s", m, stat)
		}
		n.Metric, n.Stat = m, stat
		return n, nil
	}
	m, ok := stage.ParseMetric(head)
	if !ok {
		return n, fmt.Errorf("unknown metric %q", head)
	}
	if !m.IsTime() {
		return n, fmt.Errorf("%s is no time and has no stages", m)
	}
	base, stat, _ := cutStat(tail, func(b string) bool { _, _, ok := parseStage(b); return ok })
	st, node, ok := parseStage(base)
	switch {
	case !ok:
		return n, fmt.Errorf("unknown stage %q", tail)
	case stat != P50 && stat != Mean && stat != Share:
		return n, fmt.Errorf("a stage has p50, mean and share, but no %s", stat)
	}
	return Name{Metric: m, Stage: st, Node: node, Stat: stat}, nil
}

// cutStat splits a trailing statistic off s, unless s is a name as it stands.
func cutStat(s string, known func(string) bool) (base string, stat Stat, has bool) {
	if known(s) {
		return s, P50, false
	}
	for i := range statNames {
		if base, ok := strings.CutSuffix(s, "."+statNames[i]); ok && known(base) {
			return base, Stat(i), true
		}
	}
	return s, P50, false
}

// parseStage reads STAGE or STAGE@NODE.
func parseStage(s string) (st stage.Stage, node int, ok bool) {
	name, at, hasNode := strings.Cut(s, "@")
	node = -1
	if hasNode {
		n, err := strconv.Atoi(at)
		if err != nil || n < 0 {
			return stage.None, 0, false
		}
		node = n
	}
	st, ok = stage.Parse(name)
	return st, node, ok
}

// String is the inverse of ParseName, with the statistic where there is one.
func (n Name) String() string {
	s := n.Metric.String()
	if n.Stage != stage.None {
		s += "/" + n.Stage.String()
		if n.Node >= 0 {
			s += "@" + strconv.Itoa(n.Node)
		}
	}
	if n.Metric.IsTime() {
		s += "." + n.Stat.String()
	}
	return s
}

// Value is what a look-up gives: a time, or a number in a unit.
type Value struct {
	Unit   string       // "time", "share" (a fraction of 1), or the metric's unit
	Time   sim.Duration // set where Unit is "time"
	Number float64      // set otherwise
}

// Lookup returns the value of the metric of that name, see ParseName. A known
// stage that the metric's walk does not pass is 0. The error says what the
// path does not have.
func (p *Path) Lookup(metric string) (Value, error) {
	n, err := ParseName(metric)
	if err != nil {
		return Value{}, err
	}
	return p.Get(n)
}

// Get is Lookup of a parsed name.
func (p *Path) Get(n Name) (Value, error) {
	if n.Stage != stage.None {
		return p.getStage(n)
	}
	if m := p.Metric(n.Metric); m != nil {
		if n.Metric.IsTime() {
			return Value{Unit: "time", Time: n.Stat.Of(m)}, nil
		}
		return Value{Unit: n.Metric.Unit(), Number: m.Value}, nil
	}
	// The costs are metrics too, wherever the backend put them.
	switch n.Metric {
	case stage.CPUCores:
		return Value{Unit: n.Metric.Unit(), Number: p.Cost.CPUCores}, nil
	case stage.SMCount:
		return Value{Unit: n.Metric.Unit(), Number: float64(p.Cost.SMs)}, nil
	}
	var have []string
	for i := range p.Metrics {
		have = append(have, p.Metrics[i].Metric.String())
	}
	if len(have) == 0 {
		have = []string{"none"}
	}
	return Value{}, fmt.Errorf("path %s has no %s (it has: %s)", p.Name, n.Metric, strings.Join(have, ", "))
}

func (p *Path) getStage(n Name) (Value, error) {
	b := p.Breakdown(n.Metric)
	if b == nil {
		return Value{}, fmt.Errorf("path %s has no breakdown of %s", p.Name, n.Metric)
	}
	var t, mean sim.Duration
	for _, s := range b.Stages {
		if s.Stage == n.Stage && (n.Node < 0 || s.Node == n.Node) {
			t += s.Time
			mean += s.Mean
		}
	}
	switch {
	case n.Stat == Mean:
		return Value{Unit: "time", Time: mean}, nil
	case n.Stat == Share && b.Total == 0:
		return Value{Unit: "share"}, nil
	case n.Stat == Share:
		return Value{Unit: "share", Number: float64(t) / float64(b.Total)}, nil
	}
	return Value{Unit: "time", Time: t}, nil
}

// Metric returns the path's metric m, nil if it has none.
func (p *Path) Metric(m stage.Metric) *Metric {
	if i := slices.IndexFunc(p.Metrics, func(x Metric) bool { return x.Metric == m }); i >= 0 {
		return &p.Metrics[i]
	}
	return nil
}

// Breakdown returns the path's breakdown of m, nil if it has none.
func (p *Path) Breakdown(m stage.Metric) *Breakdown {
	if i := slices.IndexFunc(p.Breakdowns, func(x Breakdown) bool { return x.Metric == m }); i >= 0 {
		return &p.Breakdowns[i]
	}
	return nil
}

// Path returns the point's path of that name, nil if it has none.
func (p *Point) Path(name string) *Path {
	if i := slices.IndexFunc(p.Paths, func(x Path) bool { return x.Name == name }); i >= 0 {
		return &p.Paths[i]
	}
	return nil
}

package importers

import (
	"fmt"
	"slices"
	"strings"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/stage"
)

// Bind returns r as a result of the scenario: the points of s that r has numbers
// for, with the scenario's path in place of the benchmark's. The path is that of
// the same name, or else the only one of the same stack. What of r is left, and
// what the two were taken with that differs, is in the result's notices. The
// error says why nothing fits.
func Bind(r *result.Result, s *scenarios.Scenario) (*result.Result, error) {
	out := *r
	out.Points, out.Notices, out.Digest, out.Name = nil, slices.Clone(r.Notices), s.Digest, s.Name+" by "+r.Name
	used := map[string]bool{}
	note := func(format string, args ...any) {
		if n := fmt.Sprintf(format, args...); !slices.Contains(out.Notices, n) {
			out.Notices = append(out.Notices, n)
		}
	}
	targets := map[string]int{}
	for _, pt := range r.Points {
		for _, p := range pt.Paths {
			j, err := pathFor(&p, s)
			if err != nil {
				return nil, err
			}
			targets[p.Name] = j
		}
	}
	for i, at := range s.Points() {
		pt := result.Point{Index: at.Index}
		for _, x := range at.At {
			pt.At = append(pt.At, result.Setting(x))
		}
		for _, from := range r.Points {
			for _, p := range from.Paths {
				j := targets[p.Name]
				c := s.Config(i, j)
				if scenarios.IsStep(c.Enum("workload.kind")) || c.Bytes("workload.bytes") != bytesOf(&from) {
					continue
				}
				p.Metrics = slices.DeleteFunc(slices.Clone(p.Metrics), func(m result.Metric) bool { return !reports(c.Enum("workload.kind"), m.Metric) })
				if len(p.Metrics) == 0 && len(p.Measured) == 0 {
					continue
				}
				used[sizeOf(&from)+p.Name] = true
				for _, n := range differ(r, c) {
					note("%s: %s", s.Paths[j].Name, n)
				}
				p.Name, p.Hardware = s.Paths[j].Name, s.Hardware
				if pt.Path(p.Name) == nil {
					pt.Paths = append(pt.Paths, p)
				}
			}
		}
		if len(pt.Paths) > 0 {
			out.Points = append(out.Points, pt)
		}
	}
	var left []string
	for _, pt := range r.Points {
		if !slices.ContainsFunc(pt.Paths, func(p result.Path) bool { return used[sizeOf(&pt)+p.Name] }) {
			left = append(left, sizeOf(&pt))
		}
	}
	if len(left) > 0 {
		note("not points of the scenario, so left out: %s", strings.Join(left, ", "))
	}
	if len(out.Points) == 0 && len(out.Measured) == 0 {
		return nil, fmt.Errorf("%s: no point of %s has a size and a kind of workload that it has numbers for (it has %s)", r.Source, s.File, strings.Join(left, ", "))
	}
	return &out, nil
}

func sizeOf(p *result.Point) string {
	for _, s := range p.At {
		if s.Key == sizeKey {
			return s.Value
		}
	}
	return "no size"
}

func pathFor(p *result.Path, s *scenarios.Scenario) (int, error) {
	if j := slices.IndexFunc(s.Paths, func(x scenarios.PathRef) bool { return x.Name == p.Name }); j >= 0 {
		return j, nil
	}
	found := -1
	for j, x := range s.Paths {
		if x.Stack == p.Stack {
			if found >= 0 {
				return 0, fmt.Errorf("more than one path of %s is of stack %s: import --path NAME says which", s.File, p.Stack)
			}
			found = j
		}
	}
	if found < 0 {
		return 0, fmt.Errorf("%s has no path %s and none of stack %s: import --path NAME, and --stack, say which it is", s.File, p.Name, p.Stack)
	}
	return found, nil
}

// reports says whether a kind of workload reports a metric.
func reports(kind string, m stage.Metric) bool {
	switch m {
	case stage.RTT, stage.PutCompletion, stage.OneWay, stage.Issue:
		return kind == "put" || kind == "put-signal" || kind == "ping-pong" && m == stage.RTT
	case stage.Get:
		return kind == "get"
	}
	return kind == "stream"
}

// differ says what the benchmark ran with that the scenario has otherwise.
func differ(r *result.Result, c *scenarios.Config) []string {
	fact := func(key string) string {
		for _, s := range r.Machine {
			if s.Key == key {
				return s.Value
			}
		}
		return ""
	}
	var out []string
	check := func(name, fact, scenario string) {
		if fact != "" && fact != scenario {
			out = append(out, fmt.Sprintf("the benchmark had %s %s, the scenario has %s", name, fact, scenario))
		}
	}
	qps := 1
	if c.Has("path.qps_per_peer") {
		qps = c.Count("path.qps_per_peer")
	}
	check("queue pairs:", fact("perftest.number-of-qps"), fmt.Sprint(qps))
	check("connection type", fact("perftest.connection-type"), strings.ToUpper(c.Enum("path.transport")))
	if c.Has("hardware.fabric.transport") {
		link := "Ethernet"
		if c.Enum("hardware.fabric.transport") == "infiniband" {
			link = "IB"
		}
		check("a link of", fact("perftest.link-type"), link)
	}
	if c.Has("hardware.nic.mtu") {
		check("an MTU in bytes of", strings.TrimSuffix(fact("perftest.mtu"), "[B]"), fmt.Sprint(c.Bytes("hardware.nic.mtu")))
	}
	if c.Enum("workload.kind") == "stream" {
		check("a send queue of", fact("perftest.tx-depth"), fmt.Sprint(c.Count("workload.outstanding")))
		if c.Enum("path.protocol") == "cpu-verbs" {
			check("a CQE every so many messages:", fact("perftest.cq-moderation"), fmt.Sprint(c.Count("path.cpu.cqe_every")))
		}
	}
	memory := fact("perftest.memory")
	if memory == "" && fact("perftest.device") != "" {
		memory = "host"
	}
	check("the payload in memory of:", memory, c.Enum("path.payload_in"))
	return out
}

package testbed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
	"gdisim/testbed"
)

// tb is what testing.T, testing.B and rapid.T have in common.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

func parse(t tb, text string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

// scene is a scenario in parts, the hardware being the embedded profile.
type scene struct {
	hardware string   // lines of hardware.set
	host     string   // flow mapping
	fabric   string   // cluster.fabric
	nodes    int      // of the cluster, if not two
	paths    []string // items
	workload string   // flow mapping
	more     string   // further sections
	seed     uint64
}

func (s scene) text() string {
	var b strings.Builder
	b.WriteString("gdisim: v1\nname: test\ntitle: test\nhardware:\n  profile: h200-cx7-ib200\n")
	if s.hardware != "" {
		b.WriteString("  set:\n")
		for l := range strings.SplitSeq(strings.TrimSpace(s.hardware), "\n") {
			b.WriteString("    " + strings.TrimSpace(l) + "\n")
		}
	}
	if s.host != "" {
		b.WriteString("host: " + s.host + "\n")
	}
	if s.fabric != "" {
		b.WriteString("cluster: {fabric: " + s.fabric)
		if s.nodes > 0 {
			fmt.Fprintf(&b, ", nodes: %d", s.nodes)
		}
		b.WriteString("}\n")
	}
	b.WriteString("paths:\n")
	for _, p := range s.paths {
		b.WriteString("  - " + p + "\n")
	}
	b.WriteString("workload: " + s.workload + "\n" + s.more)
	if s.seed != 0 {
		fmt.Fprintf(&b, "seed: %d\n", s.seed)
	}
	return b.String()
}

func run(t tb, s scene, o testbed.Options) *result.Result {
	t.Helper()
	res, err := testbed.Run(context.Background(), parse(t, s.text()), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.text())
	}
	return res
}

// refusal returns why a scenario or its first path cannot run: an error of the
// scenario, or a platform that blocks the path, which is a finding; "" if it runs.
func refusal(t tb, text string) string {
	t.Helper()
	res, err := testbed.Run(context.Background(), parse(t, text), testbed.Options{Workers: 1})
	if err != nil {
		return err.Error()
	}
	p := &res.Points[0].Paths[0]
	why, is := strings.CutPrefix(p.Err, "refused: ")
	if is && (len(p.Findings) != 1 || p.Findings[0].Finding != stage.P2PBlocked || p.Findings[0].Grade != stage.Occurred) {
		t.Fatalf("refused with findings %+v", p.Findings)
	}
	return why
}

// paths runs a scenario of one point with breakdowns and returns its paths,
// none of which may have failed.
func paths(t tb, s scene) []result.Path {
	t.Helper()
	res := run(t, s, testbed.Options{Breakdown: true, Workers: 1})
	ps := res.Points[0].Paths
	for _, p := range ps {
		if p.Err != "" {
			t.Fatalf("%s: %s\n%s", p.Name, p.Err, s.text())
		}
	}
	return ps
}

func metric(t tb, p *result.Path, m stage.Metric) result.Metric {
	t.Helper()
	for _, x := range p.Metrics {
		if x.Metric == m {
			return x
		}
	}
	t.Fatalf("%s: no %v", p.Name, m)
	return result.Metric{}
}

func breakdown(t tb, p *result.Path, m stage.Metric) *result.Breakdown {
	t.Helper()
	for i := range p.Breakdowns {
		if p.Breakdowns[i].Metric == m {
			return &p.Breakdowns[i]
		}
	}
	t.Fatalf("%s: no breakdown of %v", p.Name, m)
	return nil
}

// at returns the time and the occurrences of a stage at a node in a breakdown.
func at(b *result.Breakdown, s stage.Stage, node int) (sim.Duration, int) {
	for _, x := range b.Stages {
		if x.Stage == s && x.Node == node {
			return x.Time, x.N
		}
	}
	return 0, 0
}

var _ tb = (*testing.T)(nil)

package result_test

import (
	"slices"
	"testing"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

func TestDeadAxes(t *testing.T) {
	// Two axes of two values; times(i, j) is what a path reports at their values.
	sweep := func(keys [2]string, params []string, err string, times func(i, j int) sim.Duration) []result.Point {
		var out []result.Point
		for i, a := range []string{"1", "2"} {
			for j, b := range []string{"x", "y"} {
				p := result.Path{Name: "a", Err: err, Metrics: []result.Metric{{Metric: stage.Issue, P50: times(i, j)}}}
				for _, k := range params {
					p.Params = append(p.Params, result.Param{Key: k, Value: a + b})
				}
				out = append(out, result.Point{Index: len(out), At: []result.Setting{{Key: keys[0], Value: a}, {Key: keys[1], Value: b}}, Paths: []result.Path{p}})
			}
		}
		return out
	}
	keys := [2]string{"host.clock", "paths.a.fence"}
	both := []string{"host.clock", "path.fence"}
	first := func(i, _ int) sim.Duration { return sim.Duration(i) }
	for _, tt := range []struct {
		name   string
		points []result.Point
		want   []string
	}{
		{"one matters", sweep(keys, both, "", first), []string{"a: sweeping paths.a.fence changes nothing here"}},
		{"only together", sweep(keys, both, "", func(i, j int) sim.Duration { return sim.Duration(i * j) }), nil},
		{"none matters", sweep(keys, both, "", func(int, int) sim.Duration { return 7 }), []string{"a: sweeping host.clock changes nothing here", "a: sweeping paths.a.fence changes nothing here"}},
		{"not read", sweep(keys, both[:1], "", first), nil},
		{"another path's key", sweep([2]string{"host.clock", "paths.b.fence"}, both, "", first), nil},
		{"of all paths", sweep([2]string{"host.clock", "paths.*.fence"}, both, "", first), []string{"a: sweeping paths.*.fence changes nothing here"}},
		{"did not finish", sweep(keys, both, "deadlock", first), nil},
		{"no sweep", sweep(keys, both, "", first)[:1], nil},
	} {
		if got := result.DeadAxes(tt.points); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// DeadAxes says, a line each, which keys of a sweep changed nothing for which
// path: wherever only that key differs, all that the path did is the same, to the
// last picosecond. Since points draw random numbers of their own, nothing is said
// of a path with random latencies, nor of a key that the path did not read: that
// it is told of by itself.
func DeadAxes(points []Point) []string {
	if len(points) < 2 {
		return nil
	}
	var out []string
	for axis, s := range points[0].At {
		groups := map[string]*Point{} // by the other keys; the first of each
		dead := make([]bool, len(points[0].Paths))
		for i := range dead {
			dead[i] = reads(&points[0].Paths[i], s.Key)
		}
		varied := false
		for i := range points {
			p := &points[i]
			key := others(p.At, axis)
			first, ok := groups[key]
			if !ok {
				groups[key] = p
				continue
			}
			varied = true
			for j := range dead {
				dead[j] = dead[j] && same(&first.Paths[j], &p.Paths[j])
			}
		}
		for j, p := range points[0].Paths {
			if varied && dead[j] {
				out = append(out, fmt.Sprintf("%s: sweeping %s changes nothing here", p.Name, s.Key))
			}
		}
	}
	return out
}

// reads reports whether the path read the swept key.
func reads(p *Path, key string) bool {
	if rest, ok := strings.CutPrefix(key, "paths."); ok {
		name, k, _ := strings.Cut(rest, ".")
		if name != "*" && name != p.Name {
			return false
		}
		key = "path." + k
	}
	return p.Err == "" && slices.ContainsFunc(p.Params, func(q Param) bool { return q.Key == key })
}

func others(at []Setting, axis int) string {
	var b strings.Builder
	for i, s := range at {
		if i != axis {
			b.WriteString(s.Value + "\n")
		}
	}
	return b.String()
}

// same compares what two runs did, whatever parameters made them, as results
// have it: a point that was read from one is no other.
func same(a, b *Path) bool {
	if len(a.Metrics) != len(b.Metrics) {
		return false
	}
	for i := range a.Metrics { // spares the rest in most cases
		if x, y := &a.Metrics[i], &b.Metrics[i]; x.Mean != y.Mean || x.P50 != y.P50 || x.Value != y.Value {
			return false
		}
	}
	text := func(p Path) []byte {
		p.Params, p.Graphs = nil, nil
		out, err := json.Marshal(pathToWire(p))
		if err != nil { // as NaN; never the same
			return nil
		}
		return out
	}
	x := text(*a)
	return x != nil && bytes.Equal(x, text(*b))
}

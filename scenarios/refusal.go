package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Refusal is a combination of keys that no machine could run, found when a path
// is set up at a point.
type Refusal struct {
	Point, Path int    // of Config
	Key         string // the field that is named for it: path.fence; empty: none
	What        string // what is wrong, and what to write instead
}

// Error returns the refusal without its place: "fence: missing (want ...)".
func (r *Refusal) Error() string {
	if r.Key == "" {
		return r.What
	}
	return strings.TrimPrefix(r.Key, "path.") + ": " + r.What
}

// place is where a document gives a value, or a section.
type place struct {
	file      string
	line, col int    // 0: none, as in a --set
	path      string // workload.bytes, paths[0].set.fence, sweep.workload.bytes[2]
}

func (d *document) place(n *yaml.Node, path string) place {
	p := place{file: d.file, path: path}
	if d.at {
		p.line, p.col = n.Line, n.Column
	}
	return p
}

// refusalsShown is how many refusals at one place are told apart.
const refusalsShown = 4

// Refused returns the refusals as Problems, in the order of their positions:
// where the scenario or a --set gives the key, else where it names the path, or
// describes the workload. What is wrong alike for several paths or points is one
// problem; it says which paths where it is not all. Of many at one place a few are shown.
func (s *Scenario) Refused(rs []*Refusal) error {
	type problem struct {
		at   place
		what string
	}
	var order []problem
	paths := map[problem][]string{}
	for _, r := range rs {
		at, own := s.placeOf(r)
		p := problem{at, r.What}
		if !own {
			p.what = r.Error()
		}
		if paths[p] == nil {
			order = append(order, p)
		}
		if name := s.Paths[r.Path].Name; !slices.Contains(paths[p], name) {
			paths[p] = append(paths[p], name)
		}
	}
	slices.SortStableFunc(order, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.col, b.at.col))
	})
	errs := make([]error, 0, len(order))
	alike := 0 // at the place
	for i, p := range order {
		if i > 0 && order[i-1].at == p.at {
			alike++
		} else {
			alike = 0
		}
		last := i+1 == len(order) || order[i+1].at != p.at
		if alike >= refusalsShown {
			if last {
				errs = append(errs, &Problem{File: p.at.file, Line: p.at.line, Col: p.at.col, Path: p.at.path, What: fmt.Sprintf("and more like it at other points (%d found)", alike+1-refusalsShown)})
			}
			continue
		}
		of := paths[p]
		if len(of) < len(s.Paths) && !strings.HasPrefix(p.at.path, "paths") && !strings.HasPrefix(p.at.path, "sweep.paths."+of[0]+".") {
			word := "path "
			if len(of) > 1 {
				word = "paths "
			}
			p.what = word + strings.Join(of, ", ") + ": " + p.what
		}
		errs = append(errs, &Problem{File: p.at.file, Line: p.at.line, Col: p.at.col, Path: p.at.path, What: p.what})
	}
	return errors.Join(errs...)
}

// placeOf returns where a refusal belongs; own reports whether its key is there.
func (s *Scenario) placeOf(r *Refusal) (at place, own bool) {
	for _, m := range s.Config(r.Point, r.Path).layers {
		if v, ok := m[r.Key]; ok {
			if v.place.file != "" {
				return v.place, true
			}
			break
		}
	}
	if s.places == nil || strings.HasPrefix(r.Key, "workload.") {
		return s.work, false
	}
	return s.places[r.Path], false
}

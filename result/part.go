package result

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Part says of which whole a result has some points only.
type Part struct {
	Of      string // digest of all that the sweep was made of, hex
	Points  int    // of the whole sweep
	Notices int    // the first so many are of the whole; the others, of points
}

// Gather gives a result, whose notices are those of the whole sweep, its points:
// all of total, or those that have run, in their order.
func (r *Result) Gather(of string, total int, points []Point) {
	head := len(r.Notices)
	r.Points = points
	said := map[string]bool{}
	for i := range points {
		r.Messages += points[i].Messages
		r.Events += points[i].Events
		for _, n := range points[i].Notices {
			if !said[n] {
				said[n] = true
				r.Notices = append(r.Notices, n)
			}
		}
	}
	r.Notices = append(r.Notices, unread(points)...)
	if r.Partial = len(points) < total; r.Partial {
		r.Part = &Part{Of: of, Points: total, Notices: head}
		return
	}
	r.Part = nil
	r.Notices = append(r.Notices, DeadAxes(points)...)
	for i := range points {
		points[i].Account = Account{}
	}
}

// unread says, a line for each path, which keys it read at no point.
func unread(points []Point) (notices []string) {
	if len(points) == 0 {
		return nil
	}
	for _, u := range points[0].Unread {
		keys := slices.Clone(u.Keys)
		for i := range points[1:] {
			at := points[1+i].Unread
			k := slices.IndexFunc(at, func(x Unread) bool { return x.Path == u.Path })
			keys = slices.DeleteFunc(keys, func(key string) bool { return k < 0 || !slices.Contains(at[k].Keys, key) })
		}
		if len(keys) > 0 {
			notices = append(notices, u.Path+": set, but without effect here: "+strings.Join(keys, ", "))
		}
	}
	return notices
}

// Merge puts the parts of a sweep together; names are what errors call them. The
// result is the one of a run of the whole.
func Merge(names []string, parts []*Result) (*Result, error) {
	if len(parts) == 0 {
		return nil, errors.New("nothing to merge")
	}
	var errs []error
	var points []Point
	from := map[int]string{}
	first := parts[0]
	for i, r := range parts {
		switch {
		case r.Part == nil:
			errs = append(errs, fmt.Errorf("%s: no part of a sweep (want what sweep --shard wrote)", names[i]))
			continue
		case first.Part == nil:
			continue
		case r.Tool != first.Tool:
			errs = append(errs, fmt.Errorf("%s: by %s, but %s by %s", names[i], r.Tool, names[0], first.Tool))
			continue
		case r.Part.Of != first.Part.Of:
			errs = append(errs, fmt.Errorf("%s: part of another sweep than %s: the scenario, what it includes, --set, --seed or --no-breakdown differ", names[i], names[0]))
			continue
		}
		for _, p := range r.Points {
			if other, ok := from[p.Index]; ok {
				errs = append(errs, fmt.Errorf("%s: point %d is in %s too", names[i], p.Index, other))
				break
			}
			from[p.Index] = names[i]
			points = append(points, p)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	total := first.Part.Points
	if missing := gaps(from, total); missing != "" {
		return nil, fmt.Errorf("points %s of the %d from 0 are missing", missing, total)
	}
	slices.SortFunc(points, func(a, b Point) int { return a.Index - b.Index })
	whole := *first
	whole.Messages, whole.Events = 0, 0
	whole.Notices = slices.Clone(first.Notices[:first.Part.Notices])
	whole.Gather("", total, points)
	return &whole, nil
}

// gaps lists the numbers below n that are not there, as ranges; of many the first.
func gaps(there map[int]string, n int) string {
	var out []string
	for i := 0; i < n; i++ {
		if _, ok := there[i]; ok {
			continue
		}
		j := i
		for j+1 < n {
			if _, ok := there[j+1]; ok {
				break
			}
			j++
		}
		switch {
		case len(out) == 8:
			return strings.Join(out, ", ") + ", ..."
		case i == j:
			out = append(out, fmt.Sprint(i))
		default:
			out = append(out, fmt.Sprintf("%d to %d", i, j))
		}
		i = j
	}
	return strings.Join(out, ", ")
}

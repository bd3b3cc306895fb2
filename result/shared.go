package result

import (
	"cmp"
	"slices"
	"strings"
)

// schemaShared is the layout whose parameters are shared: those that a path read
// alike at every point stand once, in "params", and the path has the others.
const schemaShared = "gdisim-result/2"

// wireShared are the parameters that a path of this name read alike everywhere.
type wireShared struct {
	Path   string      `json:"path"`
	Params []wireParam `json:"params"`
}

// byKey is the order of a path's parameters: by key, those of faults last.
func byKey(a, b wireParam) int {
	fault := func(p wireParam) int {
		if strings.HasPrefix(p.Key, "faults.") {
			return 1
		}
		return 0
	}
	return cmp.Or(fault(a)-fault(b), cmp.Compare(a.Key, b.Key))
}

// share takes what all points' paths of a name have alike out of them. A document
// of one point, or of parameters in another order, is left as it is.
func (w *wireResult) share() {
	if len(w.Points) < 2 {
		return
	}
	type known struct {
		params map[wireParam]int // and how many of the paths have it
		paths  int
		order  int
	}
	names := map[string]*known{}
	for i := range w.Points {
		for j := range w.Points[i].Paths {
			p := &w.Points[i].Paths[j]
			k := names[p.Name]
			if k == nil {
				k = &known{params: map[wireParam]int{}, order: len(names)}
				names[p.Name] = k
			}
			k.paths++
			for n, x := range p.Params {
				if n > 0 && byKey(p.Params[n-1], x) >= 0 {
					return
				}
				k.params[x]++
			}
		}
	}
	w.Shared = make([]wireShared, len(names))
	for name, k := range names {
		s := wireShared{Path: name}
		for x, n := range k.params {
			if n == k.paths && k.paths > 1 {
				s.Params = append(s.Params, x)
			}
		}
		slices.SortFunc(s.Params, byKey)
		w.Shared[k.order] = s
	}
	w.Shared = slices.DeleteFunc(w.Shared, func(s wireShared) bool { return len(s.Params) == 0 })
	if len(w.Shared) == 0 {
		return
	}
	w.Schema = schemaShared
	for i := range w.Points {
		for j := range w.Points[i].Paths {
			p := &w.Points[i].Paths[j]
			k := names[p.Name]
			own := make([]wireParam, 0, 4)
			for _, x := range p.Params {
				if k.paths < 2 || k.params[x] < k.paths {
					own = append(own, x)
				}
			}
			p.Params = own
		}
	}
}

// unshare gives the paths back what share took out.
func (w *wireResult) unshare() {
	common := map[string][]wireParam{}
	for _, s := range w.Shared {
		common[s.Path] = s.Params
	}
	for i := range w.Points {
		for j := range w.Points[i].Paths {
			p := &w.Points[i].Paths[j]
			if c := common[p.Name]; len(c) > 0 {
				p.Params = append(slices.Clone(c), p.Params...)
				slices.SortStableFunc(p.Params, byKey)
			}
		}
	}
	w.Shared = nil
}

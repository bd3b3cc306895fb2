package result_test

import (
	"slices"
	"testing"

	"gdisim/result"
)

// A key that a path read at one of its points is not told; notices of points come
// once, in the points' order; and a merge says what the whole says.
func TestGather(t *testing.T) {
	point := func(i int, notices []string, keys ...string) result.Point {
		return result.Point{Index: i, Paths: []result.Path{{Name: "a"}}, Account: result.Account{
			Messages: 10, Events: 100, Notices: notices, Unread: []result.Unread{{Path: "a", Keys: keys}},
		}}
	}
	points := func(which ...int) (out []result.Point) {
		all := []result.Point{point(0, []string{"late"}, "x", "y"), point(1, []string{"late", "later"}, "y", "z"), point(2, nil, "y", "x")}
		for _, i := range which {
			out = append(out, all[i])
		}
		return out
	}
	gather := func(which ...int) *result.Result {
		r := &result.Result{Schema: result.Schema, Tool: "t", Notices: []string{"of the whole"}}
		r.Gather("digest", 3, points(which...))
		return r
	}
	whole := gather(0, 1, 2)
	want := []string{"of the whole", "late", "later", "a: set, but without effect here: y"}
	if !slices.Equal(whole.Notices, want) || whole.Partial || whole.Part != nil || whole.Messages != 30 || whole.Events != 300 || len(whole.Points[0].Unread) > 0 {
		t.Errorf("got %+v", whole)
	}
	parts := []*result.Result{gather(1), gather(0, 2)}
	if !parts[0].Partial || parts[0].Part.Points != 3 {
		t.Errorf("got %+v", parts[0])
	}
	merged, err := result.Merge([]string{"1", "2"}, parts)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(merged.Notices, want) || merged.Partial || merged.Messages != 30 || merged.Points[1].Index != 1 {
		t.Errorf("got %+v", merged)
	}
}

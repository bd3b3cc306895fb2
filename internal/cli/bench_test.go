package cli

import (
	"io"
	"testing"

	"gdisim/result"
)

// BenchmarkText renders the text of a sweep of 1,000 points of two paths.
func BenchmarkText(b *testing.B) {
	r := swept()
	var points []result.Point
	for i := range 1000 {
		p := r.Points[i%len(r.Points)]
		p.Index = i
		points = append(points, p)
	}
	r.Points = points
	for b.Loop() {
		if err := writeText(io.Discard, r, view{}); err != nil {
			b.Fatal(err)
		}
	}
}

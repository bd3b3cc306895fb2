package cuda

import (
	"context"
	"slices"
)

// page is the piece of GPU memory that lies in one half of the L2, as seen from one
// SM: near or far, and about as often the one as the other.
const page = 4096

// Placement is where words of GPU memory lie near and far of the SM that runs a
// kernel of one block: offsets for Experiment. On a GPU whose L2 has no halves the
// two differ by chance.
type Placement struct{ Near, Far int64 }

// Place finds a near and a far page by the time of an atomic, which the half does
// that the line belongs to: a load of a line that nobody writes is served by the
// near half whatever its place.
func Place(ctx context.Context, d Device) (Placement, error) {
	const pages, samples = 48, 40
	type at struct{ time, offset int64 }
	var of []at
	for k := range int64(pages) {
		t, err := d.Run(ctx, Experiment{Kind: Samples, Kernel: "atomic_cas_system", Memory: GPU, Offset: k * page, N: samples, Gap: 500})
		if err != nil {
			return Placement{}, err
		}
		slices.Sort(t.Each)
		of = append(of, at{int64(t.Each[len(t.Each)/2]), k * page})
	}
	slices.SortStableFunc(of, func(a, b at) int { return int(a.time - b.time) })
	// The middle of each half: neither the best nor the worst line of the GPU.
	return Placement{Near: of[pages/4].offset, Far: of[pages-1-pages/4].offset}, nil
}

// Offset returns the offset for a word of the profile: near, or far for all others.
func (p Placement) Offset(word string) int64 {
	if word == "near" {
		return p.Near
	}
	return p.Far
}

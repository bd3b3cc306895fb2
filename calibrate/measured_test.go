package calibrate

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gdisim/result"
)

// What real GPUs measured is kept as results that can be read, each with the facts
// of its machine; machine A's is what the profile h200-vm-measured is fitted to.
func TestMeasuredResults(t *testing.T) {
	files, err := filepath.Glob("../scenarios/measured/h200-vm-*/*.json")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := result.Decode(f)
		_ = f.Close()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		has := func(key, value string) bool {
			return slices.ContainsFunc(r.Machine, func(s result.Setting) bool { return s.Key == key && (value == "" || s.Value == value) })
		}
		if r.Backend != "hw" || r.Partial || !has("gpu", "NVIDIA H200") || !has("gpu.sm-clock.before", "") || !has("gpu.sm-clock.after", "") || !has("kernel", "") {
			t.Errorf("%s: backend %q, partial %t, machine %v", name, r.Backend, r.Partial, r.Machine)
		}
		if len(r.Points) == 0 && len(r.Measured) < 300 {
			t.Errorf("%s: %d points, %d measured", name, len(r.Points), len(r.Measured))
		}
	}
}

package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"gdisim/result"
	"gdisim/sim"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with testdata/render/NAME.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "render", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got\n%s", file, got)
	}
}

func TestRender(t *testing.T) {
	for _, c := range []struct {
		file  string
		write writer
		r     *result.Result
		v     view
	}{
		{"point.txt", writeText, sample(), view{}},
		{"point-all-ascii.txt", writeText, sample(), view{all: true, ascii: true}},
		{"sweep.txt", writeText, swept(), view{}},
		{"long.txt", writeText, longNames(sample()), view{}},
		{"point.csv", writeCSV, sample(), view{}},
		{"sweep.csv", writeCSV, swept(), view{}},
		{"point.md", writeMarkdown, sample(), view{}},
		{"sweep.md", writeMarkdown, swept(), view{}},
	} {
		t.Run(c.file, func(t *testing.T) {
			var b bytes.Buffer
			if err := c.write(&b, c.r, c.v); err != nil {
				t.Fatal(err)
			}
			golden(t, c.file, b.Bytes())
		})
	}
}

func TestTextWidth(t *testing.T) {
	huge := sample()
	for i := range huge.Points[0].Paths {
		for j := range huge.Points[0].Paths[i].Metrics {
			m := &huge.Points[0].Paths[i].Metrics[j]
			m.P50, m.P99 = 900*sim.Second, 901*sim.Second
		}
	}
	for name, r := range map[string]*result.Result{
		"point": sample(), "sweep": swept(), "long point": longNames(sample()), "long sweep": longNames(swept()), "huge": huge, "none": {Partial: true},
	} {
		for _, v := range []view{{}, {all: true}, {ascii: true}} {
			var b bytes.Buffer
			if err := writeText(&b, r, v); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > textWidth {
					t.Errorf("%s %+v: %d columns: %s", name, v, n, line)
				}
			}
			if v.ascii && name != "long point" && name != "long sweep" && regexp.MustCompile(`[^\x00-\x7f]`).Match(b.Bytes()) {
				t.Errorf("%s: not ASCII", name)
			}
		}
	}
}

// TestPrintedStagesSum reads the printed numbers back: what a reader adds up is
// what the total says, and the shares are 100 %.
func TestPrintedStagesSum(t *testing.T) {
	var b bytes.Buffer
	if err := writeText(&b, sample(), view{all: true}); err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`^    [a-z.-]+(?:@\d)? +[a-z.]+ +([\d.]+)(?: +[\d.]+)? +([\d.]+) %`)
	total := regexp.MustCompile(`^    total +([\d.]+)`)
	tenths := func(s string) int {
		n, err := strconv.Atoi(strings.Replace(s, ".", "", 1))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	sum, share, seen := 0, 0, 0
	for line := range strings.Lines(b.String()) {
		if m := row.FindStringSubmatch(line); m != nil {
			sum += tenths(m[1])
			share += tenths(m[2])
		} else if m := total.FindStringSubmatch(line); m != nil {
			if sum != tenths(m[1]) || share != 1000 {
				t.Errorf("stages sum to %d and %d, want %d and 1000", sum, share, tenths(m[1]))
			}
			sum, share = 0, 0
			seen++
		}
	}
	if seen != 3 {
		t.Errorf("saw %d breakdowns, want 3\n%s", seen, b.String())
	}
}

func TestQuanta(t *testing.T) {
	for _, c := range []struct {
		parts          []int64
		total, quantum int64
		want           []int64
	}{
		{[]int64{333, 333, 334}, 1000, 100, []int64{3, 3, 4}},
		{[]int64{50, 50}, 100, 100, []int64{1, 0}},
		{[]int64{149, 149, 149}, 447, 100, []int64{2, 1, 1}},
		{nil, 0, 100, []int64{}},
	} {
		got := quanta(c.parts, c.total, c.quantum)
		var sum int64
		for i, q := range got {
			sum += q
			if q != c.want[i] {
				t.Errorf("quanta(%v) = %v, want %v", c.parts, got, c.want)
			}
		}
		if want := (c.total + c.quantum/2) / c.quantum; sum != want {
			t.Errorf("quanta(%v) sums to %d, want %d", c.parts, sum, want)
		}
	}
}

func TestShortKeys(t *testing.T) {
	got := strings.Join(shortKeys([]string{"hardware.gpu.sm_clock", "host.clock", "paths.a.fence", "paths.b.fence", "x"}), " ")
	if want := "sm_clock clock a.fence b.fence x"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestFaultsAreASourceOfTails: no path with faults is said to have no source of
// tails, whatever its p99.
func TestFaultsAreASourceOfTails(t *testing.T) {
	r := sample()
	names := noTails(r.Points)
	if len(names) == 0 {
		t.Fatal("the sample has tails everywhere")
	}
	for i := range r.Points[0].Paths {
		if p := &r.Points[0].Paths[i]; p.Name == names[0] {
			p.Params = append(p.Params, result.Param{Key: "faults.x.rate", Value: "1%"})
		}
	}
	if got := noTails(r.Points); len(got) != len(names)-1 || strings.Join(got, " ") != strings.Join(names[1:], " ") {
		t.Errorf("without tails: %v (want %v)", got, names[1:])
	}
}

package importers

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/stage"
)

var update = flag.Bool("update", false, "rewrite testdata/*.want")

// Each file of testdata, of invented numbers in the formats of the field, against
// what is read of it, what is left out, or what is wrong in it.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, skipped, err := Read([]string{filepath.Base(file)}, [][]byte{text}, Options{Tool: "test"})
			if bad := strings.HasSuffix(file, ".bad.txt"); bad != (err != nil) {
				t.Fatalf("error %v", err)
			}
			got := dump(r, skipped, err)
			want := strings.TrimSuffix(file, ".txt") + ".want"
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			b, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(b) {
				t.Errorf("got\n%s\nwant\n%s", got, b)
			}
			if r != nil {
				coded(t, r)
			}
		})
	}
}

// coded holds that a result survives its file.
func coded(t *testing.T, r *result.Result) {
	t.Helper()
	var a, b bytes.Buffer
	if err := result.Encode(&a, r); err != nil {
		t.Fatal(err)
	}
	back, err := result.Decode(bytes.NewReader(a.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Encode(&b, back); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("%v: the result changes by its file", err)
	}
}

func dump(r *result.Result, skipped []Skipped, err error) string {
	var b strings.Builder
	if err != nil {
		return err.Error() + "\n"
	}
	fmt.Fprintf(&b, "%s\n", r.Name)
	for _, s := range r.Machine {
		fmt.Fprintf(&b, "  %s = %s\n", s.Key, s.Value)
	}
	costs := func(ms []result.Measured) {
		for _, m := range ms {
			fmt.Fprintf(&b, "    %s: n %d, min %v, p50 %v, max %v (%s)\n", m.Name, m.N, m.Min, m.P50, m.Max, m.Method)
		}
	}
	for _, pt := range r.Points {
		for _, p := range pt.Paths {
			fmt.Fprintf(&b, "  %s: %s, stack %s, %s\n", sizeOf(&pt), p.Name, p.Stack, p.Workload)
			for _, m := range p.Metrics {
				if m.Metric.IsTime() {
					fmt.Fprintf(&b, "    %s: n %d, min %v, p50 %v, p99 %v, p99.9 %v, max %v, mean %v\n", m.Metric, m.N, m.Min, m.P50, m.P99, m.P999, m.Max, m.Mean)
				} else {
					fmt.Fprintf(&b, "    %s: %.6g %s\n", m.Metric, m.Value, m.Metric.Unit())
				}
			}
			costs(p.Measured)
		}
	}
	costs(r.Measured)
	for _, n := range r.Notices {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	for _, s := range skipped {
		if dull[s.Why] {
			continue
		}
		fmt.Fprintf(&b, "left out: %d: %s\n", s.Line, s.Why)
	}
	return b.String()
}

func read(t *testing.T, o Options, names ...string) *result.Result {
	t.Helper()
	var texts [][]byte
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join("testdata", n))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, b)
	}
	r, _, err := Read(names, texts, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func scenario(t *testing.T, paths, workload string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("s.yaml", []byte("gdisim: v1\nname: s\nhardware: h200-cx7-ib200\npaths: "+paths+"\nworkload: "+workload+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A file becomes a result of a scenario: its sizes, its path, its kind of workload;
// what does not fit is named.
func TestBind(t *testing.T) {
	for _, c := range []struct {
		name, file, paths, workload string
		o                           Options
		points                      int
		path                        string
		metric                      stage.Metric
		notices                     []string
		err                         string
	}{
		{"latency", "perftest_write_lat.txt", "[verbs-cpu]", "{kind: ping-pong, bytes: [8B, 4096B, 64KiB]}", Options{}, 2, "verbs-cpu", stage.RTT, nil, ""},
		{"one size", "perftest_write_lat.txt", "[verbs-cpu]", "{kind: put, bytes: 8B}", Options{}, 1, "verbs-cpu", stage.RTT, []string{"left out: 4KiB"}, ""},
		{"renamed path", "perftest_write_lat.txt", "[{name: mine, stack: verbs-cpu}, mini-proxy]", "{kind: put, bytes: 8B}", Options{}, 1, "mine", stage.RTT, nil, ""},
		{"which of two", "perftest_write_lat.txt", "[{name: a, stack: verbs-cpu}, {name: b, stack: verbs-cpu}]", "{kind: put, bytes: 8B}", Options{}, 0, "", 0, nil, "more than one path"},
		{"told which", "perftest_write_lat.txt", "[{name: a, stack: verbs-cpu}, {name: b, stack: verbs-cpu}]", "{kind: put, bytes: 8B}", Options{Path: "b"}, 1, "b", stage.RTT, nil, ""},
		{"no such stack", "nvshmem_put.txt", "[nvshmem-ibgda]", "{kind: put, bytes: 8B}", Options{}, 0, "", 0, nil, "no path nvshmem-thread and none of stack nvshmem"},
		{"stack told", "nvshmem_put.txt", "[nvshmem-ibgda]", "{kind: put, bytes: 8B}", Options{Stack: "nvshmem-ibgda", Path: "nvshmem-ibgda"}, 1, "nvshmem-ibgda", stage.PutCompletion, nil, ""},
		{"other kind", "perftest_write_lat.txt", "[verbs-cpu]", "{kind: stream, bytes: 8B, outstanding: 128}", Options{}, 0, "", 0, nil, "no point of s.yaml"},
		{"stream", "perftest_write_bw_gbits.txt", "[verbs-cpu]", "{kind: stream, bytes: 64B, outstanding: 128}", Options{}, 1, "verbs-cpu", stage.MessageRate, []string{"queue pairs: 4, the scenario has 1"}, ""},
		{"stream as it was", "perftest_write_bw_gbits.txt", "[{name: v, stack: verbs-cpu, set: {qps_per_peer: 4}}]", "{kind: stream, bytes: [64B, 64KiB], outstanding: 128}", Options{}, 2, "v", stage.Goodput, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := read(t, c.o, c.file)
			got, err := Bind(r, scenario(t, c.paths, c.workload))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Points) != c.points {
				t.Fatalf("%d points, want %d", len(got.Points), c.points)
			}
			for i := range got.Points {
				if p := got.Points[i].Path(c.path); p == nil || p.Metric(c.metric) == nil {
					t.Errorf("point %d: %+v", i, got.Points[i])
				}
			}
			notices := strings.Join(got.Notices, "\n")
			for _, n := range c.notices {
				if !strings.Contains(notices, n) {
					t.Errorf("no notice %q in:\n%s", n, notices)
				}
			}
		})
	}
}

// What a latency test ran with that the scenario has otherwise is told, each by name.
func TestBindTellsWhatDiffers(t *testing.T) {
	file := filepath.Join("testdata", "perftest_write_lat.txt")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, from, to, want string }{
		{"as the scenario", "", "", ""},
		{"queue pairs", "Number of qps   : 1", "Number of qps   : 4", "the benchmark had queue pairs: 4, the scenario has 1"},
		{"connection", "Connection type : RC", "Connection type : UC", "the benchmark had connection type UC, the scenario has RC"},
		{"link", "Link type       : IB", "Link type       : Ethernet", "the benchmark had a link of Ethernet, the scenario has IB"},
		{"MTU", "Mtu             : 4096[B]", "Mtu             : 1024[B]", "the benchmark had an MTU in bytes of 1024, the scenario has 4096"},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := strings.Replace(string(text), c.from, c.to, 1)
			r, _, err := Read([]string{file}, [][]byte{[]byte(changed)}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := Bind(r, scenario(t, "[verbs-cpu]", "{kind: ping-pong, bytes: [8B, 4096B]}"))
			if err != nil {
				t.Fatal(err)
			}
			notices := strings.Join(got.Notices, "\n")
			if c.want == "" && strings.Contains(notices, "the benchmark had") || !strings.Contains(notices, c.want) {
				t.Errorf("want %q in %q", c.want, notices)
			}
		})
	}
}

func TestSeveralFiles(t *testing.T) {
	r := read(t, Options{}, "perftest_write_lat.txt", "perftest_write_bw_gbits.txt")
	var sizes []string
	for i := range r.Points {
		sizes = append(sizes, sizeOf(&r.Points[i]))
	}
	if strings.Join(sizes, " ") != "8B 64B 4KiB 64KiB" {
		t.Errorf("%q", sizes)
	}
	lat, err := os.ReadFile("testdata/perftest_write_lat.txt")
	if err != nil {
		t.Fatal(err)
	}
	osu, err := os.ReadFile("testdata/osu_bw.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read([]string{"a", "b"}, [][]byte{lat, lat}, Options{}); err == nil || !strings.Contains(err.Error(), "b:16: rtt of this size once more") {
		t.Errorf("the same file twice: %v", err)
	}
	if _, _, err := Read([]string{"a", "b"}, [][]byte{lat, osu}, Options{}); err == nil || !strings.Contains(err.Error(), "files of one benchmark") {
		t.Errorf("two benchmarks: %v", err)
	}
}

// Whatever the text, a reader returns: a result that can be written and read, or an
// error of that file.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, _, err := Read([]string{"f"}, [][]byte{text}, Options{Tool: "test"})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("an error of no file: %v", err)
			}
			return
		}
		coded(t, r)
		for i := range r.Points {
			for _, p := range r.Points[i].Paths {
				for _, m := range p.Metrics {
					if m.P50 < 0 || m.Max < m.Min || m.Value < 0 {
						t.Fatalf("%+v", m)
					}
				}
			}
		}
	})
}

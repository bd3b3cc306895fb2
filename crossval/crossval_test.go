package crossval

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gdisim/scenarios"
	"gdisim/testbed"
)

// text is a scenario of a profile whose NIC acknowledges in 300 ns, with figures
// of two tables.
func text(expect string) []byte {
	return []byte("gdisim: v1\nhardware: ./p.yaml\npaths: [mini-gda, {name: pointer, stack: mini-gda, set: {inline: false}}]\n" +
		"workload: {kind: put, bytes: 8B, iterations: 20, warmup: 2}\nexpect:\n" + expect)
}

func parse(t *testing.T, expect string) *scenarios.Scenario {
	t.Helper()
	profile := "gdisim-profile: v1\nname: p\ntitle: t\ninclude: [h200-cx7-ib200]\nsources: {n: notes}\nparameters:\n" +
		"  nic.ack: {value: 300ns, min: 200ns, max: 800ns, kind: derived, source: n}\n"
	s, err := scenarios.Parse("s.yaml", text(expect), scenarios.WithReadFile(func(string) ([]byte, error) { return []byte(profile), nil }))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// truth is what a NIC that acknowledges in 450 ns would have been measured at.
func truth(t *testing.T, path string) string {
	t.Helper()
	s := parse(t, "  []\n")
	if err := s.Apply([]string{"hardware.nic.ack=450ns"}); err != nil {
		t.Fatal(err)
	}
	r, err := testbed.Run(t.Context(), s, testbed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.Points[0].Path(path).Lookup("put+completion.p50")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%dps", int64(v.Time))
}

const line = "  - {path: %s, metric: put+completion.p50, value: %s, within: 50%%, source: %q, use: fitted, fits: [hardware.nic.ack]}\n"

// Another table tells the parameter, so that the table left out is predicted; and
// the same study twice is the same report, and outlives JSON.
func TestLeaveOneOut(t *testing.T) {
	expect := fmt.Sprintf(line, "mini-gda", truth(t, "mini-gda"), "paper, Table 1") + fmt.Sprintf(line, "pointer", truth(t, "pointer"), "paper, Table 2")
	report := func() *Report {
		r, err := Run(t.Context(), []*scenarios.Scenario{parse(t, expect)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := report()
	if len(r.Tables) != 2 || r.Refit.N != 2 {
		t.Fatalf("%+v", r)
	}
	for _, x := range r.Tables {
		if x.Shipped.Worst < 0.03 || x.Refit.Worst > 0.005 || x.Moves[0].Alone {
			t.Errorf("%+v", x)
		}
		if by, err := scenarios.Over("hardware.nic.ack", x.Moves[0].To, "450ns"); by < 0.97 || by > 1.03 {
			t.Errorf("%s, %v", x.Moves[0].To, err)
		}
	}
	if again := report(); !reflect.DeepEqual(r, again) {
		t.Errorf("%+v is not %+v", again, r)
	}
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	read, err := Read(&b)
	if err != nil || !reflect.DeepEqual(r, read) {
		t.Errorf("%v: %+v", err, read)
	}
	if _, err := Read(strings.NewReader("{\"Rows\": 3}")); err == nil {
		t.Error("read what is no report")
	}
}

// A parameter of which nothing else tells goes to the middle of its bounds, 400 ns.
func TestAlone(t *testing.T) {
	expect := fmt.Sprintf(line, "mini-gda", truth(t, "mini-gda"), "paper, Table 1") +
		"  - {path: pointer, metric: issue.p50, value: 1us, within: 90%, source: \"paper, Table 2\", use: checked}\n"
	r, err := Run(t.Context(), []*scenarios.Scenario{parse(t, expect)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tables) != 1 {
		t.Fatalf("%+v", r.Tables)
	}
	want := Move{Key: "hardware.nic.ack", Owner: "p.yaml", From: "300ns", To: "400ns", Alone: true}
	if m := r.Tables[0].Moves; len(m) != 1 || m[0] != want {
		t.Errorf("%+v", m)
	}
	for _, write := range []func() error{
		func() error { var b bytes.Buffer; err := r.Text(&b); return holds(err, b.String()) },
		func() error { var b bytes.Buffer; err := r.Markdown(&b); return holds(err, b.String()) },
	} {
		if err := write(); err != nil {
			t.Error(err)
		}
	}
}

func holds(err error, s string) error {
	if err == nil && !strings.Contains(s, "nic.ack of p.yaml 300ns -> 400ns (alone)") {
		err = fmt.Errorf("%s", s)
	}
	return err
}

package check

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTables(t *testing.T) {
	v := func(source, use string, err float64, holds bool) Verdict {
		return Verdict{File: "f", Line: 1, Source: source, Use: use, Err: err, Holds: holds, Subject: source + use}
	}
	wrong := v("S, Table 2", "checked", math.NaN(), false)
	wrong.Order, wrong.KnownMiss = true, "why"
	vs := []Verdict{
		v("S, Table 10", "checked", 0.3, false), v("S, Table 2", "fitted", 0.9, true), v("S, Table 2", "checked", -0.1, true),
		v("S, Table 2", "checked", 0.05, true), wrong, v("", "", math.NaN(), true), v("S, Table 2", "checked", math.NaN(), true),
	}
	want := []TableSummary{
		{Source: "S, Table 2", Fitted: 1, Checked: 3, Other: 1, Valued: 2, Median: 0.05, P95: 0.1, Worst: 0.1, WorstOf: "S, Table 2checked", Orders: 1, Wrong: 1, Missed: 1},
		{Source: "S, Table 10", Checked: 1, Valued: 1, Median: 0.3, P95: 0.3, Worst: 0.3, WorstOf: "S, Table 10checked", Failed: 1},
		{Source: "f", Other: 1},
	}
	if d := cmp.Diff(want, Tables(vs)); d != "" {
		t.Error(d)
	}
	var b strings.Builder
	if err := SummaryText(&b, vs); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"S\n  figures", "  Table 2        1        3       5.0   10.0     10.0  S, Table 2checked   1 of 1 wrong       1", "\nFAIL f:1: S, Table 10checked"} {
		if !strings.Contains(b.String(), s) {
			t.Errorf("no %q in\n%s", s, b.String())
		}
	}
	b.Reset()
	if err := SummaryMarkdown(&b, vs); err != nil {
		t.Fatal(err)
	}
	if s := "| Table 10 | 0 | 1 | 30.0 | 30.0 | 30.0 | S, Table 10checked |  | 1 |"; !strings.Contains(b.String(), s) {
		t.Errorf("no %q in\n%s", s, b.String())
	}
}

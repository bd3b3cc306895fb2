package scenarios

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	tests := []struct {
		kind Kind
		text string
		n    int64
		err  string // part of it; empty: no error
	}{
		{Duration, "250ns", 250_000, ""},
		{Duration, "1.5us", 1_500_000, ""},
		{Duration, "3ms", 3_000_000_000, ""},
		{Duration, "2s", 2_000_000_000_000, ""},
		{Duration, "10ps", 10, ""},
		{Duration, "0", 0, ""},
		{Duration, "0ns", 0, ""},
		{Duration, "0.001ns", 1, ""},
		{Duration, "1.50000000000000000000000us", 1_500_000, ""},
		{Duration, "1000s", 1e15, ""},
		{Duration, "1001s", 0, "sane range"},
		{Duration, "0.5ps", 0, "finer"},
		{Duration, "1e3ns", 0, "not a duration"},
		{Duration, "5", 0, "no unit"},
		{Duration, "", 0, "empty"},
		{Duration, "-5ns", 0, "negative"},
		{Duration, "+5ns", 0, "not a duration"},
		{Duration, "ns", 0, "not a duration"},
		{Duration, ".5us", 0, "plain decimal"},
		{Duration, "1.us", 0, "plain decimal"},
		{Duration, "1.2.3us", 0, "plain decimal"},
		{Duration, "007ns", 0, "plain decimal"},
		{Duration, "5 ns", 0, "not a duration"},
		{Duration, "5NS", 0, "not a duration"},
		{Duration, "5min", 0, "not a duration"},
		{Duration, "99999999999999999999s", 0, "too many digits"},
		{Duration, "999999999999999999s", 0, "too large"},
		{Bytes, "8B", 8, ""},
		{Bytes, "4KiB", 4096, ""},
		{Bytes, "1kB", 1000, ""},
		{Bytes, "1.5KiB", 1536, ""},
		{Bytes, "1TiB", 1 << 40, ""},
		{Bytes, "2TiB", 0, "sane range"},
		{Bytes, "0.3B", 0, "finer"},
		{Bytes, "8", 0, "no unit"},
		{Bytes, "0", 0, "no unit"},
		{Bytes, "8b", 0, "not a size"},
		{Rate, "400Gb/s", 400e9, ""},
		{Rate, "50GB/s", 400e9, ""},
		{Rate, "0Gb/s", 0, "sane range"},
		{Rate, "400Gbps", 0, "not a rate"},
		{Frequency, "1980MHz", 1980e6, ""},
		{Frequency, "2.5GHz", 25e8, ""},
		{Frequency, "1Hz", 0, "sane range"},
		{Ratio, "30%", 3e8, ""},
		{Ratio, "1.5x", 15e8, ""},
		{Ratio, "0.3", 0, "no unit"},
		{Count, "12", 12, ""},
		{Count, "0", 0, ""},
		{Count, "0256", 0, "in plain decimal"},
		{Count, "0x10", 0, "in plain decimal"},
		{Count, "1_000", 0, "in plain decimal"},
		{Count, "1e3", 0, "in plain decimal"},
		{Count, "1.0", 0, "in plain decimal"},
		{Count, "-1", 0, "negative"},
		{Integer, "-20", -20, ""},
		{Integer, "7", 7, ""},
		{Integer, "+7", 0, "in plain decimal"},
		{Integer, "1.5", 0, "in plain decimal"},
		{Count, "1000000001", 0, "sane range"},
		{Cost, "392cy", 392_000, ""},
		{Cost, "0.5cy", 500, ""},
		{Cost, "0", 0, ""},
		{Cost, "392", 0, "no unit"},
		{Cost, "392cy+27", 0, "no unit"},
		{Cost, "392cy+27ns+1ns", 0, "not a duration"},
		{Cost, "27ns+392cy", 0, "not a cost"},
		{Cost, "-1cy", 0, "negative"},
		{Bool, "true", 1, ""},
		{Bool, "yes", 0, "neither"},
		{Link, "32GT/s", 0, "not a link"},
		{Link, "33GT/s x16", 0, "no rate"},
		{Link, "32GT/s x3", 0, "no width"},
		{messageRate, "1.79Mmsg/s", 1_790_000_000, ""},
	}
	for _, tt := range tests {
		t.Run(tt.kind.String()+" "+tt.text, func(t *testing.T) {
			v, err := parse(tt.kind, tt.text)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %d, error %v, want error with %q", v.n, err, tt.err)
				}
				return
			}
			if err != nil || v.n != tt.n {
				t.Errorf("got %d, error %v, want %d", v.n, err, tt.n)
			}
		})
	}
}

func TestParseParts(t *testing.T) {
	if v, err := parse(Cost, "392.5cy+27ns"); err != nil || v.n != 392_500 || v.fixed != 27_000 {
		t.Errorf("cost: %+v, %v", v, err)
	}
	if v, err := parse(Cost, "27ns"); err != nil || v.n != 0 || v.fixed != 27_000 {
		t.Errorf("fixed cost: %+v, %v", v, err)
	}
	if v, err := parse(Link, "2.5GT/s x4"); err != nil || v.link != (LinkSpec{2500, 4}) {
		t.Errorf("link: %+v, %v", v, err)
	}
}

// What format writes, parse reads back exactly, for every kind with units.
func TestFormatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom([]Kind{Duration, Bytes, Rate, Frequency, Ratio, Count, messageRate}).Draw(t, "kind")
		n := rapid.Int64Range(kinds[k].min, kinds[k].max).Draw(t, "n")
		text := format(k, n)
		v, err := parse(k, text)
		if err != nil || v.n != n {
			t.Fatalf("%s %d: wrote %q, read %d, %v", k, n, text, v.n, err)
		}
	})
}

// The decimal form of any number of nanoseconds is read exactly.
func TestDecimalExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := rapid.Int64Range(0, kinds[Duration].max).Draw(t, "ps")
		digits := "000" + format(Count, ps)
		text := strings.TrimLeft(digits[:len(digits)-3], "0")
		if text == "" {
			text = "0"
		}
		text += "." + digits[len(digits)-3:] + "ns"
		if n, err := parseUnits(Duration, text); err != nil || n != ps {
			t.Fatalf("%q read as %d ps, %v, want %d", text, n, err, ps)
		}
	})
}

// Nothing that parse accepts lies outside its kind's range.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"250ns", "392cy+27ns", "4KiB", "400Gb/s", "1.5x", "32GT/s x16", "-1s", "0", "9999999999999999999999", "1.0000000000000000000000000000000001s", "0x1f", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for k := Duration; k <= Text; k++ {
			v, err := parse(k, text)
			if err == nil && kinds[k].max > 0 && (v.n > kinds[k].max || v.n < kinds[k].min) {
				t.Errorf("%s %q is out of range: %d", k, text, v.n)
			}
			if err == nil && v.fixed < 0 {
				t.Errorf("%s %q has a negative part", k, text)
			}
		}
	})
}

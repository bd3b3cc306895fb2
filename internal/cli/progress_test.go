package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"gdisim/result"
)

func TestProgressLine(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		elapsed     time.Duration
		want        string
	}{
		{0, 0, time.Second, ""},
		{0, 10, time.Second, "0 of 10 points, 1s"},
		{2, 10, 4 * time.Second, "2 of 10 points, 4s, about 16s left"},
		{10, 10, 4 * time.Second, "10 of 10 points, 4s"},
	} {
		if got := progressLine(c.done, c.total, c.elapsed); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		tty  bool
		want string
	}{
		{false, "1 of 2 points, 0s, about 0s left\n2 of 2 points, 0s\n"},
		{true, "\r\x1b[K1 of 2 points, 0s, about 0s left\r\x1b[K2 of 2 points, 0s\r\x1b[K"},
	} {
		var b bytes.Buffer
		p := startProgress(&b, c.tty, time.Hour, time.Hour)
		p.tell() // nothing is known
		p.update(1, 2)
		p.tell()
		p.update(2, 2)
		p.tell()
		p.stop()
		if b.String() != c.want {
			t.Errorf("got %q, want %q", b.String(), c.want)
		}
	}
}

func TestSpeedLine(t *testing.T) {
	r := &result.Result{Messages: 3000, Events: 90000}
	for _, c := range []struct {
		wall, cpu time.Duration
		want      string
	}{
		{50 * time.Millisecond, 60 * time.Millisecond, "simulated 3.0k messages, 90k events in 0.05 s (0.06 s CPU): 50k messages/CPU-s, 1.5M events/CPU-s"},
		{100 * time.Millisecond, 0, "simulated 3.0k messages, 90k events in 0.10 s: 30k messages/s, 900k events/s"},
		{0, 0, "simulated 3.0k messages, 90k events in 0.00 s"},
	} {
		if got := speedLine(r, c.wall, c.cpu); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestMetric(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 999.7: "1.0k", 1000: "1.0k", 12345: "12k", 999999: "1.0M", 2.5e9: "2.5G", 3e12: "3000G"} {
		if got := metric(v); got != want {
			t.Errorf("metric(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	words := []string{"run", "check", "explain", "hardware.gpu.sm_clock"}
	for word, want := range map[string]string{
		"rnu": "run", "chekc": "check", "Explain": "explain", "sm_clock": "hardware.gpu.sm_clock", "zzzz": "", "x": "", "": "", strings.Repeat("y", 1e6): "",
	} {
		if want != "" {
			want = `, did you mean "` + want + `"?`
		}
		if got := didYouMean(word, words); got != want {
			t.Errorf("didYouMean(%.20q) = %q, want %q", word, got, want)
		}
	}
}

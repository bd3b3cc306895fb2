package importers

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gdisim/result"
	"gdisim/sim"
)

var (
	deepRank  = regexp.MustCompile(`^\[rank (\d+)\] (.*)$`)
	deepBoth  = regexp.MustCompile(`^Dispatch \+ combine bandwidth: (\S+) GB/s, avg_t=(\S+) us, min_t=(\S+) us, max_t=(\S+) us$`)
	deepEach  = regexp.MustCompile(`^Dispatch bandwidth: (\S+) GB/s, avg_t=(\S+) us \| Combine bandwidth: (\S+) GB/s, avg_t=(\S+) us$`)
	deepSplit = regexp.MustCompile(`^Dispatch send/recv time: (\S+) \+ (\S+) us \| Combine send/recv time: (\S+) \+ (\S+) us$`)
)

// deepTime is one time of one rank, with the least and the most where they are
// printed.
type deepTime struct{ avg, least, most sim.Duration }

// deepEP reads the low-latency test of DeepEP: one sample a rank, its mean.
func (d *reader) deepEP(ls []line) {
	d.path, d.stack, d.workload = "deepep", "deepep", "DeepEP test_low_latency"
	times := map[string]map[int]deepTime{}
	var last line
	for _, l := range ls {
		// Ranks write at once: two of their lines may be on one.
		for _, text := range strings.Split(strings.ReplaceAll(l.text, "[rank ", "\n[rank "), "\n") {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			m := deepRank.FindStringSubmatch(text)
			if m == nil {
				if !strings.HasPrefix(text, "Allocating buffer size") {
					d.bad(l, "the lines of DeepEP's ranks", "not understood: %s", cut(text))
				}
				d.skip(l, "no times")
				continue
			}
			last = l
			d.deepLine(line{l.n, m[2]}, m[1], times)
		}
	}
	d.notice("DeepEP's bandwidth counts payload that never crossed a NIC: only its times are taken")
	for _, name := range slices.Sorted(maps.Keys(times)) {
		d.deepCost(last, name, times[name])
	}
}

func (d *reader) deepLine(l line, rank string, times map[string]map[int]deepTime) {
	n, err := strconv.Atoi(rank)
	if err != nil {
		d.bad(l, "a rank", "rank %q", cut(rank))
		return
	}
	add := func(name string, values ...string) {
		var ts []sim.Duration
		for _, v := range values {
			t, ok := d.micros(l, name, v)
			if !ok {
				return
			}
			ts = append(ts, t)
		}
		if _, twice := times[name][n]; twice {
			d.bad(l, "one line a rank", "%s of rank %d once more", name, n)
			return
		}
		t := deepTime{avg: ts[0]}
		if len(ts) == 3 {
			t.least, t.most = ts[1], ts[2]
			if t.least > t.avg || t.avg > t.most {
				d.bad(l, "min_t, avg_t and max_t in order", "times in no order: %s", cut(l.text))
				return
			}
		}
		if times[name] == nil {
			times[name] = map[int]deepTime{}
		}
		times[name][n] = t
	}
	if m := deepBoth.FindStringSubmatch(l.text); m != nil {
		add("dispatch+combine", m[2], m[3], m[4])
	} else if m := deepEach.FindStringSubmatch(l.text); m != nil {
		add("dispatch", m[2])
		add("combine", m[4])
	} else if m := deepSplit.FindStringSubmatch(l.text); m != nil {
		add("dispatch.send", m[1])
		add("dispatch.recv", m[2])
		add("combine.send", m[3])
		add("combine.recv", m[4])
	} else {
		d.bad(l, "a line of DeepEP's low-latency test", "not understood: %s", cut(l.text))
	}
}

func (d *reader) deepCost(l line, name string, byRank map[int]deepTime) {
	var samples []sim.Duration
	least := slices.MinFunc(slices.Collect(maps.Values(byRank)), func(a, b deepTime) int { return cmp.Compare(a.least, b.least) }).least
	var most sim.Duration
	for _, rank := range slices.Sorted(maps.Keys(byRank)) {
		samples = append(samples, byRank[rank].avg)
		most = max(most, byRank[rank].most)
	}
	var m *result.Measured
	if m = d.cost(l, d.at(0), name, fmt.Sprintf("means of %s by DeepEP", plural(len(samples), "rank", "ranks")), samples...); m.N > 0 && most > 0 {
		m.Method += "; least and most of all iterations are its min and max"
		m.Min, m.Max = least, most
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

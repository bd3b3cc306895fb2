package importers

import (
	"regexp"
	"strings"
)

var (
	ncclTest    = regexp.MustCompile(`^# Collective test starting: (\w+?)(?:_perf)?$`)
	ncclVersion = regexp.MustCompile(`^# nccl-tests version (\S+)`)
	ncclIters   = regexp.MustCompile(`\biters: (\d+)`)
	ncclRank    = regexp.MustCompile(`^#\s+Rank\s+(\d+) .* on\s+(\S+) device`)
)

// ncclColumns of a row: the shape of the operation, then time, algbw, busbw and
// wrong values, out of place and in place.
const ncclColumns = 13

// nccl reads the tables of nccl-tests. A collective is no path of the simulator,
// so its times stand under names of their own.
func (d *reader) nccl(ls []line) {
	d.path, d.stack = "nccl", "nccl"
	test, iters := "collective", "several"
	hosts := map[string]bool{}
	ranks, rows := 0, 0
	closed := false
	for _, l := range ls {
		switch {
		case ncclTest.MatchString(l.text):
			test = ncclTest.FindStringSubmatch(l.text)[1]
			d.skip(l, whyTitle)
		case strings.HasPrefix(l.text, "#"):
			if m := ncclVersion.FindStringSubmatch(l.text); m != nil {
				d.fact("nccl-tests.version", m[1])
			}
			if m := ncclIters.FindStringSubmatch(strings.ReplaceAll(l.text, "warmup iters", "")); m != nil {
				iters = m[1]
			}
			if m := ncclRank.FindStringSubmatch(l.text); m != nil {
				ranks++
				hosts[m[2]] = true
			}
			closed = closed || strings.HasPrefix(l.text, "# Avg bus bandwidth")
			d.skip(l, whyComment)
		case l.text == "":
		default:
			f := strings.Fields(l.text)
			if len(f) != ncclColumns {
				d.bad(l, "size, count, type, redop, root and twice time, algbw, busbw, #wrong", "%d values: %s", len(f), cut(l.text))
				continue
			}
			bytes, ok := d.size(l, f[0])
			if !ok {
				continue
			}
			rows++
			d.workload = "nccl-tests " + test + ", " + f[2] + " " + f[3]
			for i, place := range []string{"out-of-place", "in-place"} {
				t, wrong := f[5+4*i], f[8+4*i]
				if wrong != "0" && wrong != "N/A" {
					if _, ok := d.number(l, "#wrong", wrong); ok {
						d.skip(l, place+": "+wrong+" wrong values, so its time is of nothing")
					}
					continue
				}
				if v, ok := d.micros(l, place+" time", t); ok {
					d.cost(l, d.at(bytes), test+"."+place, "mean of "+iters+" iterations by nccl-tests", v)
				}
			}
		}
	}
	if ranks > 0 {
		d.fact("nccl-tests.ranks", plural(ranks, "rank", "ranks")+" on "+plural(len(hosts), "host", "hosts"))
	}
	if rows > 0 && !closed {
		d.notice("%s ends without the closing lines of nccl-tests: it may be cut", d.file)
	}
}

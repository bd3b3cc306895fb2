package importers

import (
	"regexp"
	"strings"

	"gdisim/stage"
)

var (
	osuTitle  = regexp.MustCompile(`^# OSU (.*) Test(?: v([0-9.]+))?$`)
	osuColumn = regexp.MustCompile(`# Size|(?:Avg )?Latency ?\(us\)|Bandwidth ?\(MB/s\)`)
)

// osu reads osu_latency and osu_bw.
func (d *reader) osu(ls []line) {
	d.path, d.stack = "osu", "mpi"
	test, buffers := "", ""
	var columns []string
	for _, l := range ls {
		switch {
		case osuTitle.MatchString(l.text):
			m := osuTitle.FindStringSubmatch(l.text)
			test, columns = m[1], nil
			d.fact("osu.version", m[2])
			if !strings.HasSuffix(test, " Latency") && !strings.HasSuffix(test, " Bandwidth") || strings.Contains(test, "Bi-Directional") {
				d.bad(l, "the latency or bandwidth test of two processes", "%s is not read", cut(test))
				return
			}
			d.skip(l, whyTitle)
		case strings.HasPrefix(l.text, "# Size"):
			var ok bool
			if columns, ok = d.heading(l, osuColumn, 2, "size and latency, or size and bandwidth"); !ok {
				return
			}
		case strings.HasPrefix(l.text, "#"):
			if strings.Contains(l.text, " on DEVICE ") || strings.Contains(l.text, " on HOST ") {
				buffers = strings.TrimSpace(strings.TrimPrefix(l.text, "#"))
				d.fact("osu.buffers", buffers)
			}
			d.skip(l, whyComment)
		case l.text == "":
		default:
			f := strings.Fields(l.text)
			if len(columns) == 0 || len(f) != 2 {
				d.bad(l, "a size and a number, below the heading", "no row: %s", cut(l.text))
				continue
			}
			d.workload = "OSU " + test
			if strings.Contains(columns[1], "Latency") {
				t, ok := d.micros(l, columns[1], f[1])
				if bytes, okB := d.size(l, f[0]); ok && okB { // half of a round trip is printed
					d.mean(l, d.at(bytes), stage.RTT, 2*t)
				}
				continue
			}
			v, ok := d.number(l, columns[1], f[1])
			if bytes, okB := d.size(l, f[0]); ok && okB {
				p := d.at(bytes)
				d.value(l, p, stage.Goodput, v/1e3)
				d.value(l, p, stage.MessageRate, v/float64(bytes))
			}
		}
	}
}

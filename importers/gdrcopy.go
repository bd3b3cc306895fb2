package importers

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	gdrRow      = regexp.MustCompile(`^(gdr_copy_(?:to|from)_mapping)\s+(\S+)\s+(\S+)$`)
	gdrRuns     = regexp.MustCompile(`^Running (\d+) iterations`)
	gdrEcho     = regexp.MustCompile(`^Round-trip latency per iteration is \(min\) (\S+), \(median\) (\S+) us$`)
	gdrAPI      = regexp.MustCompile(`(?:pin|map|get_info|unmap|unpin)\.Time\(us\)|Size\(B\)`)
	gdrPreamble = regexp.MustCompile(`^(GPU id:|selecting device|gpu alloc fn|info\.|gdr_copy_\w+ num iters|Test\s+Size\(B\)|Measuring the visibility|closing gdrdrv|device ptr|map_d_ptr|testing|user-space)`)
)

// gdrcopy reads copylat, pplat and apiperf: costs of the machine.
func (d *reader) gdrcopy(ls []line) {
	runs := "several"
	var columns []string
	for _, l := range ls {
		switch {
		case l.text == "":
		case gdrRow.MatchString(l.text):
			m := gdrRow.FindStringSubmatch(l.text)
			bytes, ok := d.size(l, m[2])
			if t, okT := d.micros(l, "Avg.Time(us)", m[3]); ok && okT {
				d.cost(l, nil, "gdrcopy."+strings.ReplaceAll(strings.TrimPrefix(m[1], "gdr_copy_"), "_", "-")+"."+sizeText(bytes), m[1]+", mean time on the CPU: not when the GPU sees it", t)
			}
		case gdrRuns.MatchString(l.text):
			runs = gdrRuns.FindStringSubmatch(l.text)[1]
			d.skip(l, "no time")
		case gdrEcho.MatchString(l.text):
			m := gdrEcho.FindStringSubmatch(l.text)
			least, ok := d.micros(l, "min", m[1])
			median, okM := d.micros(l, "median", m[2])
			switch {
			case !ok || !okM:
			case least > median:
				d.bad(l, "min below median", "times in no order: %s", cut(l.text))
			default:
				x := d.cost(l, nil, "gdrcopy.flag-round-trip", fmt.Sprintf("median of %s round trips of a flag between CPU and GPU kernel, the only one that is printed beside the least", runs), median)
				x.Min = least
			}
		case gdrPreamble.MatchString(l.text):
			d.skip(l, "no time")
		case gdrAPI.MatchString(l.text): // the heading may be on two lines
			more, rest := header(l.text, gdrAPI)
			if columns = append(columns, more...); rest != "" {
				d.bad(l, "the columns of apiperf", "unknown column: %s", cut(rest))
			}
			d.skip(l, whyHeading)
		case len(columns) > 0:
			d.gdrCalls(l, columns)
		default:
			d.bad(l, "the lines of copylat, pplat or apiperf", "not understood: %s", cut(l.text))
		}
	}
}

func (d *reader) gdrCalls(l line, columns []string) {
	f := strings.Fields(l.text)
	if len(f) != len(columns) || columns[0] != "Size(B)" {
		d.bad(l, strings.Join(columns, ", "), "%d values in a table of %d columns", len(f), len(columns))
		return
	}
	bytes, ok := d.size(l, f[0])
	for i, c := range columns[1:] {
		if t, okT := d.micros(l, c, f[i+1]); ok && okT {
			name := strings.ReplaceAll(strings.TrimSuffix(c, ".Time(us)"), "_", "-")
			d.cost(l, nil, "gdrcopy."+name+"."+sizeText(bytes), "mean time of the call by apiperf", t)
		}
	}
}

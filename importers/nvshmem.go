package importers

import (
	"regexp"
	"strings"

	"gdisim/stage"
)

var (
	nvshmemTest   = regexp.MustCompile(`^#?(shmem_\w+)$`)
	nvshmemColumn = regexp.MustCompile(`size\(B\)|scope|latency \(us\)|BW \(GB/sec\)`)
	nvshmemPerf   = regexp.MustCompile(`^&&&& PERF (shmem_\w+?)___(\w+?)___size__(\d+)___(latency|bw|BW) (\S+) -(us|GB/sec|GB/s)$`)
)

// nvshmem reads the point-to-point tests of NVSHMEM's perftest. Which transport
// ran is not in them: Options.Stack says it.
func (d *reader) nvshmem(ls []line) {
	test := ""
	var columns []string
	for _, l := range ls {
		switch {
		case nvshmemTest.MatchString(l.text):
			test, columns = nvshmemTest.FindStringSubmatch(l.text)[1], nil
			d.skip(l, whyTitle)
		case nvshmemPerf.MatchString(l.text):
			m := nvshmemPerf.FindStringSubmatch(l.text)
			d.nvshmemRow(l, m[1], m[3], m[2], m[5], m[6] == "us")
		case strings.HasPrefix(l.text, "size(B)"):
			var ok bool
			if columns, ok = d.heading(l, nvshmemColumn, 3, "size(B), scope and latency (us) or BW (GB/sec)"); !ok {
				return
			}
		case strings.HasPrefix(l.text, "WARN"):
			d.notice("%s:%d: %s: the GPU may not be the one that rings the doorbell", d.file, l.n, cut(l.text))
			d.skip(l, "a warning of the library")
		case test == "" || strings.HasPrefix(l.text, "Runtime options") || strings.HasPrefix(l.text, "min_size:") || strings.HasPrefix(l.text, "mype:"):
			d.skip(l, whyOutside)
		case l.text == "":
		default:
			f := strings.Fields(l.text)
			if len(columns) == 0 || len(f) != 3 {
				d.bad(l, "a size, a scope and a number, below the heading", "no row: %s", cut(l.text))
				continue
			}
			d.nvshmemRow(l, test, f[0], f[1], f[2], columns[2] == "latency (us)")
		}
	}
}

func (d *reader) nvshmemRow(l line, test, size, scope, value string, latency bool) {
	bytes, ok := d.size(l, size)
	if !ok {
		return
	}
	d.path, d.stack = "nvshmem", "nvshmem"
	if scope != "None" {
		d.path += "-" + strings.ToLower(scope)
	}
	if d.o.Path != "" && scope != "None" && scope != "Thread" {
		d.skip(l, "by a "+strings.ToLower(scope)+": --path names that of a thread")
		return
	}
	d.workload = "NVSHMEM perftest " + test
	p := d.at(bytes)
	if !latency {
		if v, ok := d.number(l, "BW (GB/sec)", value); ok {
			d.notice("a GB of the benchmark is taken as 1e9 B")
			d.value(l, p, stage.Goodput, v)
			d.value(l, p, stage.MessageRate, v*1e3/float64(bytes))
		}
		return
	}
	t, ok := d.micros(l, "latency (us)", value)
	if !ok {
		return
	}
	switch test {
	case "shmem_put_latency", "shmem_p_latency": // the call and a quiet
		d.mean(l, p, stage.PutCompletion, t)
	case "shmem_get_latency", "shmem_g_latency":
		d.mean(l, p, stage.Get, t)
	default:
		d.cost(l, p, test, "mean that NVSHMEM's perftest prints; which part of a round trip it is, its output does not say", t)
	}
}

package importers

import (
	"math"
	"regexp"
	"strings"

	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

var (
	perftestTitle   = regexp.MustCompile(`^\s*(RDMA_Write|RDMA_Read|Send|Atomic)( .*)? (Latency|BW) Test$`)
	perftestColumn  = regexp.MustCompile(`#bytes|#iterations|t_(?:min|max|typical|avg|stdev)\[usec\]|99(?:\.9)?% percentile\[usec\]|tps average|BW (?:peak|average)\[(?:MiB|MB|Gb)/sec\]|MsgRate\[Mpps\]`)
	perftestSetting = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_*./ ]*?)\s*: (\S+)`)
	clockWarning    = regexp.MustCompile(`(?i)cpu frequency`)
)

// perftestKeys are the settings of the header that matter to who reads the numbers.
var perftestKeys = map[string]bool{
	"Device": true, "Transport type": true, "Connection type": true, "Number of qps": true, "TX depth": true, "Mtu": true, "Link type": true,
	"Max inline data": true, "CQ Moderation": true, "PCIe relax order": true, "Outstand reads": true, "Post List": true,
}

// perftest is one test of a file: its title, its settings, its table.
type perftest struct {
	*reader
	op, kind string // RDMA_Write ...; Latency or BW
	both     bool   // directions
	columns  []string
	table    bool // its rows are being read
	gpu      bool // memory of the payload
}

// perftest reads ib_write_lat, ib_write_bw and their sisters.
func (d *reader) perftest(ls []line) {
	d.path, d.stack = "verbs-cpu", "verbs-cpu"
	t := &perftest{reader: d}
	for _, l := range ls {
		switch {
		case perftestTitle.MatchString(l.text):
			m := perftestTitle.FindStringSubmatch(l.text)
			t.op, t.kind, t.both = m[1], m[3], strings.Contains(m[2], "Bidirectional")
		case strings.Contains(l.text, "#bytes"):
			t.header(l)
		case t.table && strings.Trim(l.text, "- ") == "":
			*t = perftest{reader: d}
			d.path, d.stack = "verbs-cpu", "verbs-cpu"
		case t.table && clockWarning.MatchString(l.text):
			d.notice("%s:%d: the benchmark warns of the CPU's clock: %s", d.file, l.n, cut(l.text))
			d.skip(l, "a warning of the benchmark")
		case t.table:
			t.row(l)
		case failure.MatchString(l.text):
			d.bad(l, "the output of a run that ended well", "the run failed: %s", cut(l.text))
		default:
			t.preamble(l)
		}
	}
}

var failure = regexp.MustCompile(`(?i)^\s*(completion with error|failed|couldn't|unable to|error)`)

func (t *perftest) preamble(l line) {
	for _, m := range perftestSetting.FindAllStringSubmatch(l.text, -1) {
		if key := strings.TrimSpace(m[1]); perftestKeys[key] {
			t.fact("perftest."+strings.ReplaceAll(strings.ToLower(key), " ", "-"), m[2])
		}
	}
	switch {
	case strings.Contains(l.text, "Test with events"):
		t.other("perftest-events")
		t.notice("the benchmark slept until an event told of each completion")
	case strings.Contains(l.text, "GPU buffer") || strings.Contains(l.text, "initializing CUDA"):
		t.gpu = true
		t.fact("perftest.memory", "gpu")
		t.notice("the payload was in GPU memory: hold it against a path with payload_in gpu")
	}
	t.skip(l, whyOutside)
}

// other says that no stack of the simulator does what this test does.
func (t *perftest) other(stack string) { t.path, t.stack = stack, stack }

func (t *perftest) header(l line) {
	columns, rest := header(l.text, perftestColumn)
	switch {
	case rest != "":
		t.bad(l, "the columns of perftest", "unknown column: %s", cut(rest))
	case t.op == "":
		t.bad(l, "the line that names the test before it", "a table of an unknown test")
	}
	t.columns, t.table = columns, true
	t.skip(l, whyHeading)
}

func (t *perftest) row(l line) {
	if failure.MatchString(l.text) {
		t.bad(l, "the output of a run that ended well", "the run failed: %s", cut(l.text))
		t.table = false
		return
	}
	fields := strings.Fields(l.text)
	if len(fields) == 0 {
		return
	}
	if len(fields) != len(t.columns) {
		t.bad(l, strings.Join(t.columns, ", "), "%d values in a table of %d columns: %s", len(fields), len(t.columns), cut(l.text))
		return
	}
	v := map[string]string{}
	for i, c := range t.columns {
		v[c] = fields[i]
	}
	bytes, ok := t.size(l, v["#bytes"])
	n, okN := t.number(l, "#iterations", v["#iterations"])
	if !ok || !okN || t.op == "" {
		return
	}
	if n < 1 {
		t.bad(l, "at least one", "#iterations: %q", v["#iterations"])
		return
	}
	t.workload = "perftest " + strings.ToLower(t.op) + ", payload in host memory"
	if t.gpu {
		t.workload = "perftest " + strings.ToLower(t.op) + ", payload in GPU memory"
	}
	if t.kind == "BW" {
		t.bandwidth(l, bytes, v)
	} else {
		t.latency(l, bytes, int(min(n, 1e9)), v)
	}
}

// latency reads a row. Write and send tests give half of a round trip, the others
// the time of an operation.
func (t *perftest) latency(l line, bytes int64, n int, v map[string]string) {
	times := map[string]sim.Duration{}
	for c, s := range v {
		if strings.HasSuffix(c, "[usec]") {
			x, ok := t.micros(l, c, s)
			if !ok {
				return
			}
			if t.op == "RDMA_Write" || t.op == "Send" {
				x *= 2
			}
			times[c] = x
		}
	}
	metric := stage.RTT
	switch t.op {
	case "RDMA_Read":
		metric = stage.Get
	case "Send":
		t.other("perftest-send")
	case "Atomic":
		t.other("perftest-atomic")
		t.cost(l, t.at(bytes), "perftest.atomic", "ib_atomic_lat, typical (or mean) time of one operation", firstOf(times, "t_typical[usec]", "t_avg[usec]"))
		return
	}
	p := t.at(bytes)
	typical, ok := times["t_typical[usec]"]
	if !ok {
		t.mean(l, p, metric, times["t_avg[usec]"])
		return
	}
	m := result.Metric{
		Metric: metric, N: n, P50: typical, Min: times["t_min[usec]"], Max: times["t_max[usec]"], Mean: times["t_avg[usec]"],
		P99: times["99% percentile[usec]"], P999: times["99.9% percentile[usec]"],
	}
	if m.Min > m.P50 || m.P50 > m.Max || m.P99 > m.Max || m.P99 > 0 && m.P99 < m.P50 || m.P999 > m.Max || m.P999 > 0 && m.P999 < m.P99 {
		t.bad(l, "t_min, t_typical, percentiles and t_max in order", "times in no order: %s", cut(l.text))
		return
	}
	t.metric(l, p, m)
}

func firstOf(m map[string]sim.Duration, keys ...string) sim.Duration {
	for _, k := range keys {
		if v, ok := m[k]; ok {
			return v
		}
	}
	return 0
}

// bytesPerSecond of one unit of a bandwidth. perftest's MB is 2^20 B, as its MiB.
var bytesPerSecond = map[string]float64{
	"BW average[MiB/sec]": 1 << 20, "BW average[MB/sec]": 1 << 20, "BW average[Gb/sec]": 1e9 / 8,
}

func (t *perftest) bandwidth(l line, bytes int64, v map[string]string) {
	if t.both {
		t.skip(l, "a bandwidth of both directions together: no number of one sender")
		return
	}
	if t.op != "RDMA_Write" {
		t.other("perftest-" + strings.ToLower(strings.TrimPrefix(t.op, "RDMA_")))
	}
	rate, ok := t.number(l, "MsgRate[Mpps]", v["MsgRate[Mpps]"])
	if !ok {
		return
	}
	for column, unit := range bytesPerSecond {
		if s, has := v[column]; has {
			bw, ok := t.number(l, column, s)
			if !ok {
				return
			}
			goodput, byRate := bw*unit, rate*1e6*float64(bytes)
			if math.Abs(goodput-byRate) > 0.02*max(goodput, byRate)+0.01*unit {
				t.bad(l, "the same rate twice", "%s %s and MsgRate %s of %d B do not agree", column, s, v["MsgRate[Mpps]"], bytes)
				return
			}
			p := t.at(bytes)
			t.value(l, p, stage.MessageRate, rate)
			t.value(l, p, stage.Goodput, goodput/1e9)
			return
		}
	}
	t.bad(l, "BW average", "no average bandwidth in the table")
}

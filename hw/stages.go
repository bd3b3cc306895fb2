package hw

import (
	"cmp"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"gdisim/hw/verbs"
	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

// estimate is a median and the half width of its 95 % interval.
type estimate struct {
	value, spread sim.Duration
	n             int
}

// median takes the interval from the order statistics: the ranks between which
// the true median lies in 95 of 100 cases, whatever the distribution.
func median(samples []sim.Duration) estimate {
	n := len(samples)
	if n == 0 {
		return estimate{}
	}
	s := slices.Sorted(slices.Values(samples))
	half := 0.98 * math.Sqrt(float64(n))
	lo, hi := max(0, int(float64(n)/2-half)), min(n-1, int(math.Ceil(float64(n)/2+half)))
	return estimate{s[result.Rank(n, 500)], (s[hi] - s[lo] + 1) / 2, n}
}

// minus is the difference of two independent medians.
func (e estimate) minus(f estimate) estimate {
	return estimate{e.value - f.value, sim.Duration(math.Hypot(float64(e.spread), float64(f.spread))), min(e.n, f.n)}
}

// clear reports whether the difference is told from zero.
func (e estimate) clear() bool { return e.value > e.spread }

// plus is the sum of a and k times b, as if they were independent.
func (e estimate) plus(k float64, f estimate) estimate {
	return estimate{e.value + sim.Duration(k*float64(f.value)), sim.Duration(math.Hypot(float64(e.spread), k*float64(f.spread))), min(e.n, f.n)}
}

// difference notes an estimate that is no stage by itself.
func (m *measurement) difference(name, method string, e estimate) {
	m.p.Measured = append(m.p.Measured, result.Measured{
		Name: "difference." + name, Method: method + "; min and max are its 95 % interval", N: e.n,
		P50: e.value, P99: e.value + e.spread, P999: e.value + e.spread, Max: e.value + e.spread, Min: e.value - e.spread, Mean: e.value,
	})
}

// differences notes what operations that differ in one thing tell about it.
func (m *measurement) differences() {
	for _, d := range []struct{ name, a, b, method string }{
		{"fetched-minus-inline", "write", "write-inline", "the NIC's read of the payload"},
		{"read-minus-write", "read", "write", "the target's memory read and the data's way back, less what a write pays for delivery"},
		{"event-minus-poll", "write-event", "write", "interrupt, its handler and the thread's wake-up"},
		{"list-2-minus-1", "write-list-2", "write", "a second WQE, and on a NIC with BlueFlame the read of the WQEs"},
		{"doorbell-minus-blueflame", "write-doorbell", "write-blueflame", "the NIC's read of the WQE, less what the longer store to the NIC takes"},
	} {
		a, okA := m.of[d.a]
		b, okB := m.of[d.b]
		if okA && okB {
			m.difference(d.name, d.method+"; difference of medians", a.minus(b))
		}
	}
	one, ok1 := m.of["write"]
	two, ok2 := m.of["write-list-2"]
	three, ok3 := m.of["write-list-3"]
	if ok1 && ok2 && ok3 {
		m.difference("wqe-fetch", "of lists of one, two and three writes, what the second adds beyond what the third does: on a NIC with BlueFlame a single WQE is pushed and a list is read", estimate{n: two.n}.plus(2, two).plus(-1, one).plus(-1, three))
	}
}

// parts are stages that differences of measurements tell, where they are clear.
type parts struct {
	wqe, payload, cqe estimate
}

// breakdowns splits the workload's own metrics as far as they can be separated.
func (m *measurement) breakdowns() {
	var p parts
	if a, ok := m.of["write"]; ok && m.own.Op == verbs.Write && !m.own.Inline {
		if b, ok := m.of["write-inline"]; ok {
			p.payload = a.minus(b)
		}
	}
	if a, ok := m.of["write-doorbell"]; ok && m.w.noBlueFlame {
		if b, ok := m.of["write-blueflame"]; ok {
			p.wqe = a.minus(b)
		}
	}
	oneWay := p // it has no CQE
	if !m.own.Event {
		p.cqe = m.cqe
	}
	metric := stage.PutCompletion
	if m.own.Op == verbs.Read {
		metric = stage.Get
	}
	m.p.Breakdowns = append(m.p.Breakdowns, split(metric, m.post, m.seen, m.done, p))
	if len(m.seen) == len(m.post) && len(m.seen) > 0 {
		m.p.Breakdowns = append(m.p.Breakdowns, split(stage.OneWay, m.post, nil, m.seen, oneWay))
	}
}

// split cuts each message's way at the moments that a clock saw: the post's
// return, the data at the target (where somebody looked), the end. Parts that are
// clear are taken out of what is left between: the NIC's reads before the arrival,
// the CQE after it.
//
// Preconditions: post and end have a sample for each message, seen too or none.
func split(metric stage.Metric, post, seen, end []sim.Duration, p parts) result.Breakdown {
	n := len(end)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(end[a], end[b]) })
	typical := order[result.Rank(n, 500)]

	cut := func(i int) (posted, lump, ack sim.Duration) {
		posted = min(post[i], end[i])
		at := end[i]
		if len(seen) == n {
			at = min(max(seen[i], posted), end[i])
		}
		return posted, at - posted, end[i] - at
	}
	posts, lumps, acks := make([]sim.Duration, n), make([]sim.Duration, n), make([]sim.Duration, n)
	for i := range end {
		posts[i], lumps[i], acks[i] = cut(i)
	}
	at := func(v []sim.Duration) (t, mean, spread sim.Duration) {
		return v[typical], result.Summarise(v).Mean, median(v).spread
	}

	b := result.Breakdown{Metric: metric}
	b.Total, b.MeanTotal, _ = at(end)
	add := func(s stage.Stage, time, mean, spread sim.Duration, method string) {
		b.Stages = append(b.Stages, result.StageTime{Stage: s, Lane: s.Lane(), Time: time, Mean: mean, N: 1, Method: method, Spread: spread})
	}
	t, mean, spread := at(posts)
	add(stage.CPUPost, t, mean, spread, "clock around ibv_post_send: the doorbell's store is in it")

	t, mean, spread = at(lumps)
	ackT, ackMean, ackSpread := at(acks)
	take := func(from, fromMean *sim.Duration, e estimate, s stage.Stage, method string) func() {
		if !e.clear() || e.value > min(*from, *fromMean) {
			return func() {}
		}
		*from, *fromMean = *from-e.value, *fromMean-e.value
		return func() { add(s, e.value, e.value, e.spread, method) }
	}
	addWQE := take(&t, &mean, p.wqe, stage.NICWQEFetch, "median by the doorbell register, less median by BlueFlame: less also what the longer store takes")
	addPayload := take(&t, &mean, p.payload, stage.NICPayloadFetch, "median with the payload fetched, less median with it inline")
	after, afterMean := &t, &mean
	if len(seen) == n {
		after, afterMean = &ackT, &ackMean
	}
	addCQE := take(after, afterMean, p.cqe, stage.NICCQE, "CQE polled, less its time stamp by the device's clock: cpu.poll is in it")
	addWQE()
	addPayload()
	method := "the rest: NIC, wire and memory at the target, from the post's return on"
	if metric != stage.OneWay && len(seen) != n {
		method = "the rest: NICs, wire, acknowledgement and completion, from the post's return on"
	}
	add(stage.Unresolved, t, mean, spread, method)
	if len(seen) == n {
		add(stage.NICAck, ackT, ackMean, ackSpread, "CQE polled, less data seen at the target by the same clock: what of acknowledgement, nic.cqe and cpu.poll lies after the delivery and is no stage below")
	}
	addCQE()
	return b
}

// clockCost is the median of the clock's own cost, 0 where it was not measured.
func clockCost(ms []result.Measured) sim.Duration {
	for _, m := range ms {
		if m.Name == "clock" && m.Err == "" {
			return m.P50
		}
	}
	return 0
}

// counters reads every counter of every port below root, by path.
func counters(root fs.FS) map[string]uint64 {
	out := map[string]uint64{}
	const class = "sys/class/infiniband"
	devices, _ := fs.ReadDir(root, class)
	for _, d := range devices {
		ports, _ := fs.ReadDir(root, path.Join(class, d.Name(), "ports"))
		for _, p := range ports {
			for _, kind := range []string{"counters", "hw_counters"} {
				dir := path.Join(class, d.Name(), "ports", p.Name(), kind)
				files, _ := fs.ReadDir(root, dir)
				for _, f := range files {
					text, err := fs.ReadFile(root, path.Join(dir, f.Name()))
					if err != nil {
						continue
					}
					if v, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
						out[d.Name()+" port "+p.Name()+" "+f.Name()] = v
					}
				}
			}
		}
	}
	return out
}

// trouble are words of counters that tell of retransmission or loss.
var trouble = []string{"err", "retry", "retries", "duplicate", "out_of_seq", "rcvd_seq", "discard", "drop", "timeout", "rnr", "nak"}

// moved tells which counters of trouble grew during the run.
func moved(before, after map[string]uint64) []string {
	var out []string
	for key, v := range after {
		if v > before[key] && slices.ContainsFunc(trouble, func(w string) bool { return strings.Contains(key, w) }) {
			out = append(out, key+" grew by "+strconv.FormatUint(v-before[key], 10))
		}
	}
	slices.Sort(out)
	return out
}

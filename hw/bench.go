package hw

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gdisim/hw/verbs"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// bench measures paths against a target.
type bench struct {
	o        *Options
	t        target
	r        *result.Result
	overhead sim.Duration // of a clock read, in every interval
	e        verbs.Endpoint
}

// registrations of each kind of page are timed.
const registrations = 10

// few bounds the iterations of the operations beside the one asked for.
const few = 200

// path measures one path. On error, what was measured until then is returned.
// One that cannot run here is errOtherBackend.
func (b *bench) path(ctx context.Context, name string, c *scenarios.Config) (result.Path, error) {
	p := result.Path{Stack: Stack}
	w, err := read(c)
	if err != nil {
		return p, err
	}
	p.Workload = fmt.Sprintf("%s %d B by a CPU thread through libibverbs, host memory at both ends, %d outstanding", w.kind, w.bytes, w.window)
	if notice := w.notice(name); notice != "" {
		b.once(notice)
	}
	m := measurement{bench: b, ctx: ctx, w: w, p: &p}
	err = m.run()
	p.Params = used(c)
	return p, err
}

// used are the parameters that were read.
func used(c *scenarios.Config) (out []result.Param) {
	for _, q := range c.Used() {
		out = append(out, result.Param{Key: q.Key, Value: q.Value, Unit: q.Unit, Source: q.Source, Kind: q.Kind})
	}
	return out
}

// meet opens an endpoint at each end, has f run between them and closes both.
// change, nil for none, is what is asked for beside the workload's own.
func (m *measurement) meet(change func(*verbs.Config), f func() error) error {
	w := &m.w
	cfg := verbs.Config{
		Device: m.o.Device, GID: m.o.GID, Port: m.o.Port, QPs: w.qps, Depth: max(w.window, 2*w.chain, 16), Bytes: max(w.bytes, 8), Inline: 256, NoBlueFlame: w.noBlueFlame,
	}
	if change != nil {
		change(&cfg)
	}
	e, err := m.o.Open(cfg)
	if err != nil {
		return err
	}
	defer e.Close()
	defer m.t.leave()
	addr, err := m.t.join(cfg, e.Address())
	if err == nil {
		err = e.Connect(addr)
	}
	if err != nil {
		return err
	}
	m.e, m.info = e, e.Info()
	m.describe(m.info)
	if w.noBlueFlame && !m.info.BlueFlame {
		m.once(m.info.Device + " cannot be told to ring without BlueFlame: blueflame false is not obeyed")
	}
	return f()
}

// describe notes the device in the result, once.
func (b *bench) describe(info verbs.Info) {
	if b.r.Emulated == "" {
		b.r.Emulated = info.Emulated
		if info.Emulated != "" {
			b.r.Notices = append(b.r.Notices, info.Emulated+": these times are not a NIC's and calibrate nothing")
		}
	}
	if slices.ContainsFunc(b.r.Machine, func(s result.Setting) bool { return s.Key == "device" }) {
		return
	}
	b.r.Machine = append(b.r.Machine, result.Setting{Key: "device", Value: info.Device}, result.Setting{Key: "device.gid", Value: info.GID},
		result.Setting{Key: "device.inline", Value: fmt.Sprintf("%d B", info.InlineMax)})
	for _, p := range info.Ports {
		layer := "InfiniBand"
		if p.Ethernet {
			layer = "Ethernet"
		}
		b.r.Machine = append(b.r.Machine, result.Setting{Key: "device.port", Value: fmt.Sprintf("%d, %s, MTU %d B", p.Number, layer, p.MTU)})
	}
	for _, l := range info.Limits {
		b.r.Machine = append(b.r.Machine, result.Setting{Key: "device." + l.Key, Value: l.Value})
	}
}

// measurement is one path at one point.
type measurement struct {
	*bench
	ctx  context.Context
	w    work
	p    *result.Path
	info verbs.Info
	seed byte

	own              verbs.Batch
	post, seen, done []sim.Duration      // of it
	whole            bool                // all of it was measured
	of               map[string]estimate // medians of the operations beside it
	cqe              estimate            // from the device's CQE to the poll
}

// batch runs b on both ends and verifies what arrived.
func (m *measurement) batch(b verbs.Batch) (verbs.Times, error) {
	m.seed += 17 // what a batch left behind must not look like the next one's data
	b.Bytes, b.Timeout, b.Seed, b.Peer = m.w.bytes, m.o.Timeout, m.seed, m.t.endpoint()
	b.Chain, b.QPs = max(b.Chain, 1), max(b.QPs, 1)
	what := b.Op.String()
	if b.Loop == verbs.PingPong {
		what = "ping-pong"
	}
	fail := func(err error) error { return fmt.Errorf("%s of %d B: %w", what, b.Bytes, err) }
	if err := m.e.Prepare(b); err != nil {
		return verbs.Times{}, fail(err)
	}
	if err := m.t.prepare(b); err != nil {
		return verbs.Times{}, fail(err)
	}
	t, err := m.e.Run(m.ctx, b)
	if err != nil {
		return t, fail(err)
	}
	if b.Op == verbs.Read || b.Loop == verbs.PingPong {
		if err := m.e.Verify(b); err != nil {
			return t, fail(err)
		}
	}
	if err := m.t.verify(b); err != nil {
		return t, fail(err)
	}
	return t, nil
}

// durations turns the clock's nanoseconds into durations without the clock's cost.
func (m *measurement) durations(ns []int64) []sim.Duration {
	out := make([]sim.Duration, len(ns))
	for i, v := range ns {
		out[i] = max(0, sim.Duration(v)*sim.Nanosecond-m.overhead)
	}
	return out
}

func (m *measurement) measure(name, method string, samples []sim.Duration) {
	if len(samples) > 0 {
		m.p.Measured = append(m.p.Measured, result.Measure(name, method, m.overhead, samples))
	}
}

func (m *measurement) metric(metric stage.Metric, samples []sim.Duration) {
	if len(samples) == 0 {
		return
	}
	x := result.Summarise(samples)
	x.Metric = metric
	m.p.Metrics = append(m.p.Metrics, x)
}

func (m *measurement) run() error {
	if m.w.kind == "stream" {
		return m.meet(nil, m.stream)
	}
	m.of = map[string]estimate{}
	err := m.meet(nil, m.messages)
	if err == nil {
		err = m.otherRing()
	}
	if err == nil {
		err = m.deviceTimes()
	}
	if m.whole {
		m.differences()
		m.breakdowns()
	}
	return err
}

// messages measures the workload's own operation in full, and the others for
// the differences that tell stages apart.
func (m *measurement) messages() error {
	w := m.w
	m.own = verbs.Batch{Op: verbs.Write, N: w.n, Warmup: w.warmup, Inline: w.inline && w.bytes <= m.info.InlineMax, Event: w.event, Signal: w.signal}
	if w.kind == "get" {
		m.own.Op, m.own.Inline = verbs.Read, false
	}
	t, err := m.batch(m.own)
	m.post, m.seen, m.done = m.durations(t.Post), m.durations(t.Seen), m.durations(t.Done)
	m.metric(stage.Issue, m.post)
	if m.own.Op == verbs.Read {
		m.metric(stage.Get, m.done)
	} else {
		m.metric(stage.PutCompletion, m.done)
		m.metric(stage.OneWay, m.seen)
	}
	m.p.Cost = result.Cost{Messages: t.Messages, Doorbells: t.Doorbells, CPUCores: 1}
	if err != nil {
		return err
	}
	m.whole = true
	for _, v := range m.variants() {
		if err := m.beside(v); err != nil {
			return err
		}
	}
	if err := m.roundTrip(); err != nil {
		return err
	}
	return m.register()
}

// beside measures a variant and keeps its median.
func (m *measurement) beside(v variant) error {
	b := verbs.Batch{Op: verbs.Write, N: min(m.w.n, few), Warmup: min(m.w.warmup, few/10)}
	v.change(&b)
	t, err := m.batch(b)
	d := m.durations(t.Done)
	m.measure("op."+v.name, v.method, d)
	m.measure("op."+v.name+".post", "ibv_post_send of it, call to return", m.durations(t.Post))
	m.measure("op."+v.name+".seen", "call until the target's memory or receive queue shows it, by the same clock", m.durations(t.Seen))
	if err == nil {
		m.of[v.name] = median(d)
	}
	return err
}

// variant is an operation measured beside the workload's own.
type variant struct {
	name, method string
	change       func(*verbs.Batch)
}

func (m *measurement) variants() []variant {
	const done = ", call until the CQE is polled"
	vs := []variant{{"write", "RDMA write, payload fetched" + done, func(*verbs.Batch) {}}}
	if m.w.bytes <= m.info.InlineMax {
		vs = append(vs, variant{"write-inline", "RDMA write, payload inline" + done, func(b *verbs.Batch) { b.Inline = true }})
	}
	vs = append(vs,
		variant{"write-event", "RDMA write, call until an event has woken the thread and the CQE is polled", func(b *verbs.Batch) { b.Event = true }},
		variant{"write-list-2", "two RDMA writes of one post" + done + " of the second", func(b *verbs.Batch) { b.Chain = 2 }},
		variant{"write-list-3", "three RDMA writes of one post" + done + " of the third", func(b *verbs.Batch) { b.Chain = 3 }},
		variant{"write-imm", "RDMA write with immediate" + done, func(b *verbs.Batch) { b.Op = verbs.WriteImm }},
		variant{"send", "send" + done, func(b *verbs.Batch) { b.Op = verbs.Send }},
		variant{"read", "RDMA read" + done, func(b *verbs.Batch) { b.Op = verbs.Read }})
	if m.w.chain > 3 {
		vs = append(vs, variant{fmt.Sprintf("write-list-%d", m.w.chain), fmt.Sprintf("%d RDMA writes of one post", m.w.chain) + done + " of the last", func(b *verbs.Batch) { b.Chain = m.w.chain }})
	}
	if m.info.Atomics {
		vs = append(vs,
			variant{"fetch-add", "8 B fetch-and-add" + done, func(b *verbs.Batch) { b.Op = verbs.FetchAdd }},
			variant{"cmp-swap", "8 B compare-and-swap" + done, func(b *verbs.Batch) { b.Op = verbs.CmpSwap }})
	}
	return vs
}

func (m *measurement) roundTrip() error {
	n := min(m.w.n, few)
	if m.w.kind == "ping-pong" {
		n = m.w.n
	}
	t, err := m.batch(verbs.Batch{Loop: verbs.PingPong, N: n, Warmup: min(m.w.warmup, n), Inline: m.w.inline && m.w.bytes <= m.info.InlineMax})
	m.metric(stage.RTT, m.durations(t.Done))
	return err
}

func (m *measurement) stream() error {
	w := m.w
	b := verbs.Batch{Loop: verbs.Rate, N: w.n * w.window, Warmup: w.warmup, Chain: w.chain, Window: w.window, QPs: w.qps, Every: w.every, Inline: w.inline && w.bytes <= m.info.InlineMax}
	t, err := m.batch(b)
	if t.Elapsed > 0 && t.Messages > 0 {
		perSecond := float64(t.Messages) / t.Elapsed.Seconds()
		m.p.Metrics = append(m.p.Metrics, result.Metric{Metric: stage.MessageRate, Value: perSecond / 1e6},
			result.Metric{Metric: stage.Goodput, Value: perSecond * float64(w.bytes) / 1e9})
	}
	m.p.Cost = result.Cost{Window: sim.Duration(t.Elapsed) * sim.Nanosecond, Messages: t.Messages, Doorbells: t.Doorbells, CPUCores: 1}
	if err != nil {
		return err
	}
	return m.register()
}

// register times memory registration of the workload's size, by kind of page.
func (m *measurement) register() error {
	for _, pages := range []verbs.Pages{verbs.SmallPages, verbs.TransparentHuge, verbs.HugeTLB} {
		name := fmt.Sprintf("%dB.%s", m.w.bytes, pages)
		reg, dereg, err := m.e.Register(m.w.bytes, pages, registrations)
		if err != nil {
			m.p.Measured = append(m.p.Measured, result.Measured{Name: "register." + name, Method: "ibv_reg_mr of touched memory", Err: err.Error()})
			continue
		}
		m.measure("register."+name, "ibv_reg_mr of touched memory", m.durations(reg))
		m.measure("deregister."+name, "ibv_dereg_mr of it", m.durations(dereg))
	}
	return m.ctx.Err()
}

// once adds a notice to the result, unless it is there.
func (b *bench) once(notice string) { note(b.r, notice) }

func note(r *result.Result, notice string) {
	if !slices.Contains(r.Notices, notice) {
		r.Notices = append(r.Notices, notice)
	}
}

// notices says which keys of the scenario hardware did not obey.
func notices(ignored map[string]bool) []string {
	if len(ignored) == 0 {
		return nil
	}
	return []string{"set by the scenario, but nothing that this run on hardware can obey: " + strings.Join(slices.Sorted(maps.Keys(ignored)), ", ")}
}

func occurred(f stage.Finding, err error) result.Finding {
	return result.Finding{Finding: f, Grade: stage.Occurred, Count: 1, Cause: err.Error()}
}

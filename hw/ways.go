package hw

import (
	"fmt"
	"math"

	"gdisim/hw/verbs"
	"gdisim/result"
	"gdisim/sim"
)

// absent notes what this device cannot show.
func (m *measurement) absent(name, method, why string) {
	m.p.Measured = append(m.p.Measured, result.Measured{Name: name, Method: method, Err: why})
}

// why says what a device has instead of what it lacks.
func (m *measurement) why(lacks string) string {
	if m.info.Emulated != "" {
		return m.info.Emulated
	}
	return m.info.Device + " " + lacks
}

// otherRing measures a write by both ways to ring, on endpoints that differ in
// nothing else.
func (m *measurement) otherRing() error {
	if !m.info.BlueFlame {
		m.absent("difference.doorbell-minus-blueflame", "the same write by either register", m.why("cannot be told to ring without BlueFlame"))
		return nil
	}
	inline := m.w.bytes <= m.info.InlineMax
	for _, way := range []struct {
		name, method string
		off          bool
	}{{"write-blueflame", "RDMA write, pushed through BlueFlame", false}, {"write-doorbell", "RDMA write, rung by the doorbell register (MLX5_SHUT_UP_BF)", true}} {
		err := m.meet(func(c *verbs.Config) { c.NoBlueFlame = way.off }, func() error {
			return m.beside(variant{way.name, way.method + ", call until the CQE is polled", func(b *verbs.Batch) { b.Inline = inline }})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deviceTimes measures what the device's own clock separates, on endpoints whose
// completions carry its time.
func (m *measurement) deviceTimes() error {
	const toPoll, method = "timestamp.cqe-to-poll", "CQE polled, less the device's time stamp of it, put on the CPU's clock by reading both"
	if !m.info.Stamps() {
		m.absent(toPoll, method, "no completion time stamps: "+m.why("has none"))
		return nil
	}
	return m.meet(func(c *verbs.Config) { c.Extended = true }, func() error {
		b := m.own
		b.Event, b.N, b.Warmup = false, min(m.w.n, few), min(m.w.warmup, few/10)
		t, err := m.batch(b)
		if err != nil {
			return err
		}
		s, err := newScale(&m.info, t.Clocks)
		if err != nil {
			m.absent(toPoll, method, err.Error())
			return nil
		}
		var d []sim.Duration
		for i, stamp := range t.Stamp {
			d = append(d, sim.Duration(t.Call[i]+t.Done[i]-t.Clocks[0].CPU)*sim.Nanosecond-s.since(stamp))
		}
		if len(d) == 0 {
			m.absent(toPoll, method, m.info.Device+" gave no time stamp")
			return nil
		}
		m.p.Measured = append(m.p.Measured, result.Measure(toPoll, fmt.Sprintf("%s, known to %v", method, s.half), 0, d))
		m.cqe = median(d)
		m.cqe.spread = sim.Duration(math.Hypot(float64(m.cqe.spread), float64(s.half)))
		return m.arrivals()
	})
}

// arrivals is the device's own time between the two CQEs of a write with
// immediate, where one device has both.
func (m *measurement) arrivals() error {
	const name, method = "timestamp.arrival-to-cqe", "write with immediate: the sender's CQE less the receiver's, both stamped by one device"
	peer := m.t.endpoint()
	if peer == nil || peer.Info().Device != m.info.Device {
		m.absent(name, method, "the two ends have clocks of their own")
		return nil
	}
	t, err := m.batch(verbs.Batch{Op: verbs.WriteImm, N: min(m.w.n, few), Warmup: min(m.w.warmup, few/10)})
	if err != nil {
		return err
	}
	var d []sim.Duration
	for i := range t.Stamp {
		d = append(d, ticks(t.Stamp[i], t.Arrived[i], &m.info))
	}
	if len(d) > 0 {
		m.p.Measured = append(m.p.Measured, result.Measure(name, method, 0, d))
	}
	return nil
}

// ticks is the time from b to a by the device's clock, which wraps: less than half
// of its range, either way.
func ticks(a, b uint64, info *verbs.Info) sim.Duration {
	n := (a - b) & info.StampMask
	back := (b - a) & info.StampMask
	if back < n {
		return -sim.Duration(float64(back) * float64(sim.Millisecond) / float64(info.StampKHz))
	}
	return sim.Duration(float64(n) * float64(sim.Millisecond) / float64(info.StampKHz))
}

// scale puts the device's time on the CPU's clock, by the readings before and
// after a batch.
type scale struct {
	first uint64 // device time of the first reading
	mask  uint64
	rate  float64 // ps of the CPU's clock to a tick
	half  sim.Duration
}

// credible is how far the readings may be from the clock that the device states.
const credible = 0.02

func newScale(info *verbs.Info, c [2]verbs.Clocks) (scale, error) {
	if c[0].Half < 0 || c[1].Half < 0 {
		return scale{}, fmt.Errorf("%s does not tell its clock, so that its time stamps cannot be put on the CPU's", info.Device)
	}
	n, ns := (c[1].Device-c[0].Device)&info.StampMask, c[1].CPU-c[0].CPU
	s := scale{first: c[0].Device, mask: info.StampMask, half: sim.Duration(max(c[0].Half, c[1].Half)) * sim.Nanosecond}
	if n > 0 {
		s.rate = float64(ns) * float64(sim.Nanosecond) / float64(n)
	}
	if stated := float64(sim.Millisecond) / float64(info.StampKHz); n == 0 || math.Abs(s.rate-stated) > credible*stated {
		return scale{}, fmt.Errorf("the clock of %s made %d ticks in %d ns, which is not the %d kHz that it states", info.Device, n, ns, info.StampKHz)
	}
	return s, nil
}

// since is a time stamp on the CPU's clock, from the first reading on.
func (s *scale) since(stamp uint64) sim.Duration {
	return sim.Duration(float64((stamp-s.first)&s.mask) * s.rate)
}

package hw

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/mock/gomock"
	"pgregory.net/rapid"

	"gdisim/hw/verbs"
	"gdisim/hw/verbs/mock"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// nic is a device of mocks: what each endpoint was opened with decides what its
// batches take.
type nic struct {
	ctrl   *gomock.Controller
	info   verbs.Info
	opened []verbs.Config
	open   int // not yet closed
	times  func(c verbs.Config, b verbs.Batch) verbs.Times
}

func (n *nic) Open(c verbs.Config) (verbs.Endpoint, error) {
	n.opened = append(n.opened, c)
	n.open++
	e := mock.NewMockEndpoint(n.ctrl)
	e.EXPECT().Info().Return(n.info).AnyTimes()
	e.EXPECT().Address().Return(verbs.Address{}).AnyTimes()
	e.EXPECT().Connect(gomock.Any()).Return(nil).AnyTimes()
	e.EXPECT().Prepare(gomock.Any()).Return(nil).AnyTimes()
	e.EXPECT().Verify(gomock.Any()).Return(nil).AnyTimes()
	e.EXPECT().Register(gomock.Any(), gomock.Any(), gomock.Any()).Return(nil, nil, errors.New("not here")).AnyTimes()
	e.EXPECT().Close().Do(func() { n.open-- }).Times(1)
	e.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, b verbs.Batch) (verbs.Times, error) { return n.times(c, b), nil }).AnyTimes()
	return e, nil
}

// mlx is a ConnectX-like device: a clock of 1 GHz that stands 5 s apart from the
// CPU's, a CQE 700 ns before its poll, 150 ns more by the doorbell register.
func mlx(t *testing.T) *nic {
	const apart = 5_000_000_000
	n := &nic{ctrl: gomock.NewController(t), info: verbs.Info{Device: "mlx5_0", InlineMax: 64, Depth: 128, BlueFlame: true, StampMask: 1<<48 - 1, StampKHz: 1_000_000}}
	n.times = func(c verbs.Config, b verbs.Batch) verbs.Times {
		done := int64(2000 + 60*(max(b.Chain, 1)-1))
		if c.NoBlueFlame || b.Chain > 1 {
			done += 150
		}
		tm := verbs.Times{Messages: b.N, Elapsed: time.Microsecond, Doorbells: b.N}
		for i := range b.N {
			call := int64(10_000 * (i + 1))
			tm.Post, tm.Done = append(tm.Post, 100), append(tm.Done, done)
			if c.Extended {
				tm.Call = append(tm.Call, call)
				tm.Stamp = append(tm.Stamp, uint64(apart+call+done-700))
				tm.Arrived = append(tm.Arrived, uint64(apart+call+done-700-330))
			}
		}
		end := int64(10_000 * (b.N + 2))
		tm.Clocks = [2]verbs.Clocks{{CPU: 0, Half: 20, Device: apart}, {CPU: end, Half: 30, Device: uint64(apart + end)}}
		return tm
	}
	return n
}

func (n *nic) run(t *testing.T, s *scenarios.Scenario) *result.Result {
	t.Helper()
	r, err := Loopback(t.Context(), s, Options{Tool: "test", SkipHost: true, Open: n.Open})
	if err != nil {
		t.Fatal(err)
	}
	if n.open != 0 {
		t.Errorf("%d endpoints were left open", n.open)
	}
	return r
}

func verbsScenario(t *testing.T, set string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("ways.yaml", []byte("gdisim: v1\nname: ways\nhardware: h200-cx7-ib200\npaths:\n  - {name: v, stack: verbs-cpu"+set+"}\nworkload: {kind: put, bytes: 8B, iterations: 50, warmup: 0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The device's clock and the two registers become stages, with their methods and
// intervals; what was opened for them differs in that alone.
func TestStampsAndRegisters(t *testing.T) {
	const ns = sim.Nanosecond
	for _, c := range []struct {
		name, set string
		want      map[stage.Stage]sim.Duration
	}{
		{"BlueFlame", "", map[stage.Stage]sim.Duration{stage.CPUPost: 100 * ns, stage.Unresolved: 1200 * ns, stage.NICCQE: 700 * ns}},
		{"doorbell", ", set: {blueflame: false}", map[stage.Stage]sim.Duration{stage.CPUPost: 100 * ns, stage.NICWQEFetch: 150 * ns, stage.Unresolved: 1200 * ns, stage.NICCQE: 700 * ns}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := mlx(t)
			r := n.run(t, verbsScenario(t, c.set))
			p := &r.Points[0].Paths[0]
			b := p.Breakdown(stage.PutCompletion)
			var sum sim.Duration
			for _, s := range b.Stages {
				sum += s.Time
				if s.Time != c.want[s.Stage] || s.Method == "" {
					t.Errorf("%s: %v, want %v (%s)", s.Stage, s.Time, c.want[s.Stage], s.Method)
				}
				if s.Stage == stage.NICCQE && s.Spread < 30*ns {
					t.Errorf("nic.cqe is known to %v, the clocks were read to 30 ns", s.Spread)
				}
			}
			if len(b.Stages) != len(c.want) || sum != b.Total {
				t.Errorf("%d stages sum to %v of %v", len(b.Stages), sum, b.Total)
			}
			for name, want := range map[string]sim.Duration{
				"difference.doorbell-minus-blueflame": 150 * ns, "difference.wqe-fetch": 150 * ns, "timestamp.cqe-to-poll": 700 * ns, "timestamp.arrival-to-cqe": 330 * ns,
			} {
				if c.name == "doorbell" && name == "difference.wqe-fetch" {
					want = 0 // every list and every single WQE is read
				}
				if m := measuredOf(p, name); m == nil || m.P50 != want {
					t.Errorf("%s: %+v, want %v", name, m, want)
				}
			}
			off, extended := 0, 0
			for _, o := range n.opened {
				if o.NoBlueFlame {
					off++
				}
				if o.Extended {
					extended++
				}
			}
			if wantOff := map[string]int{"BlueFlame": 2, "doorbell": 6}[c.name]; off != wantOff || extended != 2 || len(n.opened) != 8 {
				t.Errorf("%d of %d endpoints without BlueFlame, want %d; %d extended", off, len(n.opened), wantOff, extended)
			}
		})
	}
}

// What a device lacks is named in its result, with the reason.
func TestWhatTheDeviceLacks(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(n *nic)
		cost   string // the cost that is not there
		want   string // of its reason
	}{
		{"soft-RoCE has no clock", func(n *nic) { n.info.StampMask, n.info.Emulated = 0, "soft-RoCE (rxe0): the CPU is the NIC" }, "timestamp.cqe-to-poll", "no completion time stamps: soft-RoCE (rxe0)"},
		{"no clock", func(n *nic) { n.info.StampKHz = 0 }, "timestamp.cqe-to-poll", "mlx5_0 has none"},
		{"a clock of another rate", func(n *nic) { n.info.StampKHz = 156_250 }, "timestamp.cqe-to-poll", "not the 156250 kHz"},
		{"no switch", func(n *nic) { n.info.BlueFlame = false }, "difference.doorbell-minus-blueflame", "mlx5_0 cannot be told"},
		{"clock not readable", func(n *nic) {
			times := n.times
			n.times = func(c verbs.Config, b verbs.Batch) verbs.Times {
				tm := times(c, b)
				tm.Clocks[1].Half = -1
				return tm
			}
		}, "timestamp.cqe-to-poll", "does not tell its clock"},
		{"a stamp of nothing", func(n *nic) {
			times := n.times
			n.times = func(c verbs.Config, b verbs.Batch) verbs.Times {
				tm := times(c, b)
				tm.Stamp = nil
				return tm
			}
		}, "timestamp.cqe-to-poll", "gave no time stamp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := mlx(t)
			c.change(n)
			p := &n.run(t, verbsScenario(t, "")).Points[0].Paths[0]
			i := slices.IndexFunc(p.Measured, func(m result.Measured) bool { return m.Name == c.cost })
			if i < 0 || !strings.Contains(p.Measured[i].Err, c.want) {
				t.Errorf("%+v, want %q", p.Measured, c.want)
			}
			for _, s := range p.Breakdown(stage.PutCompletion).Stages {
				if s.Stage == stage.NICCQE && c.cost == "timestamp.cqe-to-poll" {
					t.Errorf("nic.cqe of %v out of nothing", s.Time)
				}
			}
		})
	}
	t.Run("blueflame false without a switch", func(t *testing.T) {
		n := mlx(t)
		n.info.BlueFlame = false
		if r := n.run(t, verbsScenario(t, ", set: {blueflame: false}")); !slices.ContainsFunc(r.Notices, func(s string) bool { return strings.Contains(s, "not obeyed") }) {
			t.Errorf("%q", r.Notices)
		}
	})
}

// The device's time wraps, and is put on the CPU's clock to less than its tick.
func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(40, 64).Draw(t, "bits")
		info := verbs.Info{Device: "d", StampMask: ^uint64(0) >> (64 - bits), StampKHz: rapid.Uint64Range(100_000, 2_000_000).Draw(t, "kHz")}
		first := rapid.Uint64().Draw(t, "first") & info.StampMask
		span := rapid.Uint64Range(1000, 1<<30).Draw(t, "ticks")
		at := rapid.Uint64Range(0, span).Draw(t, "at")
		tick := 1e9 / float64(info.StampKHz) // ps
		ns := int64(float64(span) * tick / 1000)
		if ns < 100 {
			t.Skip()
		}
		s, err := newScale(&info, [2]verbs.Clocks{{CPU: 1 << 60, Half: 1, Device: first}, {CPU: 1<<60 + ns, Half: 2, Device: (first + span) & info.StampMask}})
		if err != nil {
			t.Fatal(err)
		}
		got, want := float64(s.since((first+at)&info.StampMask)), float64(at)*tick
		if d := got - want; d > tick+1000 || d < -tick-1000 || s.half != 2*sim.Nanosecond {
			t.Fatalf("%g ps, want %g", got, want)
		}
		d := ticks((first+at)&info.StampMask, first, &info)
		back := ticks(first, (first+at)&info.StampMask, &info)
		if e := float64(d) - want; e > 1 || e < -1 || d != -back {
			t.Fatalf("%v and %v, want %g ps", d, back, want)
		}
	})
}

// What of each stack a CPU thread does, and what nobody does.
func TestPartsOfStacks(t *testing.T) {
	for _, c := range []struct {
		stack, workload string
		runs            bool
		check           func(w work) bool
	}{
		{"verbs-cpu", put, true, func(w work) bool { return w.instead == "" && w.inline && !w.event }},
		{"verbs-cpu", "{kind: stream, bytes: 8B, outstanding: 128}", true, func(w work) bool { return w.every == 100 && w.chain == 1 }},
		{"verbs-cpu", "{kind: stream, bytes: 8B, outstanding: 128, wqes_per_doorbell: 4}", true, func(w work) bool { return w.chain == 4 }},
		{"mini-proxy", put, true, func(w work) bool { return !w.inline && !w.event && slices.Contains(w.unseen, stage.GPUFence) }},
		{"mini-proxy-tuned", put, true, func(w work) bool { return w.inline }},
		{"mini-proxy-tuned", "{kind: put, bytes: 64B}", true, func(w work) bool { return !w.inline }},
		{"proxy-interrupt", put, true, func(w work) bool { return w.event }},
		{"proxy-interrupt", "{kind: stream, bytes: 8B, outstanding: 64}", true, func(w work) bool { return w.chain == 16 }},
		{"host-staged", put, true, func(w work) bool { return slices.Contains(w.unseen, stage.GPUCopy) }},
		{"fabric-lib", put, true, func(w work) bool { return strings.Contains(w.instead, "hand-overs") }},
		{"verbs-cpu", "{kind: put-signal, bytes: 8B}", true, func(w work) bool { return w.signal == verbs.SignalWrite }},
		{"mini-gda", put, false, nil},
		{"ibgda-cpu-doorbell", put, false, nil},
		{"gpudirect-async", put, false, nil},
	} {
		t.Run(c.stack+" "+c.workload, func(t *testing.T) {
			s, err := scenarios.Parse("p.yaml", []byte(fmt.Sprintf("gdisim: v1\nhardware: h200-cx7-ib200\npaths: [%s]\nworkload: %s\n", c.stack, c.workload)))
			if err != nil {
				t.Fatal(err)
			}
			w, err := read(s.Config(0, 0))
			if c.runs != (err == nil) || err != nil && !errors.Is(err, errOtherBackend) {
				t.Fatalf("%v", err)
			}
			if err == nil && !c.check(w) {
				t.Errorf("%+v", w)
			}
		})
	}
}

// A path that cannot run is named; the others run, and the run has not failed.
func TestOtherPathsStillRun(t *testing.T) {
	s, err := scenarios.Parse("mixed.yaml", []byte("gdisim: v1\nhardware: h200-cx7-ib200\npaths: [mini-gda, proxy-interrupt, gpudirect-async]\nworkload: "+put+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	n := mlx(t)
	r := n.run(t, s)
	if r.Partial || len(r.Points) != 1 || len(r.Points[0].Paths) != 1 || r.Points[0].Paths[0].Name != "proxy-interrupt" || r.Points[0].Paths[0].Err != "" {
		t.Errorf("%+v", r.Points)
	}
	notices := strings.Join(r.Notices, "\n")
	for _, want := range []string{"not measured: mini-gda: ", "not measured: gpudirect-async: ", "proxy-interrupt: a CPU thread posts", "not seen: gpu.reserve"} {
		if strings.Count(notices, want) != 1 {
			t.Errorf("%d notices say %q:\n%s", strings.Count(notices, want), want, notices)
		}
	}
}

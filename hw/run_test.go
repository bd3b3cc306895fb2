package hw

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/golang/mock/gomock"

	"gdisim/hw/pair"
	"gdisim/hw/verbs"
	"gdisim/hw/verbs/mock"
	"gdisim/result"
	"gdisim/sim"
	"gdisim/stage"
)

const put = "{kind: put, bytes: 8B, iterations: 3, warmup: 0}"

// ideal is an endpoint on which every batch takes the same, post 100 ns, seen
// 600 ns, done 1000 ns, until fails says otherwise. closed counts.
func ideal(ctrl *gomock.Controller, closed *int, fails func(b verbs.Batch) error) *mock.MockEndpoint {
	e := mock.NewMockEndpoint(ctrl)
	info := verbs.Info{Device: "mlx5_9", Atomics: true, InlineMax: 64, Depth: 16, GID: "fe80::1", Ports: []verbs.PortInfo{{Number: 1, MTU: 4096, MaxMTU: 4096, Active: true}}}
	e.EXPECT().Info().Return(info).AnyTimes()
	e.EXPECT().Address().Return(verbs.Address{QPNs: []uint32{7}, MTU: 5, GID: strings.Repeat("0", 32)}).AnyTimes()
	e.EXPECT().Connect(gomock.Any()).Return(nil).AnyTimes()
	e.EXPECT().Prepare(gomock.Any()).Return(nil).AnyTimes()
	e.EXPECT().Verify(gomock.Any()).Return(nil).AnyTimes()
	e.EXPECT().Register(gomock.Any(), gomock.Any(), gomock.Any()).Return([]int64{1}, []int64{1}, nil).AnyTimes()
	e.EXPECT().Close().Do(func() { *closed++ }).MinTimes(1)
	e.EXPECT().Run(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, b verbs.Batch) (verbs.Times, error) {
		var t verbs.Times
		for range b.N {
			t.Post, t.Done = append(t.Post, 100), append(t.Done, 1000)
			if b.Peer != nil && b.Loop == verbs.Latency {
				t.Seen = append(t.Seen, 600)
			}
		}
		t.Messages, t.Elapsed = b.N, time.Microsecond
		if fails != nil {
			return t, fails(b)
		}
		return t, nil
	}).AnyTimes()
	return e
}

func mockedOptions(ends ...*mock.MockEndpoint) Options {
	return Options{Tool: "test", SkipHost: true, Open: func(verbs.Config) (verbs.Endpoint, error) {
		e := ends[0]
		ends = ends[1:]
		return e, nil
	}}
}

func TestLoopback(t *testing.T) {
	ctrl := gomock.NewController(t)
	closed := 0
	r, err := Loopback(t.Context(), scenario(t, put), mockedOptions(ideal(ctrl, &closed, nil), ideal(ctrl, &closed, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if closed != 2 {
		t.Errorf("%d endpoints closed of 2", closed)
	}
	p := &r.Points[0].Paths[0]
	if r.Partial || r.Emulated != "" || p.Stack != Stack || p.Name != "mini-proxy" || p.Err != "" {
		t.Errorf("%+v", r)
	}
	b := p.Breakdown(stage.PutCompletion)
	want := map[stage.Stage]sim.Duration{stage.CPUPost: 100 * sim.Nanosecond, stage.Unresolved: 500 * sim.Nanosecond, stage.NICAck: 400 * sim.Nanosecond}
	for _, s := range b.Stages {
		if s.Time != want[s.Stage] || s.Method == "" {
			t.Errorf("%s: %v, want %v; method %q", s.Stage, s.Time, want[s.Stage], s.Method)
		}
	}
	if len(b.Stages) != len(want) || b.Total != sim.Microsecond {
		t.Errorf("%+v", b)
	}
	if !slices.ContainsFunc(r.Machine, func(s result.Setting) bool { return s == result.Setting{Key: "device", Value: "mlx5_9"} }) {
		t.Errorf("no device in %v", r.Machine)
	}
}

// Whatever ends a batch ends the run with what was measured, by its name, and
// with everything released.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     error
		finding stage.Finding
	}{
		{"QP error", verbs.ErrQPFatal, stage.NoFinding},
		{"CQ overrun", verbs.ErrCQOverrun, stage.CQOverflow},
		{"wrong key", &verbs.WCError{Status: 10, Text: "remote access error"}, stage.RKeyViolation},
		{"receiver not ready", &verbs.WCError{Status: 13, Text: "RNR"}, stage.RNR},
		{"retries", &verbs.WCError{Status: 12, Text: "retry"}, stage.RetryExceeded},
		{"port down", errors.Join(verbs.ErrPortDown, verbs.ErrTimeout), stage.NoFinding},
		{"deadline", verbs.ErrTimeout, stage.NoFinding},
		{"other data", verbs.ErrBadData, stage.NoFinding},
		{"no room to post", syscall.ENOMEM, stage.NoFinding},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctrl := gomock.NewController(t)
			closed, runs := 0, 0
			second := func(verbs.Batch) error {
				if runs++; runs == 2 {
					return c.err
				}
				return nil
			}
			r, err := Loopback(t.Context(), scenario(t, put), mockedOptions(ideal(ctrl, &closed, second), ideal(ctrl, &closed, nil)))
			if !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if closed != 2 || runs != 2 {
				t.Errorf("%d endpoints closed of 2, %d batches", closed, runs)
			}
			if r == nil || !r.Partial || len(r.Points) != 1 {
				t.Fatalf("no partial result: %+v", r)
			}
			p := &r.Points[0].Paths[0]
			if p.Metric(stage.PutCompletion) == nil || p.Err == "" {
				t.Errorf("what was measured before is lost: %+v", p)
			}
			var got stage.Finding
			if len(p.Findings) > 0 {
				got = p.Findings[0].Finding
			}
			if got != c.finding {
				t.Errorf("finding %q, want %q", got, c.finding)
			}
		})
	}
}

func TestDataIsVerifiedAtTheTarget(t *testing.T) {
	ctrl := gomock.NewController(t)
	closed := 0
	a := ideal(ctrl, &closed, nil)
	b := mock.NewMockEndpoint(ctrl)
	b.EXPECT().Address().Return(verbs.Address{}).AnyTimes()
	b.EXPECT().Connect(gomock.Any()).Return(nil)
	b.EXPECT().Prepare(gomock.Any()).Return(nil)
	b.EXPECT().Verify(gomock.Any()).DoAndReturn(func(x verbs.Batch) error {
		if !x.Target {
			t.Error("the target does not know that it is one")
		}
		return verbs.ErrBadData
	})
	b.EXPECT().Close()
	if _, err := Loopback(t.Context(), scenario(t, put), mockedOptions(a, b)); !errors.Is(err, verbs.ErrBadData) {
		t.Error(err)
	}
}

func TestOpenFails(t *testing.T) {
	o := Options{SkipHost: true, Open: func(verbs.Config) (verbs.Endpoint, error) { return nil, verbs.ErrNoRDMA }}
	r, err := Loopback(t.Context(), scenario(t, put), o)
	if !errors.Is(err, verbs.ErrNoRDMA) || !r.Partial {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestGPUPathsAreNotInvented(t *testing.T) {
	s := scenario(t, put)
	if err := s.Apply([]string{"paths.*.protocol=gpu-doorbell"}); err != nil {
		t.Fatal(err)
	}
	o := Options{SkipHost: true, Open: func(verbs.Config) (verbs.Endpoint, error) {
		t.Error("opened")
		return nil, verbs.ErrNoRDMA
	}}
	if _, err := Loopback(t.Context(), s, o); !errors.Is(err, ErrNothingRuns) {
		t.Error(err)
	}
}

// Two ends over a socket, with devices that are mocks: what the wire carries is
// real.
func TestTwoEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		target func(b verbs.Batch) error // what its Run says
		want   string                    // of the initiator's error
	}{
		{"well", nil, ""},
		{"the target fails", func(b verbs.Batch) error {
			if b.Loop == verbs.Receive {
				return verbs.ErrTimeout
			}
			return nil
		}, "the other end: no completion"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctrl := gomock.NewController(t)
			closed := 0
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			answered := 0
			target := ideal(ctrl, &closed, func(b verbs.Batch) error {
				answered++
				if !b.Target || b.Op.TwoSided() != (b.Loop == verbs.Receive) {
					t.Errorf("the target runs %+v", b)
				}
				if c.target != nil {
					return c.target(b)
				}
				return nil
			})
			so, do := mockedOptions(target), mockedOptions(ideal(ctrl, &closed, nil))
			so.Pair.Token, do.Pair.Token = "0123456789abcdef", "0123456789abcdef"
			served := make(chan error, 1)
			go func() { served <- Serve(t.Context(), scenario(t, put), l, so) }()
			r, err := Dial(t.Context(), scenario(t, put), l.Addr().String(), do)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if err := <-served; err != nil {
				t.Errorf("the end that serves: %v", err)
			}
			if closed != 2 {
				t.Errorf("%d endpoints closed of 2", closed)
			}
			if c.want == "" && (answered != 3 || r.Points[0].Paths[0].Metric(stage.OneWay) != nil) {
				t.Errorf("%d batches answered, want write-imm, send and ping-pong", answered)
			}
		})
	}
}

// hostile plays an initiator that knows the token and nothing else.
func TestServeHostile(t *testing.T) {
	address := &verbs.Address{QPNs: []uint32{1}, MTU: 1, GID: strings.Repeat("0", 32)}
	for _, c := range []struct {
		name string
		send any
		want string
	}{
		{"unknown request", request{Do: "format-disk"}, "does not speak"},
		{"join without an address", request{Do: "join", Config: &verbs.Config{Bytes: 8}}, "does not speak"},
		{"a terabyte", request{Do: "join", Config: &verbs.Config{Bytes: 1 << 40}, Address: address}, "want 1 to"},
		{"negative bytes", request{Do: "join", Config: &verbs.Config{Bytes: -1}, Address: address}, "want 1 to"},
		{"prepare before join", request{Do: "prepare", Batch: &verbs.Batch{}}, "does not speak"},
		{"verify before join", request{Do: "verify", Batch: &verbs.Batch{}}, "does not speak"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			o := Options{Tool: "test", Pair: pair.Options{Token: "0123456789abcdef", Meet: 10 * time.Second, Answer: 5 * time.Second}, Open: func(verbs.Config) (verbs.Endpoint, error) {
				t.Error("opened")
				return nil, verbs.ErrNoRDMA
			}}
			s := scenario(t, put)
			served := make(chan error, 1)
			go func() { served <- Serve(t.Context(), s, l, o) }()
			po := o.Pair
			po.Tool, po.Digest = "test", s.Digest
			conn, err := pair.Dial(t.Context(), l.Addr().String(), po)
			if err != nil {
				t.Fatal(err)
			}
			var a reply
			if err := errors.Join(conn.Send(c.send), conn.Receive(&a)); err != nil || !strings.Contains(a.Err, c.want) {
				t.Errorf("%q, %v", a.Err, err)
			}
			conn.Close() // without a good-bye
			if err := <-served; !errors.Is(err, pair.ErrPeerLost) {
				t.Errorf("the end that serves: %v", err)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	ns := func(v ...int64) []sim.Duration {
		var out []sim.Duration
		for _, x := range v {
			out = append(out, sim.Duration(x)*sim.Nanosecond)
		}
		return out
	}
	some := estimate{value: 50 * sim.Nanosecond, spread: 5 * sim.Nanosecond}
	fetch := parts{payload: some}
	for _, c := range []struct {
		name            string
		post, seen, end []sim.Duration
		parts           parts
		want            []stage.Stage
		times           []sim.Duration
	}{
		{"nobody saw it arrive", ns(10, 10, 10), nil, ns(100, 300, 200), parts{}, []stage.Stage{stage.CPUPost, stage.Unresolved}, ns(10, 190)},
		{"seen", ns(10, 10, 10), ns(50, 50, 60), ns(100, 300, 200), parts{}, []stage.Stage{stage.CPUPost, stage.Unresolved, stage.NICAck}, ns(10, 50, 140)},
		{"arrived before the post returned", ns(80), ns(70), ns(100), parts{}, []stage.Stage{stage.CPUPost, stage.Unresolved, stage.NICAck}, ns(80, 0, 20)},
		{"seen after the completion", ns(10), ns(150), ns(100), parts{}, []stage.Stage{stage.CPUPost, stage.Unresolved, stage.NICAck}, ns(10, 90, 0)},
		{"a clear difference", ns(10), nil, ns(100), fetch, []stage.Stage{stage.CPUPost, stage.NICPayloadFetch, stage.Unresolved}, ns(10, 50, 40)},
		{"a difference in its noise", ns(10), nil, ns(100), parts{payload: estimate{some.spread, some.value, 3}}, []stage.Stage{stage.CPUPost, stage.Unresolved}, ns(10, 90)},
		{"a difference longer than what is left", ns(60), nil, ns(100), fetch, []stage.Stage{stage.CPUPost, stage.Unresolved}, ns(60, 40)},
		{"the device's time, arrival not seen", ns(10), nil, ns(100), parts{cqe: some}, []stage.Stage{stage.CPUPost, stage.Unresolved, stage.NICCQE}, ns(10, 40, 50)},
		{"the device's time after the arrival", ns(10), ns(30), ns(100), parts{cqe: some}, []stage.Stage{stage.CPUPost, stage.Unresolved, stage.NICAck, stage.NICCQE}, ns(10, 20, 20, 50)},
		{"the device's time is longer", ns(10), ns(60), ns(100), parts{cqe: some}, []stage.Stage{stage.CPUPost, stage.Unresolved, stage.NICAck}, ns(10, 50, 40)},
		{"all parts", ns(10), nil, ns(200), parts{wqe: some, payload: some, cqe: some}, []stage.Stage{stage.CPUPost, stage.NICWQEFetch, stage.NICPayloadFetch, stage.Unresolved, stage.NICCQE}, ns(10, 50, 50, 40, 50)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := split(stage.PutCompletion, c.post, c.seen, c.end, c.parts)
			var sum sim.Duration
			for i, s := range b.Stages {
				sum += s.Time
				if i >= len(c.want) || s.Stage != c.want[i] || s.Time != c.times[i] {
					t.Errorf("stage %d is %s %v", i, s.Stage, s.Time)
				}
			}
			if len(b.Stages) != len(c.want) || sum != b.Total {
				t.Errorf("%d stages sum to %v of %v", len(b.Stages), sum, b.Total)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	var s []sim.Duration
	for i := range 101 {
		s = append(s, sim.Duration(i))
	}
	if e := median(s); e.value != 50 || e.spread < 9 || e.spread > 11 || e.n != 101 {
		t.Errorf("%+v", e)
	}
	if e := median(nil); e != (estimate{}) {
		t.Errorf("%+v", e)
	}
	d := estimate{10, 3, 5}.minus(estimate{4, 4, 9})
	if d != (estimate{6, 5, 5}) || !d.clear() {
		t.Errorf("%+v", d)
	}
}

func TestCounters(t *testing.T) {
	at := func(retries, writes string) map[string]uint64 {
		const dir = "sys/class/infiniband/rxe0/ports/1/hw_counters/"
		return counters(fstest.MapFS{dir + "completer_retry_err": {Data: []byte(retries)}, dir + "sent_pkts": {Data: []byte(writes)}, dir + "odd": {Data: []byte("x")}})
	}
	got := moved(at("3\n", "1\n"), at("41\n", "900\n"))
	if !slices.Equal(got, []string{"rxe0 port 1 completer_retry_err grew by 38"}) {
		t.Errorf("%q", got)
	}
}

func TestProbeNothing(t *testing.T) {
	m := Probe(fstest.MapFS{}, false)
	if len(m.Devices) != 0 || len(m.Missing) != 2 || !strings.Contains(m.Missing[0].Why, "no RDMA") {
		t.Errorf("%+v", m)
	}
	for _, f := range m.Facts {
		if f.Value == "" {
			t.Errorf("%s is empty", f.Key)
		}
	}
}

package hw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gdisim/hw/verbs"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/sim"
	"gdisim/stage"
)

// The tests of this file need two soft-RoCE devices, joined by a cable whose ends
// are veth0 and veth1: scripts/vm/run.sh makes a machine that has them. They judge
// data, counts, order and lower bounds, and no upper bound that a busy host breaks.
func rdmaDevices(t *testing.T) (a, b string) {
	t.Helper()
	names := os.Getenv("GDISIM_TEST_RDMA")
	if names == "" {
		t.Skip("no RDMA devices named in GDISIM_TEST_RDMA; scripts/vm/run.sh has a machine with two")
	}
	a, b, ok := strings.Cut(names, ",")
	if !ok {
		t.Fatalf("GDISIM_TEST_RDMA %q, want two names", names)
	}
	return a, b
}

func scenario(t *testing.T, workload string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("device.yaml", []byte("gdisim: v1\nname: device\nhardware: h200-cx7-ib200\npaths: [mini-proxy]\nworkload: "+workload+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func deviceOptions(t *testing.T) Options {
	a, b := rdmaDevices(t)
	return Options{Tool: "test", Device: a, PeerDevice: b, Timeout: 8 * time.Second, SkipHost: true, Tell: func(string) {}}
}

// keep writes a result where the one who started the machine finds it.
func keep(t *testing.T, name string, r *result.Result) {
	t.Helper()
	var b bytes.Buffer
	if err := result.Encode(&b, r); err != nil {
		t.Fatal(err)
	}
	if _, err := result.Decode(bytes.NewReader(b.Bytes())); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if dir := os.Getenv("GDISIM_TEST_OUT"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), b.Bytes(), 0o644); err != nil {
			t.Error(err)
		}
	}
}

func sh(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}

func measuredOf(p *result.Path, name string) *result.Measured {
	if i := slices.IndexFunc(p.Measured, func(m result.Measured) bool { return m.Name == name }); i >= 0 && p.Measured[i].Err == "" {
		return &p.Measured[i]
	}
	return nil
}

// Every operation, at sizes around inline and the MTU, across the cable and from
// a device to itself. That the data arrived is checked by the run.
func TestDeviceMatrix(t *testing.T) {
	o := deviceOptions(t)
	for _, c := range []struct{ name, peer string }{{"across", o.PeerDevice}, {"same-device", o.Device}} {
		t.Run(c.name, func(t *testing.T) {
			o := o
			o.PeerDevice = c.peer
			r, err := Loopback(t.Context(), scenario(t, "{kind: put, bytes: [1B, 8B, 4096B, 4097B, 64KiB], iterations: 20, warmup: 2}"), o)
			if err != nil {
				t.Fatal(err)
			}
			keep(t, "matrix-"+c.name, r)
			if r.Emulated == "" || r.Backend != "hw" || len(r.Points) != 5 || r.Partial {
				t.Errorf("emulated %q, backend %q, %d points, partial %v", r.Emulated, r.Backend, len(r.Points), r.Partial)
			}
			for i := range r.Points {
				p := &r.Points[i].Paths[0]
				for _, m := range []stage.Metric{stage.Issue, stage.PutCompletion, stage.OneWay, stage.RTT} {
					if x := p.Metric(m); x == nil || x.N != 20 {
						t.Errorf("%v: %s: %+v", r.Points[i].At, m, x)
					}
				}
				for _, op := range []string{"write", "write-event", "write-list-2", "write-imm", "send", "read", "fetch-add", "cmp-swap"} {
					if x := measuredOf(p, "op."+op); x == nil || x.N != 20 {
						t.Errorf("%v: %s: %+v", r.Points[i].At, op, x)
					}
				}
				for _, name := range []string{"difference.read-minus-write", "difference.event-minus-poll", "difference.list-2-minus-1"} {
					if measuredOf(p, name) == nil {
						t.Errorf("%v: no %s", r.Points[i].At, name)
					}
				}
				for _, b := range p.Breakdowns {
					var sum sim.Duration
					for _, s := range b.Stages {
						sum += s.Time
						if s.Method == "" {
							t.Errorf("%s/%s has no method", b.Metric, s.Stage)
						}
					}
					if sum != b.Total {
						t.Errorf("%s: stages sum to %v of %v", b.Metric, sum, b.Total)
					}
				}
			}
			if measuredOf(&r.Points[1].Paths[0], "op.write-inline") == nil {
				t.Error("8 B were not sent inline")
			}
			for _, name := range []string{"timestamp.cqe-to-poll", "difference.doorbell-minus-blueflame"} {
				i := slices.IndexFunc(r.Points[0].Paths[0].Measured, func(m result.Measured) bool { return m.Name == name })
				if i < 0 || !strings.Contains(r.Points[0].Paths[0].Measured[i].Err, "soft-RoCE (rxe0)") {
					t.Errorf("%s: nothing says that soft-RoCE has none", name)
				}
			}
		})
	}
}

func TestDeviceGetAndStream(t *testing.T) {
	o := deviceOptions(t)
	r, err := Loopback(t.Context(), scenario(t, "{kind: get, bytes: 4KiB, iterations: 20, warmup: 2}"), o)
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Points[0].Paths[0].Metric(stage.Get); x == nil || x.N != 20 {
		t.Errorf("get: %+v", x)
	}
	s := scenario(t, "{kind: stream, bytes: 8B, iterations: 10, warmup: 16, outstanding: 32}\nsweep: {paths.*.qps_per_peer: [1, 4]}")
	if err := s.Apply([]string{"paths.*.proxy.chain=8"}); err != nil {
		t.Fatal(err)
	}
	r, err = Loopback(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, "stream", r)
	for i := range r.Points {
		p := &r.Points[i].Paths[0]
		if x := p.Metric(stage.MessageRate); x == nil || x.Value <= 0 {
			t.Errorf("%v: rate %+v", r.Points[i].At, x)
		}
		if p.Cost.Messages < 300 || p.Cost.Doorbells > p.Cost.Messages/4 {
			t.Errorf("%v: %d messages by %d doorbells", r.Points[i].At, p.Cost.Messages, p.Cost.Doorbells)
		}
		if p.Measured == nil || !strings.HasPrefix(p.Measured[0].Name, "register.8B") {
			t.Errorf("no registration: %+v", p.Measured)
		}
	}
}

// Paths of stacks with a part for a CPU thread: a write and its signal in one post,
// a thread that sleeps for its CQE, CQEs for every so many messages of a stream.
func TestDeviceStacks(t *testing.T) {
	o := deviceOptions(t)
	run := func(text string) *result.Result {
		s, err := scenarios.Parse("stacks.yaml", []byte("gdisim: v1\nname: stacks\nhardware: h200-cx7-ib200\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Loopback(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := run("paths: [verbs-cpu, mini-proxy-tuned, proxy-interrupt, host-staged, mini-gda]\nworkload: {kind: put-signal, bytes: 4KiB, iterations: 20, warmup: 2}\nsweep: {paths.*.signal: [write, atomic]}\n")
	keep(t, "stacks", r)
	for i := range r.Points {
		if len(r.Points[i].Paths) != 4 {
			t.Errorf("%d paths ran, want all but mini-gda", len(r.Points[i].Paths))
		}
		for j := range r.Points[i].Paths {
			p := &r.Points[i].Paths[j]
			if x := p.Metric(stage.PutCompletion); x == nil || x.N != 20 {
				t.Errorf("%v %s: %+v", r.Points[i].At, p.Name, x)
			}
			// A thread that sleeps does not look at the target's memory.
			if x := p.Metric(stage.OneWay); (x == nil) != (p.Name == "proxy-interrupt") {
				t.Errorf("%v %s: one-way %+v", r.Points[i].At, p.Name, x)
			}
		}
	}
	r = run("paths: [verbs-cpu]\nworkload: {kind: stream, bytes: 8B, iterations: 10, warmup: 16, outstanding: 128}\nsweep: {paths.*.qps_per_peer: [1, 3], paths.*.cpu.cqe_every: [1, 100]}\n")
	for i := range r.Points {
		p := &r.Points[i].Paths[0]
		if x := p.Metric(stage.MessageRate); x == nil || x.Value <= 0 || p.Cost.Messages < 1100 {
			t.Errorf("%v: %+v, %d messages", r.Points[i].At, x, p.Cost.Messages)
		}
	}
}

// Completions polled field by field, as those with time stamps are. soft-RoCE has
// the calls and no clock.
func TestDeviceExtended(t *testing.T) {
	da, db := rdmaDevices(t)
	open := func(name string) verbs.Endpoint {
		e, err := verbs.Open(verbs.Config{Device: name, QPs: 1, Depth: 16, Bytes: 4096, Inline: 64, Extended: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return e
	}
	a, b := open(da), open(db)
	if err := errors.Join(b.Connect(a.Address()), a.Connect(b.Address())); err != nil {
		t.Fatal(err)
	}
	if info := a.Info(); info.Stamps() || info.BlueFlame {
		t.Errorf("%+v", info)
	}
	for _, op := range []verbs.Op{verbs.Write, verbs.WriteImm, verbs.Send, verbs.Read, verbs.FetchAdd} {
		m := oneMessage
		m.Op, m.N, m.Seed, m.Peer = op, 20, byte(op), b
		if err := errors.Join(a.Prepare(m), b.Prepare(m)); err != nil {
			t.Fatal(err)
		}
		times, err := a.Run(t.Context(), m)
		if err != nil || len(times.Done) != 20 || times.Stamp != nil || times.Clocks[0].Half >= 0 {
			t.Errorf("%s: %v, %d messages, stamps %v, clocks %+v", op, err, len(times.Done), times.Stamp, times.Clocks)
		}
		m.Target = op != verbs.Read
		end := b
		if op == verbs.Read {
			end = a
		}
		if err := end.Verify(m); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
	m := oneMessage
	m.Op = verbs.Write
	if _, err := a.Run(t.Context(), m); err != nil {
		t.Error(err)
	}
}

// A delay on the request's way is in the wire's part, one on the
// acknowledgement's way in the completion's part, and neither in the post's.
func TestDeviceDelay(t *testing.T) {
	o := deviceOptions(t)
	const least, delay = 1900 * sim.Microsecond, "2ms"
	for _, c := range []struct {
		dev               string
		lateSeen, lateAck bool
	}{{"veth0", true, true}, {"veth1", false, true}} {
		t.Run(c.dev, func(t *testing.T) {
			sh(t, "tc qdisc add dev "+c.dev+" root netem delay "+delay)
			defer sh(t, "tc qdisc del dev "+c.dev+" root")
			r, err := Loopback(t.Context(), scenario(t, "{kind: put, bytes: 8B, iterations: 10, warmup: 1}"), o)
			if err != nil {
				t.Fatal(err)
			}
			keep(t, "delay-"+c.dev, r)
			p := &r.Points[0].Paths[0]
			post, seen, done := p.Metric(stage.Issue).Min, p.Metric(stage.OneWay).Min, p.Metric(stage.PutCompletion).Min
			t.Logf("least: post %v, seen %v, done %v", post, seen, done)
			if post >= least {
				t.Errorf("the delay is in the post: %v", post)
			}
			if (seen >= least) != c.lateSeen || (done >= least) != c.lateAck {
				t.Errorf("seen %v, done %v", seen, done)
			}
			where := stage.Unresolved
			if !c.lateSeen {
				where = stage.NICAck
			}
			for _, s := range p.Breakdown(stage.PutCompletion).Stages {
				if s.Stage == where && s.Time < least {
					t.Errorf("%s is %v, the delay is not in it", s.Stage, s.Time)
				}
			}
		})
	}
}

func TestDeviceLoss(t *testing.T) {
	o := deviceOptions(t)
	sh(t, "tc qdisc add dev veth0 root netem loss 10%")
	defer sh(t, "tc qdisc del dev veth0 root")
	r, err := Loopback(t.Context(), scenario(t, "{kind: put, bytes: 4KiB, iterations: 30, warmup: 2}"), o)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, "loss", r)
	if !slices.ContainsFunc(r.Notices, func(n string) bool { return strings.Contains(n, " grew by ") }) {
		t.Errorf("no counter tells of the loss: %q", r.Notices)
	}
	for _, n := range r.Notices {
		t.Log(n)
	}
}

// joined opens two connected endpoints.
func joined(t *testing.T, change func(*verbs.Address)) (a, b verbs.Endpoint) {
	t.Helper()
	da, db := rdmaDevices(t)
	c := verbs.Config{QPs: 1, Depth: 16, Bytes: 4096, Inline: 64}
	open := func(name string) verbs.Endpoint {
		c := c
		c.Device = name
		e, err := verbs.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return e
	}
	a, b = open(da), open(db)
	addr := b.Address()
	if change != nil {
		change(&addr)
	}
	if err := errors.Join(b.Connect(a.Address()), a.Connect(addr)); err != nil {
		t.Fatal(err)
	}
	return a, b
}

var oneMessage = verbs.Batch{N: 1, Bytes: 8, Chain: 1, QPs: 1, Timeout: 8 * time.Second}

func TestDeviceErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*verbs.Address)
		op     verbs.Op
		want   stage.Finding
	}{
		{"wrong key", func(a *verbs.Address) { a.RKey += 0x1000 }, verbs.Write, stage.RKeyViolation},
		{"wrong key of a read", func(a *verbs.Address) { a.RKey += 0x1000 }, verbs.Read, stage.RKeyViolation},
		{"address outside", func(a *verbs.Address) { a.Addr += 1 << 30 }, verbs.Write, stage.RKeyViolation},
		{"nobody receives", nil, verbs.Send, stage.RNR},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _ := joined(t, c.change)
			b := oneMessage
			b.Op = c.op
			start := time.Now()
			_, err := a.Run(t.Context(), b)
			t.Logf("%v after %v", err, time.Since(start))
			if got := verbs.Finding(err); got != c.want {
				t.Errorf("%v: finding %q, want %q", err, got, c.want)
			}
		})
	}
	t.Run("other bytes", func(t *testing.T) {
		a, b := joined(t, nil)
		m := oneMessage
		m.Peer = b
		if err := errors.Join(a.Prepare(m), b.Prepare(m)); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Run(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		m.Target = true
		if err := b.Verify(m); err != nil {
			t.Error(err)
		}
		m.Seed++
		if err := b.Verify(m); !errors.Is(err, verbs.ErrBadData) {
			t.Errorf("the check of the data sees nothing: %v", err)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		a, _ := joined(t, func(a *verbs.Address) { a.QPNs[0] ^= 0x8000 })
		b := oneMessage
		b.Timeout = 2 * time.Second
		// Whichever of the two is first: the device's retries, or our deadline.
		if _, err := a.Run(t.Context(), b); !errors.Is(err, verbs.ErrTimeout) && verbs.Finding(err) != stage.RetryExceeded {
			t.Error(err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		a, _ := joined(t, func(a *verbs.Address) { a.QPNs[0] ^= 0x8000 })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := a.Run(ctx, oneMessage); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	t.Run("no such GID", func(t *testing.T) {
		da, _ := rdmaDevices(t)
		if _, err := verbs.Open(verbs.Config{Device: da, QPs: 1, Depth: 16, Bytes: 8, GID: "::ffff:10.99.0.77"}); err == nil || !strings.Contains(err.Error(), "no such GID") {
			t.Error(err)
		}
		e, err := verbs.Open(verbs.Config{Device: da, QPs: 1, Depth: 16, Bytes: 8, GID: "::ffff:10.99.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if e.Info().GID != "::ffff:10.99.0.1" {
			t.Errorf("GID %s", e.Info().GID)
		}
	})
}

// Two processes, as two hosts would.
func TestDeviceTwoProcesses(t *testing.T) {
	a, b := rdmaDevices(t)
	dir := t.TempDir()
	gdisim, err := filepath.Abs("gdisim")
	if err != nil {
		t.Fatal(err)
	}
	for name, iterations := range map[string]int{"s.yaml": 20, "other.yaml": 21} {
		text := fmt.Sprintf("gdisim: v1\nname: two\nhardware: h200-cx7-ib200\npaths: [mini-proxy]\nworkload: {kind: put, bytes: [8B, 4KiB], iterations: %d, warmup: 2}\n", iterations)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const token = "a-token-of-the-test"
	serve := func(t *testing.T, port int) (wait func() error, log *bytes.Buffer) {
		log = &bytes.Buffer{}
		c := exec.Command(gdisim, "hw", "s.yaml", "--listen", fmt.Sprintf(":%d", port), "--device", b, "--token", token, "--meet", "60s")
		c.Dir, c.Stderr = dir, log
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c.Wait, log
	}
	dial := func(port int, file, token string) (string, error) {
		c := exec.Command(gdisim, "hw", file, "--peer", fmt.Sprintf("127.0.0.1:%d", port), "--device", a, "--token", token, "--skip-host", "--format", "json", "-o", "two.json", "--meet", "60s")
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	t.Run("run", func(t *testing.T) {
		wait, log := serve(t, 7471)
		if out, err := dial(7471, "s.yaml", "not-the-token-of-the-test"); err == nil || !strings.Contains(out, "another token") {
			t.Errorf("a stranger: %v: %s", err, out)
		}
		out, err := dial(7471, "s.yaml", token)
		if err = errors.Join(err, wait()); err != nil {
			t.Fatalf("%v\n%s\nthe other end: %s", err, out, log)
		}
		text, err := os.ReadFile(filepath.Join(dir, "two.json"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := result.Decode(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		keep(t, "two-processes", r)
		for i := range r.Points {
			p := &r.Points[i].Paths[0]
			for _, m := range []stage.Metric{stage.Issue, stage.PutCompletion, stage.RTT} {
				if x := p.Metric(m); x == nil || x.N != 20 {
					t.Errorf("%s: %+v", m, x)
				}
			}
			if p.Metric(stage.OneWay) != nil {
				t.Error("a one-way time without a common clock")
			}
			for _, op := range []string{"write-imm", "send", "read", "fetch-add", "cmp-swap"} {
				if measuredOf(p, "op."+op) == nil {
					t.Errorf("no %s", op)
				}
			}
		}
	})
	t.Run("another scenario", func(t *testing.T) {
		wait, _ := serve(t, 7472)
		out, err := dial(7472, "other.yaml", token)
		if err == nil || !strings.Contains(out, "another scenario") {
			t.Errorf("%v: %s", err, out)
		}
		if err := wait(); err == nil {
			t.Error("the one that listens did not fail")
		}
	})
	// endless starts a run that only a signal ends, and returns when it is in the
	// middle: when the device has sent what only a run sends.
	endless := func(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
		c := exec.Command(gdisim, append([]string{"hw", "s.yaml", "--device", a, "--token", token, "--set", "workload.iterations=3000000", "--skip-host", "-q"}, args...)...)
		log := &bytes.Buffer{}
		c.Dir, c.Stderr = dir, log
		before := sentPackets(t, a)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); sentPackets(t, a) < before+200 && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
		}
		return c, log
	}
	t.Run("interrupted", func(t *testing.T) {
		c, log := endless(t, "--loopback", "--peer-device", b, "--format", "json", "-o", "half.json")
		_ = c.Process.Signal(os.Interrupt)
		err := c.Wait()
		if c.ProcessState.ExitCode() != 1 || !strings.Contains(log.String(), "incomplete, what was measured is written") {
			t.Errorf("%v, exit code %d: %s", err, c.ProcessState.ExitCode(), log)
		}
		text, err := os.ReadFile(filepath.Join(dir, "half.json"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := result.Decode(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if !r.Partial || len(r.Points) != 1 || r.Points[0].Paths[0].Metric(stage.PutCompletion) == nil {
			t.Errorf("what was measured is lost: %+v", r.Points)
		}
	})
	t.Run("the other end interrupted", func(t *testing.T) {
		server := exec.Command(gdisim, "hw", "s.yaml", "--listen", ":7474", "--device", b, "--token", token, "--meet", "60s")
		server.Dir = dir
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		c, log := endless(t, "--peer", "127.0.0.1:7474", "--timeout", "3s", "--meet", "60s")
		_ = server.Process.Signal(os.Interrupt)
		if _ = server.Wait(); server.ProcessState.ExitCode() != 1 {
			t.Errorf("the one that listens: exit code %d", server.ProcessState.ExitCode())
		}
		start := time.Now()
		if _ = c.Wait(); c.ProcessState.ExitCode() != 1 || !strings.Contains(log.String(), "incomplete") {
			t.Errorf("exit code %d after %v: %s", c.ProcessState.ExitCode(), time.Since(start), log)
		}
	})
	t.Run("peer lost", func(t *testing.T) {
		wait, log := serve(t, 7473)
		c, _ := endless(t, "--peer", "127.0.0.1:7473")
		_ = c.Process.Kill()
		_ = c.Wait()
		if err := wait(); err == nil || !strings.Contains(log.String(), "lost") {
			t.Errorf("%v: %s", err, log)
		}
	})
}

// sentPackets is the device's own count.
func sentPackets(t *testing.T, device string) int {
	t.Helper()
	text, err := os.ReadFile("/sys/class/infiniband/" + device + "/ports/1/hw_counters/sent_pkts")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// unplugged loses its cable in mid-run.
type unplugged struct{ verbs.Endpoint }

func (u unplugged) Run(ctx context.Context, b verbs.Batch) (verbs.Times, error) {
	time.AfterFunc(time.Second, func() { _ = exec.Command("ip", "link", "set", "veth0", "down").Run() })
	return u.Endpoint.Run(ctx, b)
}

// Last, since it takes the cable away.
func TestDeviceLinkDown(t *testing.T) {
	o := deviceOptions(t)
	o.Timeout = 3 * time.Second
	initiator := o.Device
	o.Open = func(c verbs.Config) (verbs.Endpoint, error) {
		e, err := verbs.Open(c)
		if err == nil && c.Device == initiator {
			e = unplugged{e}
		}
		return e, err
	}
	start := time.Now()
	r, err := Loopback(t.Context(), scenario(t, "{kind: put, bytes: 8B, iterations: 5000000, warmup: 0}"), o)
	if !errors.Is(err, verbs.ErrPortDown) {
		t.Errorf("%v, want that the port went down", err)
	}
	if r == nil || !r.Partial || r.Points[0].Paths[0].Err == "" {
		t.Fatalf("no partial result: %v", err)
	}
	x := r.Points[0].Paths[0].Metric(stage.PutCompletion)
	if x == nil || x.N == 0 {
		t.Error("what was measured before is lost")
	} else {
		t.Logf("%v after %v; %d messages before", err, time.Since(start), x.N)
	}
	keep(t, "link-down", r)
	sh(t, "ip link set veth0 up && sh /job/cable")
}

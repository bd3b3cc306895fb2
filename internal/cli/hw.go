package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gdisim/check"
	"gdisim/hw"
	"gdisim/hw/cuda"
	"gdisim/hw/host"
	"gdisim/hw/mlx5"
	"gdisim/hw/pair"
	"gdisim/hw/verbs"
	"gdisim/internal/table"
	"gdisim/result"
	"gdisim/scenarios"
)

// hwFlags are the flags of hw.
type hwFlags struct {
	format, out  string
	sets         []string
	listen, peer string
	loopback     bool
	backend      string
	poster       string
	token        string
	quiet        bool
	view         view
	o            hw.Options
}

func newHW() *cobra.Command {
	var f hwFlags
	cmd := &cobra.Command{
		Use:   "hw FILE",
		Short: "Run a scenario on this hardware, alone or with another host",
		Long: `Run a scenario on hardware and write the same result as the simulator, stage by
stage as far as hardware shows it. Two hosts with an RDMA device each:

  one    gdisim hw FILE --listen HOST:PORT          prints a token
  other  gdisim hw FILE --peer HOST:PORT --token T  writes the result

  gdisim hw FILE --loopback        both ends in this process
  gdisim hw FILE --backend gpu-doorbell --loopback
                                   a GPU builds the WQEs and rings a mlx5 device
  gdisim hw FILE --backend host    only what this machine's CPU and kernel cost
  gdisim hw FILE --backend cuda    what a GPU and its host show without a NIC
  gdisim hw bench --backend cuda   everything that can be measured on a GPU
  gdisim hw probe                  what this machine has, and what is missing

A CPU thread posts through libibverbs, from and to host memory. --listen without
a host listens on this machine only. Exit code 3: no such hardware here.`,
		Args:              oneArg("FILE or example:NAME"),
		ValidArgsFunction: completeScenario,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.listen, "listen", "", "be the target, at `HOST:PORT`, of the one who gives --peer")
	fs.StringVar(&f.peer, "peer", "", "measure against the process that listens at `HOST:PORT`")
	fs.BoolVar(&f.loopback, "loopback", false, "both ends in this process")
	fs.StringVar(&f.backend, "backend", "verbs", "verbs, gpu-doorbell, host for the costs of this machine alone, or cuda for a GPU and its host")
	fs.IntVar(&f.o.GPU, "gpu", 0, "with cuda and gpu-doorbell: ordinal of the GPU")
	fs.StringVar(&f.poster, "poster", "gpu", "with gpu-doorbell: gpu, or cpu for a CPU thread in its place")
	fs.StringVar(&f.token, "token", os.Getenv("GDISIM_HW_TOKEN"), "what both ends must know, 16 characters or more; made where --listen has none (also $GDISIM_HW_TOKEN, which other users cannot read)")
	fs.StringVar(&f.o.Device, "device", "", "RDMA device (default: the first with an active port)")
	fs.StringVar(&f.o.PeerDevice, "peer-device", "", "the other end's device with --loopback (default: the same)")
	fs.StringVar(&f.o.GID, "gid", "", "GID of this end by `VALUE`, such as ::ffff:10.0.0.1 (default: the port's RoCE v2 one with an IPv4 address)")
	fs.StringVar(&f.o.PeerGID, "peer-gid", "", "GID of the other end with --loopback")
	fs.IntVar(&f.o.Port, "port", 1, "port of the device")
	fs.DurationVar(&f.o.Timeout, "timeout", 5*time.Second, "how long a message may make no progress")
	fs.DurationVar(&f.o.Pair.Meet, "meet", time.Minute, "how long to wait for the other end to appear")
	fs.IntSliceVar(&f.o.Host.Cores, "cores", nil, "the two cores that threads of host measurements are pinned to")
	fs.IntVar(&f.o.Host.Samples, "samples", 2000, "samples of each host measurement")
	fs.BoolVar(&f.o.SkipHost, "skip-host", false, "leave the costs of the host out")
	fs.StringVar(&f.format, "format", "text", "text, csv, json or md")
	fs.StringVarP(&f.out, "output", "o", "", "write to this file, which appears when it is complete")
	fs.StringArrayVar(&f.sets, "set", nil, "set a `KEY=VALUE` of the scenario, as in its sweep (repeatable)")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "only data and errors")
	fs.BoolVar(&f.view.all, "all", false, "text, md: every breakdown, every point in full")
	fs.BoolVar(&f.view.ascii, "ascii", false, "text: bars of #")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "csv", "json", "md"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(newProbe(), newSelftest(), newHWBench())
	return cmd
}

// roles are the ways to run that the flags ask for.
func (f *hwFlags) roles() []string {
	var out []string
	for _, r := range []struct {
		name string
		on   bool
	}{{"--listen", f.listen != ""}, {"--peer", f.peer != ""}, {"--loopback", f.loopback}, {"--backend host", f.backend == "host"}, {"--backend cuda", f.backend == "cuda"}} {
		if r.on {
			out = append(out, r.name)
		}
	}
	return out
}

// usage checks what can be checked of the flags without hardware.
func (f *hwFlags) usage() error {
	roles := f.roles()
	switch {
	case len(roles) == 0 && f.backend == "gpu-doorbell":
		return errors.New("--backend gpu-doorbell needs one of --listen, --peer and --loopback")
	case len(roles) == 0:
		return errors.New("one of --listen, --peer, --loopback, --backend host and --backend cuda must say how to run")
	case len(roles) > 1:
		return fmt.Errorf("%s exclude each other: one of --listen, --peer, --loopback, --backend host and --backend cuda says how to run", strings.Join(roles, " and "))
	case f.peer != "" && f.token == "":
		return errors.New("--peer needs the --token that the other end printed")
	case f.token != "" && len(f.token) < pair.MinToken && (f.peer != "" || f.listen != ""):
		return fmt.Errorf("--token of %d characters, want at least %d", len(f.token), pair.MinToken)
	case f.o.Timeout <= 0 || f.o.Pair.Meet <= 0:
		return errors.New("--timeout and --meet must be above 0")
	case f.o.Port < 1 || f.o.Port > 255:
		return fmt.Errorf("--port %d: want the number of a port of the device, 1 to 255", f.o.Port)
	}
	for flag, addr := range map[string]string{"--listen": f.listen, "--peer": f.peer} {
		if addr == "" {
			continue
		}
		if _, err := pair.Address(addr); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	for _, gid := range []struct{ flag, value string }{{"--gid", f.o.GID}, {"--peer-gid", f.o.PeerGID}} {
		if _, err := netip.ParseAddr(gid.value); gid.value != "" && err != nil {
			return fmt.Errorf("%s %q: want a value such as fe80::1 or ::ffff:10.0.0.1", gid.flag, gid.value)
		}
	}
	return f.hostUsage()
}

// hostUsage checks the flags of host measurements.
func (f *hwFlags) hostUsage() error {
	if f.o.Host.Samples < 1 {
		return errors.New("--samples must be at least 1")
	}
	if err := host.CheckSamples(f.o.Host.Samples); err != nil {
		return fmt.Errorf("--samples: %w", err)
	}
	if len(f.o.Host.Cores) == 0 || host.Available() != nil {
		return nil
	}
	if f.backend != "cuda" {
		if _, err := host.Pick(f.o.Host.Cores); err != nil {
			return fmt.Errorf("--cores: %w", err)
		}
		return nil
	}
	for _, c := range f.o.Host.Cores {
		if _, err := host.Pick([]int{c}); err != nil {
			return fmt.Errorf("--cores: %w", err)
		}
	}
	return nil
}

func (f *hwFlags) run(cmd *cobra.Command, arg string) error {
	write, err := choose(writers(), f.format)
	if err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{"verbs", "gpu-doorbell", "host", "cuda"}, f.backend):
		return fmt.Errorf("unknown --backend %q (want verbs, gpu-doorbell, host or cuda)", f.backend)
	case f.poster != "gpu" && f.poster != "cpu":
		return fmt.Errorf("unknown --poster %q (want gpu or cpu)", f.poster)
	}
	if err := f.usage(); err != nil {
		return err
	}
	s, err := load(arg)
	if err != nil {
		return err
	}
	if err := s.Apply(f.sets); err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	f.o.Pair.Token = f.token
	f.name(stderr)
	done, err := f.ready(stderr)
	if err != nil {
		return err
	}
	defer done()
	if f.listen != "" {
		return f.serve(cmd.Context(), s, stderr)
	}
	out, err := openOutput(cmd.OutOrStdout(), f.out)
	if err != nil {
		return err
	}
	defer out.discard()
	r, runErr := f.measure(cmd.Context(), s)
	if r == nil {
		return hardware(runErr)
	}
	var b bytes.Buffer
	if err := write(&b, r, f.view); err != nil {
		return &failure{err}
	}
	var vs []check.Verdict
	whole := f.backend != "cuda" || scenarios.IsStep(s.Config(0, 0).Enum("workload.kind"))
	if runErr == nil && whole && len(r.Points) > 0 && len(s.Expect) > 0 {
		var left int
		if s.Expect, left = about(s.Expect, r); left > 0 {
			say(stderr, "gdisim: not checked: %d expectations about paths that were not measured\n", left)
		}
		vs = check.Run(s, r)
		text := &b
		if f.format != "text" {
			text = &bytes.Buffer{}
		}
		if err := check.Text(text, vs); err != nil {
			return &failure{err}
		}
		if f.format != "text" {
			say(stderr, "%s", text)
		}
	}
	if _, err := out.w.Write(b.Bytes()); err != nil {
		return &failure{err}
	}
	if err := out.commit(); err != nil {
		return &failure{err}
	}
	switch {
	case errors.Is(runErr, context.Canceled):
		return &failure{errors.New("interrupted; incomplete, what was measured is written")}
	case runErr != nil:
		return &failure{fmt.Errorf("incomplete, what was measured is written: %w", runErr)}
	case failed(r) || !check.Hold(vs):
		return errFailed
	}
	return nil
}

// about keeps the expectations whose paths all are in a result, and counts the
// others.
func about(es []scenarios.Expect, r *result.Result) (kept []scenarios.Expect, left int) {
	ran := func(path string) bool {
		return path == "" || slices.ContainsFunc(r.Points, func(p result.Point) bool { return p.Path(path) != nil })
	}
	for _, e := range es {
		if ran(e.Path) && ran(e.MinusPath) && (e.Over == nil || ran(e.Over.Path)) && !slices.ContainsFunc(e.Order, func(p string) bool { return !ran(p) }) {
			kept = append(kept, e)
		} else {
			left++
		}
	}
	return kept, left
}

// name says who measures, and to whom it is told how far it is.
func (f *hwFlags) name(stderr io.Writer) {
	f.o.Tool = "gdisim " + Version
	if f.quiet {
		return
	}
	f.o.Tell = func(line string) { say(stderr, "gdisim: %s\n", line) }
	f.o.Host.Progress = func(name string, done, total int) {
		if done%10 == 0 {
			say(stderr, "gdisim: host costs, %d of %d: %s\n", done, total, name)
		}
	}
}

// ready opens what the backend needs before a run, and tells what of it this
// machine lacks, a line each. The caller calls done at the end.
func (f *hwFlags) ready(stderr io.Writer) (done func(), err error) {
	var lacks []error
	done = func() {}
	switch f.backend {
	case "host", "cuda":
		lacks = append(lacks, host.Available())
	case "verbs":
		lacks = append(lacks, verbs.Available())
	case "gpu-doorbell":
		lacks = append(lacks, mlx5.Available())
		f.o.Doorbell = &hw.GPUDoorbell{}
		if f.poster == "gpu" && f.listen == "" { // the target needs none
			g, err := mlx5.OpenGPU(f.o.GPU)
			switch {
			case err == nil:
				f.o.Doorbell.GPU, done = g, g.Close
			case !errors.Is(err, mlx5.ErrNoGPU):
				return done, &failure{err}
			}
			lacks = append(lacks, err)
		}
	}
	lacks = slices.DeleteFunc(lacks, func(err error) bool { return err == nil })
	if len(lacks) == 0 {
		return done, nil
	}
	done()
	last := len(lacks) - 1
	for _, l := range lacks[:last] {
		say(stderr, "gdisim: %v\n", l)
	}
	return func() {}, &absent{lacks[last]}
}

func (f *hwFlags) measure(ctx context.Context, s *scenarios.Scenario) (*result.Result, error) {
	switch {
	case f.backend == "host":
		return hw.RunHost(ctx, s, f.o)
	case f.backend == "cuda":
		return hw.RunGPU(ctx, s, f.o)
	case f.loopback:
		return hw.Loopback(ctx, s, f.o)
	}
	return hw.Dial(ctx, s, f.peer, f.o)
}

func (f *hwFlags) serve(ctx context.Context, s *scenarios.Scenario, stderr io.Writer) error {
	addr, err := pair.Address(f.listen)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return &failure{err}
	}
	defer func() { _ = l.Close() }()
	if f.token == "" {
		f.o.Pair.Token = pair.NewToken()
		say(stderr, "gdisim: the other end: --peer %s --token %s\n", l.Addr(), f.o.Pair.Token)
	}
	return hardware(hw.Serve(ctx, s, l, f.o))
}

// hardware tells a machine that lacks something from a run that failed.
func hardware(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, verbs.ErrNoRDMA), errors.Is(err, hw.ErrNothingRuns), errors.Is(err, cuda.ErrAbsent):
		return &absent{err}
	}
	return &failure{err}
}

func newProbe() *cobra.Command {
	var format, root string
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "What this machine has for a run on hardware, and what is missing",
		Long: `List what this machine has: RDMA devices with ports, link layer, MTU, limits and
NUMA node; clocks, governor, idle states; limits; then what is missing and why.
Exit code 3 where no RDMA device can be used.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write, err := choose(map[string]func(io.Writer, *hw.Machine) error{"text": probeText, "json": probeJSON}, format)
			if err != nil {
				return err
			}
			m := hw.Probe(os.DirFS(root), root == "/")
			if err := write(cmd.OutOrStdout(), m); err != nil {
				return &failure{err}
			}
			if root != "/" {
				return nil
			}
			if err := verbs.Available(); err != nil {
				return &absent{err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	cmd.Flags().StringVar(&root, "root", "/", "read proc and sys below this `DIR` instead of this machine's")
	return cmd
}

func probeJSON(w io.Writer, m *hw.Machine) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(m)
}

func probeText(w io.Writer, m *hw.Machine) error {
	t := &textWriter{w: w}
	t.line("Machine")
	facts := func(indent string, fs []result.Setting) {
		for _, s := range fs {
			t.put(table.Wrap(s.Value, textWidth, indent+pad(s.Key, 24)+" ", strings.Repeat(" ", len(indent)+25)))
		}
	}
	facts("  ", m.Facts)
	t.line("")
	t.line("RDMA devices")
	if len(m.Devices) == 0 {
		t.line("  none")
	}
	for _, d := range m.Devices {
		t.line("  " + d.Name)
		facts("    ", []result.Setting{{Key: "firmware", Value: d.Firmware}, {Key: "numa node", Value: orDash(d.NUMA)}, {Key: "pci link", Value: orDash(d.PCI)}})
		if d.Emulated != "" {
			facts("    ", []result.Setting{{Key: "emulated", Value: d.Emulated}})
		}
		for _, p := range d.Ports {
			facts("    ", []result.Setting{{Key: fmt.Sprintf("port %d", p.Number), Value: strings.Join([]string{p.State, p.LinkLayer, p.Rate, "MTU " + orDash(p.MTU)}, ", ")}})
			for _, g := range p.GIDs {
				facts("    ", []result.Setting{{Key: "  gid", Value: g}})
			}
		}
		facts("    ", d.Limits)
	}
	if len(m.Missing) > 0 {
		t.line("")
		t.line("Missing")
	}
	for _, x := range m.Missing {
		text := x.Why
		if x.Fix != "" {
			text += "; " + x.Fix
		}
		facts("  ", []result.Setting{{Key: x.What, Value: text}})
	}
	return t.err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

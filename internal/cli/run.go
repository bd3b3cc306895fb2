package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gdisim/check"
	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/testbed"
)

// runFlags are the flags of run, sweep and the bare command.
type runFlags struct {
	backend     backend
	format, out string
	sets        []string
	seed        seed
	workers     int
	noBreakdown bool
	quiet       bool
	view        view
	plot, trace string
	sensitivity bool
	only        string
	shard       shard
	resume      bool
}

func newRun(b backend) *cobra.Command {
	return runCommand(b, "run", "Run a scenario (what gdisim FILE does)", false)
}

func newSweep(b backend) *cobra.Command {
	return runCommand(b, "sweep", "Run a scenario with many points, showing progress from the start", true)
}

// sweepOnly are the flags that run has not.
func (f *runFlags) sweepOnly(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.sensitivity, "sensitivity", false, "instead of its points: which inputs move the results of the first, each number changed by 10 % up and down")
	cmd.Flags().Var(&f.shard, "shard", "run only every N-th point, those that leave the remainder `K/N`, from 0/N on; gdisim merge puts the parts together")
	cmd.Flags().BoolVar(&f.resume, "resume", false, "go on from the part of the same sweep that the file of -o holds, if there is one")
	cmd.Flags().StringVar(&f.only, "only", "", "with --sensitivity: only the inputs whose key has this `PATTERN` in it, or matches it with * and ?")
}

func runCommand(b backend, name, short string, eager bool) *cobra.Command {
	f := runFlags{backend: b}
	more := ""
	if eager {
		more = `

With --shard K/N, N runs on any machines do a part each, and gdisim merge makes of
their results the one that a run of the whole would have given, byte for byte. So
does --resume of a part that was interrupted. Parts are --format json.`
	}
	cmd := &cobra.Command{
		Use:   name + " FILE",
		Short: short,
		Long: short + `.

FILE is a scenario, or example:NAME for an embedded one. Its points are spread
over the cores; the output does not depend on how many there are. Interrupted,
the points that had finished are written, and the exit code is 1.` + more,
		Args:              oneArg("FILE or example:NAME"),
		ValidArgsFunction: completeScenario,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.sensitivity {
			if f.shard.N > 0 || f.resume {
				return errors.New("--sensitivity: has no parts (want it without --shard and --resume)")
			}
			return f.sensitive(cmd, args[0])
		}
		if cmd.Flags().Changed("only") {
			return errors.New("--only: without --sensitivity")
		}
		return f.run(cmd, args[0], eager)
	}
	f.add(cmd)
	if eager {
		f.sweepOnly(cmd)
	}
	return cmd
}

// seed is a flag's value that says what it wants.
type seed uint64

func (s *seed) String() string { return strconv.FormatUint(uint64(*s), 10) }

// Type is what the help calls it.
func (s *seed) Type() string { return "uint" }

// Set takes a number as Go writes it.
func (s *seed) Set(text string) error {
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return errors.New("want a whole number from 0, below 2^64")
	}
	*s = seed(n)
	return nil
}

// output are the flags of a result's form.
func (f *runFlags) output(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.format, "format", "text", "text, csv, json or md")
	fs.StringVarP(&f.out, "output", "o", "", "write to this file, which appears when it is complete")
	fs.BoolVar(&f.view.all, "all", false, "text, md: every breakdown, every point in full, links")
	fs.BoolVar(&f.view.ascii, "ascii", false, "text: bars of #")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "csv", "json", "md"}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *runFlags) add(cmd *cobra.Command) {
	f.output(cmd)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.sets, "set", nil, "set a `KEY=VALUE` of the scenario, as in its sweep (repeatable)")
	fs.Var(&f.seed, "seed", "seed of the random streams, instead of the scenario's")
	fs.BoolVar(&f.noBreakdown, "no-breakdown", false, "do not record stages; faster")
	fs.IntVar(&f.workers, "workers", 0, "points that run at the same time (0: a core each)")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "only data and errors: no progress, no speed")
	fs.StringVar(&f.plot, "plot", "", "also write the figures that fit, as PNG, into this `DIR`")
	fs.StringVar(&f.trace, "trace", "", "also write all recorded operations: `FILE`.json for Perfetto, .txt or .jsonl")
}

func (f *runFlags) run(cmd *cobra.Command, arg string, eager bool) error {
	write, err := choose(writers(), f.format)
	if err != nil {
		return err
	}
	if f.workers < 0 {
		return fmt.Errorf("--workers %d is negative", f.workers)
	}
	if cmd.Flags().Changed("seed") {
		f.sets = append(f.sets, fmt.Sprintf("seed=%d", f.seed))
	}
	s, err := load(arg)
	if err != nil {
		return err
	}
	if err := s.Apply(f.sets); err != nil {
		return err
	}
	switch {
	case sameFile(arg, f.out):
		return fmt.Errorf("-o %s: is the scenario itself", f.out)
	case sameFile(arg, f.trace):
		return fmt.Errorf("--trace %s: is the scenario itself", f.trace)
	case samePlace(f.out, f.trace):
		return fmt.Errorf("-o and --trace: both %s", f.trace)
	case f.plot != "" && strings.HasSuffix(f.out, ".png") && samePlace(filepath.Dir(f.out), f.plot):
		return fmt.Errorf("-o %s: in the folder of --plot, under a figure's ending", f.out)
	}
	o := testbed.Options{Breakdown: !f.noBreakdown, Workers: f.workers, Shard: testbed.Shard(f.shard)}
	whole, err := f.partial(s, &o)
	if err != nil {
		return err
	}
	out, err := openOutput(cmd.OutOrStdout(), f.out)
	if err != nil {
		return err
	}
	defer out.discard()

	stderr := cmd.ErrOrStderr()
	if err := f.prepare(); err != nil {
		return err
	}
	rec, err := openRecording(f.trace)
	if err != nil {
		return err
	}
	if rec != nil {
		defer rec.out.discard()
		// One point at a time: the trace has them in order.
		o.Trace, o.Workers = rec.sink(s), 1
	}
	if !f.quiet && (whole != nil || len(o.Done) > 0 && len(o.Done) == o.Shard.Of(len(s.Points()))) {
		say(stderr, "%s: is complete, nothing was left to do\n", f.out)
	}
	r := whole
	if r == nil {
		r, err = f.backend.simulate(cmd.Context(), s, o, meter{stderr, f.quiet, eager})
	}
	interrupted := err != nil && cmd.Context().Err() != nil && errors.Is(err, cmd.Context().Err())
	switch {
	case interrupted && (r == nil || len(r.Points) == 0):
		return &failure{errors.New("interrupted before a point had finished; nothing is written")}
	case err != nil && !interrupted:
		return impossible(err)
	}

	var b bytes.Buffer
	if err := write(&b, r, f.view); err != nil {
		return &failure{err}
	}
	var verdicts []check.Verdict
	if !r.Partial {
		verdicts = check.Run(s, r)
	} else if !interrupted && len(s.Expect) > 0 && !f.quiet {
		say(stderr, "expectations are of the whole: gdisim merge SCENARIO PART... checks them\n")
	}
	if err := f.verdicts(&b, stderr, verdicts); err != nil {
		return &failure{err}
	}
	if _, err := out.w.Write(b.Bytes()); err != nil {
		return &failure{err}
	}
	if err := out.commit(); err != nil {
		return &failure{err}
	}
	if rec != nil {
		if err := rec.commit(); err != nil {
			return &failure{err}
		}
	}
	if err := f.figures(stderr, r); err != nil {
		return &failure{err}
	}
	switch {
	case interrupted:
		return &failure{fmt.Errorf("interrupted: the result is partial, %d of %d points", len(r.Points), len(s.Points()))}
	case failed(r) || !check.Hold(verdicts):
		f.sayFailed(stderr, r)
		return errFailed
	}
	return nil
}

// impossible is the error of a backend that refuses a scenario, as it is, or of
// one that broke.
func impossible(err error) error {
	var fault *testbed.Fault
	if errors.As(err, &fault) {
		return &failure{err}
	}
	return err
}

// verdicts writes the expectations below text and Markdown, and beside data.
func (f *runFlags) verdicts(data *bytes.Buffer, stderr io.Writer, vs []check.Verdict) error {
	switch {
	case len(vs) == 0:
		return nil
	case f.format == "md":
		data.WriteString("\n## Expectations\n\n")
		return check.Markdown(data, vs)
	case f.format == "text":
		data.WriteString("\nExpectations\n")
		return check.Text(data, vs)
	}
	return check.Text(stderr, vs)
}

// sayFailed tells on standard error why paths did not finish, a line for each path
// and reason, where the data on standard output is not for people to read.
func (f *runFlags) sayFailed(stderr io.Writer, r *result.Result) {
	if f.out == "" && (f.format == "text" || f.format == "md") {
		return
	}
	type reason struct{ path, why string }
	var order []reason
	points := map[reason]int{}
	for i := range r.Points {
		for _, p := range r.Points[i].Paths {
			if p.Err == "" {
				continue
			}
			x := reason{p.Name, p.Err}
			if points[x]++; points[x] == 1 {
				order = append(order, x)
			}
		}
	}
	const most = 20
	for i, x := range order {
		if i == most {
			say(stderr, "gdisim: and %d more like these\n", len(order)-most)
			break
		}
		at := ""
		if len(r.Points) > 1 {
			at = fmt.Sprintf(" at %d of %d points", points[x], len(r.Points))
		}
		say(stderr, "gdisim: path %s%s: %s\n", x.path, at, x.why)
	}
}

// failed reports whether a path did not finish, which the output has said.
func failed(r *result.Result) bool {
	for i := range r.Points {
		for j := range r.Points[i].Paths {
			if r.Points[i].Paths[j].Err != "" {
				return true
			}
		}
	}
	return false
}

// meter is what a run tells on standard error.
type meter struct {
	w     io.Writer
	quiet bool
	eager bool // progress from the start
}

// tool is what results name as their maker.
func tool() string { return "gdisim " + Version }

// simulate runs s with progress and the line of the simulator's own speed.
func (b backend) simulate(ctx context.Context, s *scenarios.Scenario, o testbed.Options, m meter) (*result.Result, error) {
	stop := func() {}
	if !m.quiet && len(s.Points()) > 1 {
		first, every := 10*time.Second, 10*time.Second
		tty := isTerminal(m.w)
		if tty {
			first, every = time.Second, 200*time.Millisecond
		}
		if m.eager {
			first = 0
		}
		p := startProgress(m.w, tty, first, every)
		o.Progress, stop = p.update, p.stop
	}
	wall, cpu := time.Now(), cpuTime()
	r, err := b(ctx, s, o)
	stop()
	if r != nil {
		r.Tool = tool()
		if !m.quiet && r.Events > 0 {
			say(m.w, "%s\n", speedLine(r, time.Since(wall), cpuTime()-cpu))
		}
	}
	return r, err
}

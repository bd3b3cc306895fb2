package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gdisim/result"
	"gdisim/scenarios"
	"gdisim/testbed"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // a run failed or was interrupted, or an expectation did not hold
	exitUsage  = 2 // the command line or a scenario is wrong
	exitAbsent = 3 // hardware, or a library or a build that drives it, is missing
)

// failure is an error that is not the user's: the run's. All others are usage.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// errFailed ends a command whose output has already said what failed.
var errFailed = &failure{errors.New("")}

// Main runs one command line, args without the program's name, and returns the
// exit code. A cancelled ctx interrupts a run, which keeps what it has.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return run(ctx, testbed.Run, args, stdout, stderr)
}

// backend runs a scenario. Where ctx ends it, it returns ctx's error beside a
// result of the points that had finished.
type backend func(ctx context.Context, s *scenarios.Scenario, o testbed.Options) (*result.Result, error)

func run(ctx context.Context, b backend, args []string, stdout, stderr io.Writer) int {
	root := newRoot(b)
	out := &sink{w: stdout}
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	demandShell(root)
	demandTopic(root)
	err := checkVerb(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if out.err != nil {
		err = &failure{fmt.Errorf("standard output: %w", out.err)}
	}
	return report(stderr, err)
}

// sink is standard output. It remembers the first write that failed, so that
// every verb ends in the same way, whoever wrote.
type sink struct {
	w   io.Writer
	err error
}

// Write writes p, or fails as the first failure did.
func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	if s.err = err; err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			s.err = path.Err
		}
	}
	return n, s.err
}

// report prints err and returns the exit code that it means.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	var p *scenarios.Problem
	switch {
	case errors.Is(err, errFailed):
	case errors.As(err, &p) && p.File != "":
		// Problems name their file and place, a line each.
		say(stderr, "%v\n", err)
	default:
		say(stderr, "gdisim: %s\n", strings.TrimPrefix(err.Error(), ": "))
	}
	var f *failure
	var a *absent
	switch {
	case errors.As(err, &a):
		return exitAbsent
	case errors.As(err, &f):
		return exitFailed
	}
	return exitUsage
}

// absent is an error that another machine would not have.
type absent struct{ err error }

func (a *absent) Error() string { return a.err.Error() }
func (a *absent) Unwrap() error { return a.err }

// say tells something on standard error; that it cannot be told is not told.
func say(stderr io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(stderr, format, args...) }

func newRoot(b backend) *cobra.Command {
	f := runFlags{backend: b}
	root := &cobra.Command{
		Use:   "gdisim [command | FILE]",
		Short: "What a message between two GPUs costs, stage by stage",
		Long: `gdisim tells what a message between two GPUs costs, stage by stage, when a CPU
proxy drives the NIC and when the GPU rings the doorbell itself.

  gdisim FILE                      run a scenario
  gdisim run example:gda-vs-proxy  run an embedded one
  gdisim examples                  list those
  gdisim explain                   what can be set, measured and explained

Exit codes: 0 ok; 1 a run failed or was interrupted, or an expectation did not
hold; 2 usage or scenario error; 3 hardware missing. Data goes to standard
output, all else to standard error.`,
		Args:              cobra.MaximumNArgs(1),
		SilenceErrors:     true,
		SilenceUsage:      true,
		Version:           versionLine(),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			// Flags came first, so checkVerb has not seen this argument.
			if err := isScenario(cmd, args[0]); err != nil {
				return err
			}
			return f.run(cmd, args[0], false)
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w (see %q)", err, cmd.CommandPath()+" --help")
	})
	f.add(root)
	root.AddCommand(newRun(b), newSweep(b), newMerge(), newCheck(b), newCompare(b), newHW(), newCalibrate(b), newImport(), newExplain(), newExamples(), newProfiles(), newStacks(), newSchema(), newVersion(), newPlot(), newTrace(), newReport())
	return root
}

// checkVerb refuses a first argument that is neither a verb nor a scenario
// before its flags are looked at: a mistyped verb is no file.
func checkVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == args[0] || c.HasAlias(args[0]) {
			return nil
		}
	}
	return isScenario(root, args[0])
}

// examplePrefix names an embedded scenario where a file is expected.
const examplePrefix = "example:"

// checkPrefix names an embedded scenario that holds published figures.
const checkPrefix = "check:"

// isScenario reports an argument that cannot be meant as a scenario.
func isScenario(root *cobra.Command, arg string) error {
	if strings.HasPrefix(arg, examplePrefix) || strings.HasPrefix(arg, checkPrefix) {
		return nil
	}
	_, err := os.Stat(arg)
	if err == nil {
		return nil
	}
	if strings.ContainsAny(arg, `/\.`) || !errors.Is(err, os.ErrNotExist) {
		return fileError(err)
	}
	var words []string
	for _, c := range root.Commands() {
		words = append(words, c.Name())
	}
	for _, e := range scenarios.Examples() {
		if e.Name == arg {
			return fmt.Errorf("%q is neither a command nor a file, did you mean %q?", arg, examplePrefix+arg)
		}
	}
	return fmt.Errorf("%q is neither a command nor a file%s", arg, didYouMean(arg, words))
}

// fileError says what is wrong with a path without the name of the system call.
func fileError(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

// load reads the scenario that an argument names.
func load(arg string) (*scenarios.Scenario, error) {
	if name, ok := strings.CutPrefix(arg, examplePrefix); ok {
		return scenarios.LoadExample(name)
	}
	if name, ok := strings.CutPrefix(arg, checkPrefix); ok {
		return scenarios.LoadCheck(name)
	}
	return scenarios.Load(arg)
}

// oneArg demands one argument, in words of ours.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s needs one %s, got %d", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

func completeScenario(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, e := range scenarios.Examples() {
		out = append(out, examplePrefix+e.Name)
	}
	return out, cobra.ShellCompDirectiveDefault
}

// completeNames completes the first argument from a list of embedded things.
func completeNames(list func() []scenarios.Info) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, i := range list() {
			out = append(out, i.Name)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// demandShell makes completion without a known shell an error: its help is no
// script. The command keeps root's output as it is now.
func demandShell(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(*cobra.Command, []string) error {
				return errors.New("completion: want a shell: bash, fish, powershell or zsh")
			}
		}
	}
}

// demandTopic makes help of what is no command an error.
func demandTopic(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.RunE = func(_ *cobra.Command, args []string) error {
				topic, rest, err := root.Find(args)
				if err != nil || len(rest) > 0 {
					var words []string
					for _, c := range root.Commands() {
						words = append(words, c.Name())
					}
					return fmt.Errorf("no help for %q%s", strings.Join(args, " "), didYouMean(strings.Join(args, " "), words))
				}
				topic.InitDefaultHelpFlag()
				return topic.Help()
			}
		}
	}
}

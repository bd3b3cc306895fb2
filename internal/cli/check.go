package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gdisim/check"
	"gdisim/scenarios"
	"gdisim/testbed"
)

func newCheck(b backend) *cobra.Command {
	var format, out string
	var sets []string
	var workers int
	var quiet, summary, cross bool
	cmd := &cobra.Command{
		Use:   "check [FILE|DIR...]",
		Short: "Run scenarios with expectations; exit 1 if one does not hold",
		Long: `Run scenarios and hold their results against their "expect" lists: expected, got,
error and verdict of each, then the errors of the figures that fitted a parameter
and of those that only check, apart. A folder stands for the .yaml files in it, and
check:NAME for an embedded file. Without arguments all embedded files of published
figures run, and only the summary by source is shown (--summary=false: each figure).

With --cross-validate, each published table that fitted a parameter is left out in
turn, its parameters are fitted again from the fitted figures that are left, within
the bounds of profiles and stacks, and the table is predicted. That takes minutes.`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, c := range scenarios.Checks() {
					args = append(args, checkPrefix+c.Name)
				}
				summary = summary || !cmd.Flags().Changed("summary")
			}
			if cross {
				return crossValidate(cmd, b, args, sets, format, out, workers, quiet)
			}
			writers := map[string]func(io.Writer, []check.Verdict) error{"text": check.Text, "md": check.Markdown}
			if summary {
				writers = map[string]func(io.Writer, []check.Verdict) error{"text": check.SummaryText, "md": check.SummaryMarkdown}
			}
			write, err := choose(writers, format)
			if err != nil {
				return err
			}
			ss, err := loadAll(args, sets)
			if err != nil {
				return err
			}
			o, err := openOutput(cmd.OutOrStdout(), out)
			if err != nil {
				return err
			}
			defer o.discard()
			vs, err := checkAll(cmd, b, ss, workers, quiet)
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := write(&b, vs); err != nil {
				return &failure{err}
			}
			if _, err := o.w.Write(b.Bytes()); err != nil {
				return &failure{err}
			}
			if err := o.commit(); err != nil {
				return &failure{err}
			}
			if !check.Hold(vs) {
				return errFailed
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or md; json with --cross-validate")
	cmd.Flags().BoolVar(&cross, "cross-validate", false, "leave one table out, fit again, predict it")
	cmd.Flags().BoolVar(&summary, "summary", false, "a line per source of the figures instead of one per figure")
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to this file, which appears when it is complete")
	cmd.Flags().StringArrayVar(&sets, "set", nil, "set a `KEY=VALUE` of every scenario (repeatable)")
	cmd.Flags().IntVar(&workers, "workers", 0, "points that run at the same time (0: a core each)")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "only data and errors")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "md"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// loadAll loads every file, so that all problems come before the first run.
func loadAll(args, sets []string) ([]*scenarios.Scenario, error) {
	var ss []*scenarios.Scenario
	var errs []error
	for _, arg := range args {
		files, err := scenarioFiles(arg)
		errs = append(errs, err)
		for _, f := range files {
			s, err := load(f)
			if err == nil {
				err = s.Apply(sets)
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			ss = append(ss, s)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	expects := 0
	for _, s := range ss {
		expects += len(s.Expect)
	}
	if expects == 0 {
		return nil, errors.New("nothing to check: no scenario given has an \"expect\" list")
	}
	return ss, nil
}

// scenarioFiles is the argument itself, or the scenarios below a folder in order.
func scenarioFiles(arg string) ([]string, error) {
	info, err := os.Stat(arg)
	if err != nil || !info.IsDir() {
		return []string{arg}, nil // load reports what is wrong with it
	}
	var files []string
	err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".yaml" {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no .yaml file in this folder", arg)
	}
	return files, err
}

// checkAll runs the scenarios that expect something, one after the other.
func checkAll(cmd *cobra.Command, b backend, ss []*scenarios.Scenario, workers int, quiet bool) ([]check.Verdict, error) {
	var vs []check.Verdict
	stderr := cmd.ErrOrStderr()
	for i, s := range ss {
		if len(s.Expect) == 0 {
			if !quiet {
				say(stderr, "%s expects nothing\n", s.File)
			}
			continue
		}
		r, err := b.simulate(cmd.Context(), s, testbed.Options{Breakdown: check.NeedsBreakdown(s), Workers: workers}, meter{w: stderr, quiet: true})
		switch {
		case err != nil && cmd.Context().Err() != nil:
			return nil, &failure{fmt.Errorf("interrupted in file %d of %d; nothing is written", i+1, len(ss))}
		case err != nil:
			return nil, impossible(err)
		}
		vs = append(vs, check.Run(s, r)...)
	}
	return vs, nil
}

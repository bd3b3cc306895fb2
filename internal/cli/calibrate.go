package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"gdisim/calibrate"
)

func newCalibrate(b backend) *cobra.Command {
	var format, out string
	var sets []string
	var quiet, all bool
	var o calibrate.Options
	cmd := &cobra.Command{
		Use:   "calibrate FILE RESULT... [FILE RESULT...]...",
		Short: "Fit the hardware's profile to results of a scenario, or of several",
		Long: `Find which parameters of the scenario's hardware the results identify, fit those,
and write a profile with -o that includes the old one: value, interval and source
of each. RESULT is what "gdisim hw FILE --format json" or "gdisim import" wrote.
Parameters that the results do not tell stay at their prior (--all names them); where
all do, no profile is written and the exit code is 1. Several
scenarios of one hardware, each with its results behind it, are fitted together.

Times of a software device (soft-RoCE) are refused, unless --allow-emulated, which
the profile then says.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("%s needs a scenario and at least one result, got %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := choose(map[string]func(*calibrate.Fit, io.Writer) error{"text": func(f *calibrate.Fit, w io.Writer) error { return f.Text(w, all) }, "json": (*calibrate.Fit).JSON}, format)
			if err != nil {
				return err
			}
			var of []calibrate.Set
			for i, arg := range args {
				if i == 0 && isResultFile(arg) {
					return fmt.Errorf("%s is a result, want a scenario first, then results of it", arg)
				}
				if name := arg; strings.HasSuffix(name, ".yaml") || strings.HasPrefix(name, "example:") || i == 0 {
					s, err := load(name)
					if err != nil {
						return err
					}
					if err := s.Apply(sets); err != nil {
						return err
					}
					of = append(of, calibrate.Set{Scenario: s})
					continue
				}
				set := &of[len(of)-1]
				r, err := resultOf(cmd, b, arg)
				if err != nil {
					return err
				}
				if r, err = bound(r, set.Scenario); err != nil {
					return err
				}
				if len(r.Points) > 0 && r.Digest != set.Scenario.Digest {
					say(cmd.ErrOrStderr(), "gdisim: %s is of another scenario text; points with the same keys are used\n", arg)
				}
				set.Results = append(set.Results, r)
			}
			for _, set := range of {
				if len(set.Results) == 0 {
					return fmt.Errorf("%s: a scenario needs at least one result behind it", set.Scenario.File)
				}
			}
			if !quiet {
				o.Progress = func(line string) { say(cmd.ErrOrStderr(), "gdisim: %s\n", line) }
			}
			o.Simulate = b
			f, err := calibrate.Run(cmd.Context(), of, o)
			switch {
			case errors.Is(err, calibrate.ErrEmulated):
				return &failure{fmt.Errorf("%w (--allow-emulated fits them all the same, and says so)", err)}
			case cmd.Context().Err() != nil:
				return &failure{errors.New("interrupted; nothing is written")}
			case err != nil:
				return err
			}
			var report bytes.Buffer
			if err := write(f, &report); err != nil {
				return &failure{err}
			}
			if out != "" && f.Found() {
				if err := writeProfile(cmd, f, of[0].Scenario.File, out); err != nil {
					return err
				}
			}
			if _, err := cmd.OutOrStdout().Write(report.Bytes()); err != nil {
				return &failure{err}
			}
			if !f.Found() {
				return &failure{errors.New("the results identify no parameter: no profile is written")}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the profile to this file, which appears when it is complete")
	cmd.Flags().StringVar(&format, "format", "text", "of the report: text or json")
	cmd.Flags().StringArrayVar(&o.Fit, "fit", nil, "fit this `KEY` (hardware.nic.tx; repeatable) instead of whatever the results identify")
	cmd.Flags().BoolVar(&o.AllowEmulated, "allow-emulated", false, "use times of a software device")
	cmd.Flags().StringArrayVar(&sets, "set", nil, "set a `KEY=VALUE` of the scenario (repeatable)")
	o.Seed = 1
	cmd.Flags().Var((*seed)(&o.Seed), "seed", "seed of the bootstrap")
	cmd.Flags().BoolVar(&all, "all", false, "text: name every parameter left at its prior, with the reason")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "only data and errors")
	return cmd
}

var notName = regexp.MustCompile(`[^a-zA-Z0-9._-]+`)

// writeProfile writes a profile that includes the scenario's own, as seen from
// where it is written.
func writeProfile(cmd *cobra.Command, f *calibrate.Fit, scenario, out string) error {
	base := f.Hardware
	if strings.Contains(base, "/") || strings.HasSuffix(base, ".yaml") {
		if !filepath.IsAbs(base) {
			base = filepath.Join(filepath.Dir(scenario), base)
		}
		from, err1 := filepath.Abs(filepath.Dir(out))
		to, err2 := filepath.Abs(base)
		rel, err3 := filepath.Rel(from, to)
		if err := errors.Join(err1, err2, err3); err != nil {
			return &failure{err}
		}
		base = "./" + rel
	}
	name := notName.ReplaceAllString(strings.TrimSuffix(filepath.Base(out), filepath.Ext(out)), "-")
	return writeFile(cmd, out, func(w io.Writer) error { return f.Profile(w, name, base) })
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gdisim/importers"
	"gdisim/result"
	"gdisim/scenarios"
)

func newImport() *cobra.Command {
	var format, out string
	var quiet bool
	var v view
	var o importers.Options
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Read what a benchmark printed as a result",
		Long: `Read what a benchmark printed, and write it as a result, for compare and calibrate:
perftest (ib_write_lat, ib_write_bw and their sisters), OSU latency and bandwidth,
NVSHMEM's perftest, nccl-tests, DeepEP's low-latency test, gdrcopy's copylat, pplat
and apiperf. Several files are of one benchmark and become one result.

Each line that holds no number is told on standard error, with the reason; a line
that is not understood is an error. Which stack a benchmark ran on is often not in
its output: --stack says it, --path the name of the scenario's path that it is.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("import needs a FILE that a benchmark wrote")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := choose(writers(), format)
			if err != nil {
				return err
			}
			if o.Stack != "" && !strings.HasSuffix(o.Stack, ".yaml") {
				var known []string
				for _, s := range scenarios.Stacks() {
					known = append(known, s.Name)
				}
				if !slices.Contains(known, o.Stack) {
					return fmt.Errorf("--stack %q is no stack%s (gdisim stacks lists them; a stack of your own is a file, ./NAME.yaml)", o.Stack, didYouMean(o.Stack, known))
				}
			}
			var texts [][]byte
			for _, name := range args {
				text, err := os.ReadFile(name)
				if err != nil {
					return fileError(err)
				}
				texts = append(texts, text)
			}
			o.Tool = "gdisim " + Version
			r, skipped, err := importers.Read(args, texts, o)
			if err != nil {
				return err
			}
			if !quiet {
				tellSkipped(cmd.ErrOrStderr(), skipped)
			}
			return writeFile(cmd, out, func(w io.Writer) error { return write(w, r, v) })
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Path, "path", "", "`NAME` of the path that the numbers are of (default: the benchmark's)")
	fs.StringVar(&o.Stack, "stack", "", "`STACK` that the benchmark ran on, such as nvshmem-ibgda")
	fs.StringVar(&format, "format", "text", "text, csv, json or md")
	fs.StringVarP(&out, "output", "o", "", "write to this file, which appears when it is complete")
	fs.BoolVarP(&quiet, "quiet", "q", false, "do not tell which lines were left out")
	fs.BoolVar(&v.all, "all", false, "text, md: every point in full")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "csv", "json", "md"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("stack", completeNames(scenarios.Stacks))
	return cmd
}

// tellSkipped tells lines that were left out, those of one reason in a row as one.
func tellSkipped(w io.Writer, skipped []importers.Skipped) {
	for i := 0; i < len(skipped); {
		first, last := skipped[i], skipped[i]
		for i++; i < len(skipped) && skipped[i].Why == first.Why && skipped[i].File == first.File; i++ {
			last = skipped[i]
		}
		lines := fmt.Sprint(first.Line)
		if last.Line != first.Line {
			lines += fmt.Sprintf("-%d", last.Line)
		}
		say(w, "%s:%s: left out: %s\n", first.File, lines, first.Why)
	}
}

// bound makes an imported result one of the scenario; others stay as they are.
func bound(r *result.Result, s *scenarios.Scenario) (*result.Result, error) {
	if r.Backend != importers.Backend {
		return r, nil
	}
	return importers.Bind(r, s)
}

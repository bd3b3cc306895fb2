package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gdisim/compare"
	"gdisim/importers"
	"gdisim/result"
	"gdisim/testbed"
)

func newCompare(b backend) *cobra.Command {
	var format, out string
	var all bool
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two results, or simulator and hardware, stage by stage",
		Long: `Compare two results stage by stage: difference, its interval, verdict. A and B are
results (--format json of run, hw or import), or scenarios, which are simulated
first. An imported result is taken as one of the scenario beside it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s needs two results or scenarios, got %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := choose(map[string]func(io.Writer, *compare.Comparison) error{"text": compare.Text, "md": compare.Markdown, "json": compare.JSON}, format)
			if err != nil {
				return err
			}
			var rs [2]*result.Result
			for i, arg := range args {
				if rs[i], err = resultOf(cmd, b, arg); err != nil {
					return err
				}
			}
			// An imported result is held against the scenario that the other is of.
			for i, other := range []string{args[1], args[0]} {
				if isScenarioFile(other) && rs[i].Backend == importers.Backend {
					s, err := load(other)
					if err != nil {
						return err
					}
					if rs[i], err = importers.Bind(rs[i], s); err != nil {
						return err
					}
				}
			}
			c := compare.Results(filepath.Base(args[0]), filepath.Base(args[1]), rs[0], rs[1])
			c.Brief = !all
			if err := writeFile(cmd, out, func(w io.Writer) error { return write(w, c) }); err != nil {
				return err
			}
			if c.Common() == 0 {
				return &failure{fmt.Errorf("%s and %s have no number in common: other points, paths or metrics", args[0], args[1])}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, json or md")
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to this file, which appears when it is complete")
	cmd.Flags().BoolVar(&all, "all", false, "text, md: what only one of the two has, too")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json", "md"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// isScenarioFile tells an argument that is a scenario from one that is a result.
func isScenarioFile(arg string) bool {
	return strings.HasPrefix(arg, examplePrefix) || strings.HasPrefix(arg, checkPrefix) || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml")
}

// isResultFile reports whether an argument is a file that holds a result.
func isResultFile(arg string) bool {
	b, err := os.ReadFile(arg)
	return err == nil && bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) && bytes.Contains(b, []byte(`"schema": "gdisim-result`))
}

// resultOf reads a result, or simulates a scenario.
func resultOf(cmd *cobra.Command, b backend, arg string) (*result.Result, error) {
	if isScenarioFile(arg) {
		s, err := load(arg)
		if err != nil {
			return nil, err
		}
		r, err := b.simulate(cmd.Context(), s, testbed.Options{Breakdown: true}, meter{w: cmd.ErrOrStderr(), quiet: true})
		switch {
		case err != nil && cmd.Context().Err() != nil:
			return nil, &failure{fmt.Errorf("interrupted; nothing is written")}
		case err != nil:
			return nil, impossible(err)
		}
		return r, nil
	}
	f, err := os.Open(arg)
	if err != nil {
		return nil, fileError(err)
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fileError(err)
	}
	if t := bytes.TrimSpace(text); !bytes.HasPrefix(t, []byte("{")) {
		return nil, fmt.Errorf("%s: not a gdisim result: if a benchmark printed it, run gdisim import %s --format json -o RESULT.json first; a scenario's name ends in .yaml", arg, arg)
	}
	r, err := result.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	return r, nil
}

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gdisim/internal/table"
	"gdisim/plots"
	"gdisim/result"
	"gdisim/stage"
)

func newPlot() *cobra.Command {
	var kind, out, metric string
	var list bool
	var o plots.Options
	cmd := &cobra.Command{
		Use:   "plot RESULT... --kind KIND -o FILE.(png|svg)",
		Short: "Draw a figure from results (run --format json), simulated or measured",
		Long: `Draw a figure from results (run --format json), simulated or measured.

The name's ending decides the format: .png (200 dpi) or .svg. With --list, the
kinds of figures are listed, and which of them the given results fit.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return listKinds(cmd, args)
			}
			if len(args) == 0 || kind == "" || out == "" {
				return errors.New("plot needs a RESULT, --kind and -o (see \"gdisim plot --list\")")
			}
			if !slices.ContainsFunc(plots.Kinds(), func(k plots.Kind) bool { return k.Name == kind }) {
				return fmt.Errorf("unknown --kind %q%s (see \"gdisim plot --list\")", kind, didYouMean(kind, kindNames()))
			}
			if metric != "" {
				m, ok := stage.ParseMetric(metric)
				if !ok {
					return fmt.Errorf("unknown --metric %q%s", metric, didYouMean(metric, words(stage.Metric(1), stage.MetricCount)))
				}
				o.Metric = m
			}
			if o.Point < 0 {
				return fmt.Errorf("--point %d is negative", o.Point)
			}
			encode, err := pictureFormat(out)
			if err != nil {
				return err
			}
			rs, err := readResults(args)
			if err != nil {
				return err
			}
			f, err := plots.Draw(kind, rs, o)
			if err != nil {
				return err
			}
			return writeFile(cmd, out, func(w io.Writer) error { return encode(f, w) })
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&list, "list", false, "list the kinds of figures, and which of them the results fit")
	fs.StringVar(&kind, "kind", "", "what to draw, one of --list")
	fs.StringVarP(&out, "output", "o", "", "the picture, FILE.png or FILE.svg")
	fs.StringVar(&metric, "metric", "", "metric to show (default: the one that tells most)")
	fs.StringVar(&o.Path, "path", "", "only this path")
	fs.IntVar(&o.Point, "point", 0, "only this point of the sweep, from 1 (default: all, or the first)")
	fs.StringVar(&o.Which, "which", "", "timeline: the operation at p50 (default), p99 or max")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func kindNames() []string {
	var out []string
	for _, k := range plots.Kinds() {
		out = append(out, k.Name)
	}
	return out
}

func listKinds(cmd *cobra.Command, args []string) error {
	rs, err := readResults(args)
	if err != nil {
		return err
	}
	t := table.Table{Columns: []table.Column{{Head: "kind"}, {Head: "shows"}, {Head: "needs"}}}
	if len(rs) > 0 {
		t.Columns[2].Head = "these results"
	}
	for _, k := range plots.Kinds() {
		row := []string{k.Name, k.Text, k.Need}
		if len(rs) > 0 {
			row[2] = "fit"
			if _, err := plots.Draw(k.Name, rs, plots.Options{}); err != nil {
				row[2] = strings.TrimPrefix(err.Error(), k.Name+": "+plots.ErrNotFit.Error()+": ")
			}
		}
		t.Rows = append(t.Rows, row)
	}
	_, err = t.Text(cmd.OutOrStdout(), textWidth, "")
	if err != nil {
		return &failure{err}
	}
	return nil
}

// pictureFormat is the encoder that a name's ending asks for.
func pictureFormat(name string) (func(f *plots.Figure, b io.Writer) error, error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png":
		return func(f *plots.Figure, b io.Writer) error { return f.PNG(b) }, nil
	case ".svg":
		return func(f *plots.Figure, b io.Writer) error { return f.SVG(b) }, nil
	}
	return nil, fmt.Errorf("-o %s: want a name that ends in .png or .svg (for PDF, print the report from a browser)", name)
}

// readResults reads result files, "-" standing for nothing special.
func readResults(names []string) ([]*result.Result, error) {
	var out []*result.Result
	for _, n := range names {
		f, err := os.Open(n)
		if err != nil {
			return nil, fileError(err)
		}
		r, err := result.Decode(f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// writeFile makes name appear with what fill writes, or not at all.
func writeFile(cmd *cobra.Command, name string, fill func(io.Writer) error) error {
	for _, input := range cmd.Flags().Args() {
		if sameFile(input, name) {
			return fmt.Errorf("-o %s: is an input", name)
		}
	}
	out, err := openOutput(cmd.OutOrStdout(), name)
	if err != nil {
		return err
	}
	defer out.discard()
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return &failure{err}
	}
	if _, err := out.w.Write(b.Bytes()); err != nil {
		return &failure{err}
	}
	if err := out.commit(); err != nil {
		return &failure{err}
	}
	return nil
}

// prepare refuses, before a run, flags that could not be met after it.
func (f *runFlags) prepare() error {
	if f.trace != "" && f.noBreakdown {
		return errors.New("--trace needs what --no-breakdown leaves out")
	}
	if f.plot == "" {
		return nil
	}
	if err := os.MkdirAll(f.plot, 0o777); err != nil {
		return fmt.Errorf("--plot %w", fileError(err))
	}
	return nil
}

// figures writes what fits into the folder of --plot, a file a kind.
func (f *runFlags) figures(stderr io.Writer, r *result.Result) error {
	if f.plot == "" {
		return nil
	}
	var names []string
	for _, x := range plots.Fitting([]*result.Result{r}) {
		name := filepath.Join(f.plot, x.Kind+".png")
		out, err := openOutput(nil, name)
		if err != nil {
			return err
		}
		if err := x.PNG(out.w); err != nil {
			out.discard()
			return err
		}
		if err := out.commit(); err != nil {
			return err
		}
		names = append(names, x.Kind+".png")
	}
	if !f.quiet {
		say(stderr, "%s: %s\n", f.plot, strings.Join(names, " "))
	}
	return nil
}

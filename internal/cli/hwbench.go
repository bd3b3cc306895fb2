package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gdisim/hw"
	"gdisim/result"
	"gdisim/scenarios"
)

func newHWBench() *cobra.Command {
	var f hwFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure everything that a backend can, whatever the scenario",
		Long: `Measure what this machine costs, without a scenario:

  gdisim hw bench --backend cuda -o gpu.json --format json
      fences, stores, loads, polls, atomics, flags and descriptors between GPU and
      host, posts, launches, copies, registration; idle and beside traffic; with a
      second GPU, its memory and flags too
  gdisim hw bench --backend host
      the costs of CPU and kernel alone

What could not be measured is there with its reason. Exit code 3: no GPU here; 1: the
GPU was lost on the way, what was measured is written.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.bench(cmd) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.backend, "backend", "cuda", "cuda, or host")
	fs.IntVar(&f.o.GPU, "gpu", 0, "with cuda: ordinal of the GPU")
	fs.IntSliceVar(&f.o.Host.Cores, "cores", nil, "cores that threads are pinned to: two for the host's costs, six with cuda")
	fs.IntVar(&f.o.Host.Samples, "samples", 2000, "samples of each measurement, a part of it where they are slow")
	fs.BoolVar(&f.o.SkipHost, "skip-host", false, "with cuda: leave the costs of the host out")
	fs.StringVar(&f.format, "format", "text", "text, csv, json or md")
	fs.StringVarP(&f.out, "output", "o", "", "write to this file, which appears when it is complete")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "only data and errors")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "csv", "json", "md"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *hwFlags) bench(cmd *cobra.Command) error {
	write, err := choose(writers(), f.format)
	if err != nil {
		return err
	}
	if err := f.hostUsage(); err != nil {
		return err
	}
	var run func(context.Context) (*result.Result, error)
	switch f.backend {
	case "cuda":
		run = func(ctx context.Context) (*result.Result, error) { return hw.BenchGPU(ctx, f.o) }
	case "host":
		run = func(ctx context.Context) (*result.Result, error) {
			return hw.RunHost(ctx, &scenarios.Scenario{Name: "bench-host", Title: "What this machine's CPU and kernel cost"}, f.o)
		}
	default:
		return fmt.Errorf("unknown --backend %q (want cuda or host)", f.backend)
	}
	f.name(cmd.ErrOrStderr())
	done, err := f.ready(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer done()
	out, err := openOutput(cmd.OutOrStdout(), f.out)
	if err != nil {
		return err
	}
	defer out.discard()
	r, runErr := run(cmd.Context())
	if r == nil {
		return hardware(runErr)
	}
	var b bytes.Buffer
	if err := write(&b, r, f.view); err != nil {
		return &failure{err}
	}
	if _, err := out.w.Write(b.Bytes()); err != nil {
		return &failure{err}
	}
	if err := out.commit(); err != nil {
		return &failure{err}
	}
	if runErr != nil {
		return &failure{fmt.Errorf("incomplete, what was measured is written: %w", runErr)}
	}
	return nil
}

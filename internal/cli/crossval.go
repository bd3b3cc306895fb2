package cli

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"

	"gdisim/crossval"
)

// crossValidate leaves out, fits again and predicts the tables of the scenarios.
func crossValidate(cmd *cobra.Command, b backend, args, sets []string, format, out string, workers int, quiet bool) error {
	write, err := choose(map[string]func(*crossval.Report, io.Writer) error{"text": (*crossval.Report).Text, "md": (*crossval.Report).Markdown, "json": (*crossval.Report).JSON}, format)
	if err != nil {
		return err
	}
	ss, err := loadAll(args, sets)
	if err != nil {
		return err
	}
	o := crossval.Options{Workers: workers, Simulate: b}
	if !quiet {
		o.Progress = func(line string) { say(cmd.ErrOrStderr(), "gdisim: %s\n", line) }
	}
	file, err := openOutput(cmd.OutOrStdout(), out)
	if err != nil {
		return err
	}
	defer file.discard()
	r, err := crossval.Run(cmd.Context(), ss, o)
	if err != nil {
		return &failure{err}
	}
	var buf bytes.Buffer
	if err := write(r, &buf); err != nil {
		return &failure{err}
	}
	if _, err := file.w.Write(buf.Bytes()); err != nil {
		return &failure{err}
	}
	if err := file.commit(); err != nil {
		return &failure{err}
	}
	return nil
}

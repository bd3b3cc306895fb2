package cli

import (
	"bytes"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"gdisim/plots"
)

func newReport() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "report RESULT... -o FILE.html",
		Short: "Write a self-contained HTML report about results",
		Long: `Write a self-contained HTML report about results (run --format json).

The page needs no network and, but for zoom and hover, no scripts; printed from
a browser, it becomes a PDF.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("report needs a RESULT (run --format json)")
			}
			rs, err := readResults(args)
			if err != nil {
				return err
			}
			var page bytes.Buffer
			if err := plots.Report(&page, rs); err != nil {
				return err
			}
			return writeFile(cmd, out, func(w io.Writer) error { _, err := page.WriteTo(w); return err })
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to this file instead of standard output")
	return cmd
}

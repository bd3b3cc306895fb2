package cli

import (
	"github.com/spf13/cobra"

	"gdisim/internal/table"
	"gdisim/scenarios"
)

func newExamples() *cobra.Command {
	list := func(cmd *cobra.Command, _ []string) error { return listInfos(cmd, scenarios.Examples()) }
	cmd := &cobra.Command{
		Use:   "examples",
		Short: "List and show the embedded scenarios; run one as example:NAME",
		Args:  cobra.NoArgs,
		RunE:  list,
	}
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "List the embedded scenarios", Args: cobra.NoArgs, RunE: list},
		&cobra.Command{
			Use:               "show NAME",
			Short:             "Print an embedded scenario",
			Args:              oneArg("NAME"),
			ValidArgsFunction: completeNames(scenarios.Examples),
			RunE: func(cmd *cobra.Command, args []string) error {
				src, err := scenarios.ReadExample(args[0])
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(src)
				return err
			},
		},
	)
	return cmd
}

// listInfos prints a line per embedded thing.
func listInfos(cmd *cobra.Command, infos []scenarios.Info) error {
	t := table.Table{Columns: []table.Column{{Head: "name"}, {Head: "title", Wrap: true}}}
	for _, i := range infos {
		t.Rows = append(t.Rows, []string{i.Name, i.Title})
	}
	_, err := t.Text(cmd.OutOrStdout(), textWidth, "")
	return err
}

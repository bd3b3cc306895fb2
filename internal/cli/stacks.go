package cli

import (
	"github.com/spf13/cobra"

	"gdisim/scenarios"
)

func newStacks() *cobra.Command {
	return &cobra.Command{
		Use:   "stacks",
		Short: "List the embedded stacks; explain NAME shows one",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return listInfos(cmd, scenarios.Stacks()) },
	}
}

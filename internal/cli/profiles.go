package cli

import (
	"github.com/spf13/cobra"

	"gdisim/scenarios"
)

func newProfiles() *cobra.Command {
	return &cobra.Command{
		Use:   "profiles",
		Short: "List the embedded hardware profiles; explain NAME shows one",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return listInfos(cmd, scenarios.Profiles()) },
	}
}

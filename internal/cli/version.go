package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// Version is that of the next or current release.
const Version = "0.1.0"

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

// versionLine is "gdisim 0.1.0 (0123456789ab, modified, go1.26.8, linux/amd64)".
func versionLine() string {
	var facts []string
	if info, ok := debug.ReadBuildInfo(); ok {
		facts = buildFacts(info)
	}
	facts = append(facts, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
	return fmt.Sprintf("gdisim %s (%s)", Version, strings.Join(facts, ", "))
}

// buildFacts are the commit and whether the tree was changed, where known.
func buildFacts(info *debug.BuildInfo) (facts []string) {
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			facts = append(facts, s.Value[:12])
		case s.Key == "vcs.modified" && s.Value == "true":
			facts = append(facts, "modified")
		}
	}
	return facts
}

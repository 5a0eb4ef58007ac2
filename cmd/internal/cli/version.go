package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is the release that the linker set, or else the version in Go's build information.
func Version(release string) string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

// VersionCommand is the command that prints the version of its root, and what reports of defects should name beside it.
func VersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what it was built for",
		Args:  ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s (%s, %s/%s)\n", c.Root().Name(), c.Root().Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

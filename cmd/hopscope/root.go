package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// usageError is a command that was asked wrongly: exit status 2.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// usagef makes a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "hopscope",
		Short: "Collect, decode and watch in-band network telemetry",
		Long: `hopscope catches the reports that switches, NICs and hosts send about packets on
their way (INT stacks, postcards, drop reports, source-routed probes), keeps
statistics per flow and per hop, notices what is wrong, and stores it.

Start with "hopscope demo".`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("no command %q; hopscope --help lists them", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w (see %s --help)", err, c.CommandPath())
	})
	root.AddCommand(demoCommand(), collectCommand(), replayCommand(), decodeCommand(), planCommand(), topCommand(), flowCommand(), selftestCommand(), benchCommand(), configCommand())
	return root
}

// release is set by the linker for released builds.
var release string

func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

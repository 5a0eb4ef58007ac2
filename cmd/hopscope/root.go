package main

import (
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "hopscope",
		Short: "Collect, decode and watch in-band network telemetry",
		Long: `hopscope catches the reports that switches, NICs and hosts send about packets on
their way (INT stacks, postcards, drop reports, source-routed probes), keeps
statistics per flow and per hop, notices what is wrong, and stores it.

Start with "hopscope demo".`,
		Version: version(),
		PersistentPreRun: func(c *cobra.Command, _ []string) {
			if !reloads(c) {
				signalsOf(c.Context()).endOnHangup(c.Context())
			}
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w (see %s --help)", err, c.CommandPath())
	})
	root.AddCommand(
		demoCommand(), collectCommand(), consumeCommand(), consoleCommand(), agentCommand(), controlCommand(), replayCommand(), decodeCommand(), planCommand(),
		topCommand(), flowCommand(), findingsCommand(), detectCommand(), healthCommand(),
		selftestCommand(), benchCommand(), configCommand(), spoolCommand(), kafkaCommand(),
	)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultCompletionCmd()
	askRightly(root)
	return root
}

// helpCommand is cobra's, but for a command that does not exist, which is a wrong question.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Say what a command does",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("no command %q; hopscope --help lists them", strings.Join(args, " "))
			}
			return c.Help()
		},
	}
}

// reloads reports whether c reads its settings again at SIGHUP.
func reloads(c *cobra.Command) bool { return c.Annotations["hangup"] == "reload" }

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

package main

import (
	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/cmd/internal/plan"
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
			cli.Screen(c)
			if !reloads(c) {
				signalsOf(c.Context()).endOnHangup(c.Context())
			}
		},
		Args: noCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(
		demoCommand(), collectCommand(), consumeCommand(), consoleCommand(), agentCommand(), controlCommand(), replayCommand(), decodeCommand(), plan.Command(),
		topCommand(), flowCommand(), findCommand(), findingsCommand(), detectCommand(), cli.HealthCommand(), docsCommand(), exportCommand(),
		selftestCommand(), benchCommand(), configCommand(), cli.TokenCommand(), spoolCommand(), kafkaCommand(), cli.ManCommand(), cli.VersionCommand(),
	)
	cli.Prepare(root, interruptible)
	return root
}

// reloads reports whether c reads its settings again at SIGHUP.
func reloads(c *cobra.Command) bool { return c.Annotations["hangup"] == "reload" }

// release is set by the linker for released builds.
var release string

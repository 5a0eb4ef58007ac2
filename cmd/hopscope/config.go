package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/collector/settings"
)

func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Print or check settings, list dialects",
		Args:  exactArgs(0),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:   "print [FILE]",
		Short: "Print the effective settings: the defaults, with FILE over them",
		Long: `Print the effective settings as a file that "hopscope collect --config" reads:
the defaults, with FILE over them, each key under its meaning and range.`,
		Args: maxArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg := defaultConfig()
			if len(args) == 1 {
				var err error
				if cfg, err = loadConfig(args[0]); err != nil {
					return err
				}
				for _, w := range cfg.file.Warnings {
					fmt.Fprintf(c.ErrOrStderr(), "%s: warning: %s\n", args[0], w)
				}
			}
			return settings.Print(c.OutOrStdout(), &cfg)
		},
	}, &cobra.Command{
		Use:   "check FILE",
		Short: "Name every problem of a settings file, with line, path and range",
		Long: `Name every problem of a settings file: values outside of their ranges, keys that do
not exist, files that are named and cannot be read, and what does not go together.
It prints how much memory a collector with these settings takes at most, and warns
if this machine has less. Nothing is opened and nothing is written. Exit status 64 with problems, 0 with
warnings alone.`,
		Args: exactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := readConfig(args[0])
			warnings, err := examine(&cfg, err, true)
			for _, w := range warnings {
				fmt.Fprintf(c.ErrOrStderr(), "%s: warning: %s\n", args[0], w)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: no problems\n", args[0])
			fmt.Fprintf(c.OutOrStdout(), "memory: %s at most (%s)\n", mebibytes(cfg.memory()), memoryParts(&cfg))
			return nil
		},
	}, profilesCommand(), cli.SizeCommand(func(file string) (cli.Sized, error) {
		cfg, err := loadConfig(file)
		return cli.Sized{Config: &cfg.Config, Analysis: &cfg.Analysis, All: &cfg}, err
	}))
	return c
}

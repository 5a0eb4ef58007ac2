package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/settings"
)

func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Print or check settings",
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
			cfg := collector.DefaultConfig()
			if len(args) == 1 {
				if err := settings.LoadFile(args[0], &cfg); err != nil {
					return err
				}
			}
			return settings.Print(c.OutOrStdout(), &cfg)
		},
	}, &cobra.Command{
		Use:   "check FILE",
		Short: "Name every problem of a settings file, with line, path and range",
		Args:  exactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg := collector.DefaultConfig()
			if err := settings.LoadFile(args[0], &cfg); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: no problems\n", args[0])
			return nil
		},
	})
	return c
}

// loadConfig reads the file over the defaults. A file that is wrong is a wrong question: exit status 2.
func loadConfig(path string) (collector.Config, error) {
	cfg := collector.DefaultConfig()
	if path == "" {
		return cfg, nil
	}
	if err := settings.LoadFile(path, &cfg); err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			return cfg, err
		}
		return cfg, usageError{err}
	}
	return cfg, nil
}

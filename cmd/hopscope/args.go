package main

import "github.com/spf13/cobra"

func checkFormat(format string) error {
	if format != "table" && format != "json" {
		return usagef("--format %q is neither table nor json", format)
	}
	return nil
}

func exactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s wants %d argument%s, got %d (see --help)", c.CommandPath(), n, plural(n), len(args))
		}
		return nil
	}
}

func maxArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s wants at most %d argument%s, got %d (see --help)", c.CommandPath(), n, plural(n), len(args))
		}
		return nil
	}
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

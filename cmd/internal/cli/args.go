package cli

import "github.com/spf13/cobra"

// CheckFormat checks the value of --format.
func CheckFormat(format string) error {
	if format != "table" && format != "json" {
		return Usagef("--format %q is neither table nor json", format)
	}
	return nil
}

// ExactArgs is a check for n arguments.
func ExactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return Usagef("%s wants %d argument%s, got %d (see --help)", c.CommandPath(), n, Plural(n), len(args))
		}
		return nil
	}
}

// MaxArgs is a check for at most n arguments.
func MaxArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return Usagef("%s wants at most %d argument%s, got %d (see --help)", c.CommandPath(), n, Plural(n), len(args))
		}
		return nil
	}
}

// Plural is the s behind a noun of which there are n.
func Plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

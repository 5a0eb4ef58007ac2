package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// benchCommand names the program that "hopscope bench" became. Whatever it is asked is a wrong request.
func benchCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "bench",
		Short:              "Moved: hopscope-bench measures this machine and the published algorithms",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return usagef("bench is a program of its own: %s", strings.Join(append([]string{"hopscope-bench"}, args...), " "))
		},
	}
}

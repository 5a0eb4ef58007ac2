package main

import "github.com/spf13/cobra"

func decodeCommand() *cobra.Command {
	return &cobra.Command{Use: "decode FILE", Short: "Print a capture's reports as JSON lines"}
}

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/rate"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

func peersCommand() *cobra.Command {
	var o rate.Peers
	var out output
	c := &cobra.Command{
		Use:   `peers "NAME PAYLOAD ADDRESS COMMAND..."...`,
		Short: "What collectors of several makers receive of the same datagrams, on one core",
		Long: `Give installed collectors the same datagrams, one after the other: each has one core
together with the kernel's work of receiving. It needs root and Linux. An argument is a
name, what is sent (report, sflow, ipfix, netflow9 or netflow5), the address that the
program listens on, and the program with its arguments, without quotes.

For each it prints the highest rate without loss by the kernel's count, the ratio of the
first one's, the processor time a datagram, resident memory, and what it receives of a
flood. Processes that a program started count with it.`,
		Example: `  hopscope-bench peers "hopscope sflow 127.0.0.1:6343 hopscope collect --config hopscope.yaml" \
    "goflow2 sflow 127.0.0.1:6343 goflow2 -listen sflow://127.0.0.1:6343 -transport.file /dev/null"`,
		Args: cobra.ArbitraryArgs,
	}
	o.Flags(c.Flags())
	out.flag(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if len(args) == 0 {
			return cli.Usagef("no collector is named")
		}
		if err := o.Check(args); err != nil {
			return cli.Usagef("%v", err)
		}
		r, err := o.Run(c.Context())
		if r == nil {
			return err
		}
		return errors.Join(err, out.write(c, nil, r.Show))
	}
	return c
}

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
		Use:   `peers ["NAME PAYLOAD ADDRESS COMMAND..."...]`,
		Short: "What collectors of several makers receive of the same datagrams, on one core",
		Long: `Give installed collectors the same datagrams, one after the other: each has one core
together with the kernel's work of receiving. It needs root and Linux.

Without arguments it sets up hopscope, goflow2, vFlow, Telegraf, nfdump, pmacct and
Akvorado's inlet, where they are installed, with alike outputs: none, a file, and a
broker of Kafka that it starts. Their buffers and workers are their own defaults. An
argument describes another collector: a name, what is sent (report, sflow, ipfix,
netflow9, netflow5, or what softflowd says about a capture: softflowd-ipfix and
softflowd-netflow9), the address that the program listens on, and the program with its
arguments, without quotes.

For each it prints the highest rate without loss by the kernel's count, the ratio of the
first one's, the processor time a datagram, resident memory, and what it receives of a
flood. Of those that it sets up it also prints the datagrams that the kernel dropped in
all trials, what the collector itself states of them, and the bytes or messages that it
wrote. Processes that a program started count with it.`,
		Example: `  hopscope-bench peers --programs ~/peers --kafka .cache/kafka/4.1.0/lib
  hopscope-bench peers "hopscope sflow 127.0.0.1:6343 hopscope collect --config hopscope.yaml" \
    "goflow2 sflow 127.0.0.1:6343 goflow2 -listen sflow://127.0.0.1:6343 -transport.file /dev/null"`,
		Args: cobra.ArbitraryArgs,
	}
	o.Flags(c.Flags())
	out.flag(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := out.check(); err != nil {
			return err
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

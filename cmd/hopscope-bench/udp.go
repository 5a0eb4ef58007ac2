package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/rate"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

func udpCommand() *cobra.Command {
	var o rate.UDP
	var out output
	c := &cobra.Command{
		Use:   "udp",
		Short: "How much one core receives over UDP, without loss and in a flood",
		Long: `Send datagrams over a loopback interface in a network namespace of its own, which takes
root and Linux, to receivers that have one core together with the kernel's work of
receiving, one after the other:

  plain          net.UDPConn.ReadFromUDPAddrPort, a datagram a call
  batch          golang.org/x/net ReadBatch, 64 datagrams a call
  discard        ingest/udp, counting only: what the others are measured against
  spread         the same with four sockets and steering "spread"
  decode         ingest/udp and the decoders
  pipeline       ingest/udp, decoders, exporters, flow table, sketches and windows
  ring           ingest/afpacket, counting only, with the kernel's work for a socket that
                 takes nothing
  ring-pipeline  ingest/afpacket, and what pipeline has behind its source
  xdp            ingest/afxdp, counting only, in generic mode
  xdp-pipeline   ingest/afxdp, and what pipeline has behind its source
  ring-gopacket  gopacket's ring, counting only, in programs with C (CGO_ENABLED=1)
  bare, ring-bare, xdp-bare
                 the least that receives and counts by recvmmsg, TPACKET_V3 and AF_XDP

The column "limit" says whether the receiver or the sender was at its limit.

With --pairs the receivers set the pace: the sender has at most 4096 datagrams on their
way. Each round has every receiver once, for --seconds after as long a warm-up. The
result is the ratios of receivers of one round, their median and its interval of 95 %:
pipelines over bare receivers, and the processor time of rings over that of sockets.

A collector given with --command is measured like them, by the loss that the kernel counts.`,
		Example: `  hopscope-bench udp
  hopscope-bench udp --receivers discard,pipeline --flows 1000000 --rounds 5
  hopscope-bench udp --pairs 21 --seconds 0.4 --format json
  hopscope-bench udp --payload netflow5 --to 127.0.0.1:2055 --command "COLLECTOR ITS ARGUMENTS"`,
		Args: cli.ExactArgs(0),
	}
	o.Flags(c.Flags())
	out.flag(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if err := o.Check(); err != nil {
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

package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/bench/loop"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

func agentCommand() *cobra.Command {
	cfg := loop.DefaultAgentConfig()
	var out output
	c := &cobra.Command{
		Use:   "agent",
		Short: "How much a probe agent sends and how exactly, beside bare loops in the same run",
		Long: `Send over a pair of joined interfaces, in a network of its own, in turns: a bare loop
around sendmmsg and an agent whose plan asks for more than can be sent; and a bare loop
around clock_nanosleep and an agent, 1,000 probes a second, whose frames are looked at
when they arrive at the other end. It needs root, or a user namespace, and iproute2.`,
		Example: `  hopscope-bench agent
  hopscope-bench agent --rounds 9 --format json`,
		Args: cli.ExactArgs(0),
	}
	c.Flags().IntVar(&cfg.Rounds, "rounds", cfg.Rounds, "of each loop; medians are printed")
	c.Flags().IntVar(&cfg.Batch, "batch", cfg.Batch, "frames sent with one system call")
	c.Flags().BoolVar(&cfg.Digest, "digest", false, "the agent's probes have a digest, and the bare loops' frames are as long")
	out.flag(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if cfg.Rounds < 1 || cfg.Rounds > 1000 {
			return cli.Usagef("--rounds %d is outside 1..1000", cfg.Rounds)
		}
		if cfg.Batch < 1 || cfg.Batch > 1024 {
			return cli.Usagef("--batch %d is outside 1..1024", cfg.Batch)
		}
		done := cli.ShowProgress(c.ErrOrStderr(), "measuring", func() string { return "an agent" })
		r, err := loop.Agent(c.Context(), cfg)
		done()
		if err != nil {
			return err
		}
		return out.write(c, nil, func(w io.Writer) error { return harness.Show(w, "an agent", &r, r.Print) })
	}
	return c
}

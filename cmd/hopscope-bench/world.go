package main

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/findings/world"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

func worldCommand() *cobra.Command {
	o := world.DefaultOptions()
	var out output
	c := &cobra.Command{
		Use:   "world",
		Short: "What is said of networks whose truth is written down, beside the truth",
		Long: `Let scenarios happen to a packet simulator that shares no code with the emulated network,
with writers of reports of its own, and print for each kind of fault how often an element
that may be named led the list and after how many windows, whether the severity was right,
and what was said of healthy elements; for changes that are no fault, what was said at all.

Half of the scenarios are there to tune on, the other half to report on.`,
		Example: `  hopscope-bench findings world --half report --seeds 20 --seed 1000
  hopscope-bench findings world --scenario loss-host-port --worst`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case o.Seeds < 1 || o.Seeds > 1e4:
				return cli.Usagef("--seeds %d is outside 1..10000", o.Seeds)
			case !slices.Contains([]string{"tune", "report", "all"}, o.Half):
				return cli.Usagef("--half %q is none of tune, report, all", o.Half)
			}
			if err := out.check(); err != nil {
				return err
			}
			if _, err := o.Select(); err != nil {
				return cli.Usagef("--scenario: %v", err)
			}
			done := cli.ShowProgress(c.ErrOrStderr(), "measuring", func() string { return "worlds" })
			r, err := world.Judge(c.Context(), o)
			done()
			if err != nil {
				return err
			}
			return out.write(c, &o.Seed, func(w io.Writer) error { return r.Print(w, o) })
		},
	}
	f := c.Flags()
	f.Uint64Var(&o.Seed, "seed", o.Seed, "first seed")
	f.IntVar(&o.Seeds, "seeds", o.Seeds, "seeds of each scenario")
	f.StringVar(&o.Half, "half", o.Half, "scenarios to run: tune, report or all")
	f.StringVar(&o.Scenario, "scenario", o.Scenario, "name of the one scenario to run")
	out.flag(f)
	f.BoolVar(&o.Worst, "worst", o.Worst, "list what was said against the truth, run by run")
	return c
}

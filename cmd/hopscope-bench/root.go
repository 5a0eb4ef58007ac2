package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/bench/papers"
	"github.com/hopscope/hopscope/bench/rate"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

// release is set by the linker for released builds.
var release string

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "hopscope-bench",
		Short: "Measure this machine and the published algorithms",
		Long: `Measure: the pipeline in memory on one core, and the published planning algorithms
beside ours. What a whole collector keeps up with is "hopscope selftest".`,
		Version:          cli.Version(release),
		PersistentPreRun: func(c *cobra.Command, _ []string) { cli.Screen(c) },
		Args:             cli.NoCommand,
		RunE:             func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(pipelineCommand(), plannerCommand(), pintCommand(), fleetCommand(), findingsCommand(), agentCommand(), loopCommand(), udpCommand(), peersCommand(), sizingCommand(), soakCommand(), compareCommand())
	cli.Prepare(root, func(run cli.Run) cli.Run { return cli.Interruptible(run, nil) })
	return root
}

func pipelineCommand() *cobra.Command {
	var flows []int
	var out output
	var reports, warmup int
	c := &cobra.Command{
		Use:   "pipeline",
		Short: "Reports a second through decoding, tables, sketches and detectors, in memory, on one core",
		Args:  cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			for _, n := range flows {
				if n < 1 || n > 1<<24 {
					return cli.Usagef("--flows %d is outside 1..16777216", n)
				}
			}
			if reports < 1 || warmup < 0 {
				return cli.Usagef("--reports %d or --warmup %d is too small", reports, warmup)
			}
			return out.write(c, nil, func(w io.Writer) error {
				for _, n := range flows {
					cfg := rate.DefaultPipelineConfig(n)
					cfg.Reports = reports
					if c.Flags().Changed("warmup") {
						cfg.Warmup = warmup
					}
					done := cli.ShowProgress(c.ErrOrStderr(), "measuring", func() string { return fmt.Sprintf("%d flows", n) })
					r, err := rate.Pipeline(cfg)
					done()
					if err != nil {
						return err
					}
					figures := struct {
						rate.PipelineResult
						PerSecond, MedianPerSecond float64 // reports
					}{r, r.Rate(), r.MedianRate()}
					if err := harness.Show(w, fmt.Sprintf("%d flows", n), figures, r.Print); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	c.Flags().IntSliceVar(&flows, "flows", []int{10_000, 1_000_000}, "flows in the traffic (repeatable)")
	c.Flags().IntVar(&reports, "reports", 4_000_000, "reports that are measured")
	c.Flags().IntVar(&warmup, "warmup", 0, "reports before the measurement (default 400 a flow, 100 from half a million flows on)")
	out.flag(c.Flags())
	return c
}

func plannerCommand() *cobra.Command {
	var o papers.Options
	var names []string
	var theirs algorithm
	var out output
	for _, t := range papers.Families {
		names = append(names, t.Name)
	}
	c := &cobra.Command{
		Use:   "planner [FAMILY...]",
		Short: "The tables of the published planners, their algorithms beside ours in the same run",
		Long: `Print the tables of the published planners: each algorithm as published,
re-implemented, beside ours on the same input in the same run.

Families: ` + strings.Join(names, ", ") + ` (all without one).

With --algorithm a program of yours gets instances of the families, one JSON object on
standard input each time it runs, and prints a plan, of which the decisions are enough.
It passes the checks that ours pass, and stands in the same table. ` + algorithmHelp,
		Example: `  hopscope-bench planner cover attention --algorithm "python3 docs/examples/planner.py"
  hopscope-bench planner --write-instances instances`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			if o.Limit <= 0 {
				return cli.Usagef("--time-limit %v is not above 0s", o.Limit)
			}
			if o.Topologies != "" {
				if _, err := os.ReadDir(o.Topologies); err != nil {
					return cli.WrongInput(fmt.Errorf("--topologies: %w", err))
				}
			}
			for _, a := range args {
				if !slices.Contains(names, a) {
					return cli.Usagef("no family %q; there are %s", a, strings.Join(names, ", "))
				}
			}
			if theirs.asked(c.Flags()) {
				return theirs.run(c, o.Limit, func(dir string) error { return papers.WriteQuestions(dir, args, o) }, func(p *harness.Program) error {
					return out.write(c, &o.Seed, func(w io.Writer) error { return papers.ForeignTable(c.Context(), w, p, args, o) })
				})
			}
			printed := false
			o.Printed = &printed
			return out.write(c, &o.Seed, func(w io.Writer) error {
				for _, t := range papers.Families {
					if len(args) > 0 && !slices.Contains(args, t.Name) {
						continue
					}
					done := cli.ShowProgress(c.ErrOrStderr(), "measuring", func() string { return t.Name })
					err := t.Run(c.Context(), w, o)
					done()
					if err != nil {
						return fmt.Errorf("%s: %w", t.Name, err)
					}
				}
				if len(o.Tables) > 0 && !printed {
					return cli.Usagef("--table: no title of a table has %s", strings.Join(o.Tables, ", nor "))
				}
				return nil
			})
		},
	}
	f := c.Flags()
	f.Uint64Var(&o.Seed, "seed", 1, "seed of instances and algorithms")
	f.DurationVar(&o.Limit, "time-limit", 2*time.Second, "for one run of one algorithm")
	f.StringArrayVar(&o.Tables, "table", nil, `only tables with this in their title, such as "figure 16" (repeatable)`)
	theirs.flags(f, "plans")
	out.flag(f)
	f.StringVar(&o.Topologies, "topologies", "", "directory with graphs/, demands/ and index.csv of the Topology Zoo in Repetita's format; rows that need it are left out without")
	return c
}

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/bench/papers/digests"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

func pintCommand() *cobra.Command {
	var o digests.Options
	var figures []string
	var svg string
	var out output
	var theirs algorithm
	c := &cobra.Command{
		Use:   "pint",
		Short: "The figures of PINT, as published and ours beside it in the same run",
		Long: `Make the figures of PINT (SIGCOMM 2020) again: what was published, re-implemented,
beside ours on the same input in the same run.

  1      completion of flows with TCP, by bytes of telemetry in packets
  2      goodput of long flows with TCP, by the same
  5      packets until 25 hops are known, by coding scheme
  7      congestion control: HPCC with a digest of 8 bits, and with INT
  8      the same, with the digest in a share of packets
  9      error of latency quantiles, by packets and by size of the sketch
  10     packets until a path is known, by its length; PPM and AMS2 for comparison
  10links the same, where the decoder of the paper knows the links of the network
  11     three queries in 16 bits: alone, planned by hand, and planned by "plan queries"
  11hpcc the same figure's congestion control
  loops  false alarms of loop detection
  cost   time and memory of decoding
  errors paths where the map of the network is wrong, and when they are certain

With --algorithm a program of yours decodes digests: it gets the digests of some flows
with the hashes of all switches, one JSON object on standard input, and prints a path
for each flow or null, beside what PINT's decoder and ours know then. ` + algorithmHelp,
		Example: `  hopscope-bench pint --figure 5 --runs 1000
  hopscope-bench pint --algorithm "python3 docs/examples/decoder.py"`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			for _, f := range figures {
				if !slices.Contains(digests.Figures(), f) {
					return cli.Usagef("no figure %q; there are %s", f, strings.Join(digests.Figures(), ", "))
				}
			}
			if len(o.Rows) > 0 && !slices.Equal(figures, []string{"errors"}) {
				return cli.Usagef("--row is of --figure errors alone")
			}
			if o.Runs < 0 || o.Runs > 10_000_000 {
				return cli.Usagef("--runs %d is outside 0..10000000", o.Runs)
			}
			if theirs.asked(c.Flags()) {
				if len(figures) > 0 || svg != "" {
					return cli.Usagef("--algorithm and --write-instances have instances of their own: --figure and --svg do not go with them")
				}
				return theirs.run(c, theirs.limit, func(dir string) error { return digests.WriteQuestions(dir, o, theirs.limit.Seconds()) }, func(p *harness.Program) error {
					return out.write(c, &o.Seed, func(w io.Writer) error { return digests.ForeignTable(c.Context(), w, p, o) })
				})
			}
			if svg != "" {
				if err := os.MkdirAll(svg, 0o755); err != nil {
					return err
				}
			}
			return out.write(c, &o.Seed, func(w io.Writer) error {
				for _, name := range digests.Figures() {
					if len(figures) > 0 && !slices.Contains(figures, name) {
						continue
					}
					if err := printFigure(c, w, name, o, svg); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f := c.Flags()
	f.StringSliceVar(&figures, "figure", nil, "only these: "+strings.Join(digests.Figures(), ", ")+" (repeatable)")
	f.IntVar(&o.Runs, "runs", 0, "repetitions of each point; 0 for 10000, or less where one takes long; flows of a simulation of figures 1, 2, 7, 8 and 11hpcc, 0 for 1000; flows of an instance of --algorithm, 0 for 50")
	f.StringArrayVar(&o.Rows, "row", nil, `of figure errors: only rows with this in their name, such as "Kentucky Datalink, distances: a node" (repeatable)`)
	f.Uint64Var(&o.Seed, "seed", 1, "seed of all random numbers")
	out.flag(f)
	theirs.flags(f, "decodes digests")
	theirs.limited(f)
	f.StringVar(&svg, "svg", "", "directory for plots as SVG, made if need be")
	return c
}

func printFigure(c *cobra.Command, w io.Writer, name string, o digests.Options, svg string) error {
	var point atomic.Value
	point.Store("")
	o.Progress = func(p string) { point.Store(p) }
	done := cli.ShowProgress(c.ErrOrStderr(), "figure "+name, func() string { return point.Load().(string) })
	figure, err := digests.Make(c.Context(), name, o)
	done()
	if err != nil {
		return err
	}
	if svg != "" {
		for _, chart := range figure.Charts {
			if err := writeChart(filepath.Join(svg, chart.File+".svg"), &chart); err != nil {
				return fmt.Errorf("plot: %w", err)
			}
		}
	}
	return figure.Print(w)
}

func writeChart(path string, chart *digests.Chart) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	return chart.Write(f)
}

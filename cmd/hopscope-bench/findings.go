package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/findings"
	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

func findingsCommand() *cobra.Command {
	o := findings.DefaultOptions()
	var names []string
	var theirs algorithm
	var out output
	lines := ""
	for _, p := range findings.Parts {
		names = append(names, p.Name)
		lines += fmt.Sprintf("\n  %-12s %s", p.Name, p.Doc)
	}
	c := &cobra.Command{
		Use:   "findings [PART...]",
		Short: "The table of faults and detectors: what is found, how soon, and how often without a fault",
		Long: `Put faults to hops whose truth is known and print what each detector finds: the test
of FANT, the one that hopscope had before, and the present one.

With --algorithm a program of yours finds faults: it gets the windows of some hops, one
JSON object on standard input, and prints from when to when it finds something, beside
what all detectors find there. ` + algorithmHelp + `

Parts (without one, series alone):` + lines,
		Example: `  hopscope-bench findings series --hops 40 --quiet 1000000
  hopscope-bench findings --algorithm "python3 docs/examples/detector.py"`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			switch {
			case o.Hops < 1 || o.Hops > 1e6:
				return cli.Usagef("--hops %d is outside 1..1000000", o.Hops)
			case o.Quiet < 0 || o.Quiet > 1e9:
				return cli.Usagef("--quiet %d is outside 0..1000000000", o.Quiet)
			case o.Seeds < 1 || o.Seeds > 1e6:
				return cli.Usagef("--seeds %d is outside 1..1000000", o.Seeds)
			}
			for _, a := range args {
				if !slices.Contains(names, a) {
					return cli.Usagef("no part %q; there are %s", a, strings.Join(names, ", "))
				}
			}
			if theirs.asked(c.Flags()) {
				if len(args) > 0 && !slices.Equal(args, []string{"series"}) {
					return cli.Usagef("--algorithm and --write-instances are of series alone")
				}
				return theirs.run(c, theirs.limit, func(dir string) error { return findings.WriteQuestions(dir, o, theirs.limit.Seconds()) }, func(p *harness.Program) error {
					return out.write(c, &o.Seed, func(w io.Writer) error { return findings.ForeignTable(c.Context(), w, p, o) })
				})
			}
			return out.write(c, &o.Seed, func(w io.Writer) error {
				for _, p := range findings.Parts {
					if !slices.Contains(args, p.Name) && (len(args) > 0 || p.Aside) {
						continue
					}
					done := cli.ShowProgress(c.ErrOrStderr(), "measuring", func() string { return p.Name })
					err := p.Run(c.Context(), w, o)
					done()
					if err != nil {
						return fmt.Errorf("%s: %w", p.Name, err)
					}
				}
				return nil
			})
		},
	}
	c.AddCommand(worldCommand())
	f := c.Flags()
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of everything that is drawn")
	f.IntVar(&o.Hops, "hops", o.Hops, "hops of each background for each fault")
	f.IntVar(&o.Quiet, "quiet", o.Quiet, "windows of each background without a fault")
	f.IntVar(&o.Seeds, "seeds", o.Seeds, "emulated networks of each fault")
	theirs.flags(f, "finds faults")
	out.flag(f)
	theirs.limited(f)
	return c
}

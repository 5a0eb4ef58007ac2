package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/bench/loop"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

func loopCommand() *cobra.Command {
	o := loop.DefaultOptions()
	var names []string
	var out output
	var theirs algorithm
	lines := ""
	for _, s := range loop.Sections {
		names = append(names, s.Name)
		lines += fmt.Sprintf("\n  %-12s %s", s.Name, s.Doc)
	}
	c := &cobra.Command{
		Use:   "loop [SECTION...]",
		Short: "The loop from findings to plans: what is suspected when faults happen, beside FANT's test",
		Long: `Let the faults of the emulator's table happen to an emulated fat-tree whose links are
covered by probes, and print which links are suspected, and how soon: by the two
deviations of FANT, with two pairs of limits; and by "hopscope control", for rounds of
the same probes alone, with their values of hops and lines, and with
the findings of what switches report besides. A seed takes half a minute and more. Then
compare the bytes of probes with attention to those of all probes in detail, time
cycles, and follow "hopscope demo" for an hour of virtual time.

With --algorithm a program of yours suspects links, too: it gets what probes brought in
each cycle of a seed, one JSON object on standard input, and prints which links it
suspects after each; its column is "theirs" of section detection. ` + algorithmHelp + `

Sections (without one, all of them):` + lines,
		Example: `  hopscope-bench loop detection --seeds 5
  hopscope-bench loop bytes --seed 7
  hopscope-bench loop detection --fault link-down,gray-failure-1 --format json
  hopscope-bench loop demo --svg loop-demo.svg
  hopscope-bench loop --algorithm "python3 docs/examples/suspects.py"`,
	}
	f := c.Flags()
	f.Uint64Var(&o.Seed, "seed", o.Seed, "of the first network")
	f.IntVar(&o.Seeds, "seeds", o.Seeds, "emulated networks, each with every fault")
	f.StringSliceVar(&o.Faults, "fault", nil, "only these faults of the table (repeatable)")
	f.DurationVar(&o.Demo, "for", o.Demo, "virtual time of demo")
	f.StringVar(&o.Picture, "svg", "", "file for the picture of demo")
	out.flag(f)
	theirs.flags(f, "suspects links")
	theirs.limited(f)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if err := o.Validate(); err != nil {
			return cli.Usagef("%v", err)
		}
		for _, a := range args {
			if !slices.Contains(names, a) {
				return cli.Usagef("no section %q; there are %s", a, strings.Join(names, ", "))
			}
		}
		if theirs.asked(c.Flags()) {
			if len(args) > 0 && !slices.Equal(args, []string{"detection"}) {
				return cli.Usagef("--algorithm and --write-instances are of section detection alone")
			}
			return theirs.run(c, theirs.limit, func(dir string) error { return loop.WriteQuestions(c.Context(), dir, o) }, func(p *harness.Program) error {
				o.Algorithm = p
				return out.write(c, &o.Seed, func(w io.Writer) error { return loop.Sections[0].Run(c.Context(), w, o) })
			})
		}
		return out.write(c, &o.Seed, func(w io.Writer) error {
			for _, s := range loop.Sections {
				if len(args) > 0 && !slices.Contains(args, s.Name) {
					continue
				}
				var state atomic.Value
				state.Store(s.Name)
				o.Progress = func(at string) { state.Store(s.Name + ", " + at) }
				done := cli.ShowProgress(c.ErrOrStderr(), "measuring", func() string { return state.Load().(string) })
				err := s.Run(c.Context(), w, o)
				done()
				if err != nil {
					return fmt.Errorf("%s: %w", s.Name, err)
				}
			}
			return nil
		})
	}
	return c
}

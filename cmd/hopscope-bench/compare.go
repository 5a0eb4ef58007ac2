package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

func compareCommand() *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "compare BEFORE.json AFTER.json",
		Short: "What changed between two results of a bench, beyond noise",
		Long: `Compare figure by figure what a bench wrote with --format json. A file may hold several
results, one after the other: of repeated runs, or of seeds.

Where both files have several values of a figure, Welch's test decides whether it
changed; where both have one with a confidence interval, the normal distribution. Of all
changes that it lists, 5 % are false (Benjamini and Hochberg). A figure that differs and
has neither is "unknown": one value says nothing of noise.`,
		Example: `  for i in 1 2 3 4 5; do hopscope-bench pipeline --format json >>before.json; done
  hopscope-bench compare before.json after.json`,
		Args: cli.ExactArgs(2),
	}
	out.flag(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := out.check(); err != nil {
			return err
		}
		var sides [2][]*harness.Result
		for i, path := range args {
			f, err := os.Open(path)
			if err != nil {
				return cli.WrongInput(err)
			}
			sides[i], err = harness.Read(f)
			f.Close()
			if err != nil {
				return cli.WrongInput(fmt.Errorf("%s: %w", path, err))
			}
		}
		comparison := harness.Compare(sides[0], sides[1])
		if out.format == "json" {
			return json.NewEncoder(c.OutOrStdout()).Encode(comparison)
		}
		t := comparison.Table()
		return out.write(c, nil, func(w io.Writer) error {
			if r, ok := w.(*harness.Recorder); ok {
				r.Add(t)
				return nil
			}
			return t.Print(w)
		})
	}
	return c
}

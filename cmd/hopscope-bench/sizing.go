package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

func sizingCommand() *cobra.Command {
	var o harness.Sizing
	var out output
	c := &cobra.Command{
		Use:   "sizing",
		Short: `What "hopscope config size" predicts, beside what collectors take`,
		Long: `Start a collector for each set-up, send it a load over loopback, and compare what
"hopscope config size" predicts for this load with the collector's metrics:

  small    10 000 flows, 96 hops, postcards
  middle   200 000 flows, 640 hops
  fast     10 000 flows, 640 hops, five times the rate
  stores   50 000 flows, 1024 hops, Parquet, and InfluxDB with --influxd
  records  counters of 320 interfaces, over sFlow

Each collector has its page and its history. Its processor time is divided by the unit
of "hopscope docs sizing", which is measured in turns with the load; both are medians.`,
		Example: `  hopscope-bench sizing --influxd .cache/influxdb/1.8.10/influxd`,
		Args:    cli.ExactArgs(0),
	}
	f := c.Flags()
	f.StringVar(&o.Program, "program", "", "hopscope (default beside this program)")
	f.StringVar(&o.Influxd, "influxd", "", "server of InfluxDB 1.8 for the set-up stores, which has none without it")
	f.IntVar(&o.Rounds, "rounds", 16, "turns of unit and load; garbage is collected after two minutes at the latest, so that fewer show less memory")
	f.DurationVar(&o.Turn, "turn", 10*time.Second, "time of the load in a turn")
	f.StringSliceVar(&o.Only, "setups", nil, "only these (repeatable)")
	f.Float64Var(&o.Rate, "rate", 0, "reports a second, or datagrams of records, in place of those of the set-ups")
	out.flag(f)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if o.Rounds < 1 || o.Turn < 100*time.Millisecond || o.Turn > time.Hour {
			return cli.Usagef("--rounds %d is below 1, or --turn %v outside 100ms..1h", o.Rounds, o.Turn)
		}
		if !(o.Rate >= 0 && o.Rate <= 1e7) {
			return cli.Usagef("--rate %v is outside 0..10000000", o.Rate)
		}
		names := harness.SetupNames()
		for _, s := range o.Only {
			if !slices.Contains(names, s) {
				return cli.Usagef("--setups: no %q; there are %s", s, strings.Join(names, ", "))
			}
		}
		if err := findPrograms(&o.Program, &o.Influxd); err != nil {
			return err
		}
		var setup atomic.Value
		setup.Store("")
		stop := cli.ShowProgress(c.ErrOrStderr(), "measuring", func() string { return setup.Load().(string) })
		r, err := o.Run(c.Context(), func(name string) { setup.Store(name) })
		stop()
		return errors.Join(err, out.write(c, nil, func(w io.Writer) error { return r.Print(w) }))
	}
	return c
}

// findPrograms makes the paths of the collector and of a server absolute. Without a path the collector is beside this program.
func findPrograms(program, server *string) error {
	if *program == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		*program = filepath.Join(filepath.Dir(self), "hopscope")
	}
	for _, p := range []*string{program, server} {
		if *p == "" {
			continue
		}
		path, err := exec.LookPath(*p)
		if err != nil {
			return cli.WrongInput(err)
		}
		if *p, err = filepath.Abs(path); err != nil {
			return err
		}
	}
	return nil
}

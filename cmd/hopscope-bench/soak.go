package main

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

func soakCommand() *cobra.Command {
	var o harness.Soak
	var out output
	c := &cobra.Command{
		Use:   "soak",
		Short: "A collector with all stores at a share of its loss-free rate: what is lost, and whether memory is flat",
		Long: `Start a collector with its page, its history, Parquet, and InfluxDB with --influxd. Send
it reports over loopback (50 000 flows of five hops, 64 exporters), and find the highest
rate at which the ledger has every report and nothing is dropped. Then send to a new
collector at a share of that rate, and print what its stores have of it, and its memory.`,
		Example: `  hopscope-bench soak --influxd .cache/influxdb/1.8.10/influxd
  hopscope-bench soak --length 1m --settle 20s --share 0.5`,
		Args: cli.ExactArgs(0),
	}
	f := c.Flags()
	f.StringVar(&o.Program, "program", "", "hopscope (default beside this program)")
	f.StringVar(&o.Influxd, "influxd", "", "server of InfluxDB 1.8; without it Parquet is the only store")
	f.DurationVar(&o.Trial, "trial", 5*time.Second, "time of a rate in the search")
	f.DurationVar(&o.Length, "length", 10*time.Minute, "time of the run")
	f.DurationVar(&o.Settle, "settle", 2*time.Minute, "time of the run after which memory is to be flat")
	f.Float64Var(&o.Share, "share", 0.8, "of the rate without loss")
	out.flag(f)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if o.Trial < 100*time.Millisecond || o.Trial > time.Hour || o.Settle < 0 || o.Length < 10*time.Second || o.Length > 24*time.Hour || o.Settle > o.Length/2 {
			return cli.Usagef("--trial %v is outside 100ms..1h, --length %v outside 10s..24h, or --settle %v above half of it", o.Trial, o.Length, o.Settle)
		}
		if !(o.Share > 0 && o.Share <= 1) {
			return cli.Usagef("--share %v is outside 0..1", o.Share)
		}
		if err := findPrograms(&o.Program, &o.Influxd); err != nil {
			return err
		}
		var at atomic.Value
		at.Store("")
		stop := cli.ShowProgress(c.ErrOrStderr(), "measuring", func() string { return at.Load().(string) })
		r, err := o.Soak(c.Context(), func(what string) { at.Store(what) })
		stop()
		if err != nil {
			return err
		}
		return out.write(c, nil, func(w io.Writer) error { return r.Print(w) })
	}
	return c
}

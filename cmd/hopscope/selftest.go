package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/traffic"
)

func selftestCommand() *cobra.Command {
	var o struct {
		config, format       string
		rate                 float64
		duration             time.Duration
		flows, hops, size    int
		exporters, maxRounds int
	}
	c := &cobra.Command{
		Use:   "selftest",
		Short: "Send a load to itself and report what this machine keeps up with",
		Long: `Start a collector on a free loopback port, send it reports (telemetry report 2.0 with
an INT-MD 2.1 stack) at a rate, and compare what was sent with what the collector
counted, by stage of the loss ledger.

Without --rate it looks for the highest rate that loses nothing. Sender and collector
share the machine's CPUs, so a network card would leave room for more.

Exit status 1 when the given rate loses reports, or when a report is found nowhere.`,
		Example: `  hopscope selftest
  hopscope selftest --rate 200000 --duration 10s`,
		Args: exactArgs(0),
	}
	f := c.Flags()
	f.StringVar(&o.config, "config", "", "settings file; its stores and its page stay closed, udp.listen is replaced")
	f.Float64Var(&o.rate, "rate", 0, "reports a second; 0 looks for the highest")
	f.DurationVar(&o.duration, "duration", 3*time.Second, "of each load")
	f.IntVar(&o.flows, "flows", 10_000, "flows in the load")
	f.IntVar(&o.hops, "hops", 5, "hops in every report; 0 sends postcards")
	f.IntVar(&o.size, "bytes", 200, "bytes of every datagram")
	f.IntVar(&o.exporters, "exporters", 16, "exporters in the load")
	f.StringVar(&o.format, "format", "table", "table or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(o.format); err != nil {
			return err
		}
		if !(o.rate >= 0 && o.rate <= 1e8) {
			return usagef("--rate %g is outside 0..1e8", o.rate)
		}
		if o.duration < 100*time.Millisecond || o.duration > time.Hour {
			return usagef("--duration %s is outside 100ms..1h", o.duration)
		}
		load := traffic.Config{Seed: 1, Flows: o.flows, Hops: o.hops, Exporters: o.exporters, Bytes: o.size}
		if err := load.Validate(); err != nil {
			return usageError{Err: err}
		}
		asked, err := readConfig(o.config)
		if err != nil && asked.file == nil {
			return wrongInput(err)
		}
		cfg := defaultConfig() // without any store or further source
		cfg.Config, cfg.Analysis, cfg.UDP, cfg.Web.Listen = asked.Config, asked.Analysis, asked.UDP, ""
		cfg.UDP.Listen = []string{"127.0.0.1:0"}
		cfg.UDP.AllowSources = nil
		cfg.file = asked.file
		if _, err := examine(&cfg, err, false); err != nil {
			return err
		}
		cfg.Exporters = collector.Exporters{Profile: "auto", Recognise: cfg.Exporters.Recognise, Tracking: cfg.Exporters.Tracking}

		out, format := c.OutOrStdout(), o.format
		table := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
		if format == "table" {
			fmt.Fprintf(out, "%d CPUs, %d flows, %d hops, %d bytes, %s each\n", runtime.GOMAXPROCS(0), o.flows, o.hops, o.size, o.duration)
			fmt.Fprintln(table, "asked/s\tsent/s\tcounted\tkernel\tshard-queue\tmalformed\tverdict\t")
		}
		try := func(rate float64) (traffic.Step, error) {
			s, err := selftestOnce(c.Context(), cfg, load, rate, o.duration)
			if err != nil {
				return s, err
			}
			if format == "table" {
				asked := "most"
				if rate > 0 {
					asked = fmt.Sprintf("%.0f", rate)
				}
				fmt.Fprintf(table, "%s\t%.0f\t%d\t%d\t%d\t%d\t%s\t\n", asked, s.Rate, s.Stored, s.Dropped["kernel"], s.Dropped["shard-queue"], s.Dropped["malformed"], s.Verdict)
				table.Flush()
			}
			if !s.Balanced() {
				return s, fmt.Errorf("%d of %d reports sent are found nowhere in the loss ledger; please report this", s.Missing, s.Sent)
			}
			return s, nil
		}
		signalsOf(c.Context()).markOrderly()
		var steps []traffic.Step
		best, err := traffic.Search(o.rate, func(rate float64) (traffic.Step, error) {
			s, err := try(rate)
			steps = append(steps, s)
			return s, err
		})
		if werr := traffic.WriteSearch(out, format, steps, best); err == nil {
			err = werr
		}
		if err == nil && o.rate > 0 && !steps[0].KeepsUp {
			err = fmt.Errorf("does not keep up with %.0f reports/s", o.rate)
		}
		return err
	}
	return c
}

// selftestOnce runs a fresh collector under one load.
func selftestOnce(ctx context.Context, cfg config, load traffic.Config, rate float64, duration time.Duration) (s traffic.Step, err error) {
	s.Asked = rate
	col, err := openLive(&cfg, collector.Options{Seed: load.Seed}, nil)
	if err != nil {
		return s, err
	}
	gen, err := traffic.New(load)
	if err != nil {
		return s, errors.Join(err, col.Close())
	}
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- col.Run(runCtx) }()
	res, err := traffic.Send(ctx, traffic.SendConfig{To: col.Addrs()[0], Rate: rate, Duration: duration}, gen)
	stop() // the collector drains its sockets before it ends
	if err = errors.Join(err, <-ran, context.Cause(ctx)); err != nil {
		return s, err
	}
	sum := col.Summary(0, 0)
	s.Sent, s.Rate = res.Sent, res.Rate()
	s.Stored, s.Dropped = sum.Ledger.Stored, sum.Ledger.Dropped
	for _, e := range sum.Exporters {
		s.Lost += e.Lost
	}
	s.Judge(&sum.Ledger.Balance)
	return s, nil
}

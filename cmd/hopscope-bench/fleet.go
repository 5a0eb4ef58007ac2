package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/bench/rate"
	"github.com/hopscope/hopscope/cmd/internal/cli"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
)

// fleetFigures is the result of "hopscope-bench fleet".
type fleetFigures struct {
	Window rate.WindowResult `json:"window"`
	Raw    *rate.RawResult   `json:"raw,omitempty"` // with a broker
}

// Print writes it as text.
func (f *fleetFigures) Print(w io.Writer) error {
	err := f.Window.Print(w)
	if f.Raw != nil {
		err = errors.Join(err, f.Raw.Print(w))
	}
	return err
}

func fleetCommand() *cobra.Command {
	window, raw := rate.DefaultWindowConfig(), rate.DefaultRawConfig()
	var out output
	c := &cobra.Command{
		Use:   "fleet",
		Short: "What windows and reports cost that go through Kafka",
		Long: `Measure what a fleet costs on one core: the records that a collector makes of a window,
and merging those of many collectors. With --brokers it sends raw reports through a real
Kafka too, in turns with a bare loop of the Arrow library. It makes topics called
hopscope-bench-... there, and deletes them.`,
		Example: `  hopscope-bench fleet
  hopscope-bench fleet --brokers 127.0.0.1:9092`,
		Args: cli.ExactArgs(0),
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		switch {
		case window.Collectors < 1 || window.Collectors > 1024:
			return cli.Usagef("--collectors %d is outside 1..1024", window.Collectors)
		case window.Flows < 1 || window.Flows > 1<<24:
			return cli.Usagef("--flows %d is outside 1..16777216", window.Flows)
		case window.Reports < 1 || window.Reports > 1<<30:
			return cli.Usagef("--reports %d is outside 1..1073741824", window.Reports)
		case raw.Rounds < 1 || raw.Rounds > 1000:
			return cli.Usagef("--rounds %d is outside 1..1000", raw.Rounds)
		}
		if len(raw.Brokers) > 0 { // checked before minutes of measuring
			kafka := brokers.DefaultConfig()
			kafka.Brokers = raw.Brokers
			if err := kafka.Validate(); err != nil {
				return cli.Usagef("--brokers: %v", err)
			}
		}
		var f fleetFigures
		var err error
		done := cli.ShowProgress(c.ErrOrStderr(), "measuring", func() string { return "windows" })
		f.Window, err = rate.Window(window)
		done()
		if err == nil && len(raw.Brokers) > 0 {
			done := cli.ShowProgress(c.ErrOrStderr(), "measuring", func() string { return "raw reports" })
			var r rate.RawResult
			r, err = rate.Raw(c.Context(), raw)
			f.Raw = &r
			done()
		}
		if err != nil {
			return err
		}
		return out.write(c, nil, func(w io.Writer) error { return harness.Show(w, "a fleet", &f, f.Print) })
	}
	flags := c.Flags()
	flags.IntVar(&window.Collectors, "collectors", window.Collectors, "whose windows are merged")
	flags.IntVar(&window.Flows, "flows", window.Flows, "flows of a collector")
	flags.IntVar(&window.Reports, "reports", window.Reports, "reports of a collector in a window of 10 s")
	flags.StringSliceVar(&raw.Brokers, "brokers", nil, "address of a Kafka broker (repeatable); without one, raw reports are left out")
	flags.IntVar(&raw.Rounds, "rounds", raw.Rounds, "with raw reports in both ways")
	out.flag(flags)
	return c
}

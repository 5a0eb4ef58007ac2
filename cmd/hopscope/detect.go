package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/inference/detect"
)

func detectCommand() *cobra.Command {
	var format, kind string
	var window time.Duration
	var floor, falseADay float64
	c := &cobra.Command{
		Use:   "detect FILE.csv[.gz]",
		Short: "Find changes in a table of windows: what a hop's latency or queue does that it never did",
		Long: `Run the change detectors over a table of windows, such as one that was exported from
a store, and print what they find. The first line of the table names its columns, in any
order:

  hop         what the values are of: any text
  window      number of the window, from 0, rising for each hop
  count       values in the window
  p50,p90,p99 quantiles of these values
  min         the least of them, or a quantile below which hardly any are; may be absent

Further columns are left alone. A window that is missing had no values. Of a utilisation
and of a share of lost packets there is one value a window, p50; the others are not used,
and count is any number from 1 on. Each hop is compared with its own past only: a hop is
judged after 60 windows, knows what comes back every hour after three hours, and what
comes back every day after three days. A window of few values shows less, and changes are
seen once several of them agree. How many windows were not judged, and why, is behind
the findings.

Values are latencies, unless --kind names what else they are, or many windows of a file have
mostly zeros, as queues do and latencies do not. A queue that gets shorter is no finding.

A finding begins in the window "start" and has ended before the window "end", which is
empty while it lasts, or while it is expected to come back. Its kind is rise, fall, silent
or stuck, and its statistic p50, p99, low (the floor of the values) or tail (p99 beside
p90). A hop is silent after three
windows without values in a row, or as many more as its share of such windows makes
unlikely (e to the power of -15.8), and longer than one and a half times any such run
before; it has to be known for 60 windows of 20 values, or for 2160 windows.

A false finding is accepted in one of a million windows of a hop. --false-a-day sets how many are accepted in a day in all
hops of the table together, which is read twice then.`,
		Example: `  hopscope detect windows.csv.gz
  hopscope detect windows.csv --window 1m --format csv`,
		Args: exactArgs(1),
	}
	f := c.Flags()
	f.StringVar(&kind, "kind", "auto", "what the values are: latency in ns, queue in bytes, utilisation or loss as shares of 1; auto is one of the first two")
	f.DurationVar(&window, "window", 10*time.Second, "length of a window, which sets how many make an hour and a day")
	f.Float64Var(&floor, "floor", 0, "added to every value before values are compared by their ratio (default 1000 ns, 10000 bytes, 0.1 and 0.001, by kind)")
	f.Float64Var(&falseADay, "false-a-day", 0, "false findings that are accepted in a day, in all hops of the table (default: one in a million windows)")
	f.StringVar(&format, "format", "table", "table, json or csv")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case kind != "auto" && detect.Kinds[kind] == nil:
			return usagef("--kind %q is none of auto, latency, queue, utilisation and loss", kind)
		case format != "table" && format != "json" && format != "csv":
			return usagef("--format %q is neither table nor json nor csv", format)
		case window < time.Second || window > time.Hour:
			return usagef("--window %v is not from 1s to 1h", window)
		case c.Flags().Changed("floor") && !(floor > 0 && floor <= 1e15):
			return usagef("--floor %v is not above 0 and up to 1e15", floor)
		case c.Flags().Changed("false-a-day") && !(falseADay >= 1e-4 && falseADay <= 1e4):
			return usagef("--false-a-day %v is not from 0.0001 to 10000", falseADay)
		case falseADay != 0 && args[0] == "-":
			return usagef("--false-a-day needs a file: standard input cannot be read twice, and the number of hops counts")
		}
		var survey detect.Survey
		if args[0] != "-" && (kind == "auto" || falseADay != 0) {
			in, err := openTable(c, args[0])
			if err != nil {
				return wrongInput(err)
			}
			survey, err = detect.SurveyTable(in)
			if err = errors.Join(err, in.Close()); err != nil {
				return wrongInput(fmt.Errorf("%s: %w", args[0], err))
			}
		}
		if kind == "auto" {
			kind = "latency"
			if survey.Queue() {
				kind = "queue"
				fmt.Fprintln(c.ErrOrStderr(), "the values are taken for the bytes of a queue, since most of them are 0 in many windows; --kind says otherwise")
			}
		}
		cfg := detect.Kinds[kind](window)
		if floor != 0 {
			cfg.Floor = floor
		}
		if falseADay != 0 {
			cfg.Share = falseADay * window.Hours() / 24 / float64(max(survey.Hops, 1))
		}
		in, err := openTable(c, args[0])
		if err != nil {
			return wrongInput(err)
		}
		defer in.Close()
		d := detect.NewTable(&cfg)
		if err := d.Read(in); err != nil {
			return wrongInput(fmt.Errorf("%s: %w", args[0], err))
		}
		d.Finish()
		return d.Write(c.OutOrStdout(), format)
	}
	return c
}

// openTable opens a file, or standard input for "-", and unpacks it where it is packed.
func openTable(c *cobra.Command, path string) (io.ReadCloser, error) {
	var f io.ReadCloser = io.NopCloser(c.InOrStdin())
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		f = file
	}
	b := bufio.NewReaderSize(f, 1<<16)
	if head, _ := b.Peek(3); string(head) == "\ufeff" {
		b.Discard(3) // a byte order mark, which spreadsheets write
	}
	if head, _ := b.Peek(2); string(head) != "\x1f\x8b" {
		return &table{b, f}, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, f.Close()))
	}
	return &table{z, f}, nil
}

type table struct {
	io.Reader
	file io.Closer
}

func (t *table) Close() error { return t.file.Close() }

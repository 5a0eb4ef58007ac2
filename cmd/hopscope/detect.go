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
	var format string
	cfg := detect.Latency(10 * time.Second)
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

Further columns are left alone. A window that is missing had no values. Each hop is
compared with its own past only: a hop is judged after 60 windows, knows what comes back
every hour after three hours, and what comes back every day after three days.

A finding begins in the window "start" and has ended before the window "end", which is
empty while it lasts. Its kind is rise, fall, silent or stuck.`,
		Example: `  hopscope detect windows.csv.gz
  hopscope detect windows.csv --window 1m --format csv`,
		Args: exactArgs(1),
	}
	f := c.Flags()
	f.DurationVar(&cfg.Window, "window", cfg.Window, "length of a window, which says how many make an hour and a day")
	f.Float64Var(&cfg.Floor, "floor", cfg.Floor, "added to every value before values are compared by their ratio: 1000 suits nanoseconds")
	f.StringVar(&format, "format", "table", "table, json or csv")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case format != "table" && format != "json" && format != "csv":
			return usagef("--format %q is neither table nor json nor csv", format)
		case cfg.Window < time.Second || cfg.Window > time.Hour:
			return usagef("--window %v is not from 1s to 1h", cfg.Window)
		case !(cfg.Floor > 0 && cfg.Floor <= 1e15):
			return usagef("--floor %v is not above 0 and up to 1e15", cfg.Floor)
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

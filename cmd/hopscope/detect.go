package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/names"
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
		d := newDetection(&cfg)
		if err := d.read(in); err != nil {
			return wrongInput(fmt.Errorf("%s: %w", args[0], err))
		}
		d.finish()
		return d.write(c.OutOrStdout(), format)
	}
	return c
}

// detection runs a detector for each hop of a table.
type detection struct {
	cfg      *detect.Config
	hops     []tableHop // in the order in which they first occur
	byName   map[string]int
	last     int // window of the table
	windows  int
	findings []tableFinding
}

type tableHop struct {
	name  string
	state detect.Hop
	next  int // window
	open  int // index of its open finding, or -1
}

type tableFinding struct {
	Hop       string `json:"hop"`
	Start     int    `json:"start"`
	End       *int   `json:"end"` // null while it lasts
	Kind      string `json:"kind"`
	Statistic string `json:"statistic,omitempty"`
	Severity  string `json:"severity"`
}

func newDetection(cfg *detect.Config) *detection {
	return &detection{cfg: cfg, byName: map[string]int{}, findings: []tableFinding{}}
}

// add gives the next window of a hop to its detector.
func (d *detection) add(h *tableHop, w detect.Window) {
	window := h.next
	h.next++
	event := h.state.Add(d.cfg, d.cfg.At(int64(h.next)*int64(d.cfg.Window)), w)
	switch event {
	case detect.Begun:
		f, _ := h.state.Open()
		h.open = len(d.findings)
		row := tableFinding{Hop: h.name, Start: window, Kind: f.Cause.String()}
		if f.Cause == detect.Rise || f.Cause == detect.Fall {
			row.Statistic = f.Statistic.String()
		}
		d.findings = append(d.findings, row)
	case detect.Ended:
		d.findings[h.open].End = &window
		h.open = -1
	}
	if f, ok := h.state.Open(); ok {
		severity := inference.Warning
		if f.Grave(d.cfg) {
			severity = inference.Critical
		}
		if row := &d.findings[h.open]; row.Severity != inference.Critical.String() {
			row.Severity = severity.String()
		}
	}
}

// silence is how many windows a hop is followed at most behind its last one: it is found to be silent before that.
const silence = 100

// finish lets hops that end before the table does be silent.
func (d *detection) finish() {
	for k := range d.hops {
		h := &d.hops[k]
		for n := 0; h.next <= d.last && n < silence; n++ {
			d.add(h, detect.Window{})
		}
	}
	slices.SortStableFunc(d.findings, func(a, b tableFinding) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(d.byName[a.Hop], d.byName[b.Hop]))
	})
}

func (d *detection) write(out io.Writer, format string) (err error) {
	b := bufio.NewWriter(out)
	end := func(f tableFinding, open string) string {
		if f.End == nil {
			return open
		}
		return strconv.Itoa(*f.End)
	}
	switch format {
	case "json":
		err = json.NewEncoder(b).Encode(struct {
			Hops     int            `json:"hops"`
			Windows  int            `json:"windows"`
			Learning int            `json:"learning"` // hops that are too young to be judged
			Findings []tableFinding `json:"findings"`
		}{len(d.hops), d.windows, d.learning(), d.findings})
	case "csv":
		w := csv.NewWriter(b)
		w.Write([]string{"hop", "start", "end", "kind", "statistic", "severity"})
		for _, f := range d.findings {
			w.Write([]string{f.Hop, strconv.Itoa(f.Start), end(f, ""), f.Kind, f.Statistic, f.Severity})
		}
		w.Flush()
		err = w.Error()
	default:
		w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		if len(d.findings) > 0 {
			fmt.Fprintln(w, "HOP\tSTART\tEND\tKIND\tSTATISTIC\tSEVERITY")
		}
		for _, f := range d.findings {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", names.Clean(f.Hop), f.Start, end(f, "-"), f.Kind, cmp.Or(f.Statistic, "-"), f.Severity)
		}
		w.Flush()
		_, err = fmt.Fprintf(b, "%d finding%s in %d windows of %d hop%s%s\n",
			len(d.findings), plural(len(d.findings)), d.windows, len(d.hops), plural(len(d.hops)), d.tooYoung())
	}
	if e := b.Flush(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("write the findings: %w", err)
	}
	return nil
}

func (d *detection) learning() (n int) {
	for k := range d.hops {
		if d.hops[k].state.Warming(d.cfg) {
			n++
		}
	}
	return n
}

func (d *detection) tooYoung() string {
	if n := d.learning(); n > 0 {
		return fmt.Sprintf("; %d hop%s had too few windows to be judged", n, plural(n))
	}
	return ""
}

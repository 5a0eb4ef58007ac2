package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/traffic"
)

// Sized is the settings of a collector whose size is asked.
type Sized struct {
	Config   *collector.Config
	Analysis *collector.Analysis
	All      any // the settings struct with the sections of sources and stores
}

// SizeCommand is the command that predicts the size of a collector for a load. The function read returns the settings
// of a file, or the defaults for an empty name.
func SizeCommand(read func(file string) (Sized, error)) *cobra.Command {
	var (
		reports, records          = quantity(100_000), quantity(0)
		flows, hops               = quantity(100_000), quantity(1000)
		exporters, path, bytes, n int
		life, unit                time.Duration
		format                    string
	)
	c := &cobra.Command{
		Use:   "size [FILE]",
		Short: "Predict cores, memory, disk and network of a collector for a load",
		Long: `Predict what a collector with the settings of FILE, or the defaults, takes for a load:
cores, memory, disk and network, each with what it rests on, and settings that the
load exceeds. Nothing is opened and nothing is written.

Processor time is predicted in units, which "hopscope docs sizing" defines. The unit of
this machine is measured in a second; --unit states that of another machine. The bench
"hopscope-bench sizing" compares predictions with a running collector.`,
		Example: `  hopscope config size --reports 500k --flows 1M --hops 2000 --exporters 200
  hopscope config size hopscope.yaml --reports 2M --collectors 4 --records 20k`,
		Args: MaxArgs(1),
	}
	f := c.Flags()
	f.Var(&reports, "reports", "telemetry reports a second, such as 500k")
	f.IntVar(&path, "path", 5, "hops of a report; 1 for postcards")
	f.IntVar(&bytes, "bytes", 200, "bytes of its datagram")
	f.Var(&flows, "flows", "flows seen within flows.idle_timeout, such as 1M")
	f.DurationVar(&life, "life", 10*time.Minute, "how long a flow lasts on average")
	f.Var(&hops, "hops", "hops of the network: pairs of switch and egress interface")
	f.IntVar(&exporters, "exporters", 100, "exporters")
	f.Var(&records, "records", "records of sFlow and IPFIX a second: drops and counters")
	f.IntVar(&n, "collectors", 1, "collectors that share the load; the prediction is for each")
	f.DurationVar(&unit, "unit", 0, "unit of processor time of the machine; 0 measures that of this one")
	f.StringVar(&format, "format", "table", "table or json")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := CheckFormat(format); err != nil {
			return err
		}
		for _, r := range []struct {
			flag     string
			v        float64
			min, max float64
		}{
			{"reports", float64(reports), 0, 1e9}, {"records", float64(records), 0, 1e9}, {"flows", float64(flows), 1, 1e9}, {"hops", float64(hops), 1, 1e7},
			{"path", float64(path), 1, 64}, {"bytes", float64(bytes), 1, 65507}, {"exporters", float64(exporters), 1, 1e7}, {"collectors", float64(n), 1, 10_000},
		} {
			if !(r.v >= r.min && r.v <= r.max) {
				return Usagef("--%s %s is outside %.0f..%.0f", r.flag, strconv.FormatFloat(r.v, 'f', -1, 64), r.min, r.max)
			}
		}
		switch {
		case life < time.Second:
			return Usagef("--life %v is below 1s", life)
		case unit < 0:
			return Usagef("--unit %v is below 0s", unit)
		}
		file := ""
		if len(args) > 0 {
			file = args[0]
		}
		cfg, err := read(file)
		if err != nil {
			return err
		}
		measured := unit == 0
		if measured {
			if unit, err = traffic.Unit(time.Second); err != nil {
				return err
			}
		}
		share := func(v float64) float64 { return math.Ceil(v / float64(n)) }
		s := collector.Expect(cfg.Config, cfg.Analysis, cfg.All, collector.Load{
			Reports: float64(reports) / float64(n), Records: float64(records) / float64(n), Path: path, Bytes: bytes, Flows: int(share(float64(flows))), Hops: int(hops),
			Exporters: int(share(float64(exporters))), Life: life,
		}, unit)
		if format == "json" {
			e := json.NewEncoder(c.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(s)
		}
		return writeSizing(c.OutOrStdout(), &s, n, unit, measured)
	}
	return c
}

// writeSizing prints a table of all parts, and lists below it.
func writeSizing(w io.Writer, s *collector.Sizing, n int, unit time.Duration, measured bool) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	for i := range s.Parts {
		part := &s.Parts[i]
		fmt.Fprintf(t, "%s\t%s\t%s\n", part.Of, part.Text(), part.Rests)
	}
	t.Flush()
	if n > 1 {
		fmt.Fprintf(&b, "\nEach of %d collectors, with an equal share of the load; every one sees all hops.\n", n)
	}
	fmt.Fprintf(&b, "\nA unit takes %v", unit.Round(10*time.Nanosecond))
	if measured {
		fmt.Fprintf(&b, " on this machine, which has %d CPUs", runtime.GOMAXPROCS(0))
	}
	b.WriteString(".\n")
	list(&b, "To raise for this load", s.Raise)
	list(&b, "Not included", s.Unknown)
	_, err := io.WriteString(w, b.String())
	return err
}

func list(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "- %s\n", l)
	}
}

// quantity is a flag for large numbers, with k, M or G for thousands, millions and thousands of millions.
type quantity float64

func (q *quantity) String() string { return strconv.FormatFloat(float64(*q), 'f', -1, 64) }

// Type is the name in the help.
func (q *quantity) Type() string { return "number" }

func (q *quantity) Set(text string) error {
	number, scale := text, 1.0
	for suffix, s := range map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			number, scale = rest, s
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is no number such as 1500, 500k or 1.5M", text)
	}
	*q = quantity(v * scale)
	return nil
}

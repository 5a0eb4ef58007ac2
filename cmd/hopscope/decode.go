package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/decode/reportjson"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/pcapfile"
)

func decodeCommand() *cobra.Command {
	var o struct {
		profile, format string
		config          string
		nodes, topology string
		names           string
		ports           []uint
		all             bool
	}
	c := &cobra.Command{
		Use:   "decode FILE",
		Short: "Print a capture's reports as JSON lines",
		Long: `Print every report in a capture (pcap, pcapng, also compressed with gzip or zstd, and
several one after the other; "-" is standard input) as one JSON object a line, in the
order of the frames. Numbers are raw wire values. Frames that are no telemetry for the
profile print nothing, or with --all their layers and the byte where reading stopped.

A report that cannot be read to its end is printed with what was valid and an
"error" that names the byte of the frame. It does not stop the output and does not
change the exit status. The status is 1 if the capture itself cannot be read to its
end; everything before that place is printed.

With --nodes or --topology, PINT digests are printed with the hops that wrote into
them, counted from 1 ("writers"), and if one did with the nodes that it can have been
("candidates"). "hopscope replay" puts whole paths together.

With --config, each sender is read in the dialect that the settings give it, IPFIX as
ipfix.* says, and a port of setting ports that has a type takes that alone. --profile or
--report-port are for all senders; with --report-port, types of ports do not count.

Where the profile cannot read what a sender sends and another one explains it, standard
error says so before its last line. What is printed is what the profile says.`,
		Example: `  hopscope decode fabric.pcap --profile fabric-tna
  tcpdump -i eth1 -U -w - udp port 8090 | hopscope decode - --profile geant
  hopscope decode reports.pcap --format table
  hopscope decode reports.pcap --format table --names inventory.yaml`,
		Args: exactArgs(1),
	}
	f := c.Flags()
	f.StringVar(&o.profile, "profile", "", "dialect of the capture: "+strings.Join(demux.Profiles(), ", ")+", or one of the settings (default: that of the settings, auto)")
	f.StringVar(&o.config, "config", "", "settings file: dialects of exporters, and how IPFIX is read; nothing is stored")
	f.UintSliceVar(&o.ports, "report-port", nil, "UDP port of reports instead of the profile's (repeatable)")
	f.StringVar(&o.nodes, "nodes", "", "node ids that a PINT digest can stand for, as 0-127,4096")
	f.StringVar(&o.topology, "topology", "", "network whose nodes a PINT digest can stand for: a file or a generator, as for plan")
	f.StringVar(&o.names, "names", "", "inventory with the names of nodes, for --format table (docs/inventory.md)")
	f.BoolVar(&o.all, "all", false, "print frames without telemetry too, with their layers and the byte where reading stopped, and count them")
	f.StringVar(&o.format, "format", "json", "table or json")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkFormat(o.format); err != nil {
			return err
		}
		cfg, err := loadConfig(o.config)
		if err != nil {
			return err
		}
		decoder, err := printedAs(&cfg, o.profile, o.ports)
		if err != nil {
			return err
		}
		candidates, err := cfg.Exporters.Candidates()
		if err != nil {
			return err
		}
		var called *names.Names
		var place func([]*decode.Report)
		if o.names != "" {
			if o.format != "table" {
				return usagef("--names: JSON lines have the numbers of the wire; add --format table")
			}
			if called, err = inventory.ReadFile(o.names, cfg.Exporters.SiteNames()); err != nil {
				return wrongInput(err)
			}
			if place, err = cfg.Exporters.PlaceReports(); err != nil {
				return wrongInput(err)
			}
		}
		if args[0] == "-" && term.IsTerminal(int(os.Stdin.Fd())) {
			return usagef("standard input is a terminal; pipe a capture into it")
		}
		r, err := pcapfile.OpenContext(c.Context(), args[0])
		if err != nil {
			return wrongCapture(err)
		}
		defer r.Close()

		// A reader that goes away ends the output, not the program.
		signal.Ignore(syscall.SIGPIPE)
		p := guess.Printer{Append: appendJSON, W: c.OutOrStdout(), Watch: guess.NewWatch(candidates, false), Decoder: decoder, Place: place, Known: pcapfile.Known}
		if o.nodes != "" || o.topology != "" {
			pc, err := pintFlags(collector.DefaultPINT(), o.nodes, o.topology)
			if err != nil {
				return err
			}
			nodes, err := pc.NodeIDs(loadNetwork)
			if err != nil {
				return wrongInput(err)
			}
			p.Append = reportjson.NewDigests(nodes).Append
		}
		if o.all {
			p.Foreign = foreignJSON
		}
		if o.format == "json" && !o.all {
			p.W = cli.Plain(p.W) // as package reportjson promises
		}
		if o.format == "table" {
			if o.all {
				p.Foreign = foreignRow
			}
			p.Append = tableRows(decoder, called)
			p.Heading(names.AppendHeading(nil))
		}
		stop := func() {}
		if !cli.IsTerminal(p.W) { // else the output itself shows progress
			stop = showProgress(c.ErrOrStderr(), "decoding", func() string { return progress(r.Progress()) })
		}
		err = printFrames(c.Context(), r, &p)
		stop()
		switch {
		case errors.Is(err, syscall.EPIPE):
			return nil
		case c.Context().Err() != nil && args[0] == "-":
			err = nil // endless input is ended by stopping
		}
		name := args[0]
		if name == "-" {
			name = "standard input"
		}
		for _, line := range dialectLines(p.Dialects()) {
			fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", name, line)
		}
		for _, m := range p.Remarks() {
			fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", name, m.String())
		}
		fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", name, p.Summary(o.all))
		return err
	}
	return c
}

// printFrames prints the reports of all frames of r. The output of one read of the input leaves in one write, so that
// live input shows at once and a file costs few calls.
func printFrames(ctx context.Context, r *pcapfile.Reader, p *guess.Printer) error {
	const limit = 256
	var in ingest.Batch
	for {
		err := r.ReadBatch(&in, limit)
		for i := 0; i < len(in.Frames) && err == nil; i++ {
			f := &in.Frames[i]
			p.Frame(f.Number, guess.Sample{Link: f.Link, Data: f.Data, Length: f.Length, Time: f.Time})
		}
		flushErr := p.Flush()
		switch {
		case flushErr != nil || err == io.EOF:
			return flushErr
		case ctx.Err() != nil:
			return fmt.Errorf("interrupted after frame %d", p.Frames())
		case err != nil:
			return err
		}
	}
}

func progress(read, size int64) string {
	if size <= 0 {
		return fmt.Sprintf("%d MB", read>>20)
	}
	return fmt.Sprintf("%d %% of %d MB", read*100/size, size>>20)
}

func appendJSON(dst []byte, frame uint64, r *decode.Report) []byte {
	return append(reportjson.Append(dst, frame, r), '\n')
}

// foreignJSON writes a frame that no profile reads as a line of JSON.
func foreignJSON(dst []byte, frame uint64, s *guess.Sample, layers []string, stopped int) []byte {
	dst = fmt.Appendf(dst, `{"frame":%d,"time_ns":%d,"length":%d,"layers":[`, frame, s.Time, max(s.Length, len(s.Data)))
	for i, l := range layers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = fmt.Appendf(dst, "%q", l)
	}
	return fmt.Appendf(dst, "],\"stopped_at\":%d}\n", stopped)
}

// foreignRow writes it as a row.
func foreignRow(dst []byte, frame uint64, s *guess.Sample, layers []string, stopped int) []byte {
	return fmt.Appendf(dst, "%-27s  frame %d without telemetry: %s, not read from byte %d of %d on\n",
		time.Unix(0, s.Time).UTC().Format("2006-01-02T15:04:05.000000Z"), frame, strings.Join(layers, ", "), stopped, max(s.Length, len(s.Data)))
}

// printedAs makes the decoder of a capture. A named profile, or given ports, apply to all senders. Otherwise the
// settings name the dialect of each exporter.
func printedAs(cfg *config, profile string, ports []uint) (*demux.Router, error) {
	router, err := cfg.Exporters.Verbatim()
	if profile != "" || len(ports) > 0 {
		var all demux.Profile
		if all, err = lookupProfile(&cfg.Exporters, cmp.Or(profile, cfg.Exporters.Profile), ports); err != nil {
			return nil, err
		}
		router = demux.NewVerbatim(all, nil)
	}
	if err != nil {
		return nil, wrongInput(err)
	}
	if len(ports) == 0 {
		router.Ports(cfg.kinds())
	}
	return router.ShareIPFIX(cfg.IPFIX.Store()), nil
}

// tableRows returns the function that appends rows with the names of nodes. It first removes values that are known to
// be wrong in reports of the sender's profile.
func tableRows(decoder *demux.Router, called *names.Names) func([]byte, uint64, *decode.Report) []byte {
	return func(dst []byte, _ uint64, r *decode.Report) []byte {
		decoder.Profile(r.Exporter).Correct(r)
		return names.AppendRow(dst, r, called)
	}
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/ingest/pcapfile"
	"github.com/hopscope/hopscope/sink"
)

func replayCommand() *cobra.Command {
	var o struct {
		config, profile, format string
		nodes, topology         string
		ports                   []uint
		flows, hops             int
		speed                   float64
		seed                    uint64
	}
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Push a capture through the whole pipeline, then print a summary",
		Long: `Push a capture (pcap, pcapng, also compressed with gzip or zstd, and several one after
the other; "-" is standard input) through the whole pipeline and print a summary:
reports by format, busiest flows with their paths, slowest hops, exporters with losses,
findings, and where every report went.

Windows follow the capture's clock. Nothing is stored unless --config names stores. With
kafka enabled the capture is published as the windows of a collector of the fleet, under
the fleet's seed; give it an instance of its own.

Each exporter is read in the dialect that exporters.profiles of the settings gives it, unless
--profile or --report-port is given, which are for all of them. A port of setting ports that
has a type takes that alone, unless --report-port is given.

Without --profile, the beginning of the file is read before: what profile auto cannot
read in it is read in the dialect that explains it, unless exporters.recognise says
otherwise.`,
		Example: `  hopscope replay fabric.pcap --profile fabric-tna
  hopscope replay reports.pcap --format json --flows 100
  hopscope replay digests.pcap --profile pint-mininet --nodes 0-127`,
		Args: exactArgs(1),
	}
	f := c.Flags()
	f.StringVar(&o.config, "config", "", "settings file; its stores are written, its sockets are not opened")
	f.StringVar(&o.profile, "profile", "", "dialect of the capture: "+strings.Join(demux.Profiles(), ", ")+" (default: that of the settings)")
	f.UintSliceVar(&o.ports, "report-port", nil, "UDP port of reports instead of the profile's (repeatable)")
	f.StringVar(&o.nodes, "nodes", "", "node ids that a PINT digest can stand for, as 0-127,4096 (default: that of the settings)")
	f.StringVar(&o.topology, "topology", "", "network that PINT packets pass: a file or a generator, as for plan (default: that of the settings)")
	f.IntVar(&o.flows, "flows", 10, "busiest flows to print")
	f.IntVar(&o.hops, "hops", 10, "slowest hops to print")
	f.Float64Var(&o.speed, "speed", 0, "0 as fast as possible, 1 as recorded, 2 twice as fast")
	f.Uint64Var(&o.seed, "seed", 1, "seed of all randomness")
	f.StringVar(&o.format, "format", "table", "table or json")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkFormat(o.format); err != nil {
			return err
		}
		outliveReaders()
		if o.flows < 0 || o.hops < 0 || !(o.speed >= 0) || math.IsInf(o.speed, 0) {
			return usagef("--flows, --hops and --speed cannot be negative")
		}
		cfg, loadErr := readConfig(o.config)
		if loadErr != nil && cfg.file == nil {
			return wrongInput(loadErr)
		}
		collectLater(&cfg)
		kinds := cfg.kinds()
		cfg.closed()
		if o.nodes != "" || o.topology != "" {
			var err error
			if cfg.PINT, err = pintFlags(cfg.PINT, o.nodes, o.topology); err != nil {
				return err
			}
		}
		if o.topology != "" {
			if _, err := loadNetwork(o.topology); err != nil {
				return wrongInput(err)
			}
		}
		if o.profile != "" {
			cfg.Exporters.Profile = o.profile
		}
		profile, err := lookupProfile(&cfg.Exporters, cfg.Exporters.Profile, o.ports)
		if err != nil && o.profile != "" {
			return err
		}
		warnings, err := examine(&cfg, cmp.Or(loadErr, err), false)
		if err != nil {
			return err
		}
		log := slog.New(slog.DiscardHandler)
		if o.config != "" {
			log = slog.New(newHandler(cfg.Log, c.ErrOrStderr())) // of a capture, everything is logged
		}
		for _, w := range warnings {
			log.Warn("settings", "problem", w.String())
		}
		if cfg.Kafka.Enabled && !c.Flags().Changed("seed") {
			if o.seed, err = cfg.Seed(); err != nil { // that of the fleet
				return wrongInput(err)
			}
		}
		if len(o.ports) > 0 {
			kinds = nil
		}
		opt := collector.Options{Ports: kinds}
		router := demux.NewRouter(profile, nil)
		if o.profile != "" || len(o.ports) > 0 {
			opt.Profile = &profile // for all exporters
		} else if router, err = cfg.Exporters.Router(); err != nil {
			return wrongInput(err)
		}
		if o.profile == "" && cfg.Exporters.Adopts() {
			watch, err := lookAhead(c.Context(), args[:1], router.ShareIPFIX(cfg.IPFIX.Store()).Ports(kinds), &cfg.Exporters)
			if err != nil {
				return err
			}
			opt.Adopted, opt.Recognised = watch.Adoptions(), watch.Findings()
		}
		pc := pcapfile.DefaultConfig()
		pc.Speed = o.speed
		src := pcapfile.NewSource(pc, args[0])
		opt.Log, opt.Seed, opt.Hurry, opt.Policy = log, o.seed, signalsOf(c.Context()).hurry, collector.Replay
		opt.Sources = []collector.Source{{Name: "capture", Source: src}}
		col, err := open(&cfg, opt)
		if err != nil {
			return err
		}
		signalsOf(c.Context()).markOrderly()
		stop := showProgress(c.ErrOrStderr(), "replaying", func() string {
			st := src.Stats()
			return fmt.Sprintf("%d frames, %d MB", st.Frames, st.Bytes>>20)
		})
		runErr := col.Run(c.Context())
		stop()
		// Reports before the error are worth a summary.
		s := col.Summary(o.flows, o.hops)
		if runErr != nil && s.Ledger.Received == 0 {
			return wrongCapture(runErr)
		}
		runErr = whole(c.Context(), runErr, src.Stats().Frames, &s)
		if err := writeSummary(summaryOut(c, &cfg), &s, o.format); err != nil {
			return err
		}
		return runErr
	}
	return c
}

// whole returns the error of a replay. It is its own error, an interruption, the lack of a frame with a report, or a
// store that does not have all of it yet. The first two are noted in its summary, which is then partial.
func whole(ctx context.Context, err error, frames uint64, s *collector.Summary) error {
	switch {
	case err != nil:
		s.Partial = err.Error()
	case ctx.Err() != nil:
		err = fmt.Errorf("interrupted after frame %d: the summary holds what was read until then", frames)
		s.Partial = fmt.Sprintf("interrupted after frame %d", frames)
	case s.Reports+s.Malformed == 0 && s.Ledger.Received > 0 && uint64(s.Ledger.Dropped[collector.DroppedForeign.String()]) == s.Ledger.Received:
		err = fmt.Errorf("none of %d frames holds a report of this dialect: give another --profile or --report-port; hopscope decode --all shows what is there", frames)
	default:
		err = leftInSpools(s)
	}
	return err
}

// leftInSpools returns the error that stores did not take all reports before the replay ended, or nil.
func leftInSpools(s *collector.Summary) error {
	var err error
	sinks := s.Ledger.Sinks
	if len(sinks) == 0 {
		sinks = []sink.Balance{s.Ledger.Balance}
	}
	for _, b := range sinks {
		if n := b.InFlight[collector.SpoolQueue.String()]; n > 0 {
			err = errors.Join(err, fmt.Errorf("%s did not take %d of %d reports within drain_timeout: they are in its spool, and the next run with these settings sends them", b.Sink, n, b.Received))
		}
	}
	return err
}

// summaryOut is where the summary of a run goes: standard output, unless a store writes there.
func summaryOut(c *cobra.Command, cfg *config) io.Writer {
	if cfg.JSONL.Enabled && cfg.JSONL.Config.Path == "-" {
		return c.ErrOrStderr()
	}
	return c.OutOrStdout()
}

// writeSummary writes the summary of a run.
func writeSummary(w io.Writer, s interface{ WriteTable(io.Writer) error }, format string) error {
	if format == "json" {
		return json.NewEncoder(w).Encode(s)
	}
	return s.WriteTable(names.Screen(w))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

func demoCommand() *cobra.Command {
	var o struct {
		listen, data, format, control, gear string
		seed                                uint64
		duration                            time.Duration
		plain, everything                   bool
		dashboards                          []string
	}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show everything at once on an emulated network; no other service needed",
		Long: `Emulate a fat-tree of 20 switches whose links congest, fail and drop, send its real
report datagrams over loopback to a collector, and serve the page. Series go to
Parquet files below --data.

Most flows carry INT, and three of ten PINT digests: 32 bits a packet, from which the
collector infers path and latencies.

Faults come one after the other and repeat: a congested link, a path change, drops,
a slow switch, an exporter that loses reports, one that falls silent, packets that
loop.

Hosts of the edge switches send probes over all links. What is found makes links
suspicious, the probes on them look closer within two cycles, and go back when it is
over: the map shows it, and so do "hopscope control status" and "log".

With --everything six more switches carry out assignments of flows to interfaces
(INTO), and send their reports over planned paths at planned rates (RFT). The page's
table Plans has what each planning system decided, what is installed, and what it
brought.

With --gear it is another network, of six devices that send sFlow as such gear does:
a port congests and discards, an access list drops, a port receives damaged packets,
an agent falls silent. Gear "juniper" are routers that send IPFIX: one drops packets,
then another with another exception code, then one falls silent.

With --plain it is a fat-tree whose switches send nothing at all. Hosts of its edge
switches measure each other by STAMP: a link loses packets, one fails, one delays
packets, a host is off.`,
		Args: exactArgs(0),
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address of the page; port 0 takes a free one")
	f.StringVar(&o.data, "data", "", "directory for Parquet files, kept (default: a temporary one, removed at the end)")
	f.StringVar(&o.control, "control", "127.0.0.1:9465", "where \"hopscope control\" asks; empty for nowhere, port 0 takes a free one")
	f.StringVar(&o.gear, "gear", "", "send what such gear sends in place of INT: "+strings.Join(scenario.GearKinds, ", "))
	f.BoolVar(&o.plain, "plain", false, "emulate switches without telemetry, and agents that measure each other by STAMP")
	f.BoolVar(&o.everything, "everything", false, "emulate switches that carry out assignments of flows to interfaces, too")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the emulated network")
	f.DurationVar(&o.duration, "duration", 0, "end after this time; 0 runs until Ctrl-C")
	f.StringVar(&o.format, "format", "table", "of the summary at the end: table or json")
	f.StringArrayVar(&o.dashboards, "dashboard", nil, "file of a dashboard for the page (repeatable)")
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if err := checkFormat(o.format); err != nil {
			return err
		}
		if o.gear != "" && !slices.Contains(scenario.GearKinds, o.gear) {
			return usagef("--gear %q is none of %s", o.gear, strings.Join(scenario.GearKinds, ", "))
		}
		if o.plain && o.gear != "" {
			return usagef("--plain is a network without telemetry, and --gear %s one with", o.gear)
		}
		if o.everything && (o.plain || o.gear != "" || o.control == "") {
			return usagef("--everything is a network of INT with its control, and does not go with --plain, --gear, or an empty --control")
		}
		outliveReaders()
		cfg := demoConfig(o.listen, o.data, o.dashboards...)
		if o.duration < 0 {
			return usagef("--duration %v is negative", o.duration)
		}
		if err := cfg.Web.Validate(); err != nil {
			return usagef("--listen %s: %w", o.listen, err)
		}
		if err := cfg.Web.CheckFiles(); err != nil {
			return usagef("--dashboard: %w", err)
		}
		if o.control != "" {
			if err := loop.CheckAdmin(o.control); err != nil {
				return usagef("--control: %w", err)
			}
		}
		if o.data == "" {
			if o.data, err = os.MkdirTemp("", "hopscope-demo-"); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(o.data)) }()
		} else if err := os.MkdirAll(o.data, 0o755); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
		cfg = demoConfig(o.listen, o.data, o.dashboards...)
		if o.gear != "" || o.plain {
			return runPlayable(c, &cfg, o.data, o.gear, o.seed, o.duration, o.format)
		}
		emulated, err := scenario.PINTDemo()
		if err != nil {
			return err
		}
		emulated.Epoch = time.Now()
		cfg.Events.LinkFloor = emulated.PacketTime() // lines are slow, and the least time on one is that of the shortest packet
		log := newLogger(cfg.Log, c.ErrOrStderr())
		defer flushLog(log)
		steer, err := steerDemo(emulated, o.seed, o.data, o.everything, log)
		if err != nil {
			return err
		}
		defer steer.Close()
		admin, err := steer.serve(o.control, c.Flags().Changed("control"))
		if err != nil {
			return demoListen(err, "control")
		}
		defer admin.Close()
		cfg.Web.Control = admin.at()
		network := steer.Network
		col, err := openLive(&cfg, collector.Options{
			Log: log, Seed: o.seed, Hurry: signalsOf(c.Context()).hurry,
			Network: networkOf(network.Graph(), nodeIDs(network)), Plans: []*pint.Plan{emulated.Plan},
		}, steer.drawn(emulatedMap(network, &emulated)))
		if err != nil {
			return demoListen(err, "listen")
		}
		col.steeredBy(steer.view)
		col.AddWriter(suspectWriter{steer.Suspects})
		signalsOf(c.Context()).markOrderly()
		ctx, cancel := context.WithCancelCause(c.Context())
		defer cancel(nil)
		if o.duration > 0 {
			time.AfterFunc(o.duration, func() { cancel(nil) })
		}
		defer col.supervised(ctx, log).Close()
		w := c.OutOrStdout()
		if o.format == "json" {
			w = c.ErrOrStderr()
		}
		fmt.Fprintf(w, `
  The page:     %s
  The network:  fat-tree of 20 switches, seed %d; reports go to udp %s
  The files:    %s

  Watch for about three minutes: a link congests, a path changes, packets are
  dropped, one exporter loses reports, another falls silent, packets loop, and it
  all recovers.

  Try next, in another terminal:
    bin/hopscope top%s
    bin/hopscope findings%s
    bin/hopscope control status%s
    bin/hopscope config print > hopscope.yaml
    bin/hopscope selftest

  Ctrl-C ends it with a summary.

`, col.url(), o.seed, col.Addrs()[0], demoFiles(c, o.data), demoFlag(col.url()), demoFlag(col.url()), admin.flag())
		steered := make(chan struct{})
		go func() {
			_ = steer.Loop.Run(ctx) // which ends with ctx
			close(steered)
		}()
		assigned := steer.Assign(ctx, pageOf(ask.Address(col.url()), "", "listen"), col.Addrs()[0], cancel)
		played := make(chan struct{})
		go func() {
			_, err := scenario.Play(ctx, network, scenario.PlayConfig{Reports: col.Addrs()[0], Probes: col.Addrs()[0], Speed: 1, Each: steer.Deliver})
			if err != nil {
				cancel(fmt.Errorf("emulated network: %w", err))
			}
			close(played)
		}()
		err = col.Run(ctx)
		cancel(nil)
		<-played
		<-assigned
		<-steered
		if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
		s := col.Summary(10, 10)
		return errors.Join(err, writeSummary(c.OutOrStdout(), &s, o.format))
	}
	return c
}

// demoListen adds advice to the error of an address that is taken, which is that of a flag.
func demoListen(err error, flag string) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "listen" {
		return fmt.Errorf("%w; another address: hopscope demo --%s 127.0.0.1:0", err, flag)
	}
	return err
}

// demoFiles is the directory of the Parquet files, with their end where --data does not name it.
func demoFiles(c *cobra.Command, dir string) string {
	if c.Flags().Changed("data") {
		return dir + " (Parquet)"
	}
	return dir + " (Parquet; removed at the end, --data keeps them)"
}

// demoFlag is the flag with which a command asks the page of the demonstration. It is empty for the default page.
func demoFlag(page string) string {
	if page = ask.Address(page); page != "http://127.0.0.1:8080" {
		return " --url " + page
	}
	return ""
}

// nodeIDs are the ids by which the switches of a network report, in the order of its graph.
func nodeIDs(n *emu.Network) []uint32 {
	ids := make([]uint32, n.Graph().NumNodes())
	for i := range ids {
		ids[i] = n.NodeID(i)
	}
	return ids
}

// emulatedMap is the emulated network as the page draws it.
func emulatedMap(n *emu.Network, c *emu.Config) *atlas.Map {
	m := mapOf(n.Graph(), nodeIDs(n))
	for i := range m.Links {
		m.Links[i].Speed = float64(c.LinkRate)
	}
	return m
}

// demoConfig is the default collector with short windows, a free report port, and Parquet files.
func demoConfig(listen, data string, dashboards ...string) config {
	cfg := defaultConfig()
	cfg.Web.Dashboards = dashboards
	cfg.Window = time.Second
	cfg.UDP.Listen = []string{"127.0.0.1:0"}
	// The network's probes come to the same port; they are distinguished by their senders.
	cfg.Exporters.Profiles = []collector.ExporterProfile{{Prefix: "127.17.0.0/16", Profile: "int-path"}}
	cfg.Web.Listen = listen
	cfg.Web.HistoryWindows = 600
	cfg.Web.Access.Dir, cfg.Web.Access.OpenRole = filepath.Join(data, "access"), "operator" // of a network that is not there
	cfg.Alerts.File = filepath.Join(data, "alerts.yaml")
	cfg.Flows.MemoryBytes = 64 << 20
	cfg.Flows.TopFlows = 400 // all of them, so that probes are among them
	cfg.Parquet.Enabled = true
	cfg.Parquet.Config.Dir = filepath.Join(data, "parquet")
	cfg.Parquet.Config.RotateInterval = 5 * time.Second
	cfg.Parquet.Spool.Dir = filepath.Join(data, "spool")
	cfg.History.Dir = filepath.Join(data, "history")
	cfg.Events.Warmup = 15
	cfg.Log.Level = "warn"
	return cfg
}

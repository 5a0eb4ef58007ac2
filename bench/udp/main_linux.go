package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/ingest/udp"
)

// The program starts itself again in other roles.
const (
	roleEnv      = "HOPSCOPE_BENCH_UDP_ROLE"
	roleSender   = "sender"
	roleReceiver = "receiver"
)

// options are the flags.
type options struct {
	receivers             []string
	command               string
	to                    netip.AddrPort
	payload               string
	traffic               traffic.Config
	udp                   udp.Config
	flowBytes             int64
	seconds, start, step  float64
	floods                []float64
	rounds                int
	senderCPU, receiveCPU int
	format, profile       string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "bench/udp: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if os.Getenv(roleEnv) == roleReceiver {
		return serve()
	}
	o, err := parseFlags(os.Args[1:])
	if err != nil {
		return err
	}
	if os.Getenv(roleEnv) != roleSender {
		return runIsolated(o.senderCPU)
	}
	if err := prepareNetwork(o.receiveCPU); err != nil {
		return err
	}
	results, err := measure(ctx, o)
	return errors.Join(err, show(o, results))
}

func parseFlags(args []string) (*options, error) {
	o := &options{traffic: traffic.DefaultConfig(), udp: udp.DefaultConfig()}
	o.udp.Listen = []string{"127.0.0.1:0"}
	var names, texts []string
	for _, r := range receivers {
		names = append(names, r.name)
		texts = append(texts, fmt.Sprintf("%s (%s)", r.name, r.text))
	}
	f := flag.NewFlagSet("udp", flag.ExitOnError)
	which := f.String("receivers", strings.Join(names, ","), "what to measure: "+strings.Join(texts, ", "))
	to := f.String("to", "127.0.0.1:32766", "where the command listens")
	floods := f.String("floods", "700000,0", "rates of the flood trials, datagrams a second; 0 is as fast as the sender can")
	f.StringVar(&o.command, "command", "", "a collector to measure, with its arguments")
	f.StringVar(&o.payload, "payload", "report", "what to send: report (telemetry report 2.0 with INT-MD) or netflow5 (one record)")
	f.IntVar(&o.traffic.Flows, "flows", o.traffic.Flows, "flows")
	f.IntVar(&o.traffic.Hops, "hops", o.traffic.Hops, "hops of the INT stack, 0 for postcards")
	f.IntVar(&o.traffic.Exporters, "exporters", o.traffic.Exporters, "exporters, each sending from a port of its own")
	f.IntVar(&o.traffic.Bytes, "bytes", o.traffic.Bytes, "size of a datagram")
	f.Uint64Var(&o.traffic.Seed, "seed", o.traffic.Seed, "of the traffic")
	f.IntVar(&o.udp.ReceiveBufferBytes, "buffer", o.udp.ReceiveBufferBytes, "receive buffer")
	f.IntVar(&o.udp.BatchSize, "batch", o.udp.BatchSize, "datagrams a system call")
	f.DurationVar(&o.udp.Nap, "nap", o.udp.Nap, "pause between batches")
	f.Int64Var(&o.flowBytes, "flow-bytes", 1<<31, "memory of the pipeline's flow table")
	f.Float64Var(&o.seconds, "seconds", 3, "length of a trial")
	f.Float64Var(&o.start, "start", 50_000, "first rate of the search")
	f.Float64Var(&o.step, "step", 0.02, "resolution of the search")
	f.IntVar(&o.rounds, "rounds", 3, "how often everything is measured; medians are shown")
	f.IntVar(&o.receiveCPU, "receive-cpu", 0, "CPU of the receiver and of the kernel's side of receiving")
	f.IntVar(&o.senderCPU, "send-cpu", 1, "CPU of the sender")
	f.StringVar(&o.format, "format", "table", "table or json")
	f.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the last receiver to this file")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o.receivers = strings.Split(*which, ",")
	if o.command != "" {
		o.receivers = []string{"command"}
	}
	for _, r := range o.receivers {
		if _, err := lookupReceiver(r); err != nil && o.command == "" {
			return nil, fmt.Errorf("-receivers: %w; there are %s", err, strings.Join(names, ", "))
		}
	}
	var err error
	if o.to, err = netip.ParseAddrPort(*to); err != nil {
		return nil, fmt.Errorf("-to: %w", err)
	}
	if o.floods, err = parseRates(*floods); err != nil {
		return nil, fmt.Errorf("-floods: %w", err)
	}
	if o.senderCPU == o.receiveCPU {
		return nil, errors.New("-send-cpu and -receive-cpu must differ: the sender would take the receiver's time")
	}
	if o.rounds < 1 || o.seconds <= 0 || o.start <= 0 || o.step <= 0 {
		return nil, errors.New("-rounds, -seconds, -start and -step must be positive")
	}
	if !slices.Contains([]string{"report", "netflow5"}, o.payload) {
		return nil, fmt.Errorf("-payload: no %q", o.payload)
	}
	return o, errors.Join(o.traffic.Validate(), o.udp.Validate())
}

func parseRates(s string) (out []float64, err error) {
	for part := range strings.SplitSeq(s, ",") {
		if part == "" {
			continue
		}
		var v float64
		if _, err := fmt.Sscanf(part, "%g", &v); err != nil || v < 0 {
			return nil, fmt.Errorf("%q is no rate", part)
		}
		out = append(out, v)
	}
	return out, nil
}

// result is what one receiver did in one round.
type result struct {
	Receiver string  `json:"receiver"`
	Round    int     `json:"round"`
	LossFree trial   `json:"loss_free"`
	Limited  bool    `json:"sender_limited"`
	Floods   []trial `json:"floods"`
}

// measure runs all rounds. On an error it gives what it has.
func measure(ctx context.Context, o *options) (all []result, err error) {
	for round := range o.rounds {
		for _, name := range o.receivers {
			r, err := measureOne(ctx, o, name)
			if err != nil {
				return all, fmt.Errorf("%s: %w", name, err)
			}
			r.Round = round + 1
			all = append(all, r)
			fmt.Fprintf(os.Stderr, "round %d of %d: %s: %.0f/s without loss\n", r.Round, o.rounds, name, r.LossFree.Sent)
		}
	}
	return all, nil
}

func measureOne(ctx context.Context, o *options, name string) (r result, err error) {
	t, err := startTarget(o, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	load, err := newLoad(o)
	if err != nil {
		return r, err
	}
	period := time.Duration(o.seconds * float64(time.Second))
	try := func(rate float64) (trial, error) { return t.try(ctx, load, rate, period) }
	if _, err := try(o.start / 4); err != nil { // warms up; its loss does not count
		return r, err
	}
	r.Receiver = name
	if r.LossFree, err = search(o.start, o.step, retrying(try)); err != nil {
		return r, err
	}
	r.Limited = r.LossFree.limited()
	for _, rate := range o.floods {
		f, err := try(rate)
		if err != nil {
			return r, err
		}
		r.Floods = append(r.Floods, f)
	}
	return r, nil
}

func newLoad(o *options) (traffic.Datagrams, error) {
	if o.payload == "netflow5" {
		return newNetflow5(o.traffic.Exporters), nil
	}
	return traffic.New(o.traffic)
}

// show prints medians as a table, or everything as JSON.
func show(o *options, all []result) error {
	if o.format == "json" {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(all)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "receiver\twithout loss /s\tCPU\t")
	for _, f := range o.floods {
		fmt.Fprintf(w, "flood of %s\treceived /s\t", rateName(f))
	}
	fmt.Fprintln(w)
	for _, name := range o.receivers {
		var free, cpu []float64
		sent, got := make([][]float64, len(o.floods)), make([][]float64, len(o.floods))
		limited := ""
		for _, r := range all {
			if r.Receiver != name {
				continue
			}
			free, cpu = append(free, r.LossFree.Sent), append(cpu, r.LossFree.CPU)
			if r.Limited {
				limited = ">="
			}
			for i, f := range r.Floods {
				sent[i], got[i] = append(sent[i], f.Sent), append(got[i], f.Received)
			}
		}
		fmt.Fprintf(w, "%s\t%s%.0f\t%.0f%%\t", name, limited, median(free), 100*median(cpu))
		for i := range o.floods {
			fmt.Fprintf(w, "%.0f\t%.0f\t", median(sent[i]), median(got[i]))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func rateName(rate float64) string {
	if rate == 0 {
		return "all it can"
	}
	return fmt.Sprintf("%.0f", rate)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// startProfile writes a CPU profile until stop is called; without a name it does nothing.
func startProfile(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}, nil
}

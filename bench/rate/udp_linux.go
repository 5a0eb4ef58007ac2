package rate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime/pprof"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/ingest/udp"
)

// The program starts itself again in other roles, which this variable of the environment names.
const (
	roleEnv      = "HOPSCOPE_BENCH_UDP_ROLE"
	roleSender   = "sender"
	roleReceiver = "receiver"
)

// UDP measures the rate of one core over UDP: the highest one without loss, and the rest of it in a flood. Its zero
// value has no settings: [UDP.Flags] sets them.
//
// Receivers are processes of their own, pinned to one CPU together with the kernel's side of receiving; the sender
// has the other CPU. They are compared in rounds, one after the other, and the median of the rounds is printed.
//
// The loopback interface delivers on the CPU of the sender. The kernel's work is to be on the receiver's CPU, as with
// a network card whose interrupts go there. So the benchmark makes a network namespace of its own and turns on
// receive packet steering (RPS) in it. That requires root. Nothing outside the namespace is changed.
//
// Lost is sent minus received; it is checked against the kernel's own counters (drops of the socket, and of the CPU's
// backlog queue in /proc/net/softnet_stat).
type UDP struct {
	which, target, rates, sender string // the texts of flags

	receivers             []string
	command               string
	to                    netip.AddrPort
	payload               string
	traffic               traffic.Config
	udp                   udp.Config
	flowBytes             int64
	seconds, start, step  float64
	floods                []float64
	rounds, pairs         int
	senderCPU, receiveCPU int
	profile               string

	log  *os.File              // where a command writes what it says, in its directory; nil: standard error
	done func(t *target) error // called before a receiver is stopped; may be nil
}

// Flags declares the settings, with their defaults.
func (o *UDP) Flags(f *pflag.FlagSet) {
	*o = UDP{traffic: traffic.DefaultConfig(), udp: udp.DefaultConfig()}
	o.udp.Listen = []string{"127.0.0.1:0"}
	f.StringVar(&o.which, "receivers", "", "what to measure, separated by commas (default all)")
	f.StringVar(&o.command, "command", "", "a collector to measure in place of them, with its arguments")
	f.StringVar(&o.target, "to", "127.0.0.1:32766", "where the command listens")
	f.StringVar(&o.rates, "floods", "700000,0", "rates of the flood trials, datagrams a second; 0 is as fast as the sender can")
	f.StringVar(&o.sender, "sender", "frames", "how to send: frames, as received by the interface (XDP test runs, Linux 5.18), or socket, which is at its limit sooner")
	f.IntVar(&o.pairs, "pairs", 0, "compare receivers that set the pace instead, in so many rounds: ratios with an interval of 95 %")
	f.StringVar(&o.payload, "payload", "report", "what to send: report (telemetry report 2.0 with INT-MD), netflow5 (one record), netflow9, ipfix (20 records), sflow (four samples), softflowd-netflow9 or softflowd-ipfix (messages of softflowd about a capture)")
	f.IntVar(&o.traffic.Flows, "flows", o.traffic.Flows, "flows")
	f.IntVar(&o.traffic.Hops, "hops", o.traffic.Hops, "hops of the INT stack, 0 for postcards")
	f.IntVar(&o.traffic.Exporters, "exporters", o.traffic.Exporters, "exporters, each sending from a port of its own")
	f.IntVar(&o.traffic.Bytes, "bytes", o.traffic.Bytes, "size of a datagram")
	f.Uint64Var(&o.traffic.Seed, "seed", o.traffic.Seed, "of the traffic")
	f.IntVar(&o.udp.ReceiveBufferBytes, "buffer", o.udp.ReceiveBufferBytes, "bytes of the receive buffer")
	f.IntVar(&o.udp.BatchSize, "batch", o.udp.BatchSize, "datagrams a system call")
	f.DurationVar(&o.udp.Nap, "nap", o.udp.Nap, "pause between batches")
	f.Int64Var(&o.flowBytes, "flow-bytes", 1<<31, "memory of the pipeline's flow table")
	f.Float64Var(&o.seconds, "seconds", 3, "length of a trial")
	f.Float64Var(&o.start, "start", 50_000, "first rate of the search, datagrams a second")
	f.Float64Var(&o.step, "step", 0.02, "resolution of the search")
	f.IntVar(&o.rounds, "rounds", 3, "how often everything is measured; medians are printed")
	f.IntVar(&o.receiveCPU, "receive-cpu", 0, "CPU of the receiver and of the kernel's side of receiving")
	f.IntVar(&o.senderCPU, "send-cpu", 1, "CPU of the sender")
	f.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the last receiver to this file")
}

// Check returns an error of the settings. It reads no file.
func (o *UDP) Check() (err error) {
	var names []string
	for _, r := range receivers {
		names = append(names, r.name)
	}
	switch {
	case o.command != "":
		o.receivers = []string{"command"}
	case o.which == "":
		o.receivers = names
	default:
		o.receivers = strings.Split(o.which, ",")
		for _, r := range o.receivers {
			if _, err := lookupReceiver(r); err != nil {
				return fmt.Errorf("--receivers: %w; there are %s", err, strings.Join(names, ", "))
			}
		}
	}
	if o.to, err = netip.ParseAddrPort(o.target); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	if o.floods, err = parseRates(o.rates); err != nil {
		return fmt.Errorf("--floods: %w", err)
	}
	if o.senderCPU == o.receiveCPU {
		return errors.New("--send-cpu and --receive-cpu must differ: the sender would take the receiver's time")
	}
	if o.pairs < 0 || o.pairs > 0 && (o.command != "" || o.sender != "frames" || o.payload != "report") {
		return errors.New("--pairs must not be negative, and is for reports, in frames, to receivers of this program")
	}
	if o.sender != "frames" && o.sender != "socket" {
		return fmt.Errorf("--sender: %q is neither frames nor socket", o.sender)
	}
	if o.sender == "frames" && !o.to.Addr().Unmap().Is4() {
		return errors.New("--to: frames are sent over IPv4 alone (--sender socket)")
	}
	if o.rounds < 1 || o.seconds <= 0 || o.start <= 0 || o.step <= 0 {
		return errors.New("--rounds, --seconds, --start and --step must be positive")
	}
	if _, ok := payloads[o.payload]; !ok {
		return fmt.Errorf("--payload: no %q", o.payload)
	}
	return errors.Join(o.traffic.Validate(), o.udp.Validate())
}

// Run measures, after [UDP.Check]. It starts the program again, with the same arguments, as the sender, and that
// starts it as receivers. The sender alone has results, and on an error those that it came to.
func (o *UDP) Run(ctx context.Context) (*UDPResult, error) {
	switch os.Getenv(roleEnv) {
	case roleReceiver:
		return nil, serve()
	case roleSender:
		if err := prepareNetwork(o.receiveCPU); err != nil {
			return nil, err
		}
		if o.pairs > 0 {
			r, err := runPairs(ctx, o)
			return &UDPResult{Pairs: r, settings: o}, err
		}
		all, err := measure(ctx, o)
		return &UDPResult{Rounds: all, settings: o}, err
	}
	return nil, runIsolated(o.senderCPU)
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

// UDPResult is the results of all receivers in all rounds.
type UDPResult struct {
	Rounds   []result     `json:"rounds"`
	Pairs    *PairsResult `json:"-"` // in place of rounds
	settings *UDP
}

// result is the result of one receiver in one round.
type result struct {
	Receiver string  `json:"receiver"`
	Round    int     `json:"round"`
	LossFree trial   `json:"loss_free"`
	Limited  bool    `json:"sender_limited"`
	Floods   []trial `json:"floods"`
	Memory   float64 `json:"memory_bytes"` // resident, in the end

	Dropped uint64 `json:"dropped,omitempty"` // of a peer: by the kernel, in all trials
	Own     string `json:"own,omitempty"`     // its own count of them
	Written uint64 `json:"written,omitempty"` // bytes of files, or messages in Kafka
}

// measure runs all rounds. On an error it returns the results so far.
func measure(ctx context.Context, o *UDP) (all []result, err error) {
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

func measureOne(ctx context.Context, o *UDP, name string) (r result, err error) {
	load, err := newLoad(o)
	if err != nil {
		return r, err
	}
	var frames *frameSender
	if o.sender == "frames" {
		if frames, err = newFrameSender("lo", load, turns(o.traffic.Flows)); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, frames.close()) }()
	}
	t, err := startTarget(o, name, frames)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	if frames != nil {
		if err := frames.fill(t.addr, load, payloads[o.payload]); err != nil {
			return r, err
		}
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
	if r.Memory, err = resident(t.cmd.Process.Pid); err == nil && o.done != nil {
		err = o.done(t)
	}
	return r, err
}

func newLoad(o *UDP) (traffic.Datagrams, error) {
	switch o.payload {
	case "netflow5":
		return newNetflow5(o.traffic.Exporters), nil
	case "netflow9":
		return newFlowLoad(ipfix.V9, o.traffic.Exporters), nil
	case "ipfix":
		return newFlowLoad(ipfix.V10, o.traffic.Exporters), nil
	case "sflow":
		return newFlowLoad(0, o.traffic.Exporters), nil
	case "softflowd-netflow9":
		return recordSoftflowd(ipfix.V9, o.traffic.Exporters)
	case "softflowd-ipfix":
		return recordSoftflowd(ipfix.V10, o.traffic.Exporters)
	}
	return traffic.New(o.traffic)
}

// Show writes the result: as text, or on a [harness.Recorder] as tables.
func (r *UDPResult) Show(w io.Writer) error {
	if r.Pairs != nil {
		return r.Pairs.print(w)
	}
	return harness.Show(w, "a core over UDP", r, r.print)
}

// print writes medians as a table.
func (r *UDPResult) print(w io.Writer) error {
	o := r.settings
	t := harness.Columns(w, 2, tabwriter.AlignRight)
	fmt.Fprint(t, "receiver\twithout loss /s\tCPU\tlimit\t")
	for _, f := range o.floods {
		fmt.Fprintf(t, "flood of %s\treceived /s\t", rateName(f))
	}
	fmt.Fprintln(t)
	for _, name := range o.receivers {
		var free, cpu []float64
		sent, got := make([][]float64, len(o.floods)), make([][]float64, len(o.floods))
		limited, limit := "", "receiver"
		for _, r := range r.Rounds {
			if r.Receiver != name {
				continue
			}
			free, cpu = append(free, r.LossFree.Sent), append(cpu, r.LossFree.CPU)
			if r.Limited {
				limited, limit = ">=", "sender"
			}
			for i, f := range r.Floods {
				sent[i], got[i] = append(sent[i], f.Sent), append(got[i], f.Received)
			}
		}
		fmt.Fprintf(t, "%s\t%s%.0f\t%.0f%%\t%s\t", name, limited, harness.Median(free), 100*harness.Median(cpu), limit)
		for i := range o.floods {
			fmt.Fprintf(t, "%.0f\t%.0f\t", harness.Median(sent[i]), harness.Median(got[i]))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func rateName(rate float64) string {
	if rate == 0 {
		return "all it can"
	}
	return fmt.Sprintf("%.0f", rate)
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

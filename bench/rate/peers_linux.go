package rate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/bench/harness"
)

// Peers gives collectors the same datagrams, one after the other and each on one core. They are those that arguments
// describe, or else all that it knows.
type Peers struct {
	UDP
	Programs string   // directory of programs, before those of the system
	Kafka    string   // jars of a broker; without them there is no output to Kafka
	Outputs  []string // of known collectors; all if empty
	Payloads []string // of known collectors; all if empty
	list     []peer
	absent   [][2]string // collectors, and why they are not measured
}

// peer is a collector: an installed program that listens.
type peer struct {
	name, payload, command string
	to                     netip.AddrPort
	output                 string // "" if arguments describe it
	known                  *known
}

// row names the rounds of a peer.
func (p *peer) row() string { return p.output + " " + p.payload + " " + p.name }

// Flags declares the settings, with their defaults.
func (o *Peers) Flags(f *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.UDP.Flags(all)
	for _, name := range []string{"exporters", "floods", "rounds", "seconds", "start", "step", "receive-cpu", "send-cpu", "sender"} {
		f.AddFlag(all.Lookup(name))
	}
	f.StringVar(&o.Programs, "programs", "", "directory of programs, looked at before those of the system")
	f.StringVar(&o.Kafka, "kafka", "", "directory of the jars of a Kafka broker, which output to Kafka needs")
	f.StringSliceVar(&o.Outputs, "outputs", nil, "outputs of known collectors: "+strings.Join(outputNames, ", ")+" (default all)")
	f.StringSliceVar(&o.Payloads, "payloads", nil, "what known collectors receive: "+strings.Join(payloadNames, ", ")+" (default all)")
	// A frame takes a page of a receive buffer, and a socket's datagram less. Many collectors have small buffers.
	o.rates, o.sender = "0", "socket"
	for _, name := range []string{"floods", "sender"} {
		f.Lookup(name).DefValue = f.Lookup(name).Value.String()
	}
}

// Check reads the collectors: "NAME PAYLOAD ADDRESS COMMAND...". Without any it takes the known ones that are installed.
func (o *Peers) Check(args []string) error {
	for _, a := range args {
		words := strings.Fields(a)
		if len(words) < 4 {
			return fmt.Errorf("%q is not NAME PAYLOAD ADDRESS COMMAND", a)
		}
		p := peer{name: words[0], payload: words[1], command: strings.Join(words[3:], " ")}
		var err error
		if p.to, err = netip.ParseAddrPort(words[2]); err != nil || !p.to.Addr().Is4() {
			return fmt.Errorf("%s: %q is no address of IPv4 with a port", p.name, words[2])
		}
		if _, ok := payloads[p.payload]; !ok {
			return fmt.Errorf("%s: no payload %q", p.name, p.payload)
		}
		o.list = append(o.list, p)
	}
	for _, l := range []struct {
		flag       string
		has, among []string
	}{{"outputs", o.Outputs, outputNames}, {"payloads", o.Payloads, payloadNames}} {
		for _, name := range l.has {
			if !slices.Contains(l.among, name) {
				return fmt.Errorf("--%s: no %q; there are %s", l.flag, name, strings.Join(l.among, ", "))
			}
		}
	}
	for _, dir := range []*string{&o.Programs, &o.Kafka} {
		if *dir == "" {
			continue
		}
		_, err := os.ReadDir(*dir)
		if err == nil {
			*dir, err = filepath.Abs(*dir) // programs run in directories of their own
		}
		if err != nil {
			return err
		}
	}
	if len(args) == 0 {
		o.know()
	}
	return o.UDP.Check()
}

// know lists the known collectors, and why others are not measured.
func (o *Peers) know() {
	or := func(list, all []string) []string {
		if len(list) == 0 {
			return all
		}
		return list
	}
	exclude := func(name, why string) {
		if !slices.Contains(o.absent, [2]string{name, why}) {
			o.absent = append(o.absent, [2]string{name, why})
		}
	}
	for _, output := range or(o.Outputs, outputNames) {
		for _, payload := range or(o.Payloads, payloadNames) {
			for i := range peersKnown {
				k := &peersKnown[i]
				path, err := k.program(o.Programs, payload)
				switch {
				case err != nil:
					exclude(k.name, err.Error())
				case k.outputs[output] == nil:
					exclude(k.name+", "+output, k.without[output])
				case output == "kafka" && o.Kafka == "":
					exclude("all, kafka", "--kafka names no broker")
				default:
					o.list = append(o.list, peer{name: k.name, payload: payload, command: path, to: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), k.port), output: output, known: k})
				}
			}
		}
	}
	for _, p := range peersAbsent {
		exclude(p[0], p[1])
	}
}

// Run measures, after [Peers.Check]; see [UDP.Run].
func (o *Peers) Run(ctx context.Context) (r *PeersResult, err error) {
	if os.Getenv(roleEnv) != roleSender {
		return nil, runIsolated(o.senderCPU)
	}
	if err := prepareNetwork(o.receiveCPU); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "hopscope-peers-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var broker *peersBroker
	if slices.ContainsFunc(o.list, func(p peer) bool { return p.output == "kafka" }) {
		if broker, err = startPeersBroker(ctx, o.Kafka, dir); err != nil {
			return nil, err
		}
		defer broker.stop()
	}
	r = &PeersResult{settings: o}
	for round := range o.rounds {
		for i := range o.list {
			p := &o.list[i]
			x, err := o.one(ctx, p, filepath.Join(dir, strconv.Itoa(round)+"-"+strconv.Itoa(i)), broker)
			if ctx.Err() != nil || err != nil && p.known == nil {
				return r, fmt.Errorf("%s: %w", p.name, cmp.Or(err, ctx.Err()))
			}
			if err != nil { // the others are measured all the same
				fmt.Fprintf(os.Stderr, "%s: %v\n", p.row(), err)
				o.absent = append(o.absent, [2]string{p.row(), harness.Line(strings.ReplaceAll(err.Error(), dir, "DIR"))})
				continue
			}
			x.Receiver, x.Round = p.row(), round+1
			r.rounds = append(r.rounds, x)
			fmt.Fprintf(os.Stderr, "round %d of %d: %s: %.0f/s without loss\n", x.Round, o.rounds, x.Receiver, x.LossFree.Sent)
		}
	}
	return r, nil
}

// one measures a collector, in a directory of its own.
func (o *Peers) one(ctx context.Context, p *peer, dir string, broker *peersBroker) (x result, err error) {
	u := o.UDP
	u.command, u.to, u.payload = p.command, p.to, p.payload
	if p.known == nil {
		return measureOne(ctx, &u, "command")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := scene{payload: p.payload, dir: dir}
	written := func() (uint64, error) { return bytesBelow(filepath.Join(dir, "out")) }
	if p.output == "kafka" {
		s.broker = broker.addr
		written = func() (uint64, error) { return broker.messages(ctx) }
	}
	args, err := p.known.outputs[p.output](&s)
	if err != nil {
		return x, err
	}
	u.command += " " + strings.Join(args, " ")
	if u.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return x, err
	}
	defer u.log.Close()
	if p.output == "kafka" && p.known.topics != nil {
		if out, err := exec.CommandContext(ctx, p.command, append(slices.Clone(p.known.topics), args[len(args)-1])...).CombinedOutput(); err != nil {
			return x, fmt.Errorf("make topics: %w: %s", err, out)
		}
	}
	before, err := written()
	if err != nil {
		return x, err
	}
	var dropped uint64
	var own string
	u.done = func(t *target) error {
		c, err := readSockets(p.to.Port())
		if err != nil {
			return err
		}
		dropped = c.drops
		if p.known.own.page != "" {
			own, err = p.known.own.count("")
		}
		return err
	}
	if x, err = measureOne(ctx, &u, "command"); err != nil {
		tail, _ := os.ReadFile(u.log.Name())
		return x, fmt.Errorf("%w: %s", err, tail[max(len(tail)-300, 0):])
	}
	if p.known.own.page == "" {
		if own, err = p.known.own.count(u.log.Name()); err != nil {
			return x, err
		}
	}
	x.Dropped, x.Own = dropped, own
	if p.output == "discard" {
		return x, nil
	}
	if x.Written, err = written(); err != nil {
		return x, err
	}
	if x.Written -= before; x.Written == 0 {
		return x, fmt.Errorf("it wrote nothing to its output %s", p.output)
	}
	return x, nil
}

// bytesBelow is the number of bytes of a file, or of the files below a directory; 0 if there is none.
func bytesBelow(path string) (sum uint64, err error) {
	err = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		i, err := e.Info()
		if err == nil {
			sum += uint64(i.Size())
		}
		return err
	})
	return sum, err
}

// PeersResult is what was measured of all collectors.
type PeersResult struct {
	rounds   []result
	settings *Peers
}

// Show writes the result as tables, one for each output. Ratios are to the first collector of output and payload, in
// the same round. Below are the collectors that were not measured.
func (r *PeersResult) Show(w io.Writer) error {
	var shown []string
	for _, p := range r.settings.list {
		if slices.Contains(shown, p.output) {
			continue
		}
		shown = append(shown, p.output)
		if err := r.show(w, p.output); err != nil {
			return err
		}
	}
	if len(r.settings.absent) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, "not measured"); err != nil {
		return err
	}
	t := harness.Columns(w, 2, 0)
	fmt.Fprintln(t, "collector\twhy\t")
	for _, a := range r.settings.absent {
		fmt.Fprintf(t, "%s\t%s\t\n", a[0], a[1])
	}
	return t.Flush()
}

func (r *PeersResult) show(w io.Writer, output string) error {
	if _, err := fmt.Fprintln(w, cmp.Or(output, "collectors")); err != nil {
		return err
	}
	t := harness.Columns(w, 2, tabwriter.AlignRight)
	fmt.Fprint(t, "datagrams\tcollector\twithout loss /s\tlimit\tfirst over it\tprocessor time, ns\tmemory, MB\t")
	for _, f := range r.settings.floods {
		fmt.Fprintf(t, "flood of %s\treceived /s\t", rateName(f))
	}
	if output != "" {
		fmt.Fprint(t, "dropped\tits own count\twritten\t")
	}
	fmt.Fprintln(t)
	first := map[string][]*result{} // of each payload
	for i := range r.settings.list {
		p := &r.settings.list[i]
		if p.output != output {
			continue
		}
		rounds := r.of(p)
		if _, ok := first[p.payload]; !ok {
			first[p.payload] = rounds
		}
		if len(rounds) > 0 {
			r.line(t, p, rounds, first[p.payload])
		}
	}
	return t.Flush()
}

// of is the rounds of a collector.
func (r *PeersResult) of(p *peer) (list []*result) {
	for i := range r.rounds {
		if r.rounds[i].Receiver == p.row() {
			list = append(list, &r.rounds[i])
		}
	}
	return list
}

// line writes the medians of a collector's rounds.
func (r *PeersResult) line(t io.Writer, p *peer, rounds, first []*result) {
	median := func(value func(x *result) float64) float64 {
		var list []float64
		for _, x := range rounds {
			list = append(list, value(x))
		}
		return harness.Median(list)
	}
	limit := "receiver"
	var ratios []float64
	for _, x := range rounds {
		if x.Limited {
			limit = "sender"
		}
		for _, y := range first {
			if y.Round == x.Round && x.LossFree.Sent > 0 {
				ratios = append(ratios, y.LossFree.Sent/x.LossFree.Sent)
			}
		}
	}
	ratio := "none"
	if len(ratios) > 0 {
		ratio = fmt.Sprintf("%.1f", harness.Median(ratios))
	}
	fmt.Fprintf(t, "%s\t%s\t%.0f\t%s\t%s\t%.0f\t%.0f\t", p.payload, p.name, median(func(x *result) float64 { return x.LossFree.Sent }), limit, ratio,
		median(func(x *result) float64 { return 1e9 * x.LossFree.CPU / max(x.LossFree.Received, 1) }), median(func(x *result) float64 { return x.Memory / 1e6 }))
	for i := range r.settings.floods {
		fmt.Fprintf(t, "%.0f\t%.0f\t", median(func(x *result) float64 { return x.Floods[i].Sent }), median(func(x *result) float64 { return x.Floods[i].Received }))
	}
	if last := rounds[len(rounds)-1]; p.output != "" {
		fmt.Fprintf(t, "%d\t%s\t%d\t", last.Dropped, cmp.Or(last.Own, "none"), last.Written)
	}
	fmt.Fprintln(t)
}

// family is a process and those that it started, and they.
func family(pid int) (list []int) {
	list = []int{pid}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return list // it ended, or the kernel does not say
	}
	for _, word := range strings.Fields(string(b)) {
		if child, err := strconv.Atoi(word); err == nil {
			list = append(list, family(child)...)
		}
	}
	return list
}

// resident is the resident memory of a process and of those that it started, in bytes.
func resident(pid int) (sum float64, err error) {
	for _, p := range family(pid) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p))
		if errors.Is(err, os.ErrNotExist) && p != pid {
			continue // it ended
		}
		if err != nil {
			return 0, err
		}
		var size, pages float64
		if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
			return 0, fmt.Errorf("memory of process %d: %w", p, err)
		}
		sum += pages * float64(os.Getpagesize())
	}
	return sum, nil
}

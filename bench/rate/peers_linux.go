package rate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/bench/harness"
)

// Peers gives collectors the same datagrams, one after the other and each on one core.
type Peers struct {
	UDP
	list []peer
}

// peer is a collector: an installed program that listens.
type peer struct {
	name, payload, command string
	to                     netip.AddrPort
}

// Flags declares the settings, with their defaults.
func (o *Peers) Flags(f *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.UDP.Flags(all)
	for _, name := range []string{"exporters", "floods", "rounds", "seconds", "start", "step", "receive-cpu", "send-cpu", "sender"} {
		f.AddFlag(all.Lookup(name))
	}
	// A frame takes a page of a receive buffer, and a socket's datagram less. Many collectors have small buffers.
	o.rates, o.sender = "0", "socket"
	for _, name := range []string{"floods", "sender"} {
		f.Lookup(name).DefValue = f.Lookup(name).Value.String()
	}
}

// Check reads the collectors: "NAME PAYLOAD ADDRESS COMMAND...".
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
	return o.UDP.Check()
}

// Run measures, after [Peers.Check]; see [UDP.Run].
func (o *Peers) Run(ctx context.Context) (*PeersResult, error) {
	if os.Getenv(roleEnv) != roleSender {
		return nil, runIsolated(o.senderCPU)
	}
	if err := prepareNetwork(o.receiveCPU); err != nil {
		return nil, err
	}
	r := &PeersResult{settings: o}
	for round := range o.rounds {
		for _, p := range o.list {
			u := o.UDP
			u.command, u.to, u.payload = p.command, p.to, p.payload
			x, err := measureOne(ctx, &u, "command")
			if err != nil {
				return r, fmt.Errorf("%s: %w", p.name, err)
			}
			x.Receiver, x.Round = p.name+" "+p.payload, round+1
			r.rounds = append(r.rounds, x)
			fmt.Fprintf(os.Stderr, "round %d of %d: %s: %.0f/s without loss\n", x.Round, o.rounds, x.Receiver, x.LossFree.Sent)
		}
	}
	return r, nil
}

// PeersResult is what was measured of all collectors.
type PeersResult struct {
	rounds   []result
	settings *Peers
}

// Show writes the result as tables, one for each payload. Ratios are to the first collector of the payload, in the same round.
func (r *PeersResult) Show(w io.Writer) error {
	var shown []string
	for _, p := range r.settings.list {
		if slices.Contains(shown, p.payload) {
			continue
		}
		shown = append(shown, p.payload)
		if err := r.show(w, p); err != nil {
			return err
		}
	}
	return nil
}

func (r *PeersResult) show(w io.Writer, first peer) error {
	of := func(p peer, value func(x *result) float64) (list []float64) {
		for i := range r.rounds {
			if r.rounds[i].Receiver == p.name+" "+p.payload {
				list = append(list, value(&r.rounds[i]))
			}
		}
		return list
	}
	free := func(x *result) float64 { return x.LossFree.Sent }
	if _, err := fmt.Fprintln(w, first.payload); err != nil {
		return err
	}
	t := harness.Columns(w, 2, tabwriter.AlignRight)
	fmt.Fprint(t, "collector\twithout loss /s\tlimit\tfirst over it\tprocessor time, ns\tmemory, MB\t")
	for _, f := range r.settings.floods {
		fmt.Fprintf(t, "flood of %s\treceived /s\t", rateName(f))
	}
	fmt.Fprintln(t)
	for _, p := range r.settings.list {
		if p.payload != first.payload {
			continue
		}
		own, ratios := of(p, free), of(first, free)
		for i := range own {
			ratios[i] /= max(own[i], 1)
		}
		limit := "receiver"
		if slices.Contains(of(p, func(x *result) float64 {
			if x.Limited {
				return 1
			}
			return 0
		}), 1) {
			limit = "sender"
		}
		fmt.Fprintf(t, "%s\t%.0f\t%s\t%.1f\t%.0f\t%.0f\t", p.name, harness.Median(own), limit, harness.Median(ratios[:len(own)]),
			harness.Median(of(p, func(x *result) float64 { return 1e9 * x.LossFree.CPU / max(x.LossFree.Received, 1) })), harness.Median(of(p, func(x *result) float64 { return x.Memory / 1e6 })))
		for i := range r.settings.floods {
			fmt.Fprintf(t, "%.0f\t%.0f\t", harness.Median(of(p, func(x *result) float64 { return x.Floods[i].Sent })), harness.Median(of(p, func(x *result) float64 { return x.Floods[i].Received })))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
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

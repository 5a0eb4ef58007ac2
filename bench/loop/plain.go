package loop

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"text/tabwriter"

	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/stamp"
	"github.com/hopscope/hopscope/p4/steer"
)

// The measurement on a network whose switches do not report.
const (
	plainTopology = "fat-tree:8"
	plainPorts    = 4   // a pair of hosts
	plainPackets  = 100 // probes that cross a direction of a link between switches in a cycle
	plainCycles   = 5
)

// plainTable is the section about networks without telemetry.
type plainTable struct {
	Section string     `json:"section"`
	Seed    uint64     `json:"seed"`
	Seeds   int        `json:"seeds"`
	Ways    int        `json:"ways"`
	Most    float64    `json:"each_by_mean"` // probes with so many on each link, by those with so many in the mean
	Quiet   int        `json:"quiet"`        // networks without a lossy link in which
	False   int        `json:"quiet_wrong"`  // so many links were named
	Rows    []plainRow `json:"rows"`
}

// plainRow is the named links for a number of lossy directions and a share of loss.
type plainRow struct {
	Each   bool             `json:"each"` // each link has so many probes; else they have them in the mean
	Lossy  int              `json:"lossy_links"`
	Ratio  float64          `json:"loss_ratio"`
	Cycles [plainCycles]hit `json:"cycles"` // after so many
}

// hit counts links that are named.
type hit struct {
	Right, Wrong, Missed int
}

func (h *hit) precision() float64 { return share(h.Right, h.Wrong) }
func (h *hit) recall() float64    { return share(h.Right, h.Missed) }

func share(right, other int) float64 {
	if right+other == 0 {
		return 1
	}
	return float64(right) / float64(right+other)
}

// plainNetwork is the ways of all ports, as traces find them over routes that switches choose by salted hashes.
type plainNetwork struct {
	list     []steer.WayLoss
	crossed  [][]int32 // links of each way
	links    []stamp.Link
	switches []int32 // links between switches
	mean     float64 // packets of a way in a cycle, such that links between switches have plainPackets in the mean
	each     float64 // the same, such that each has them
}

func newPlainNetwork(seed uint64) (*plainNetwork, error) {
	cfg := emu.DefaultConfig()
	cfg.Topology, cfg.HostsPerEdge, cfg.Flows = plainTopology, 1, 0
	n, err := emu.New(cfg, seed)
	if err != nil {
		return nil, err
	}
	address := func(k int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(k >> 16), byte(k >> 8), byte(k)}) }
	hosts := n.Graph().NumInterfaces() // their addresses follow those of interfaces
	p := &plainNetwork{}
	var ways []stamp.Way
	for from := range n.NumHosts() {
		for to := range n.NumHosts() {
			for port := range uint16(plainPorts) {
				if from == to {
					continue
				}
				w := stamp.Way{From: address(hosts + from), To: address(hosts + to), Port: 49152 + port}
				f := emu.Flow{From: from, To: to, Proto: 17, SrcPort: w.Port, DstPort: 862}
				t := stamp.NewTrace(1, 0)
				for _, ttl := range t.Round() {
					if at, ok := n.Expire(&f, ttl); ok {
						t.Observe(t.AppendPayload(nil, ttl), address(at))
					}
				}
				w.Hops = t.Hops()
				ways = append(ways, w)
				p.list = append(p.list, steer.WayLoss{Way: w})
			}
		}
	}
	p.links, p.crossed, _ = stamp.Links(ways, stamp.ByInterface)
	crossed := make([]int, len(p.links))
	for i := range p.crossed {
		for k, l := range p.crossed[i] {
			if k > 0 && k < len(p.crossed[i])-1 { // the first and the last are to hosts
				crossed[l]++
			}
		}
	}
	sum, least := 0, len(ways)
	for l, c := range crossed {
		if c > 0 {
			p.switches = append(p.switches, int32(l))
			sum, least = sum+c, min(least, c)
		}
	}
	p.mean, p.each = float64(plainPackets*len(p.switches))/float64(sum), plainPackets/float64(least)
	return p, nil
}

// run loses packets on some links, and counts the named links after each cycle.
func (p *plainNetwork) run(rng *rand.Rand, packets float64, lossy int, ratio float64) (cycles [plainCycles]hit) {
	rate := make([]float64, len(p.links))
	var bad []stamp.Link
	for len(bad) < lossy {
		if l := p.switches[rng.IntN(len(p.switches))]; rate[l] == 0 {
			rate[l] = ratio
			bad = append(bad, p.links[l])
		}
	}
	list := slices.Clone(p.list)
	sent := make([]float64, len(list)) // of each way, with the part of a packet that comes later
	for i := range sent {
		sent[i] = rng.Float64()
	}
	for c := range cycles {
		for i := range list {
			pass := 1.0
			for _, l := range p.crossed[i] {
				pass *= 1 - rate[l]
			}
			for sent[i] += packets; sent[i] >= 1; sent[i]-- {
				if list[i].Sent++; rng.Float64() >= pass {
					list[i].Lost++
				}
			}
		}
		for _, x := range steer.LossyLinks(list, stamp.ByInterface) {
			if slices.Contains(bad, x.Link) {
				cycles[c].Right++
			} else {
				cycles[c].Wrong++
			}
		}
		cycles[c].Missed = lossy - cycles[c].Right
	}
	return cycles
}

func runPlain(ctx context.Context, o options) (*plainTable, error) {
	t := &plainTable{Section: "plain", Seed: o.Seed, Seeds: o.Seeds}
	for _, each := range []bool{false, true} {
		for _, lossy := range []int{1, 2} {
			for _, ratio := range []float64{.01, .05, 1} {
				t.Rows = append(t.Rows, plainRow{Each: each, Lossy: lossy, Ratio: ratio})
			}
		}
	}
	for k := range o.Seeds {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		seed := o.Seed + uint64(k)
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("seed %d, %d of %d", seed, k+1, o.Seeds))
		}
		p, err := newPlainNetwork(seed)
		if err != nil {
			return nil, err
		}
		t.Ways = len(p.list)
		rng := rand.New(rand.NewPCG(seed, 29))
		quiet := p.run(rng, p.each, 0, 0)
		t.Most += p.each / p.mean / float64(o.Seeds)
		t.Quiet++
		t.False += quiet[plainCycles-1].Wrong
		for i := range t.Rows {
			packets := p.mean
			if t.Rows[i].Each {
				packets = p.each
			}
			for c, h := range p.run(rng, packets, t.Rows[i].Lossy, t.Rows[i].Ratio) {
				to := &t.Rows[i].Cycles[c]
				to.Right, to.Wrong, to.Missed = to.Right+h.Right, to.Wrong+h.Wrong, to.Missed+h.Missed
			}
		}
	}
	return t, nil
}

// Print writes the table as text.
func (t *plainTable) Print(out io.Writer) error {
	fmt.Fprintf(out, "Links named by probes alone, where no switch reports: %s, %d ways of %d ports a pair of agents, %d probes a link and cycle, seeds %d to %d\n", plainTopology, t.Ways, plainPorts,
		plainPackets, t.Seed, t.Seed+uint64(t.Seeds)-1)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprint(w, "probes\tlossy links\tlose")
	for c := range plainCycles {
		fmt.Fprintf(w, "\tprecision, recall after %d", c+1)
	}
	fmt.Fprintln(w)
	for i := range t.Rows {
		r := &t.Rows[i]
		probes := "in the mean"
		if r.Each {
			probes = "on each"
		}
		fmt.Fprintf(w, "%s\t%d\t%g %%", probes, r.Lossy, 100*r.Ratio)
		for c := range r.Cycles {
			fmt.Fprintf(w, "\t%.3f, %.3f", r.Cycles[c].precision(), r.Cycles[c].recall())
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "without a lossy link: %d links named in %d networks; so many probes on each link are %.2f times as many as in the mean\n", t.False, t.Quiet, t.Most)
	return err
}

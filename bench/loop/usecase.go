package loop

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/inference"
	entries "github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/attention/solve"
	"github.com/hopscope/hopscope/planner/cover"
)

// The use case of section 6.4.1, with the set-up of section 6.3. The network is a fat-tree of 4 pods with our numbers
// of switches. The core has 1 to 4, aggregation 5 to 12, the edge 13 to 20. Each edge switch has two hosts, and every
// host sends 71 KB/s to every other. Probes pass all links from hosts 1 and 5 and once more from hosts 8 and 9. A
// cycle of a second has one of each. Host 6 sends 5 MB/s of TCP to host 9. At time 2 a policy of segment routing at
// switch 15 moves it to a path through switch 7. A link is suspicious if a value of it is more than twice that of the
// cycle before.
//
// The path is in a picture that the text lost: here it goes on from 7 by switches 1, 9 and 17. The text reads the
// port of switch 7 that connects to switch 15. Its counters are of traffic to 15, none of which is of the flow. Here
// both egress ports of the flow are read: switch 15 to 7, and 7 to 1.
const (
	useCaseCycles = 6
	useCaseMoved  = 2
	useCaseFlow   = 5_000_000 // bytes a second
	useCaseEach   = 71_000    // likewise
	useCasePacket = 1000      // bytes
)

// useCasePlaces are where counters are read: interfaces, by the switch that sends and the one that it sends to.
var useCasePlaces = [...]struct{ from, to string }{{"agg-1-0", "core-0"}, {"edge-1-0", "agg-1-0"}, {"agg-1-0", "edge-1-0"}}

// useCaseWay is that of the policy.
var useCaseWay = []string{"edge-1-0", "agg-1-0", "core-0", "agg-2-0", "edge-2-0"}

// useCaseReading is the last reading of an interface in a cycle. It has the use of its line in bytes a second, and
// bytes of segment routing and of IPv4 since the network began. Negative means unknown.
type useCaseReading struct{ tx, sr, ipv4 float64 }

// useCaseRun is the readings by cycle and place, and the bytes of metadata by cycle.
type useCaseRun struct {
	readings [useCaseCycles][len(useCasePlaces)]useCaseReading
	bytes    [useCaseCycles]int
	detailed [useCaseCycles]int // probes
	probes   int
}

// The ways to measure: passive is INT in the packets of the flows themselves.
const (
	allDetailed   = "INT-P"
	withAttention = "FANT"
	passive       = "passive INT"
)

// useCase runs the network with one way to measure.
func useCase(how string, seed uint64) (*useCaseRun, error) {
	c := emu.DefaultConfig()
	c.LinkRate, c.Flows, c.PacketRate, c.DropReports = 100e6, 0, 0, false
	c.Dialect, c.Instructions, c.MaxHops, c.SampleEvery = emu.FANT, 0xffff, 6, 1_000_000
	ends := [][]string{{"edge-0-0", "edge-1-0"}, {"edge-1-1", "edge-2-0"}}
	if how == passive {
		c.SampleEvery, c.MTU = 20, 2000
	} else {
		c.Agents = []emu.Agent{{Switch: "edge-0-0"}, {Switch: "edge-1-0"}, {Switch: "edge-1-1", Host: 1}, {Switch: "edge-2-0"}}
	}
	for from := range 16 {
		for to := range 16 {
			if from != to {
				c.ExtraFlows = append(c.ExtraFlows, emu.Flow{From: from, To: to, Proto: 17, SrcPort: uint16(30000 + from), DstPort: uint16(5000 + to),
					Rate: useCaseEach / useCasePacket, PacketBytes: useCasePacket, Poisson: true})
			}
		}
	}
	moved := len(c.ExtraFlows)
	flow := emu.Flow{From: 5, To: 8, Proto: 6, DstPort: 5001, Rate: useCaseFlow / useCasePacket, PacketBytes: useCasePacket}
	c.ExtraFlows = append(c.ExtraFlows, flow)
	var n *emu.Network
	for port := uint16(40000); ; port++ { // one that the routes lead by the other aggregation switch
		c.ExtraFlows[moved].SrcPort = port
		var err error
		if n, err = emu.New(c, seed); err != nil {
			return nil, err
		}
		if way, ok := n.Route(moved); ok && n.Graph().NodeName(n.Graph().Neighbor(way[0])) == "agg-1-1" {
			break
		}
	}
	x := &useCaseFollower{n: n, how: how, last: map[int]useCaseSight{}}
	for k := range ends {
		if how != passive {
			if err := x.addProbes(ends[k], k, seed); err != nil {
				return nil, err
			}
		}
	}
	for at, name := range useCasePlaces {
		x.places[at] = linkFrom(n, name.from, name.to)
	}
	return x.run(moved)
}

// linkFrom is the interface by which a switch sends to another.
func linkFrom(n *emu.Network, from, to string) int {
	g := n.Graph()
	at, _ := g.Lookup(from)
	lo, hi := g.Interfaces(at)
	for i := lo; i < hi; i++ {
		if v := g.Neighbor(i); v >= 0 && g.NodeName(v) == to {
			return i
		}
	}
	return -1
}

// useCaseSight is the last values of an interface.
type useCaseSight struct {
	at     time.Duration
	counts decode.HopCounts
}

// useCaseFollower is the controller of the use case: it sends plans, reads reports and shifts attention.
type useCaseFollower struct {
	n      *emu.Network
	how    string
	plan   probe.Plan
	traces [][]int32 // by probe: the interfaces that it leaves by
	places [len(useCasePlaces)]int

	last   map[int]useCaseSight  // by interface
	values [2]map[[2]int]float64 // of the cycle before and of this one, by interface and metric
	tx     map[int]float64       // by interface, bytes a second
	result useCaseRun
	cycle  int
}

func (x *useCaseFollower) addProbes(agents []string, set int, seed uint64) error {
	links, _, err := probe.StackLimits(&intmd.Options{Versions: intmd.V21, Domains: []intmd.Domain{intmd.FANT}}, 0xffff, 1500)
	if err != nil {
		return err
	}
	p, c, err := scenario.CoverPlanAmong(x.n, agents, 1, probe.FANT, time.Second, links, seed)
	if err != nil {
		return err
	}
	walks, err := cover.Walks(x.n.Graph(), c.Probes)
	if err != nil {
		return err
	}
	for k := range p.Probes {
		var trace []int32
		for _, i := range walks[k] {
			trace = append(trace, int32(i))
		}
		x.traces = append(x.traces, trace)
		p.Probes[k].ID = fmt.Sprintf("%d/%s", set, p.Probes[k].ID)
		// Readings are of the middle of a cycle, so that a probe is back before it ends.
		p.Probes[k].Phase = 400*time.Millisecond + p.Probes[k].Phase/5
	}
	probes := append(x.plan.Probes, p.Probes...)
	x.plan, x.plan.Probes = *p, probes
	return nil
}

func (x *useCaseFollower) run(moved int) (*useCaseRun, error) {
	profile, _ := demux.Lookup("fant")
	d, batch := demux.New(profile), decode.Batch{}
	x.result.probes = len(x.plan.Probes)
	for x.cycle = range useCaseCycles {
		if err := x.send(); err != nil {
			return nil, err
		}
		if x.cycle == useCaseMoved {
			x.move(moved)
		}
		x.values[0], x.values[1], x.tx = x.values[1], map[[2]int]float64{}, map[int]float64{}
		readings := &x.result.readings[x.cycle]
		for i := range readings {
			readings[i] = useCaseReading{-1, -1, -1}
		}
		x.n.Run(time.Duration(x.cycle+1)*time.Second, func(m emu.Datagram) {
			batch.Reset()
			d.Datagram(&batch, decode.AddrFrom(m.From.Addr()), m.Payload, 0)
			for _, r := range batch.Reports {
				if r.Err.Reason == 0 && r.Rare != nil && len(r.Rare.Counts) == len(r.Hops) && inference.IsProbe(&r.Flow) == (x.how != passive) {
					x.observe(r, m.At)
				}
			}
		})
		for i, at := range x.places {
			if v, ok := x.tx[at]; ok {
				readings[i].tx = v
			}
		}
	}
	return &x.result, nil
}

// send sends the plan of a cycle to agents. The values of the previous cycle decide which probes are detailed.
func (x *useCaseFollower) send() error {
	if x.how == passive {
		return nil
	}
	on := make([]bool, len(x.traces))
	if x.how == allDetailed {
		for k := range on {
			on[k] = true
		}
	} else {
		choice, err := solve.NewTraces(x.n.Graph().NumInterfaces(), x.traces, lengths(x.traces), 0).Switch(x.suspicious(), nil, solve.Options{})
		if err != nil {
			return err
		}
		for _, k := range choice.Probes {
			on[k] = true
		}
	}
	plan := x.plan
	plan.Epoch, plan.Probes = uint32(x.cycle+1), slices.Clone(plan.Probes)
	for k := range plan.Probes {
		if plan.Probes[k].Detailed = on[k]; on[k] {
			x.result.detailed[x.cycle]++
		}
	}
	for _, a := range x.n.Config().Agents {
		x.n.SendPlan(a.Switch, &plan)
	}
	return nil
}

func lengths(traces [][]int32) (cost []float64) {
	for _, t := range traces {
		cost = append(cost, float64(len(t)))
	}
	return cost
}

// suspicious are the interfaces of which a value is more than twice that of the cycle before (section 6.3).
func (x *useCaseFollower) suspicious() (list []int32) {
	for k, v := range x.values[1] {
		if before, ok := x.values[0][k]; ok && v > 2*before {
			list = append(list, int32(k[0]))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// move installs the policy.
func (x *useCaseFollower) move(flow int) {
	g, ports := x.n.Graph(), make([]byte, 16)
	for i := range useCaseWay[1:] {
		ports[i] = byte(g.Port(linkFrom(x.n, useCaseWay[i], useCaseWay[i+1])))
	}
	at, _ := g.Lookup(useCaseWay[0])
	key := x.n.FlowKey(flow)
	x.n.Install(at, []entries.Entry{{
		Table: emu.PolicyTable, Match: []entries.Match{{Value: entries.Bytes(key.Src[12:])}, {Value: entries.Bytes(key.Dst[12:])}},
		Action: "steer", Params: []entries.Value{entries.Bytes(ports)},
	}})
}

// observe reads the hops of a report. A value of a cycle is the largest reported in it. The value of a counter is its
// increment in a second.
func (x *useCaseFollower) observe(r *decode.Report, at time.Duration) {
	g := x.n.Graph()
	first := x.n.Config().FirstNode
	x.result.bytes[x.cycle] += len(r.Hops) * probe.FANT.HopBytes(r.Instructions)
	for i := range r.Hops {
		h, c := &r.Hops[i], &r.Rare.Counts[i]
		iface := g.ByPort(int(h.NodeID-first), int(h.EgressIf))
		value := func(metric int, v float64) {
			k := [2]int{iface, metric}
			x.values[1][k] = max(x.values[1][k], v)
		}
		value(0, float64(h.Latency))
		value(1, float64(h.QueueOccupancy))
		if h.Set(decode.HopTxUtilization) {
			value(2, float64(h.TxUtilization))
			x.tx[iface] = max(x.tx[iface], float64(h.TxUtilization)/10_000*float64(x.n.Config().LinkRate)/8)
		}
		if place := slices.Index(x.places[:], iface); place >= 0 {
			to := &x.result.readings[x.cycle][place]
			if c.Has&decode.HopSRBytes != 0 {
				to.sr = float64(c.SRBytes)
			}
			if c.Has&decode.HopIPv4Bytes != 0 {
				to.ipv4 = float64(c.IPv4Bytes)
			}
		}
		last, known := x.last[iface]
		if known && at-last.at < 100*time.Millisecond {
			continue // of the same cycle
		}
		for k, now := range c.All() {
			if c.Has&last.counts.Has>>k&1 != 0 {
				value(3+k, float64(*now-*last.counts.All()[k])/(at-last.at).Seconds())
			}
		}
		x.last[iface] = useCaseSight{at, *c}
	}
}

// UseCase prints the values of FANT's use case: those of an application about the moved flow, by cycle and measurement.
func UseCase(ctx context.Context, t io.Writer, seed uint64) error {
	fmt.Fprintln(t, "measured by\tcycle\tprobes in detail\tmetadata, bytes\t7 to 1: Tx MB/s\tSR MB\tIPv4 MB\t15 to 7: Tx MB/s\tSR MB\tIPv4 MB\t7 to 15: Tx MB/s\tSR MB\tIPv4 MB\t")
	for _, how := range []string{allDetailed, withAttention, passive} {
		run, err := useCase(how, seed)
		if err != nil {
			return err
		}
		for cycle := range useCaseCycles {
			probes := "-"
			if how != passive {
				probes = fmt.Sprintf("%d of %d", run.detailed[cycle], run.probes)
			}
			fmt.Fprintf(t, "%s\t%d\t%s\t%d\t", how, cycle, probes, run.bytes[cycle])
			for _, r := range run.readings[cycle] {
				for _, v := range []float64{r.tx, r.sr, r.ipv4} {
					if v < 0 {
						fmt.Fprint(t, "\t")
					} else {
						fmt.Fprintf(t, "%.2f\t", v/1e6)
					}
				}
			}
			fmt.Fprintln(t)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

package loop

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

const (
	probeEvery = 50 * time.Millisecond
	// probeLate is how late a probe may be: the longest queue of a line that keeps a twelfth of its rate, and some.
	probeLate = 700 * time.Millisecond
	probeHops = 4 // between switches
)

// route is a probe as the interfaces by which it leaves its switches, in order; the last one leads to a host.
type route []int32

// coverings are how often links are covered. Probes of one covering pass the same links together; another one, of the
// same graph in another order, distinguishes them.
const coverings = 2

// routes are the probes of some coverings of both directions of all links. They begin and end at switches with hosts, and
// together they reach all hosts.
func routes(g *topo.Graph) ([]route, error) {
	hosts := make([][]int, g.NumNodes())
	for n := range hosts {
		lo, hi := g.Interfaces(n)
		for i := lo; i < hi; i++ {
			if g.Link(i) < 0 {
				hosts[n] = append(hosts[n], i)
			}
		}
	}
	var all []route
	next := make([]int, g.NumNodes())
	for k := range uint64(coverings) {
		mixed, err := shuffled(g, rand.New(rand.NewPCG(shuffleSeed, k)))
		if err != nil {
			return nil, err
		}
		var depots []int
		for n := range mixed.NumNodes() {
			if at, _ := g.Lookup(mixed.NodeName(n)); len(hosts[at]) > 0 {
				depots = append(depots, n)
			}
		}
		plan, err := solve.Plan(&cover.Problem{Graph: mixed, Directed: true, MaxPort: 16, MaxHops: probeHops, Depots: depots}, solve.Options{Seed: k})
		if err != nil {
			return nil, err
		}
		for _, p := range plan.Probes {
			var r route
			at, _ := g.Lookup(p.Nodes[0])
			for _, port := range p.Ports {
				i := g.ByPort(at, port)
				r = append(r, int32(i))
				at = g.Neighbor(i)
			}
			r = append(r, 0)
			for range hosts[at] { // receivers distinguish probes by their paths: no two have the same
				r[len(r)-1] = int32(hosts[at][next[at]%len(hosts[at])])
				next[at]++
				if !slices.ContainsFunc(all, func(o route) bool { return slices.Equal(o, r) }) {
					all = append(all, r)
					break
				}
			}
		}
	}
	return all, nil
}

// shuffleSeed is a seed for coverings of a fat-tree of 20 switches in which no two links have the same probes.
const shuffleSeed = 8081

// shuffled is the graph without its hosts, with switches and links in another order.
func shuffled(g *topo.Graph, r *rand.Rand) (*topo.Graph, error) {
	b := topo.NewBuilder(g.Name())
	at := make([]int, g.NumNodes())
	for _, n := range r.Perm(g.NumNodes()) {
		at[n] = b.AddNode(g.NodeName(n), g.Tier(n))
	}
	for _, l := range r.Perm(g.NumLinks()) {
		x, y := g.Ends(l)
		b.AddLink(topo.LinkEnd{Node: at[g.Node(x)], Port: g.Port(x)}, topo.LinkEnd{Node: at[g.Node(y)], Port: g.Port(y)})
	}
	return b.Build()
}

// configured are the probes for a configuration.
func configured(g *topo.Graph, all []route) (probes []emu.Probe) {
	for _, r := range all {
		p := emu.Probe{From: g.NodeName(g.Node(int(r[0]))), Every: probeEvery}
		for _, i := range r {
			p.Ports = append(p.Ports, g.Port(int(i)))
		}
		probes = append(probes, p)
	}
	return probes
}

// The metrics of a hop that probes report.
const (
	hopLatency = iota
	hopQueue
	hopLine
	hopMetrics
)

// receiver observes probes at their receivers and makes the windows and losses of a cycle.
type receiver struct {
	graph  *topo.Graph
	first  uint32 // node id of the first switch
	routes []route
	index  map[string]int // by the hops of a probe

	next  []uint32 // by probe: first round whose fate is not known
	moved []uint32 // rounds that were decided in this cycle
	lost  []uint32

	values  [][][3]float64 // by probe and hop: sums of the metrics, of this cycle
	count   []int
	samples [][][2][]float64 // by probe and hop: latencies and queues
	least   []float64        // by link: of the times on the line
	packets []uint64         // by link: that they are of
	flows   []inference.FlowStats
	report  decode.Report
	key     []byte
}

func newReceiver(n *emu.Network, all []route) *receiver {
	g := n.Graph()
	x := &receiver{
		graph: g, first: n.NodeID(0), routes: all, index: map[string]int{}, next: make([]uint32, len(all)), moved: make([]uint32, len(all)),
		lost: make([]uint32, len(all)), values: make([][][3]float64, len(all)), count: make([]int, len(all)),
		samples: make([][][2][]float64, len(all)), least: make([]float64, g.NumInterfaces()), packets: make([]uint64, g.NumInterfaces()),
	}
	for p, r := range all {
		x.values[p] = make([][3]float64, len(r))
		x.samples[p] = make([][2][]float64, len(r))
		x.key = x.key[:0]
		for _, i := range r {
			x.key = binary.BigEndian.AppendUint32(x.key, uint32(i))
		}
		x.index[string(x.key)] = p
	}
	x.clear()
	return x
}

func (x *receiver) clear() {
	clear(x.moved)
	clear(x.lost)
	clear(x.count)
	for p := range x.values {
		clear(x.values[p])
	}
	for _, hops := range x.samples {
		for k := range hops {
			hops[k] = [2][]float64{hops[k][0][:0], hops[k][1][:0]}
		}
	}
	for l := range x.least {
		x.least[l], x.packets[l] = math.Inf(1), 0
	}
}

// receive reads a probe.
func (x *receiver) receive(d emu.Datagram) {
	x.report = decode.Report{Hops: x.report.Hops[:0]}
	srint.DecodePathPayload(&x.report, d.Payload, len(d.Payload), false)
	hops := x.report.Hops
	if x.report.Err.Reason != 0 || len(hops) == 0 {
		return
	}
	x.key = x.key[:0]
	for k := range hops {
		x.passed(hops[k].NodeID, hops[k].EgressIf)
	}
	p, known := x.index[string(x.key)]
	if !known {
		return
	}
	if round := x.report.ActionID; round >= x.next[p] {
		x.decide(p, round)
		x.moved[p]++
	}
	x.count[p]++
	var left uint64 // when it left the switch before, µs
	for k := range hops {
		h := &hops[k]
		waits := uint64(h.EnqTime-uint32(h.IngressTime)) + uint64(h.QueueDelay)
		latency, queue := 1000*float64(waits), float64(h.QueueOccupancy)
		samples := &x.samples[p][k]
		samples[0], samples[1] = append(samples[0], latency), append(samples[1], queue)
		v := &x.values[p]
		(*v)[k][hopLatency] += latency
		(*v)[k][hopQueue] += queue
		if k > 0 {
			line := 1000 * float64(int64(h.IngressTime-left))
			(*v)[k-1][hopLine] += line
			link := x.routes[p][k-1]
			x.least[link] = min(x.least[link], line)
			x.packets[link]++
		}
		left = h.IngressTime + waits
	}
}

// passed adds a hop to the key of a probe.
func (x *receiver) passed(node uint32, port uint16) {
	i := -1
	if n := int(node) - int(x.first); n >= 0 && n < x.graph.NumNodes() {
		i = x.graph.ByPort(n, int(port))
	}
	x.key = binary.BigEndian.AppendUint32(x.key, uint32(i))
}

// decide counts all undecided rounds before one as lost, and closes that one.
func (x *receiver) decide(p int, round uint32) {
	x.lost[p] += round - x.next[p]
	x.moved[p] += round - x.next[p]
	x.next[p] = round + 1
}

// spoilt closes the round of a probe that its receiver refused. Switches of INT-path get the checksum wrong now and
// then, for hundreds of rounds in a row, which is no evidence about links. Such rounds are left out.
func (x *receiver) spoilt(j *emu.Journey) {
	x.key = x.key[:0]
	for k := range j.Hops {
		x.passed(j.Hops[k].NodeID, j.Hops[k].EgressPort)
	}
	const identification = 14 + 4 // in the frame; it counts rounds
	if p, known := x.index[string(x.key)]; known && len(j.Frame) >= identification+2 {
		if ahead := binary.BigEndian.Uint16(j.Frame[identification:]) - uint16(x.next[p]); ahead < 1<<15 {
			x.decide(p, x.next[p]+uint32(ahead))
		}
	}
}

// expire gives up rounds that were due by the end of a cycle.
func (x *receiver) expire(now time.Duration) {
	for p := range x.routes {
		first := probeEvery * time.Duration(p) / time.Duration(len(x.routes))
		due := uint32(0) // rounds that were sent early enough
		if at := now - probeLate - first; at > 0 {
			due = uint32((at + probeEvery - 1) / probeEvery)
		}
		if due > x.next[p] {
			x.lost[p] += due - x.next[p]
			x.moved[p] += due - x.next[p]
			x.next[p] = due
		}
	}
}

// window returns the reports of the cycle as a collector's window. Probes are flows with their hops, and links have
// the least time on the line. It is valid until the next call.
func (x *receiver) window(start, end int64) *inference.Window {
	w := &inference.Window{Start: start, End: end}
	x.flows = x.flows[:0]
	for p, r := range x.routes {
		if x.count[p] == 0 {
			continue
		}
		f := inference.FlowStats{Key: probeFlow(p), Packets: uint64(x.count[p])}
		for k, i := range r {
			samples := &x.samples[p][k]
			f.Hops = append(f.Hops, inference.FlowHop{
				HopKey:  inference.HopKey{Node: x.first + uint32(x.graph.Node(int(i))), EgressIf: uint32(x.graph.Port(int(i)))},
				Latency: summary(samples[0]), Queue: summary(samples[1]),
			})
		}
		x.flows = append(x.flows, f)
	}
	w.Flows = x.flows
	for l, n := range x.packets {
		if back := x.graph.Peer(l); n > 0 && back >= 0 {
			w.Links = append(w.Links, inference.LinkStats{LinkKey: inference.LinkKey{
				Node: x.first + uint32(x.graph.Node(l)), EgressIf: uint32(x.graph.Port(l)),
				Peer: x.first + uint32(x.graph.Node(back)), PeerIf: uint32(x.graph.Port(back)), Period: 1000 << 32,
			}, Count: n, Least: int64(x.least[l])})
		}
	}
	return w
}

// probeFlow is a flow to the port of probes.
func probeFlow(p int) (k decode.FlowKey) {
	k.Proto, k.SrcPort, k.DstPort = 17, uint16(p+1), 17769
	return k
}

// Drain implements [steer.Rounds] for the probes of a cycle. A survey of agents would return the same.
func (x *receiver) Drain() (list []loop.ProbeRounds, ok bool) {
	for p := range x.routes {
		r := loop.ProbeRounds{Probe: int32(p), Sent: uint64(x.moved[p]), Lost: uint64(x.lost[p])}
		if n := x.count[p]; n > 0 {
			for k := range x.values[p] {
				r.Transit += x.values[p][k][hopLatency] / float64(n)
			}
		}
		if r.Sent > 0 || r.Transit > 0 {
			list = append(list, r)
		}
	}
	return list, true
}

// feed passes the means of the cycle to FANT's test.
func (x *receiver) feed(f *suspicion.Fant) {
	for p, r := range x.routes {
		if x.count[p] == 0 {
			continue
		}
		for k := range r {
			for m := range hopMetrics {
				if m != hopLine || k < len(r)-1 {
					f.Add(m, p, k, x.values[p][k][m]/float64(x.count[p]))
				}
			}
		}
	}
}

// summary returns quantiles by nearest rank.
func summary(values []float64) inference.Summary {
	slices.Sort(values)
	at := func(q float64) uint64 { return uint64(values[max(0, int(math.Ceil(q*float64(len(values))))-1)]) }
	return inference.Summary{Count: uint64(len(values)), P50: at(.5), P90: at(.9), P99: at(.99), Max: at(1)}
}

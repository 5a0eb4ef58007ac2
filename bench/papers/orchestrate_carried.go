package papers

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/orchestrate/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// These are of the emulated switches that carry out assignments.
const (
	carriedHost    = 400 // port to the host of an endpoint
	carriedReports = 401 // port to the collector
	carriedWords   = 4   // that an interface adds: the demand of every interface
)

// carriedTable installs plans in emulated switches that run into, sends a packet of every flow that carries something,
// and compares its reports with the plan. Every endpoint is a switch as well, whose interface to the network is the
// paper's interface in. A packet of every eighth other flow is sent, too, and may not be reported.
func carriedTable(ctx context.Context, t io.Writer, nets []*topo.Graph, o Options) error {
	fmt.Fprintln(t, "method\tnetworks\tas planned\tcovered\tflows used\tpackets\thops, mean\tplanned\tbelow 0.1\t")
	for _, m := range []struct{ name, objective string }{{"CH (published)", orchestrate.Concentrate}, {"BH (published)", orchestrate.Balance}} {
		var sum carried
		below := 0
		for _, g := range nets {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x, err := carryOut(g, m.objective, o)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", g.Name(), m.name, err)
			}
			sum.same += x.same
			sum.covered += x.covered
			sum.used += x.used
			sum.packets += x.packets
			sum.hops += x.hops / float64(len(nets))
			sum.planned += x.planned / float64(len(nets))
			if x.hops < 0.1 {
				below++
			}
		}
		n := len(nets)
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f %%\t%d\t%d\t%.3f\t%.3f\t%.1f %%\t\n", m.name, n, sum.same, 100*float64(sum.covered)/float64(n), sum.used, sum.packets, sum.hops, sum.planned, 100*float64(below)/float64(n))
	}
	return ctx.Err()
}

// carried is what switches made of a plan, or a sum of such.
type carried struct {
	same    int // 1 if every packet was reported as planned
	covered int // 1 if every interface was reported
	used    int // flows
	packets int
	hops    float64 // freshness by the reports
	planned float64
}

// carrying is a network with endpoints, whose switches carry out a plan.
type carrying struct {
	graph  *topo.Graph
	fabric *program.Fabric
	p      *orchestrate.Problem
	at     [][2]int // node and port, by interface
	keys   []decode.FlowKey
	want   []map[int32]bool // interfaces, by flow
	seen   map[int32]bool
	items  int
	hops   int
}

func carryOut(g *topo.Graph, objective string, o Options) (x carried, err error) {
	m := orchestrate.DefaultModel()
	m.Seed, m.DemandMin, m.DemandMax = o.Seed, carriedWords, carriedWords
	p, err := orchestrate.Generate(g, m)
	if err != nil {
		return x, err
	}
	p.Objective = objective
	c, err := newCarrying(g, p)
	if err != nil {
		return x, err
	}
	plan, err := solve.Plan(p, solve.Options{Method: solve.Heuristic, Seed: o.Seed, Partial: true, Stop: func() bool { return true }}) // without a bound
	if err != nil {
		return x, err
	}
	plan.Tables = p.Tables(plan)
	if err := orchestrate.Check(p, plan); err != nil {
		return x, err
	}
	if err := c.install(plan); err != nil {
		return x, err
	}
	x.same, x.planned = 1, plan.Stats.Freshness.Mean
	for k := range p.Flows {
		if len(c.want[k]) > 0 {
			x.used++
		} else if k%8 != 0 {
			continue
		}
		x.packets++
		same, err := c.send(k)
		if err != nil {
			return x, err
		}
		if !same {
			x.same = 0
		}
	}
	if len(c.seen) == len(p.Interfaces) {
		x.covered = 1
	}
	x.hops = float64(c.hops) / float64(max(c.items, 1))
	return x, nil
}

// newCarrying names interfaces and flows of a problem as switches know them.
func newCarrying(g *topo.Graph, p *orchestrate.Problem) (*carrying, error) {
	b := topo.NewBuilder(g.Name())
	n := g.NumNodes()
	for a := range n {
		b.AddNode(g.NodeName(a), 0)
	}
	for a := range n {
		b.AddNode("end "+g.NodeName(a), 0)
		b.AddLink(topo.LinkEnd{Node: a}, topo.LinkEnd{Node: n + a})
	}
	joined := map[[2]int]bool{}
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		a, c := min(g.Node(x), g.Node(y)), max(g.Node(x), g.Node(y))
		if a != c && !joined[[2]int{a, c}] {
			joined[[2]int{a, c}] = true
			b.AddLink(topo.LinkEnd{Node: a}, topo.LinkEnd{Node: c})
		}
	}
	c := &carrying{p: p, seen: map[int32]bool{}}
	var err error
	if c.graph, err = b.Build(); err != nil {
		return nil, err
	}
	places := map[string][2]int{}
	for i := range c.graph.NumInterfaces() {
		a, to := c.graph.Node(i), c.graph.Neighbor(i)
		name := ""
		switch {
		case a >= n:
			name = "in:" + g.NodeName(to)
		case to >= n:
			name = "out:" + g.NodeName(a)
		default:
			name = g.NodeName(a) + ">" + g.NodeName(to)
		}
		places[name] = [2]int{a, c.graph.Port(i)}
	}
	for k := range p.Interfaces {
		at, ok := places[p.Interfaces[k].ID]
		if !ok {
			return nil, fmt.Errorf("interface %q has no place", p.Interfaces[k].ID)
		}
		c.at = append(c.at, at)
		p.Interfaces[k].ID = fmt.Sprintf("%s:%d", c.graph.NodeName(at[0]), at[1])
	}
	for k := range p.Flows {
		from, to := netip.AddrFrom4([4]byte{10, byte(k >> 16), byte(k >> 8), byte(k)}), netip.AddrFrom4([4]byte{11, byte(k >> 16), byte(k >> 8), byte(k)})
		c.keys = append(c.keys, decode.FlowKey{Src: decode.AddrFrom(from), Dst: decode.AddrFrom(to), SrcPort: 4000, DstPort: 5000, Proto: headers.ProtoUDP, IPVersion: 4})
		p.Flows[k].ID = c.keys[k].String()
	}
	return c, nil
}

// install writes a plan into switches.
func (c *carrying) install(plan *orchestrate.Plan) error {
	var err error
	if c.fabric, err = program.NewFabric(c.graph, "into"); err != nil {
		return err
	}
	ids, serves := make([]uint32, c.graph.NumNodes()), map[string]bool{}
	for n := range ids {
		ids[n], serves[c.graph.NodeName(n)] = uint32(n+1), true
		s := c.fabric.Switch(n)
		s.Mirror(1, carriedReports)
		for _, e := range []p4.Entry{
			{Table: "egress.device", Action: "set_device", Params: p4.Uints(uint64(n+1), 0)},
			{Table: "egress.envelope.collector", Match: []p4.Match{p4.Number(1)}, Action: "send", Params: p4.Uints(1, 1, 1, 1, 1, 32766, 900)},
			{Table: "egress.egress_port", Match: []p4.Match{p4.Number(carriedHost)}, Action: "to_host", Params: p4.Uints(1500, 1, 1)},
		} {
			if err := s.Put(e); err != nil {
				return err
			}
		}
	}
	settings := steer.DefaultOrchestrateConfig()
	settings.PacketBytes = 1000
	lists, err := settings.Entries(plan, steer.NewLinks(c.graph, ids), serves)
	if err != nil {
		return err
	}
	for n := range ids {
		for _, e := range lists[c.graph.NodeName(n)] {
			if err := c.fabric.Switch(n).Put(e); err != nil {
				return err
			}
		}
	}
	index := map[string]int32{}
	for k := range c.p.Interfaces {
		index[c.p.Interfaces[k].ID] = int32(k)
	}
	flow := map[string]int{}
	c.want = make([]map[int32]bool, len(c.p.Flows))
	for k := range c.p.Flows {
		flow[c.p.Flows[k].ID] = k
		c.want[k] = map[int32]bool{}
	}
	for _, t := range plan.Tables {
		for _, e := range t.Entries {
			c.want[flow[e.Flow]][index[t.Interface]] = true
		}
	}
	return nil
}

// send sends a packet of a flow along its path, and reports whether its reports are as planned.
func (c *carrying) send(k int) (same bool, err error) {
	path, key := c.p.Flows[k].Interfaces, &c.keys[k]
	route := func(port int) p4.Entry {
		return p4.Entry{Table: "ingress.forward.forwarding4", Match: []p4.Match{{Value: p4.Bytes(key.DstAddr().AsSlice()), Prefix: 32}}, Action: "forward", Params: p4.Uints(uint64(port), 1, 1)}
	}
	last := c.at[path[len(path)-1]]
	end := c.graph.Neighbor(c.graph.ByPort(last[0], last[1]))
	ways := map[int]int{end: carriedHost}
	for _, i := range path {
		ways[c.at[i][0]] = c.at[i][1]
	}
	for n, port := range ways {
		if err := c.fabric.Switch(n).Put(route(port)); err != nil {
			return false, err
		}
	}
	payload := make([]byte, 900)
	b := headers.AppendEthernet(nil, headers.MAC{5: 1}, headers.MAC{5: 2}, headers.EtherIPv4)
	b = headers.AppendIPv4(b, &headers.IPv4{TTL: 255, Proto: key.Proto, Src: key.SrcAddr().As4(), Dst: key.DstAddr().As4()}, 8+len(payload))
	b = append(headers.AppendUDP(b, key.SrcPort, key.DstPort, len(payload)), payload...)
	left, err := c.fabric.Send(c.at[path[0]][0], program.Frame{Port: carriedHost, Bytes: b})
	for n, port := range ways {
		e := route(port)
		if err == nil {
			err = c.fabric.Switch(n).Store().Delete(&e)
		}
	}
	if err != nil {
		return false, err
	}
	profile, _ := demux.Lookup("auto")
	d := demux.New(profile)
	var got []int32
	reports, arrived := 0, 0
	for _, a := range left {
		if a.Port != carriedReports {
			arrived++
			continue
		}
		var batch decode.Batch
		d.Datagram(&batch, decode.Addr{}, a.Bytes[42:], 1)
		reports++
		for _, h := range batch.Reports[0].Hops {
			at := [2]int{int(h.NodeID) - 1, int(h.EgressIf)}
			got = append(got, int32(slices.Index(c.at, at)))
		}
	}
	want := slices.DeleteFunc(slices.Clone(path), func(i int32) bool { return !c.want[k][i] })
	for _, i := range got {
		c.seen[i] = true
		c.items++
		c.hops += slices.Index(path, got[len(got)-1]) - slices.Index(path, i)
	}
	return arrived == 1 && reports == min(len(want), 1) && slices.Equal(got, want), nil
}

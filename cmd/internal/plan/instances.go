package plan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/topo"
)

// in returns the function from node ids of the collector to nodes of a topology. It looks up the node's name. Otherwise
// it takes the number as a name, if all nodes of the topology have numbers as names. Otherwise it takes the number as
// index, if the collector has no names. The settings of digests read a topology in the same way.
func (m measuredFlags) in(g *topo.Graph) func(id uint32) (node int, ok bool) {
	_, numbers := g.IDs()
	return func(id uint32) (int, bool) {
		if n, ok := m.Names.Find(id); ok && n.Name != "" {
			return g.Lookup(n.Name)
		}
		if numbers {
			return g.Lookup(strconv.FormatUint(uint64(id), 10))
		}
		return int(id), m.Names.Len() == 0 && int64(id) < int64(g.NumNodes())
	}
}

// orchestrate makes an instance of the busiest flows. Each has the interfaces that it was seen to pass and the packets
// a second that reported them. The result left counts interfaces that the collector has and that none of these flows
// passes.
func (m measuredFlags) orchestrate(ctx context.Context, items int64, packetBytes int, objective string, sizing orchestrate.Sizing) (p *orchestrate.Problem, left int, err error) {
	type jsonInterface struct {
		ID     string `json:"id"`
		Demand int64  `json:"demand"`
	}
	type jsonFlow struct {
		ID         string   `json:"id"`
		Rate       float64  `json:"rate"`
		Sizes      []int64  `json:"packet_sizes"`
		Interfaces []string `json:"interfaces"`
	}
	var doc struct {
		Interfaces []jsonInterface `json:"interfaces"`
		Flows      []jsonFlow      `json:"flows"`
	}
	known := map[string]bool{}
	name := func(k inference.HopKey) string {
		return m.Node(k.Node) + ":" + strconv.FormatUint(uint64(k.EgressIf), 10)
	}
	err = steer.List(ctx, m.Measured, "/api/flows", "flows", func(f steer.FlowAnswer) {
		flow := jsonFlow{ID: f.Key, Rate: f.Packets / m.Span().Seconds(), Sizes: []int64{int64(packetBytes)}}
		for _, h := range f.Path {
			k, perr := inference.ParseHop(h.Node.String() + ":" + h.EgressIf)
			if h.EgressIf == "" || perr != nil || k.Other || slices.Contains(flow.Interfaces, name(k)) {
				continue // not an interface, or a flow that goes round in circles
			}
			flow.Interfaces = append(flow.Interfaces, name(k))
			if !known[name(k)] {
				known[name(k)] = true
				doc.Interfaces = append(doc.Interfaces, jsonInterface{name(k), items})
			}
		}
		if len(flow.Interfaces) > 0 && flow.Rate > 0 {
			doc.Flows = append(doc.Flows, flow)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	if len(doc.Flows) == 0 {
		return nil, 0, fmt.Errorf("%s knows no flow with the interfaces that it passes: reports have to carry egress interfaces", m.URL)
	}
	slices.SortFunc(doc.Interfaces, func(a, b jsonInterface) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(doc.Flows, func(a, b jsonFlow) int { return cmp.Compare(a.ID, b.ID) })
	err = steer.List(ctx, m.Measured, "/api/hops", "hops", func(h steer.HopAnswer) {
		if k, ok := h.Hop(); ok && !known[name(k)] {
			left++
		}
	})
	if err != nil {
		return nil, 0, err
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, 0, err
	}
	if p, err = orchestrate.ReadSized(bytes.NewReader(b), objective, sizing); err != nil {
		return nil, 0, fmt.Errorf("flows of %s: %w", m.URL, err)
	}
	return p, left, nil
}

// suspicious returns the links of open findings, weighted by severity. It uses causes, and findings without one. The
// result elsewhere counts findings about other elements, or about elements outside the topology.
func (m measuredFlags) suspicious(ctx context.Context, g *topo.Graph, p *attention.Problem) (elsewhere int, err error) {
	var answer struct {
		Open []struct {
			Severity string
			Cause    string
			Element  *inference.Element
		}
	}
	if err := m.Measured.Get(ctx, "/api/findings", &answer); err != nil {
		return 0, err
	}
	at, weights := m.in(g), map[string]float64{}
	for _, f := range answer.Open {
		if f.Cause != "" {
			continue // its cause is in the list
		}
		links := elementLinks(g, at, f.Element)
		if len(links) == 0 {
			elsewhere++
		}
		for _, l := range links {
			name := g.LinkName(l)
			weights[name] = max(weights[name], severityWeight(f.Severity))
		}
	}
	for l := range g.NumLinks() {
		if w, ok := weights[g.LinkName(l)]; ok {
			p.Suspicious = append(p.Suspicious, g.LinkName(l))
			if p.Weights == nil {
				p.Weights = map[string]float64{}
			}
			p.Weights[g.LinkName(l)] = w
		}
	}
	return elsewhere, nil
}

// severityWeight is the cost of leaving a finding without detail.
func severityWeight(severity string) float64 {
	switch severity {
	case inference.Critical.String():
		return 4
	case inference.Warning.String():
		return 2
	}
	return 1
}

// elementLinks are the links of an element: one, or all at a node.
func elementLinks(g *topo.Graph, at func(uint32) (int, bool), e *inference.Element) (links []int) {
	if e == nil {
		return nil
	}
	v, ok := at(e.Node)
	if !ok {
		return nil
	}
	lo, hi := g.Interfaces(v)
	for i := lo; i < hi; i++ {
		l := g.Link(i)
		if l < 0 || slices.Contains(links, l) {
			continue
		}
		switch e.Kind {
		case inference.NodeElement:
			links = append(links, l)
		case inference.InterfaceElement:
			if uint32(g.Port(i)) == e.EgressIf {
				links = append(links, l)
			}
		case inference.LinkElement:
			peer, known := at(e.Peer)
			if known && g.Neighbor(i) == peer && (e.EgressIf == 0 || uint32(g.Port(i)) == e.EgressIf) && (e.PeerIf == 0 || uint32(g.Port(g.Peer(i))) == e.PeerIf) {
				links = append(links, l)
			}
		}
	}
	return links
}

// delivery puts measured figures into an instance. They are the rate of every point that reports to the collector, and
// the load of links with a reported utilisation. The results points and links count the figures.
func (m measuredFlags) delivery(ctx context.Context, p *delivery.Problem, reportBytes int) (points, links int, err error) {
	reports := map[string]float64{} // by node, a second
	err = steer.List(ctx, m.Measured, "/api/exporters", "exporters", func(e struct {
		Node          string
		RecentReports float64 `json:"recent_reports"`
	}) {
		if id, perr := strconv.ParseUint(e.Node, 10, 32); perr == nil {
			reports[m.Node(uint32(id))] += e.RecentReports / m.Span().Seconds()
		}
	})
	if err != nil {
		return 0, 0, err
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if rate := reports[n.ID]; n.Kind == delivery.PointNode && rate > 0 {
			n.Rate = rate * float64(reportBytes) * 8 / 1e9
			points++
		}
	}
	busy := map[string]float64{}
	err = steer.List(ctx, m.Measured, "/api/hops", "hops", func(h steer.HopAnswer) {
		if k, ok := h.Hop(); ok && h.Utilization != nil {
			busy[m.Node(k.Node)+":"+h.EgressIf] = min(max(*h.Utilization, 0), 1)
		}
	})
	if err != nil {
		return 0, 0, err
	}
	for i := range p.Links {
		l := &p.Links[i]
		a, okA := busy[l.A+":"+strconv.Itoa(l.PortA)]
		b, okB := busy[l.B+":"+strconv.Itoa(l.PortB)]
		if okA || okB {
			l.Load = max(a, b) * l.Capacity // both directions share the capacity of an instance
			links++
		}
	}
	return points, links, nil
}

// costs returns a topology whose links cost the more the busier they are: 1 for one that carries nothing, 101 for a full one. Links
// that nothing is known of cost 1.
func (m measuredFlags) costs(ctx context.Context, g *topo.Graph) (out *topo.Graph, known int, err error) {
	at, cost := m.in(g), map[int]uint32{}
	err = steer.List(ctx, m.Measured, "/api/hops", "hops", func(h steer.HopAnswer) {
		k, ok := h.Hop()
		if !ok || h.Utilization == nil {
			return
		}
		if v, ok := at(k.Node); ok {
			if i := g.ByPort(v, int(k.EgressIf)); i >= 0 && g.Link(i) >= 0 {
				cost[i] = 1 + uint32(100*min(max(*h.Utilization, 0), 1))
			}
		}
	})
	if err != nil {
		return nil, 0, err
	}
	return g.WithCosts(func(i int) uint32 { return max(1, cost[i]) }), len(cost), nil
}

// queries fills in the longest path of flows, for queries without a number of hops, and the number of nodes.
func (m measuredFlags) queries(ctx context.Context, p *querymix.Problem) (longest, nodes int, err error) {
	seen := map[uint32]bool{}
	err = steer.List(ctx, m.Measured, "/api/flows", "flows", func(f steer.FlowAnswer) {
		longest = max(longest, len(f.Path))
		for _, h := range f.Path {
			if !h.Node.Other {
				seen[h.Node.HopKey.Node] = true
			}
		}
	})
	if err != nil {
		return 0, 0, err
	}
	if longest == 0 {
		return 0, 0, fmt.Errorf("%s knows no path of a flow yet", m.URL)
	}
	for i := range p.Queries {
		q := &p.Queries[i]
		if (q.Aggregation == querymix.Static || q.Aggregation == querymix.Dynamic) && q.Hops == 0 {
			q.Hops = longest
		}
		if q.Aggregation == querymix.Static && q.Nodes == 0 {
			q.Nodes = len(seen)
		}
	}
	return longest, len(seen), nil
}

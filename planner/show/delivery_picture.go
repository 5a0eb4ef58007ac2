package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/topo"
)

// The colours of delivery plans.
const (
	pointColor  = "#1971c2"
	lostColor   = "#e03131"
	serverColor = "#2b8a3e"
	idleColor   = "#8ce99a"
	addedColor  = "#f08c00"
)

// DrawDelivery draws the network: points, servers in use, and added links. Links that carry reports have an arrow in
// their direction. The positions of nodes come from known, if there is such a topology.
func DrawDelivery(w io.Writer, known *topo.Graph, p *delivery.Problem, plan *delivery.Plan) error {
	g, err := deliveryGraph(known, p, plan)
	if err != nil {
		return err
	}
	wiring, err := delivery.Wire(p, plan.AddedLinks)
	if err != nil {
		return err
	}
	pic, err := newPicture(g)
	if err != nil {
		return err
	}
	s := plan.Stats
	pic.Title = "Delivery"
	pic.Note = fmt.Sprintf("%d of %d points report to %d server%s; %d link%s added", s.Served, s.Points, s.Servers, plural(s.Servers), s.Links, plural(s.Links))
	pic.Legend(pointColor, "point, and links that carry reports")
	if plan.Partial {
		pic.Legend(lostColor, "point that is not served")
	}
	pic.Legend(serverColor, "server in use")
	pic.Legend(idleColor, "server not in use")
	pic.Legend(addedColor, "added link")
	pic.Legend(quiet, "switch, and links without reports")
	rate, way := map[int]float64{}, map[[2]int]float64{} // of links, and of links and the node from where
	gets, to := map[string]float64{}, map[string][]string{}
	for _, d := range plan.Assignment {
		gets[d.Server] += d.Rate
		to[d.Point] = append(to[d.Point], fmt.Sprintf("%.1f Gbit/s to %s", d.Rate, d.Server))
		for k, port := range d.Ports {
			l, _, _, _ := wiring.Link(d.Path[k], port)
			from, _ := g.Lookup(d.Path[k])
			rate[l] += d.Rate
			way[[2]int{l, from}] += d.Rate
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch {
		case n.Kind == delivery.PointNode && len(to[n.ID]) == 0:
			pic.Node(i, lostColor, "not served")
		case n.Kind == delivery.PointNode:
			pic.Node(i, pointColor, "reports "+strings.Join(to[n.ID], ", "))
		case n.Kind == delivery.ServerNode && gets[n.ID] > 0:
			pic.Node(i, serverColor, fmt.Sprintf("gets %.1f of %.1f Gbit/s", gets[n.ID], n.Residual()))
		case n.Kind == delivery.ServerNode:
			pic.Node(i, idleColor, "server without reports")
		default:
			pic.Node(i, quiet, fmt.Sprintf("switch, %.1f Gbit/s free", n.Residual()))
		}
	}
	for l := range g.NumLinks() {
		color, free := addedColor, "added"
		if l < len(p.Links) {
			color, free = pointColor, fmt.Sprintf("%.1f Gbit/s free", p.Links[l].Residual())
		}
		if rate[l] == 0 {
			if l < len(p.Links) {
				color = quiet
			}
			pic.Link(l, color, "no reports, "+free)
			continue
		}
		i, j := g.Ends(l)
		for _, v := range [...]int{g.Node(i), g.Node(j)} {
			if r := way[[2]int{l, v}]; r > 0 {
				pic.Pass(l, v, color, fmt.Sprintf("%.1f Gbit/s from %s; %s", r, g.NodeName(v), free))
			}
		}
	}
	return pic.Write(w)
}

// deliveryGraph is the network of a problem, its links before those that the plan adds.
func deliveryGraph(known *topo.Graph, p *delivery.Problem, plan *delivery.Plan) (*topo.Graph, error) {
	b := topo.NewBuilder("delivery")
	node := map[string]int{}
	for i := range p.Nodes {
		id := p.Nodes[i].ID
		node[id] = b.AddNode(id, topo.NoTier)
		if known == nil {
			continue
		}
		if v, ok := known.Lookup(id); ok {
			if place, ok := known.Place(v); ok {
				b.SetPlace(node[id], place)
			}
		}
	}
	join := func(x, y string) { b.AddLink(topo.LinkEnd{Node: node[x]}, topo.LinkEnd{Node: node[y]}) }
	for i := range p.Links {
		join(p.Links[i].A, p.Links[i].B)
	}
	for _, l := range plan.AddedLinks {
		join(l.A, l.B)
	}
	return b.Build()
}

package solve

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/opt"
)

// network is a problem with numbers for names. Elements are what paths share: links first, then nodes.
type network struct {
	p       *delivery.Problem
	start   []int32 // by node, into hops
	hops    []hop
	free    []float64 // by element
	up      []float64 // by element
	points  []int32   // nodes
	servers []int32   // nodes
	place   []int32   // by node: its index among points or servers
	reach   []float64 // by node: least latency to a server, beside the node's own
}

type hop struct {
	to, link int32
	latency  float64
}

func newNetwork(p *delivery.Problem) *network {
	n := len(p.Nodes)
	w := &network{p: p, place: make([]int32, n)}
	id := opt.Index[delivery.Node, int32](p.Nodes, func(x *delivery.Node) string { return x.ID })
	for i := range p.Nodes {
		switch p.Nodes[i].Kind {
		case delivery.PointNode:
			w.place[i] = int32(len(w.points))
			w.points = append(w.points, int32(i))
		case delivery.ServerNode:
			w.place[i] = int32(len(w.servers))
			w.servers = append(w.servers, int32(i))
		}
	}
	ends := make([]int32, 0, 2*len(p.Links))
	for i := range p.Links {
		l := &p.Links[i]
		ends = append(ends, id[l.A], id[l.B])
		w.free, w.up = append(w.free, l.Residual()), append(w.up, l.Up)
	}
	for i := range p.Nodes {
		if x := &p.Nodes[i]; x.Kind == delivery.SwitchNode {
			w.free, w.up = append(w.free, x.Residual()), append(w.up, x.Up)
		} else {
			w.free, w.up = append(w.free, math.Inf(1)), append(w.up, 1)
		}
	}
	start, half := opt.Group(ends, n)
	w.start, w.hops = start, make([]hop, len(half))
	for k, h := range half {
		w.hops[k] = hop{ends[h^1], h / 2, p.Links[h/2].Latency}
	}
	w.reach = w.distances(func(e int32) bool { return w.free[e] > tiny })
	return w
}

// tiny is less than any rate worth sending, in Gbit/s.
const tiny = 1e-9

func (w *network) kind(v int32) delivery.NodeKind { return w.p.Nodes[v].Kind }

// element is the number of node v as a forwarding element.
func (w *network) element(v int32) int32 { return int32(len(w.p.Links)) + v }

// forwards reports whether paths may lead through node v.
func (w *network) forwards(v int32) bool {
	return w.p.TransitAll || w.kind(v) == delivery.SwitchNode
}

// distances returns for every node the least latency to a server over usable elements.
func (w *network) distances(usable func(e int32) bool) []float64 {
	var near opt.Nearest[float64]
	near.Begin(len(w.p.Nodes), math.Inf(1))
	for _, s := range w.servers {
		near.Reach(s, 0)
	}
	for v, d, ok := near.Next(); ok; v, d, ok = near.Next() {
		if w.kind(v) != delivery.ServerNode || d > 0 {
			if !w.forwards(v) || !usable(w.element(v)) {
				continue
			}
			d += delivery.SwitchLatency
		}
		for _, h := range w.hops[w.start[v]:w.start[v+1]] {
			if usable(h.link) {
				near.Reach(h.to, d+h.latency)
			}
		}
	}
	return near.Dist
}

// path is a usable way from a point to a server.
type path struct {
	point   int32   // index among points
	server  int32   // index among servers
	nodes   []int32 // from point to server
	links   []int32 // between these; an added link is -1
	element []int32 // links and forwarding nodes, ascending
	latency float64
	up      float64
	via     int32 // far end of the added link that it begins with, or -1
	loose   bool  // it stands for links to switches, too, from where more than one path may lead on
}

// maxPaths bounds the usable paths of a point that are looked at: those with the least latency.
const maxPaths = 5000

// latencySlack is the tolerance of sums of latencies, in ms.
const latencySlack = 1e-9

// paths lists the usable paths from node v to servers, least latency first. Node v is the point itself or the far end
// of an added link. The budget is the latency that is left, and up the least probability. The result more reports
// whether there are more than limit.
func (w *network) paths(point, v int32, budget, up float64, limit int) (list []path, more bool) {
	type state struct {
		node, parent, link int32
		latency, up        float64
	}
	type open struct {
		least float64 // latency of any way on from it
		state int32
	}
	var states []state
	q := opt.Heap[open]{Less: func(a, b *open) bool { return a.least < b.least }}
	push := func(s state) {
		if f := s.latency + w.reach[s.node]; f <= budget+latencySlack && s.up >= up-1e-12 {
			q.Push(open{f, int32(len(states))})
			states = append(states, s)
		}
	}
	push(state{node: v, parent: -1, link: -1, up: 1})
	for len(q.Items) > 0 {
		i := q.Pop().state
		s := states[i]
		if w.kind(s.node) == delivery.ServerNode && s.parent >= 0 {
			if len(list) == limit {
				return list, true
			}
			p := path{point: point, server: w.place[s.node], latency: s.latency, up: s.up, via: -1}
			for j := i; j >= 0; j = states[j].parent {
				p.nodes = append(p.nodes, states[j].node)
				if states[j].link >= 0 {
					p.links = append(p.links, states[j].link)
					p.element = append(p.element, states[j].link)
				}
				if j != i && states[j].parent >= 0 {
					p.element = append(p.element, w.element(states[j].node))
				}
			}
			slices.Reverse(p.nodes)
			slices.Reverse(p.links)
			slices.Sort(p.element)
			list = append(list, p)
			if !w.p.TransitAll {
				continue
			}
		}
		if s.parent >= 0 {
			e := w.element(s.node)
			if !w.forwards(s.node) || w.free[e] <= tiny {
				continue
			}
			s.latency += delivery.SwitchLatency
			s.up *= w.up[e]
		}
	hops:
		for _, h := range w.hops[w.start[s.node]:w.start[s.node+1]] {
			if w.free[h.link] <= tiny {
				continue
			}
			for j := i; j >= 0; j = states[j].parent {
				if states[j].node == h.to {
					continue hops
				}
			}
			push(state{h.to, i, h.link, s.latency + h.latency, s.up * w.up[h.link]})
		}
	}
	return list, false
}

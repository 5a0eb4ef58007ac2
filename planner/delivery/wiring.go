package delivery

import (
	"fmt"

	"github.com/hopscope/hopscope/planner"
)

// Wiring holds the ports by which links leave nodes, so that parallel links are distinguished. Links are numbered as in
// the problem, and added links follow in their order.
//
// A port that the problem names is kept. All others are assigned in the order of the links, each the lowest free number
// of its node, from 1. Added links come last.
type Wiring struct {
	p     *Problem
	node  map[string]int
	links []wire
	at    []map[int]int // by node: link by port
	pairs map[[2]int]int
}

// wire is a link with numbers for names.
type wire struct{ node, port [2]int }

// Wire assigns ports. Impossible added links are an error.
func Wire(p *Problem, added []AddedLink) (*Wiring, error) {
	w := &Wiring{p: p, node: make(map[string]int, len(p.Nodes)), at: make([]map[int]int, len(p.Nodes)), pairs: map[[2]int]int{}}
	for i := range p.Nodes {
		w.node[p.Nodes[i].ID] = i
		w.at[i] = map[int]int{}
	}
	var bad planner.Errors
	for i := range p.Links {
		l := &p.Links[i]
		w.add(l.A, l.B, [2]int{l.PortA, l.PortB}, &bad)
	}
	next := make([]int, len(p.Nodes))
	w.number(0, next)
	for _, l := range added {
		a, okA := w.node[l.A]
		b, okB := w.node[l.B]
		switch {
		case !okA || !okB || a == b || p.Nodes[a].Kind != PointNode && p.Nodes[b].Kind != PointNode:
			bad.Add("added link %s %s does not join a point with another node", l.A, l.B)
		case w.pairs[pair(a, b)] > 0:
			bad.Add("added link %s %s is there already", l.A, l.B)
		default:
			w.add(l.A, l.B, [2]int{l.PortA, l.PortB}, &bad)
		}
	}
	if err := bad.Join(); err != nil {
		return nil, err
	}
	w.number(len(p.Links), next)
	return w, nil
}

// NamePorts writes into a problem which ports its links have, so that they stay what they are when links come and go.
func (p *Problem) NamePorts() error {
	w, err := Wire(p, nil)
	if err != nil {
		return err
	}
	for i := range p.Links {
		p.Links[i].PortA, p.Links[i].PortB = w.links[i].port[0], w.links[i].port[1]
	}
	return nil
}

func pair(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

// add takes in a link, and the ports that are named for it.
func (w *Wiring) add(a, b string, port [2]int, bad *planner.Errors) {
	l := wire{node: [2]int{w.node[a], w.node[b]}, port: port}
	for end, v := range l.node {
		if port[end] == 0 {
			continue
		}
		if _, ok := w.at[v][port[end]]; ok {
			bad.Add("port %d of node %s has two links", port[end], w.p.Nodes[v].ID)
		}
		w.at[v][port[end]] = len(w.links)
	}
	w.pairs[pair(l.node[0], l.node[1])]++
	w.links = append(w.links, l)
}

// number assigns ports to the links from the given one on that have none. The slice next has the port of every node
// below which none is free.
func (w *Wiring) number(from int, next []int) {
	for i := from; i < len(w.links); i++ {
		l := &w.links[i]
		for end, v := range l.node {
			if l.port[end] != 0 {
				continue
			}
			for next[v]++; ; next[v]++ {
				if _, taken := w.at[v][next[v]]; !taken {
					break
				}
			}
			l.port[end] = next[v]
			w.at[v][next[v]] = i
		}
	}
}

// Port is the port of a node by which a link leaves it, or 0 if it does not.
func (w *Wiring) Port(link int, node string) int {
	v, ok := w.node[node]
	for end, u := range w.links[link].node {
		if ok && u == v {
			return w.links[link].port[end]
		}
	}
	return 0
}

// Link finds the link at a port of a node, the node at its other end, and the port there.
func (w *Wiring) Link(node string, port int) (link int, to string, in int, ok bool) {
	v, ok := w.node[node]
	if !ok {
		return 0, "", 0, false
	}
	if link, ok = w.at[v][port]; !ok {
		return 0, "", 0, false
	}
	end := 0
	if w.links[link].node[0] == v {
		end = 1
	}
	return link, w.p.Nodes[w.links[link].node[end]].ID, w.links[link].port[end], true
}

// attributes of a link, as an added one has if it is not of the problem.
func (w *Wiring) attributes(link int) Link {
	if link < len(w.p.Links) {
		return w.p.Links[link]
	}
	return Link{Latency: AddedLatency, Capacity: AddedCapacity, Up: AddedUp}
}

// name identifies a link by its nodes, and by its ports if others have the same.
func (w *Wiring) name(link int) string {
	l := w.links[link]
	a, b := w.p.Nodes[l.node[0]].ID, w.p.Nodes[l.node[1]].ID
	if w.pairs[pair(l.node[0], l.node[1])] > 1 {
		return fmt.Sprintf("link %s:%d %s:%d", a, l.port[0], b, l.port[1])
	}
	return "link " + a + " " + b
}

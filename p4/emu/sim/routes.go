package sim

import (
	"slices"

	"github.com/hopscope/hopscope/planner/topo"
)

// Routes holds, for every switch and every switch with hosts, the interfaces that begin a shortest path. Most switches
// have one such interface or the same ones towards many others, so that sets which are alike stand in memory once.
type Routes struct {
	Edges []int   // switches with hosts
	next  []int32 // of switch s towards edges[e], at e*N+s: an interface, -1 for none, or below that -2 less where its set is
	sets  []int32 // one after the other: how many interfaces, then these
	last  []int32 // by switch, while routes are rebuilt: where its last set is, or -1
	up    []bool  // by interface, while routes are rebuilt
	tree  *topo.Tree
}

// Rebuild recomputes all routes of a graph from the interfaces that are up, by their queues.
func (r *Routes) Rebuild(g *topo.Graph, queues []Queue) {
	nodes := g.NumNodes()
	r.next, r.sets, r.last = r.next[:0], r.sets[:0], slices.Grow(r.last[:0], nodes)[:nodes]
	for s := range r.last {
		r.last[s] = -1
	}
	r.up = slices.Grow(r.up[:0], len(queues))[:len(queues)] // in one piece: every tree reads it whole
	for i := range queues {
		r.up[i] = queues[i].Up
	}
	up := func(i int) bool { return r.up[i] }
	for _, edge := range r.Edges {
		r.tree = g.ShortestPaths(r.tree, edge, up)
		for s := range nodes {
			r.next = append(r.next, r.code(s, r.tree.NextHops(s)))
		}
	}
}

// code returns the value in next for these interfaces of a switch.
func (r *Routes) code(s int, hops []int32) int32 {
	switch len(hops) {
	case 0:
		return -1
	case 1:
		return hops[0]
	}
	if at := r.last[s]; at < 0 || !slices.Equal(r.set(at), hops) {
		r.last[s] = int32(len(r.sets))
		r.sets = append(append(r.sets, int32(len(hops))), hops...)
	}
	return -2 - r.last[s]
}

func (r *Routes) set(at int32) []int32 { return r.sets[at+1 : at+1+r.sets[at]] }

// At is the route of switch s towards the e-th edge switch.
func (r *Routes) At(s, e int32, nodes int) *int32 { return &r.next[int(e)*nodes+int(s)] }

// Hops returns the egress interface of switch s to the hosts of the e-th edge switch, or -1. Where there are several,
// it returns them all in place of one.
func (r *Routes) Hops(s, e int32, nodes int) (one int32, several []int32) {
	out := *r.At(s, e, nodes)
	if out >= -1 {
		return out, nil
	}
	return -1, r.set(-2 - out)
}

package emu

import "github.com/hopscope/hopscope/planner/topo"

// routes holds, for every switch and every switch with hosts, the interfaces that begin a shortest path.
type routes struct {
	edges []int    // switches with hosts
	first []uint32 // of switch s towards edges[e]: hops[first[e*N+s]:first[e*N+s+1]]
	hops  []int32
	tree  *topo.Tree
}

// rebuild recomputes all routes from the links that are up.
func (r *routes) rebuild(n *Network) {
	nodes := n.graph.NumNodes()
	r.first = append(r.first[:0], 0)
	r.hops = r.hops[:0]
	up := func(i int) bool { return n.queues[i].up }
	for _, edge := range r.edges {
		r.tree = n.graph.ShortestPaths(r.tree, edge, up)
		for s := range nodes {
			r.hops = append(r.hops, r.tree.NextHops(s)...)
			r.first = append(r.first, uint32(len(r.hops)))
		}
	}
}

// next gives the egress interface of switch s for a packet of flow hash to the hosts of the e-th edge switch, or -1.
// Switches salt the hash differently; else those of the second tier would all choose as the first did.
func (r *routes) next(s int32, salt uint64, e int32, nodes int, hash uint64) int32 {
	at := int(e)*nodes + int(s)
	set := r.hops[r.first[at]:r.first[at+1]]
	switch len(set) {
	case 0:
		return -1
	case 1:
		return set[0]
	}
	return set[pick(mix(hash^salt), len(set))]
}

// Route gives the switches and egress interfaces that flow i takes by the routes of this moment; ok is false if they
// do not lead to its destination. Faults that drop packets are not considered.
func (n *Network) Route(i int) (interfaces []int, ok bool) {
	f := &n.flows[i]
	at, dst := n.hosts[f.src].node, &n.hosts[f.dst]
	for at != dst.node {
		out := n.routes.next(at, n.switches[at].salt, dst.edge, len(n.switches), f.hash)
		if out < 0 || !n.queues[out].up {
			return interfaces, false
		}
		interfaces = append(interfaces, int(out))
		at = n.ifNode[n.ifPeer[out]]
	}
	return append(interfaces, int(dst.iface)), true
}

package topo

// HostPort is the port of node n that a host is reached by: the first interface that leads out of the graph, or if there
// is none the lowest port that no link uses. A fat-tree's edge switch and a leaf have theirs free for that.
func (g *Graph) HostPort(n int) int { return g.freePort(n, func(int) bool { return false }) }

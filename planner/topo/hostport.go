package topo

// HostPort is the port of node n that leads to its host. It is the first interface that leads out of the graph, or the
// lowest port without a link. Edge switches of a fat-tree and leaves have free ports for that.
func (g *Graph) HostPort(n int) int { return g.freePort(n, func(int) bool { return false }) }

// Package topo holds the graph of planners and of the emulated network: nodes, their interfaces, and the links between
// interfaces.
//
// The graph is a multigraph, because real topology files and real switches are. Parallel links, links from a node to
// itself, and interfaces that lead out of the graph (towards hosts, say) are all allowed. A link has two interfaces,
// one at each end, and an interface stands for the direction that leaves its node. A queue, a rate and a weight belong
// to an interface, so the two directions of a link are always distinct.
//
// Nodes, interfaces and links are numbered from 0 without gaps. The interfaces of a node are consecutive and in the
// order of their ports (compressed sparse rows), so that algorithms index plain slices. A [Graph] never changes after
// [Builder.Build] and may be shared between goroutines.
package topo

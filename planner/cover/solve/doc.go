// Package solve plans probes that together pass every link of a topology.
//
// Without depots the plan has the fewest probes possible: max(1, k/2) for a connected component with k nodes of odd
// degree. It takes O(V + E) steps (INT-path: T. Pan et al., "INT-path: Towards Optimal Path Planning for In-band
// Network-Wide Telemetry", INFOCOM 2019). With [Options.Balanced] the probes are about equally long. With depots the
// probes pass as few links as possible a second time (INT-Probe: T. Pan, X. Lin et al., "INT-probe: Lightweight In-band
// Network-Wide Telemetry with Stationary Probes", ICDCS 2021). This is a T-join in which depots may have any degree,
// and matching solves it.
//
// Several things go beyond the papers: covers of both directions of every link, a limit on hops, and unusable links and
// ports. So do pairs of covers of which no single failure blinds both. A new plan after a failure ([Replan]) keeps
// every probe that the failure does not touch.
//
// The plans as published are here too, for comparison ([DFS], [Paper], [PaperBalanced], [IntBalance]). Every function
// is pure. Problem, options and seed determine the result, and a function in the options decides when to stop. The
// check, [cover.Check], validates the plans and shares no code with this package.
//
// # Readings of the papers
//
//   - INT-path (INFOCOM 2019), figure 2, recurses into the current node instead of the neighbour; --method dfs follows
//     the text.
//   - Its Euler plan removes shortest paths between odd nodes: of a random pair (--method paper), or the longest
//     (paper-balanced).
//   - Lengths are links. The paper counts nodes, one more; the variance is the same.
//   - Without a set-up in the text, random graphs are connected with five links a node, and fabrics are real fat-trees
//     and complete leaf-spines. Figure 14 emulates 40 switches with links of 4 Mbit/s and 8000 packets a second.
//   - INT-Balance (ICC 2023; --method int-balance) cuts the network at odd nodes and joins the two shortest segments
//     that share an end. Undefined are ties, where earlier segments are joined first, and circuits without odd nodes,
//     which go into the first segment that they touch.
//   - INT-Probe (ICDCS 2021) does not split the network among its generators: one problem is solved, and its walks are
//     cut from one multigraph.
package solve

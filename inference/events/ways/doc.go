// Package ways finds events on the ways of flows. It has four parts, [Reroutes] for changes of paths, [Silent] for
// losses without a report, [Probed] for losses of agents' probes, and [Wires]. The losses are at links, ends of ways and
// flows. The wires are learnt from paths: which node is behind which interface.
package ways

// Package ways finds events on the ways of flows. It has three parts, [Reroutes] for changes of paths, [Silent] for
// losses without a report, and [Wires]. The losses are at links, ends of ways and flows. The wires are learnt from
// paths: which node is behind which interface.
package ways

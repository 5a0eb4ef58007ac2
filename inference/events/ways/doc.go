// Package ways finds events on the ways of flows. [Reroutes] are other paths than before. [Silent] finds links, ends of
// ways and flows whose packets vanish without a report. [Wires] are learnt from paths: which node is behind which
// interface.
package ways

// Package ways finds what happens on the ways of flows: other paths than before ([Reroutes]), and links, ends of ways and flows whose
// packets vanish without a report ([Silent]). It learns from paths which node is behind which interface ([Wires]).
package ways

// Package pathmix finds the paths of a flow whose packets are spread over several of them, and the share of each, from PINT
// digests. Package pathtrace follows up to a few paths of a flow as they come and go; this one takes many digests at once and
// asks which set of paths explains all of them together.
//
// # Candidates
//
// Packets with the same number of hops are looked at together; where a flow has paths of several lengths each length is a problem
// of its own. A candidate is a walk over links of that many nodes that does not come back to a node. It leads from one of the
// likely first nodes to one of the likely last ones. Config.Ends says what these are, or else digests do. Shortest paths need not
// be asked for: how many hops a packet had says as much, and packets that are sent over a detour first take paths that are no
// shortest ones.
//
// Candidates are enumerated by depth-first search, which carries the set of packets that a path explains so far and turns back
// where these are too few. Where there are too many walks, those come first that speak against digests at no hop, then at one,
// and so on (limited discrepancy search). A mixture that was found shows which digests are not explained well; the search is
// repeated with these weighing more.
//
// # Fit
//
// The likelihood of a digest is 1 under a path that explains it and 0 under one that does not. One more column is chance, under
// which a digest of b bits has the likelihood 2⁻ᵇ. The mixture that makes all digests most likely is a concave problem: shares by
// expectation and maximisation, with columns added where the slope says so. A column has a price, the logarithm of the number
// of candidates and half that of the number of digests, and those are taken out again that are not worth theirs.
//
// # What is published
//
// For each path of the mixture the best mixture without it is looked for, among all candidates. Only if it is much less likely
// is the path published. If it is about as likely, the digests do not distinguish its paths from those of the first mixture, and
// all of them are named as inseparable. Some sets of paths cannot be distinguished by any number of digests: where a packet
// carries one hop only, two paths that share no inner node look like the two that swap at the middle.
//
// A path that the links do not have makes others look used that share nodes with it. Columns that leave one to three hops of a
// path of the mixture open stand for it; what they take is published as unexplained.
//
// # Cost
//
// Memory is bounded: two bytes for each candidate and digest, three for each of up to 1024 columns with open hops, and some bits
// beside, which is 16 MiB with the defaults. Work is bounded by Config.Steps for each enumeration, and by the rounds and columns of
// a fit. BenchmarkFit measures it.
package pathmix

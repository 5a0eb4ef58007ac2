// Package pathmix finds the paths of a flow whose packets are spread over several of them, and the share of each, from
// PINT digests. Package pathtrace follows a few paths of a flow as they come and go. This one takes many digests at
// once and finds the set of paths that explains all of them together.
//
// # Candidates
//
// Packets with the same number of hops are fitted together. A flow with paths of several lengths is one problem for
// each length. A candidate is a walk over links of that many nodes that visits no node twice. It leads from one of the
// likely first nodes to one of the likely last ones. Config.Ends gives these, or else they come from digests. Paths
// need not be shortest ones, because the number of hops of a packet restricts them as much. Packets on a detour first
// take paths that are not shortest.
//
// Candidates are enumerated by depth-first search, which carries the set of packets that a path explains so far. It
// turns back where these are too few. If there are too many walks, those come first that contradict digests at no hop,
// then at one, and so on (limited discrepancy search). A mixture shows which digests it does not explain well. The
// search is repeated with more weight on these.
//
// # Fit
//
// The likelihood of a digest is 1 under a path that explains it and 0 under one that does not. One more column is
// chance, under which a digest of b bits has the likelihood 2⁻ᵇ. The mixture that makes all digests most likely is a
// concave problem. Shares come from expectation and maximisation, and columns are added by the slope of the likelihood.
// A column has a price: the logarithm of the number of candidates and half that of the number of digests. Columns that
// are not worth their price are removed again.
//
// # What is published
//
// For each path of the mixture, the best mixture without it is computed, among all candidates. The path is published
// only if that one is much less likely. If it is about as likely, the digests do not distinguish its paths from those
// of the first mixture. All of them are then named as inseparable. Some sets of paths cannot be distinguished by any
// number of digests. If a packet carries one hop only, two paths that share no inner node look like the two that swap
// at the middle.
//
// A path that the links do not have makes others look used that share nodes with it. Columns that leave one to three
// hops of a path of the mixture open stand for it; what they take is published as unexplained.
//
// # Cost
//
// Memory is bounded, to 16 MiB with the defaults. There are two bytes for each candidate and digest, three for each of
// up to 1024 columns with open hops, and some bits beside. Work is bounded by Config.Steps for each enumeration, and by
// the rounds and columns of a fit. BenchmarkFit measures it.
package pathmix

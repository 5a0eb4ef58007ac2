// Package aggregation aggregates the values in the digests of a flow. It implements the collector's side of two
// aggregations of PINT (section 4.1 of the paper). A [Pool] does the dynamic per-flow one (theorems 1 and 2), for
// values of each hop. A [LoadTracker] does the per-packet one, for the utilisation of the bottleneck.
//
// # Values of hops
//
// A digest holds the compressed value of one hop, the last one that wrote to it. The decoder finds by hashing which hop
// that was. A pool adds the value to a sketch of the flow and the hop, with a fixed number of bytes, 100 by default.
// The values can be latencies, queue lengths or anything else for which there is a [Code].
//
// # Quantiles
//
// The paper puts the codes into a KLL sketch. This package lets equal codes share an entry instead, because there are
// only few different ones. A sketch is a list of bins, each a code with a weight. It has room for 30 bins of codes of
// up to 8 bits in 100 bytes. Codes of 4 bits need 16 bins at most and are therefore counted exactly, however many there
// are. So are wider codes while at most 30 different ones have come. The next different code makes two neighbours share
// a bin: those for which w₁·w₂·distance³ is smallest. The bin that they share has the code of one of the two, which is
// drawn with the weights as odds. As in KLL, the rank of every code therefore stays right on average. A merge adds a
// variance of w₁·w₂ to the ranks of codes between the two, and none to those of others.
//
// This gives up the bound on the error that KLL has for every stream. What it gains is measured in
// TestSketchesAgainstAllCodes, with codes of 8 bits, 3000 digests, and log-normal, Pareto and bimodal latencies. Compared
// with the quantiles of all codes, medians are 0 to 3 % off and 0.99-quantiles 3 to 7 %. With [quantile.Tiny] in 120 bytes it
// is 1 to 6 % and 18 to 75 %.
//
// # Frequent values
//
// A sketch of kind [Frequent] is the algorithm Space-Saving, with 18 counters of 32 bits in 100 bytes. Every code of
// more than 1/18 of the digests is in its list. No count is wrong by more than 1/18 of all digests.
//
// # Windows
//
// A hop can have several sketches, called panes, which are used in turn: each takes the digests of some time, or a number
// of digests. An answer then covers the pane in use and those before it, and so a window that is as long as all panes at
// most. It is shorter by one pane when the one in use has just begun.
//
// # Load of the bottleneck
//
// The digest of a packet holds the largest utilisation of all links that the packet crossed. Every switch rounds the
// utilisation of its own link, at random, to a code of a few bits. It writes that code if it is larger than the one in
// the digest. Which switch wrote it remains unknown.
//
// With the code of [UtilizationCode], a digest of 8 bits gives the utilisation within 5.1 %. On average the values are
// right, as long as all switches use the same hash of the packet id to round; see
// [github.com/hopscope/hopscope/decode/pint.Levels]. How a switch averages the utilisation of its link is
// [github.com/hopscope/hopscope/decode/pint.Line].
//
// A [FlowLoad] covers a window of time in four panes of equal length, and answers with the largest and the mean value
// of the window. The mean is right on average. The largest value is too high by up to the distance between two codes,
// because the values of some of many packets were rounded up.
//
// Random choices follow from a seed, and time is an argument. A [Pool] has one owner and is not safe for concurrent use.
package aggregation

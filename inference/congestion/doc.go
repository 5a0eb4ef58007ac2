// Package congestion keeps the bottleneck utilisation of a flow's path, from its digests. It is the collector's side of PINT's
// per-packet aggregation (section 4.1 of the paper). The digest of a packet holds the largest utilisation of all links that the
// packet crossed: every switch rounds the utilisation of its own link, at random, to a code of a few bits, and writes that code
// if it is larger than the one in the digest. Which switch wrote it remains unknown.
//
// With the code of [UtilizationCode], a digest of 8 bits gives the utilisation within 5.1 %. On average the values are right, as
// long as all switches use the same hash of the packet id to round; see [github.com/hopscope/hopscope/decode/pint.Levels]. How a
// switch averages the utilisation of its link is [github.com/hopscope/hopscope/decode/pint.Line].
//
// A [Flow] covers a window of time in four panes of equal length, and answers with the largest and the mean value of the
// window. The mean is right on average. The largest value is too high by up to the distance between two codes, because
// among many packets there are some whose value was rounded up.
//
// Time is an argument, and nothing in this package is random.
package congestion

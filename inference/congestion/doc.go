// Package congestion keeps what digests say of the bottleneck of a flow's path: PINT's per-packet aggregation (section
// 4.1). Every switch rounds the utilisation of its link at random to a code of a few bits and writes it if it is larger
// than the one in the digest, so that the digest of every packet tells the largest utilisation on its path; who had it
// remains unknown. With [UtilizationCode] that takes 8 bits and is right within 5.1 %, and without bias as long as all switches
// round by the same hash of the packet id; see [github.com/hopscope/hopscope/decode/pint.Levels].
//
// How a switch averages the utilisation is [github.com/hopscope/hopscope/decode/pint.Line].
//
// A [Flow] holds the last digests in four panes of equal time: the largest value of the window, which errs on the high side
// by up to the distance of two codes because of many packets some are rounded up, and the mean, which does not err.
// Time is an argument; nothing here is random.
package congestion

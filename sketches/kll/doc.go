// Package kll estimates ranks and quantiles of a stream in very little memory. Its [Tiny] is the sketch of Karnin, Lang
// and Liberty, "Optimal Quantile Approximation in Streams", FOCS 2016. It is cut down to 16-bit codes in 120 bytes.
// Millions of them fit into the entries of a flow table.
//
// A sketch keeps some of the codes, on levels. A code on level h stands for 2ʰ codes. When there is no room left, a
// level is compacted. Its codes are sorted, every other one moves to the next level, and the rest is discarded. The
// flip of a coin decides whether the first or the second of each two moves.
//
// # Guarantee
//
// Up to 50 codes, every answer is exact. Beyond that, whatever the distribution and the order of the codes, and also
// after merges, each of these holds with 99 % confidence:
//
//   - the error of any one rank is at most 9 %, as a share of the number of codes;
//   - the largest error over all ranks at once is at most 12 % ([TinyErrorBound]);
//   - the estimated 0.99-quantile is a code of rank 0.92 or more.
//
// The smallest and the largest code are exact, but for the smallest one of a sketch that was fed by [Tiny.AddSample].
//
// # What is not promised
//
// A rank error of 9 % bounds little in the last percent of a distribution. Where the tail matters, count codes in a
// logcode.Histogram or use package tail. Merging in another order gives a sketch that keeps the same bounds, but not
// the same bytes. A sketch reads no clock and no global generator: its input and the [Rand] of the caller decide every
// bit.
//
// # Readings of the paper
//
//   - The capacities of levels are shares of one pool of 50 places and not limits. Nothing is compacted while there is
//     any room. Then it is the turn of the lightest level that holds its share.
//   - Coins come in pairs: every second compaction of a level keeps the half that the one before it dropped. That
//     halves the variance (Ivkin, Liberty, Lang, Karnin, Braverman, "Streaming Quantiles Algorithms with Small Space
//     and Update Time", 2019, §3). The sweeping compaction of that article was tried on a larger sketch with such a
//     pool, and gained nothing there.
//   - There are four levels. When they are used up, the base rises. Of each 2^base codes one is taken and the others
//     are skipped, as in §4 of the paper. From then on most codes cost next to nothing.
//   - Of an odd number of codes, the largest waits for the next compaction, because operators ask for the upper quantiles.
package kll

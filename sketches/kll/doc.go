// Package kll estimates ranks and quantiles of a stream in bounded memory: the sketch of Karnin, Lang and Liberty,
// "Optimal Quantile Approximation in Streams", FOCS 2016.
//
// A sketch keeps some of the values, on levels; one on level h stands for 2ʰ values. When there is no room, a level is
// compacted: of its values in order, all odd or all even ones move to the next level, by the flip of a coin, and the
// others are forgotten. [Sketch] works for any ordered numeric type and any accuracy, [Tiny] for 16-bit codes in 120
// bytes flat. Both merge. Neither reads a clock or a global generator: the seed and the input decide every bit.
//
// # Accuracy
//
// With 99 % confidence the largest error over all ranks at once stays within ErrorBound(k) = 2.296/k^0.9723, as a
// share of the number of values, whatever their distribution and order, also after merges:
//
//	k      error    a sketch of 16-bit codes   of 64-bit values
//	8      30.4 %   210 B                      568 B
//	25     10.0 %   276 B                      832 B
//	100     2.61 %  596 B                      2.1 KB
//	200     1.33 %  1 KiB                      3.8 KB
//
// At the length that is worst for k = 200, 86 000 values, 8 of 2000 shuffled streams exceeded the bound; the error at the
// median alone was within 0.84 % in 99 % of them.
//
// The formula is the one that Apache DataSketches fitted to its own KLL sketch, so the same k means the same accuracy
// there and here. Less memory does for it here, because of what follows.
//
// # Readings of the paper
//
//   - Capacities shrink by c = 5/8 a level from the heaviest down, with a floor of 2. They are shares of one pool, not
//     limits: nothing is compacted while there is any room, and then it is the lightest level that has its share.
//   - Coins come in pairs: every second compaction of a level keeps the half that the one before did not, which
//     halves the variance (Ivkin, Liberty, Lang, Karnin, Braverman, "Streaming Quantiles Algorithms with Small Space
//     and Update Time", 2019, §3). Their sweeping compaction was tried as well: with pooled capacities it brought
//     nothing, in a simulation of 300 streams of 3 000 to 400 000 values.
//   - When the levels are used up, base rises: below, one of each 2^base values is taken, as in §4 of the paper. The
//     number of levels follows from k so that sampling adds some 2 % to the variance. From then on memory does not
//     grow and most updates are a decrement.
//   - Of an odd number of values, the largest waits for the next compaction: people ask for the upper quantiles.
package kll

// Package tail estimates quantiles of a stream in very little memory, the upper ones best. A [Sketch] takes 120 bytes,
// so that millions of them fit into the entries of a flow table. It answers the first question about latencies: how
// slow are the slowest of a hundred.
//
// # How
//
// Up to 51 codes are kept as they are. Then 102 cells count them, neighbours on a logarithmic scale. There are 128
// cells an octave if all values are alike, and as few as the range of the values requires. Up to one code of 256 may
// lie beyond the cells, and counts in the outermost one; more make the cells wider. The smallest and the largest code
// are kept beside them.
//
// A cell is a byte, a floating-point number with four bits of mantissa. It is rounded up or down at random so that it
// is right on average. It is exact up to 31. Beyond, it is off by a seventh, independently of the others, of which the
// tail of a distribution has dozens.
//
// From 384 codes on, most codes only repeat where the middle of the distribution is. So only one of every 2, 4, 8, ...
// codes is counted, with their weight. Codes above a limit are all counted: one code of 40 is above it. The limit is
// found anew four times while the number of codes doubles, and where it no longer holds.
//
// # Guarantee
//
// Up to 51 codes, every answer is exact. The largest code and the number of codes are always exact. Beyond that, the
// 0.99-quantile of values in random order is within 10 % of the true one with 95 % confidence. That holds for
// distributions as heavy as Pareto's with exponent 1.5 that spread over up to 12 octaves between their median and it.
// Measured errors are far smaller (go test -run TailError -v -flows 1000, for flows of 10³ to 10⁶ codes). With
// lognormal values, σ = 1, half of 1000 flows are off by less than 0.8 %, and 95 % by less than 3.2 %. With Pareto's it
// is 0.9 and 3.8 %. TestTailError has some tens of flows of each distribution. TestPromise fails by chance less often
// than once in a million times. The median has a rank error of up to 6 %, and the 0.9-quantile of up to 4 %, with 95 %
// confidence.
//
// # What is not promised
//
// An answer is a value and not one of the codes that came: within a cell, values count as spread evenly. Where a
// distribution has a narrow part and a tail a hundred times further out, cells are an eighth of an octave wide.
// Quantiles in the narrow part are then off by up to 6 %; package kll has them exactly, and the tail not at all.
// Merging in another order gives a sketch that keeps the same bounds, but not the same bytes. A sketch has no form on
// disk.
//
// # What was tried
//
// A KLL sketch (package kll, Tiny) in the same memory promises ranks. A rank error of 4 % bounds nothing in the last
// percent. With lognormal values, σ = 1, its 0.99-quantile is off by 27 % in the median of flows. One flow of 20 is off
// by more than 130 %. With Pareto's it is 41 and 420 %. Counting the sample alone, without the limit, leaves some ten
// codes of 384 beyond the 0.99-quantile. That is an error of 20 %.
package tail

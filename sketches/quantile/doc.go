// Package quantile estimates quantiles of a stream of 16-bit codes in 120 bytes. Millions of its sketches fit into the
// entries of a flow table. [Tiny] bounds the error of ranks, everywhere alike. [Tail] bounds the error of values, in the
// tail best: how slow are the slowest of a hundred. [BriefTail] is a Tail of few codes in 52 bytes.
//
// Merging in another order gives a sketch that keeps the same bounds, but not the same bytes. A sketch reads no clock and
// no global generator: its input and the [Rand] of the caller decide every bit. A sketch has no form on disk.
package quantile

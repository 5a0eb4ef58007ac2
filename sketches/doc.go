// Package sketches holds summaries of streams in bounded memory. This page is a guide to the choice.
//
//	question                                   type       memory                      error
//	──────────────────────────────────────────────────────────────────────────────────────────────────────────────────
//	quantiles of each of millions of streams    Tail, Tiny 120 B for each, or 52 B     Tail, value at the 0.99-quantile: 10 %, at 95 %
//	of 16-bit codes, such as every hop of                  for few codes               confidence. Tiny, rank: 12 % over all ranks, 9 %
//	every flow                                                                         at any one, at 99 % confidence
//	quantiles of one stream, such as a device   Histogram  96 B and 128 B an octave,   value: 1/64 = 1.56 %, always
//	in a window, by counting all codes                     7.8 KB at most
//	state by key, with eviction                 FlowTable  as configured, never more   none; the owner sees every entry
//	                                                                                   that is evicted
//	the right answer, for tests                 Exact      everything                  none
//
// A rank error of ε means that the quantile q comes back as a value whose true rank is within q ± ε. A value error of ε
// means that it comes back within ±ε of the true value of that rank. A rank error keeps the middle of a distribution
// right whatever its shape. It bounds little in the last percent unless ε is small against that. Value errors hold at
// every quantile.
//
// Package [github.com/hopscope/hopscope/sketches/quantile] has Tail, Tiny and Histogram. It turns values into codes once,
// when they come in, and codes back into values when they go out, with an error of 0.05 % at most. Every sketch has one
// owner; none uses a lock, a clock or a goroutine. Chance comes from a seed that the owner gives, so a replay gives the
// same bytes. All but [FlowTable] merge.
//
// [MakeHuge] is for the large slices that tables lie in.
package sketches

// Package sketches holds summaries of streams in bounded memory. Each has its package; this page says which one when.
//
//	question                                  package    memory                       error
//	─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
//	quantiles of one of millions (a hop of a   kll.Tiny   120 B flat                   rank 12 % over all ranks, 9 % at one, at 99 %
//	flow), of 16-bit codes                                                            confidence; minimum, maximum and up to 50
//	                                                                                  codes exact
//	quantiles of some, any numeric type        kll        1 KiB of 16-bit codes at     rank 2.296/k^0.9723 over all ranks at 99 %:
//	                                                     k = 200, 3 KiB of float64    1.33 % at k = 200
//	quantiles of a window of a device, by      logcode    96 B + 128 B an octave,      value 1/64 = 1.56 %, always
//	counting all codes                                    7.8 KB at most
//	quantiles that shards, processes and       ddsketch   8 B a bin, 16 KB at most     value α, 1 % by default, always, after any
//	sites merge, of any positive value                                                merges; bins that collapse: lowest values
//	state by key, with eviction                flowtable  as configured, never more    none; who is evicted is told and counted
//	heaviest keys                              topk       m counters                   count N/m too high at most, of total weight
//	                                                                                  N; all keys above N/m are there
//	the right answer, for tests                exact      everything                   none
//
// A rank error of ε means that a quantile q comes back as a value whose true rank is within q ± ε; a value error of ε,
// that it is within ±ε of the true value of that rank. Rank errors keep the middle of a distribution right whatever
// its shape, and say little of its last percent unless ε is small against it; value errors hold at every quantile.
//
// Values become codes once, by [github.com/hopscope/hopscope/sketches/logcode], on their way in, and codes become values
// on their way out: 0.05 % at most. Every sketch is a plain value with one owner, without lock, clock or goroutine.
// Chance comes from a seed that the owner gives, so a replay gives the same bytes. All but exact and flowtable merge.
package sketches

// Package latency keeps what the digests of a flow say of each hop: PINT's dynamic per-flow aggregation (section 4.1, theorems
// 1 and 2). A digest holds the compressed value of one hop, the last that wrote, whom the decoder knows by hashing; here
// it goes to a sketch of that flow and hop, of a fixed number of bytes, 100 by default. The values may be latencies,
// queues or anything else that has a [Code].
//
// # Quantiles
//
// The paper takes a KLL sketch of the codes. Here equal codes share an entry, because there are few different ones:
// a sketch is a list of bins, codes with a weight, 30 of them in 100 bytes for codes of up to 8 bits. Codes of 4 bits, 16
// bins, are counted exactly whatever their number, and so are wider ones while fewer than 30 differ. When one more comes,
// two neighbours share a bin, those for which w₁·w₂·distance³ is smallest; its code is one of theirs, drawn with the weights as
// odds. As in KLL the rank of any code stays right on average: a merge adds a variance of w₁·w₂ to the ranks between the
// two, and none to others.
//
// What that gives up is KLL's bound for any stream whatever. What it gains is measured in TestSketchesAgainstAllCodes:
// with codes of 8 bits, 3000 digests and log-normal, Pareto and bimodal latencies, medians are 0 to 3 % and
// 0.99-quantiles 3 to 7 % from those of all codes together; [kll.Tiny] in 120 bytes is 1 to 6 % and 18 to 75 % off.
//
// # Frequent values
//
// A sketch of [Frequent] is Space-Saving, 18 counters of 32 bits in 100 bytes: every code that more than 1/18 of the
// digests have is in the list, and no count is off by more than 1/18 of all.
//
// # Windows
//
// With several panes a hop has one sketch for each, which are used in turn, by time or by number of digests: answers
// then cover the last panes, from all of them full to one of them just begun.
//
// Chance comes from a seed; time is an argument. A [Pool] has one owner and is not safe for concurrent use.
package latency

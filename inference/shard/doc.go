// Package shard keeps what one shard of a collector knows: its flows with the quantile sketches of their hops, and the
// hops of the open window. Shards share nothing, and a flow belongs to one of them. What they saw of a window becomes
// one [inference.Partial].
//
// # Flows
//
// A flow is an entry of a flowtable.Table (key, counters, path, a buffer of codes: six cache lines) and a block for each
// hop with a KLL sketch of 120 bytes for latencies (package kll, Tiny). Values enter as 16-bit log codes (package
// logcode). With paths of five hops that is about 1080 bytes a flow, index included. Queues are kept for the hops of the
// network, and for those of the busiest flows of a window: a sketch of them for every flow took a sixth of the shard's
// time and a third of its memory.
//
// A report appends the codes of its hops to the flow's buffer; every 16 reports the buffer is flushed into the sketches,
// which take 16 codes at once much faster than one by one. Sketches that saw some hundreds of codes take one of 2, 4, 8,
// ... of them, by chance; from then on the flow makes that choice for all of its hops, once for a report, and most
// reports leave nothing behind but their largest codes. Counts and maxima stay exact. Flows of which some hop lacks
// latencies, paths of more than 8 hops and candidates for the busiest flows are left out of this.
//
// With many flows each report is a chain of cache misses, so
// reports are worked in batches of 128 and in passes that each read another place for all of them: hash the keys, find
// the index cells, find the entries, read the lines that will be written, then count.
//
// Only complete stacks tell a path: those that are not cut, were not refused a hop and do not come from a transit node.
// Another path than before is a path change; hops that both paths have keep their sketches, and so do those of former
// paths, as many as the path has itself. Incomplete stacks and drop reports count for the hops that they name. Reports
// about one hop (INT-XD, local headers) are put together to a path by falling TTL, and never change it one by one.
//
// # Hops and windows
//
// A place in the network is a node and an egress interface. Each has two histograms of dense log codes a window, exact
// but for the rounding of values to 1/64. The busiest flows of a window are found exactly, and have such histograms of
// their own for each hop (see topFlows). [State.Cut] hands a window over and starts the next one in other memory;
// [Cut.AddTo] turns it into a [inference.Partial].
//
// # Bounds
//
// Memory is what the configuration says. Flows make place for others when they are idle, or when the table or the
// blocks run out; hops beyond the table are folded into one called other; path changes and drops beyond their lists are
// counted; hops beyond the longest path that is kept count in the windows alone. All of it is in [Stats] or in the
// window.
//
// # What was measured
//
// Reports a second with everything before and behind included (bench/pipeline: decoding, exporters, detectors; five
// hops), on one of two shared cores of an EPYC at 2.6 GHz, best of two alternating runs:
//
//	                                  10 000 flows   1 000 000 flows
//	batches of 64, buffers              2.56 M           2.05 M
//	batches of 32                       2.65 M           2.10 M
//	batches of 256                      2.52 M           2.29 M
//	one report at a time                1.74 M           0.73 M
//	every report into the sketches      1.50 M           0.72 M
//
// Batches of 128 are the compromise. The table is older than the following, which make all of its rows faster. Choosing
// reports for the sketches brought 16 to 40 ns of 146 to 182 at 10 000 flows with 2000 reports each; of what is left, a
// third goes to the windows of the hops, a third to finding the flow and reading ahead, a tenth to candidates for the
// busiest flows. Huge pages for the tables brought 12 % at a million flows, where every access misses the TLB as well.
//
// What brought nothing: a histogram object for each hop of the window, whose cache misses were waited for one by one
// (twice the time); counters of a hop at fixed places instead of in pages of octaves, which spares a look-up and takes
// twice the memory (the same time); what shards read of a report in its first two cache lines (the same time); a
// profile for the compiler (3 ns of 70 before the shard, nothing in it).
package shard

// Package shard holds the state of one shard of a collector. It consists of its flows with the quantile sketches of
// their hops, and its counts of the open window. Shards share nothing, and a flow belongs to one of them. A window ends
// with [State.Cut]. Then [Cut.AddTo] turns the shard's part of it into a [window.Partial], which merges with those of
// other shards.
//
// # Observers
//
// The state of a shard is divided among observers. Each has a file and its own state. The hops of the open window are
// counted in a layout of their own. The other results of an observer are added to the partial of the [Cut], within its
// bound. So a kind of a partial is defined once, in package inference:
//
//	hops.go    hop records of any report: the places of the network, counted in the window
//	drop.go    drop reports, by node and reason
//	fault.go   packets in loops
//	arrival.go flows that are new to the shard, where that is asked for
//	link.go    how long packets were on the links between switches
//	conform.go flows off the way that their policy allows
//	top.go     the busiest flows of the window, with the distributions of their hops
//	view.go    packets that are captured on several links of their way, whose hops count once
//	path.go    the path of a flow and its changes, from stacks of its hops; postcard.go from reports of one hop each
//	buffer.go  the sketches of a flow's hops, through a buffer of codes
//	pair.go    packets that the first switch on their way reports, and the last one does not
//	rounds.go  probes of plans that were lost, by the totals of their sender and receiver
//	ways.go    probes that an agent lost, with the routers on their way
//	digest.go  paths and values from PINT digests, which package digest reads
//
// Hops, drops and faults run over a batch at a time. Drops and loops are rare, so the batch is searched for them once.
// Further observers of rare reports get the same list: such an observer is a file and a line in [State.Update].
//
// The observers of a single flow (its path, its buffer, its digests, its rank among the busiest) run report by report
// instead. They share the cache lines of the flow, which with many flows are most of the cost of a report. Each acts
// upon the next in the order of the reports. A digest can change the path, a change of the path empties the buffer, and
// the buffer feeds the distributions of the busiest flows. A pass over the batch for each of them would read the same
// lines again. The result would depend on the batch's length.
//
// # Flows
//
// A flow is an entry of a sketches.FlowTable and a block for each hop. The entry has key, counters, path and a buffer of
// codes, in six cache lines. A block holds a sketch of 120 bytes for latencies that is most exact in the tail (package
// tail). Values enter as 16-bit log codes (quantile.Encode). As long as the sketch is brief, half a block holds it in 52
// bytes, to the bit. It is for up to 20 reports of five hops, and again from 60 to some 250 of them. With paths of five
// hops a flow takes about 740 bytes then and 1080 otherwise, index included. Where blocks run out, sketches that grow
// take those of flows that were not seen for longest. Queues are kept for the hops of the network, and of busy flows.
//
// A report appends the codes of its hops to the flow's buffer. A full buffer, after 20 reports of five hops, is flushed
// into the sketches. They take many codes at once much faster than one by one. A sketch that has seen some hundreds of
// codes samples one of 2, 4, 8, ... of them. It counts all of the largest fortieth (quantile.Tail). The queues of
// candidates for the busiest flows wait in a buffer beside.
//
// A lazy report in its short form ([decode.Lazy]) whose flow is on its known path is counted where it lies (short.go).
// Everything else about a flow is counted from reports, and both give the same state, to the bit.
//
// With many flows each report is a chain of cache misses. So reports are processed in batches of 128, in passes that
// each read another place of memory for all of them. The keys are hashed, the index cells found, the entries found, and
// the lines read that will be written. Then everything is counted.
//
// Only complete stacks give a path. A complete stack is not cut, has no hop that refused to add itself, and does not
// come from a transit node. Another path than before is a path change. Hops that both paths have keep their sketches,
// and so do hops of former paths, as many as the path has itself. Incomplete stacks and drop reports count for the hops
// that they name. Reports about one hop (INT-XD, local headers) are combined to a path by falling TTL, and a single one
// never changes it.
//
// A flow that was silent for the idle timeout is forgotten. The sweep that releases its memory comes by at a pace that
// depends on the number of flows. A flow that returns before the sweep begins anew all the same: its state does not
// depend on the number of others.
//
// # Hops and windows
//
// A place in the network is a node and an egress interface. Each has two histograms of dense log codes a window, exact
// but for the rounding of values to 1/64. The busiest flows of a window have such histograms of their own for each hop.
//
// A shard has places for max(16, 4 × TopFlows) candidates for the busiest flows. While a window has no more flows than
// that, they have all values of their flows. The bound in [window.Partial] is the number of reports that a flow may have
// had without being listed. The histograms of listed flows lack at most as many reports.
//
// # Bounds
//
// Memory is bounded by the configuration. Flows make place for others when they are idle, or when the table or the
// blocks run out. Hops beyond the table are folded into one called other. Path changes, drops and faults beyond their
// lists are counted. Hops beyond the longest path that is kept count in the windows alone. All of it is in [Stats] or
// in the window.
//
// What was tried is in docs/performance.md.
package shard

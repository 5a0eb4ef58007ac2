// Package rate measures what parts of hopscope carry: how many reports a core takes in memory ([Pipeline]), and how many reports and
// windows go through Kafka ([Raw], [Window]). It also measures how many probes an agent sends and how exactly ([Agent]), and what a core
// receives over UDP ([UDP]).
//
// Pipeline measures a core from the bytes of a datagram to the findings of a window: decoding with every check, exporter tracking, flow
// table, quantile sketches of every hop of every flow, windows of hops, and detectors. The reports are telemetry report 2.0 with an INT-MD
// 2.1 stack of five hops (node, interfaces, latency, queue) about flows through a fat-tree. They are written into a ring just before they
// are read, in batches of the size that a socket gives, and only the work behind that is timed: a million flows need no gigabytes of
// packets, and what is written is in the cache as it is behind a network card with direct cache access.
//
//	go test -run - -bench Pipeline -benchtime 1x ./bench/rate
//
// Raw sends reports through Kafka in two ways that take turns: as a bare loop of the Arrow library does it (its builders, zstd,
// produce, fetch, its readers), and as collectors and consumers do it. The bare loop is the baseline: the rest is the cost of
// hopscope.
//
// Agent measures the probe agent beside the plainest programs that do the same: a loop around sendmmsg for how much it sends, and a loop
// around clock_nanosleep for how exactly. Both run on the same pair of interfaces as the agent, in the same run and in turns, so that what
// the machine does besides falls on all of them.
package rate

// Package pipeline measures what a core does with reports in memory, from the bytes of a datagram to the findings of a
// window: decoding with every check, exporter tracking, flow table, quantile sketches of every hop of every flow,
// windows of hops, and detectors.
//
// The reports are telemetry report 2.0 with an INT-MD 2.1 stack of five hops (node, interfaces, latency, queue) about
// flows through a fat-tree. They are written into a ring just before they are read, in batches of the size that a socket
// gives, and only the work behind that is timed: a million flows need no gigabytes of packets, and what is written is
// in the cache as it is behind a network card with direct cache access.
//
//	go test -run - -bench Pipeline -benchtime 1x ./bench/pipeline
package pipeline

// Package rate measures the capacity of parts of hopscope. It measures how many reports a core takes in memory
// ([Pipeline]), and how many reports and windows go through Kafka ([Raw], [Window]). It also measures what a core
// receives from the network ([UDP]), and what other collectors receive of the same datagrams ([Peers]).
//
// Pipeline measures a core from the bytes of a datagram to the findings of a window. That is decoding with every
// check, exporter tracking, the flow table, quantile sketches of every hop of every flow, windows of hops, and
// detectors. The reports are telemetry report 2.0 with an INT-MD 2.1 stack of five hops (node, interfaces, latency,
// queue) about flows through a fat-tree. They are written into a ring just before they are read, in batches as large
// as a socket's. Only the processing is timed. So a million flows need no gigabytes of packets. The written bytes are
// in the cache, as behind a network card with direct cache access.
//
//	go test -run - -bench Pipeline -benchtime 1x ./bench/rate
//
// Raw sends reports through Kafka in two ways that take turns. One is a bare loop of the Arrow library (its builders,
// zstd, produce, fetch, its readers), the other is that of collectors and consumers. The bare loop is the baseline:
// the rest is the cost of hopscope.
//
// UDP measures receivers that have a core together with the kernel's work of receiving. Frames reach the kernel by test runs of
// an XDP program, which take so little time that the receiver is at its limit. The bare receivers (recvmmsg, TPACKET_V3, AF_XDP,
// a file) are the least that receives and counts on each path. They are held against checksums of what was sent.
package rate

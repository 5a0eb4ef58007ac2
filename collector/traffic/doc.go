// Package traffic makes telemetry reports and sends them over loopback, as fast as the machine can or at a given rate.
// It feeds the self-test, tests and benchmarks.
//
// A [Generator] writes datagrams of telemetry report 2.0, with one report each. Its inner IPv4/UDP packet carries an
// INT-MD 2.1 stack of node ID, level 1 interfaces, hop latency, and queue ID and occupancy. Without hops, the report
// is a postcard with the same values of the reporting node. Every exporter counts its own sequence numbers, so a
// receiver that got everything sees no gap, no duplicate and no reordering. Datagrams differ in what changes in a
// network: flow, packet ID, latencies and queues. A flow's path never changes. A seed gives the same bytes each time.
//
// [Noise] is the opposite: bytes that must be counted as malformed and harm nothing.
//
// [Send] refuses any destination but a loopback address: it is a load generator and must not be pointed at other machines.
package traffic

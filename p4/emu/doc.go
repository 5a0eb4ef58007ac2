// Package emu is a small network in one process. It has a fabric of switches with queues, hosts that send flows across
// it, and the telemetry that the switches write, byte by byte. It is the twin in Go of the P4 programs on a switch. It
// is also the source of traffic for the demo, the tests and the benchmarks.
//
// # What is emulated
//
// It is a discrete-event simulation in virtual nanoseconds. Hosts emit packets (Poisson or paced). Switches route them
// on shortest paths and choose among equal ones as hopscope.p4 does, by a hash of the 5-tuple that each switch salts differently. Every
// interface has a queue of bounded bytes that is served at a rate, first come first served, with tail drop. Hop latency
// and queue occupancy are therefore consequences of load. A script of faults changes rates, links, routes, access
// lists, switches and the delivery of reports.
//
// Packets are real: Ethernet, IPv4 or IPv6, UDP or TCP, with correct lengths and checksums after every hop. The source
// node inserts the INT shim and header, each node pushes its block, and the sink node reports and restores the packet.
// Payload is a counter followed by zeros. Only its first bytes are in memory, since zeros change no checksum. The
// encoders of the packages below decode write headers.
//
// Source-routed probes go through p4/hopscope.p4, as package program executes it: parser, table of trusted ports, routes,
// labels and blocks of INT. Queues, lines, faults and clocks are around it. The program gets what v1model does not show:
// nanoseconds, bytes in queues, loads of lines and counters.
//
// Packets of hosts go through hopscope.p4, too: parser, routes over IPv4 and IPv6, choice among next hops, time to live,
// addresses and checksums. On switches of the dialect int-md-2.1 it also writes INT: the source node chooses packets by
// its hash, the egress gets what was measured in the queue, and reports of INT and of queues are its clones. An exporter
// around it keeps less of the packet, joins reports to datagrams and numbers them. Digests, reports of drops and other
// people's dialects are written here, as INT of packets with labels (SR-MPLS), and that of switches with more than 509
// ports, which the program does not know. Of INT between UDP and TCP headers (NPT 2) it hashes the ports of UDP.
//
// # What a switch does to a packet
//
// The ingress time is taken when the last bit has arrived. A pipeline of fixed delay and small jitter leads to the
// egress queue. The reported occupancy is what the packet finds there, in bytes, without itself. The egress time is
// taken when the packet leaves the queue, so hop latency = pipeline + wait, without its own transmission. Blocks are
// written then.
//
// # PINT
//
// A plan ([pint.Plan]) takes the place of INT in a share of the flows. The first switch stamps the epoch of its plan.
// At its egress every switch applies its plan of that epoch to a packet's digest, whatever its dialect. The digest
// travels beside the packet, as in an existing header field, and takes no room on the lines. Hop numbers follow from
// the TTL, packet ids from a hash of invariant bytes. The last switch reports the digests of sampled packets in report
// 2.0 under their epoch, as domain specific metadata. The layout is in decode/telemetry/FORMAT.md. A switch that meets
// its own hash again reports a routing loop the same way.
//
// The frames of the three published PINT programs are in package program.
//
// # The control plane
//
// A controller writes to switches through [Switches]: plans, watch lists, routes and the ways of probes, as entries of
// the tables that [Tables] lists. Requests and answers are delayed, may get lost, and reach one switch after the other.
// A switch holds two plans at once. It does not touch a digest whose plan it does not hold. Such a digest is not
// reported, and counted in controlStats. So a change of plan in any order mixes no digests. It loses none if all
// switches hold the new plan before the first one stamps it.
//
// The table [PolicyTable] is of segment routing: the first switch puts labels before packets of a flow, by which the
// next ones send them (SR-MPLS). Every switch counts, by interface, sent packets, packets without room, and packets of
// segment routing, IPv4 and IPv6. Packets of the dialect fant read these counters.
//
// # Agents
//
// Config.Agents makes a host of a switch a probe agent. It holds a plan, and sends the frames of package p4/probe at
// its times. Switches follow them from ports of agents and from other switches. The receiving agent reports them from an
// address of its own. Plans reach agents by the channel of the control plane ([Agents]).
//
// # What is left out
//
// No Ethernet learning, no ARP, no TCP dynamics: senders do not slow down when packets are lost. Reports travel outside
// the emulated network and arrive when they are sent.
//
// # Repeatability
//
// The configuration and the seed determine every byte. Traffic, pipeline jitter, cross traffic, report delivery and the
// control plane have generators of their own, so that lost reports do not change the packets. A Network is not safe for
// concurrent use, and reads neither the clock nor the network; the Play of package scenario does.
package emu

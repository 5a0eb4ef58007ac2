// Package agent sends probes into a network at the times of a schedule, takes back those that come to it, and reports what they
// gathered to collectors. It is what "hopscope agent" runs on a host.
//
// # Parts
//
//	Plan       which probes, on which route, when, and with which instructions; Check refuses what an agent must not send
//	Timetable  what is due next; pure, time is an argument
//	Template   the frame of a probe, of which only number, round and time change
//	Parser     reads what comes back; pure, bounded, allocates nothing
//	Agent      sockets, the loops around the parts above, and their counts
//	Follow     plans from a controller over gRPC with mutual TLS, each answered by its epoch
//	Status     of an agent, by ServeStatus as JSON and as metrics, at an address of its own
//
// # A probe on the wire
//
// It is a source-routed frame as INT-Probe has it (decode/srint), whose route leads an ordinary IPv4 packet with INT-MD 2.1
// (decode/intmd):
//
//	dst 6 | src 6 | 0x0700 | route 2 + 2n | 0x0800 | IPv4 20 | UDP 8 | INT shim 4, header 12, stack | payload 24
//
// A switch takes the first entry off the route, leaves by its port, and puts its block on the stack as any transit node of
// INT does. With the last entry the route goes, so that what comes to the receiving host is IPv4. The sender writes the
// instruction bitmap: to look closer at a part of the network, the agent sends other headers, and no switch is written.
//
//   - UDP goes to intPort, which marks INT; the shim has NPT 1 and the original port probePort. The checksum is 0, so that
//     switches need not keep it right.
//   - The source port and the payload hold the number of the probe. A probe is a flow of its own, and a path of its own.
//   - The bit D of the INT header says that the sink node discards the packet.
//   - All probes carry [Config].Mark as their DSCP. A switch that leaves marked packets out of its counters does not measure
//     the load of its probes; docs/agent.md says where.
//
// The payload is 24 bytes: "HPRB", number 4, epoch of the plan 4, round 4, time of sending 8 (ns since 1970).
//
// # What it does not do
//
// Routes of INT-path, whose entries have 4 bits, have no place for an INT header, and are refused. IPv6 is not sent. The two
// hosts have to agree on time: a transit time rests on both clocks.
package agent

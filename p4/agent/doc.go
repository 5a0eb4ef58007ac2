// Package agent sends probes into a network at the times of a schedule, receives probes of other agents, and reports
// their metadata to collectors. The command "hopscope agent" runs it on a host. Plans, frames and awaited rounds are
// those of package probe, which has no sockets and no clock.
//
//	Agent      sockets, the loops around the parts of package probe, and their counts
//	Follow     plans from a controller over gRPC with mutual TLS, each answered by its epoch
//	STAMP      sessions and a reflector of package stamp, over sockets of UDP, for networks without our programs
//	IOAM       traces in requests over IPv6, which routers fill in, and segments that requests pass
//	Status     of an agent, by ServeStatus as JSON and as metrics, at an address of its own
//
// Routes of INT-path, whose entries have 4 bits, have no place for an INT header, and are refused. Only STAMP supports
// IPv6. The two hosts need synchronised clocks: a transit time is the difference of both.
package agent

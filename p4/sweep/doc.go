// Package sweep finds which ways probes of UDP take through a network that hashes: by packets whose TTL, or hop limit, is used up on their way, as traceroute
// does. Each source port may have another way. It has no sockets and no clock, and works over IPv4 and IPv6 alike.
//
//	Trace   the packets that find the way of one port, and the answers of routers to them
//	Watch   notices that a port has another way than before, as where a switch hashes otherwise
//	Choose  the fewest ports whose ways have every link, or distinguish every two links, with a bound
//
// What is known of a way are the addresses by which its routers answer. Where these are of the interfaces that packets come by, as most routers have it, an address
// stands for the link to it; where a router answers by one address whatever the interface is, a link is two of them, one after the other. A link next to a router that does not
// answer is not known, and neither covered nor counted as a link.
package sweep

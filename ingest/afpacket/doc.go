// Package afpacket reads the packets of interfaces through rings of memory that the kernel shares (AF_PACKET, TPACKET_V3).
//
// # When it is worth it
//
// A socket gives the datagrams that are sent to this machine. A ring gives every packet that an interface sees: reports to any
// address, as a mirror port delivers them, and the telemetry in packets on their way, such as probes, IOAM and INT. It also costs
// less than a socket, because a packet is neither looked up nor copied by a system call: the kernel writes it into a block
// of the ring, and the worker reads it there.
//
// # What is taken
//
// A filter in the kernel picks packets by UDP destination port, EtherType, IP protocol and address ([Config]). What it rejects
// costs no copy and is in no count. Packets of IPv4 in fragments are put together before the filter, those of IPv6 are not, so
// that only their first fragment is taken. The kernel strips the outer VLAN tag; it is put back in its place.
//
// Packets that this machine sends are left out, so that nothing is counted twice where both directions are seen. A packet that
// passes two interfaces is read twice: what is behind the source knows copies of reports by their sequence numbers.
//
// # How it reads
//
// An interface has a ring for every worker, and the kernel spreads the packets over them by the hash of their flow (PACKET_FANOUT),
// so that packets of one flow stay in order. A ring is a list of blocks. The kernel fills one after the other and hands it over when
// it is full, or after [Config].Wait. The frames of a batch lie in the block, which the kernel has back when all of them were
// handed over. Blocks are of 256 KiB: a ring of 16 MiB outlives a pause of its worker of 64 waits, or of what fills it.
//
// # What is lost, and how it is known
//
// Where no block is free, the kernel drops packets and counts them. [Source.Stats] adds up what the filter took: handed
// over + KernelDropped. When the context ends, a filter turns away what still arrives, and what is in the rings is handed over.
//
// An interface that goes down is a problem of its input, and so is one that was removed; both are read again when they are back.
//
// # Beside the network stack
//
// The rings do not take packets away from the network stack. A datagram to this machine, at a port that no socket has,
// is answered with an ICMP error as ever. A firewall that drops these datagrams saves that, and the rings still have them.
//
// Reading needs CAP_NET_RAW. gopacket has such a reader too, which needs C; this program is built without.
package afpacket

// Package afpacket reads the packets of interfaces through rings of memory that the kernel shares (AF_PACKET, TPACKET_V3).
//
// # When it is worth it
//
// A socket receives the datagrams that are sent to this machine. A ring receives every packet that an interface sees.
// That includes reports to any address, as a mirror port delivers them, and telemetry in passing packets, such as
// probes, IOAM and INT. It also costs less than a socket, because no system call looks up or copies the packet. The
// kernel writes it into a block of the ring, and the worker reads it there.
//
// # What is taken
//
// A filter in the kernel selects packets by UDP destination port, EtherType, IP protocol and address ([Config]). A
// rejected packet costs no copy and is not counted. Fragments of IPv4 are reassembled before the filter. Those of IPv6
// are not, so only the first fragment is taken. The kernel strips the outer VLAN tag; it is put back in its place.
//
// Packets that this machine sends are left out, so that no packet is counted twice where both directions are seen. A
// packet that passes two interfaces is read twice. The sequence tracker finds copies of reports by their sequence
// numbers.
//
// # How it reads
//
// An interface has a ring for every worker. The kernel distributes the packets over them by the hash of their flow
// (PACKET_FANOUT), so that packets of one flow stay in order. With one worker it computes no hash, a fifth of its work
// for a packet. With [Config].CPUs a worker runs on a CPU of its own, and its ring is memory of that CPU's node. A ring is a list of blocks. The kernel fills one after
// the other, and hands a block over when it is full or after [Config].Wait. The frames of a batch lie in the block,
// which returns to the kernel when all of them were handed over. Blocks are of 256 KiB. A ring of 16 MiB survives a
// pause of its worker of 64 waits, or until it is full.
//
// # What is lost, and how it is known
//
// When no block is free, the kernel drops packets and counts them. The filter accepted handed over + KernelDropped
// packets, both in [Source.Stats]. When the context ends, a filter rejects further packets, and the packets in the
// rings are handed over.
//
// An interface that goes down or is removed is a problem of its input. It is read again when it is back.
//
// # Beside the network stack
//
// The rings do not take packets away from the network stack. A datagram to this machine, at a port that no socket has,
// is answered with an ICMP error as ever. A firewall that drops these datagrams saves that, and the rings still have them.
//
// Reading needs CAP_NET_RAW. gopacket has such a reader too, which needs C; this program is built without.
package afpacket

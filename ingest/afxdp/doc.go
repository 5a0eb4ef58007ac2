// Package afxdp reads the report datagrams of interfaces through rings of AF_XDP, around the kernel's network stack.
//
// # What is steered
//
// A program in the driver (XDP) steers datagrams to the UDP ports into the rings, from or to the addresses of the settings.
// The kernel does not see these frames: no socket and no packet capture has them, and no ICMP error answers them. Everything
// else passes to the kernel, and with it to rings of [afpacket], which take from it what the same settings say. These are
// fragments, frames above 1792 bytes, packets with options or extension headers, and protocols and EtherTypes, which a host
// may need itself. So both sources hand over the same frames.
//
// # How it reads
//
// Each receive queue of an interface has a socket with memory for frames (UMEM). The network card, or the kernel by a copy,
// writes a frame into a chunk of 2048 bytes and its place into the ring. The worker reads it there, and returns the chunks of
// a batch to the fill ring. Frames of one flow come from one queue, in order.
//
// The program puts the time of the monotonic clock before the frame. The worker converts it to the wall clock. Where a driver
// has no room for it, the time is that of reading.
//
// # What is possible where
//
// The program is attached in driver mode, else in generic mode, in which the kernel runs it on every packet of any interface.
// The kernel binds a socket with zero-copy if the driver has that, else with copies. Without rights, kernel or interface for
// it, AF_PACKET reads alone, and a notice says why. The kernel detaches the program when the process ends, however it ends,
// because the link of the program belongs to the process (bpf_link, since Linux 5.9). The program is attached before sockets are
// bound, since the kernel releases the queue of a closed socket with delay.
//
// # What is lost, and how it is known
//
// The kernel counts frames for which no chunk was free, or the ring was full, both in [Source.Stats]. With zero-copy the network
// card drops them before: ethtool -S has its counts. When the context ends, the program is detached, and the frames in the rings
// are handed over.
//
// # Instructions, and system calls
//
// The program is written as instructions of package asm, so that its source is what is loaded; the test runs it in the kernel
// over generated frames beside the filter of afpacket. C would need a compiler and a committed binary. Loading and attaching
// are those of cilium/ebpf. Sockets and rings are system calls: the public packages for them copy descriptors a call, and one
// needs another library for interfaces. bench/RESULTS.md has the processor time beside sockets and AF_PACKET.
package afxdp

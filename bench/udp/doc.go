// Command udp measures what one core receives over UDP: the highest rate without loss, and what is left of it in a flood.
//
//	go run ./bench/udp
//	go run ./bench/udp -receivers discard,pipeline -flows 1000000 -rounds 5
//	go run ./bench/udp -payload netflow5 -to 127.0.0.1:2055 -command "COLLECTOR ITS ARGUMENTS"
//
// Receivers are processes of their own, pinned to one CPU together with the kernel's side of receiving; the sender has the
// other CPU. They are compared in rounds, one after the other, and the median of the rounds is printed:
//
//	plain     net.UDPConn.ReadFromUDPAddrPort, a datagram a call
//	batch     golang.org/x/net ReadBatch, 64 datagrams a call
//	discard   ingest/udp, counting only: what the others are measured against
//	spread    the same with four sockets and steering "spread"
//	decode    ingest/udp and the decoders
//	pipeline  ingest/udp, decoders, exporter tracking, flow table, sketches and windows
//	ring      ingest/afpacket, counting only: the kernel's work for a socket that takes nothing is in it
//	ring-pipeline  ingest/afpacket, and what pipeline has behind its source
//	ring-gopacket  gopacket's ring, counting only; it needs C, and is left out of programs without (CGO_ENABLED=0)
//
// A command given with -command is measured like them, by the loss that the kernel counts.
//
// The loopback interface delivers on the CPU of the sender. To have the kernel's work on the receiver's CPU, as with a
// network card whose interrupts go there, the benchmark makes a network namespace of its own and turns on receive packet
// steering (RPS) in it. That takes root. Nothing outside the namespace is changed.
//
// Lost is sent minus received; it is checked against the kernel's own counters (drops of the socket, and of the CPU's
// backlog queue in /proc/net/softnet_stat).
package main

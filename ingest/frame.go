package ingest

import "net/netip"

// Link types, as numbered by the registry of pcap (LINKTYPE_ values), and one of hopscope.
const (
	LinkNull      uint16 = 0 // BSD loopback: the address family in the byte order of the machine that captured
	LinkEthernet  uint16 = 1
	LinkPPP       uint16 = 9
	LinkRaw       uint16 = 101 // IPv4 or IPv6, distinguished by the version nibble
	LinkLoop      uint16 = 108 // OpenBSD loopback: the address family in network byte order
	LinkLinuxSLL  uint16 = 113
	LinkIPv4      uint16 = 228
	LinkIPv6      uint16 = 229
	LinkLinuxSLL2 uint16 = 276

	// LinkUDP marks a frame that is a UDP payload, as a socket delivers it. Src and DstPort are from the headers that
	// the kernel removed.
	LinkUDP uint16 = 0xffff
	// LinkOTLP marks a frame that is a request to export metrics (OTLP), as protocol buffers: Src is its sender.
	LinkOTLP uint16 = 0xfffe
)

// Frame is one captured frame or one datagram.
type Frame struct {
	Data    []byte // belongs to the batch, valid until it is released
	Time    int64  // when it arrived, ns since 1970: the kernel's time of receipt, or the capture's
	Number  uint64 // of the frame in its file, from 1; 0 for live sources
	Length  int    // bytes on the wire; more than len(Data) when the capture was cut
	Link    uint16
	DstPort uint16         // LinkUDP only
	Dst     netip.Addr     // LinkUDP only: the address that the socket listens on, which can stand for all of a machine
	Only    Kind           // LinkUDP only: what alone may come in at that port
	Src     netip.AddrPort // LinkUDP and LinkOTLP only; IPv4 addresses are unmapped
	Answer  *Answer        // LinkOTLP only: filled in by the handler of the frame
}

// Kind is the kind of datagrams that a port is for.
type Kind uint8

// The kinds.
const (
	Anything Kind = iota
	Reports       // telemetry reports, and whatever else rides in datagrams of the network
	SFlow
	IPFIX // and NetFlow 9
)

// Answer is the answer to a sender about its request.
type Answer struct {
	Broken  string // why nothing of it could be read, with the place; empty otherwise
	Refused int    // data points
	Why     string // they were
}

// Batch is a reusable list of frames whose bytes it owns.
type Batch struct {
	Frames []Frame
	// Until answers a [Prompter]: the worker has handed over all frames that arrived before this time, with this
	// batch or earlier. 0 is no answer.
	Until int64
}

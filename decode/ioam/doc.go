// Package ioam reads and writes the options of in-situ OAM (RFC 9197, RFC 9326) in the extension headers of IPv6 (RFC
// 9486). These are pre-allocated and incremental traces, proof of transit, edge to edge, and direct export. FORMAT.md
// draws them. It also reads IFA.
//
// Epoch and unit of times are not on the wire: the namespace defines them. Linux writes seconds since 1970 and
// microseconds. Times therefore stay in [decode.IOAMNode] as they are, apart from the times of other formats.
//
// The decoder fills a [decode.Report] for each option and allocates nothing once the report has grown. The encoders write
// what the encapsulating node writes and, in place, what a transit node adds: [AddNode].
//
// # IFA
//
// [IFA] reads the in-band flow analyser 2.0 (draft-kumar-ippm-ifa), whose nodes write much the same values. IFA is a header
// between IP and the transport header, followed by a stack of metadata, newest hop first. IFA.md draws both.
//
// The draft's text was not at hand. Layout and values are those on which public implementations agree. The rest is
// unsupported: fragments, stamps at the end of the packet, checksums, and all layouts of a hop but the one of 32
// bytes.
//
// Times are the seconds, modulo 2^20, and the nanoseconds at which a packet came to a node. The time inside a node is its
// own value.
package ioam

// Option types of IPv6 that hold IOAM. Both are read in hop-by-hop and in destination headers.
const (
	OptionChanging = 0x31 // may change on the way
	OptionFixed    = 0x11 // does not change
)

// Types of IOAM options.
const (
	TypeTrace        = 0 // pre-allocated
	TypeIncremental  = 1
	TypeProof        = 2 // proof of transit
	TypeEdge         = 3 // edge to edge
	TypeDirectExport = 4
)

// Bits of a trace type, of 24. Bits 12 to 21 are undefined and have 4 bytes each.
const (
	BitNodeID            = 1 << 23 // hop limit 8, node id 24
	BitInterfaces        = 1 << 22 // ingress 16, egress 16
	BitSeconds           = 1 << 21
	BitFraction          = 1 << 20
	BitTransitDelay      = 1 << 19
	BitNamespaceData     = 1 << 18
	BitQueueDepth        = 1 << 17
	BitChecksum          = 1 << 16
	BitNodeIDWide        = 1 << 15 // hop limit 8, node id 56
	BitInterfacesWide    = 1 << 14 // ingress 32, egress 32
	BitNamespaceDataWide = 1 << 13
	BitBufferOccupancy   = 1 << 12
	BitSnapshot          = 1 << 1 // length 8, schema id 24, opaque words; not in NodeLen

	wide      = BitNodeIDWide | BitInterfacesWide | BitNamespaceDataWide
	sized     = 0xfffffc // bits that NodeLen counts
	undefined = 0x000ffc
)

// Bits of the type of an edge-to-edge option.
const (
	EdgeSeq64    = 0x8000
	EdgeSeq32    = 0x4000
	EdgeSeconds  = 0x2000
	EdgeFraction = 0x1000
)

const (
	optionLen   = 4 // option type, length, reserved, IOAM type
	traceLen    = 8
	proofLen    = 20
	shortLen    = 4 // what proof of transit and edge to edge begin with
	flowIDFlag  = 0x80
	seqFlag     = 0x40
	flagNoSpace = 8 // of the four flags of a trace
	flagLoop    = 4
	flagActive  = 2
)

package intmd

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode/packet"
)

// Versions is a set of INT versions.
type Versions uint8

// The versions, as members of a set.
const (
	V05 Versions = 1 << iota
	V10
	V21         // and 2.0
	AllVersions = V05 | V10 | V21
)

// Options choose the versions that are accepted, and the deviations of known programs.
type Options struct {
	Versions Versions

	// WideTimes: 1.0 with 64-bit times and level 2 ports of 16 + 16 bits. The last two bytes of the header are the
	// source's sequence number. Bitmaps that ask for latency and queue but for neither node nor ports are rejected:
	// the program writes another width than it announces (GEANT).
	WideTimes bool
	// Version0: the 1.0 layout under version nibble 0 (ONOS). 0.5 cannot be read with it.
	Version0 bool
	// HostINT: 0.5 with shim type 3, which has 4 bytes of source sequence number behind the stack, and not with type 1
	// (Intel host INT).
	HostINT bool
	// LeastFirst: 2.x with the bitmap numbered from the least significant bit. Without a domain, the last field of
	// the header is a flow number (elavinal/p4-int).
	LeastFirst bool
	// SwapNPT2: the original IP protocol in the third byte of the 2.x shim instead of the fourth.
	SwapNPT2 bool
	// StackInMX: a stack of INT-MD 2.x under a shim of type 3, in domain 0 (mandaryoshi/p4-int).
	StackInMX bool

	Marks

	// Domains are the domain specific ids of 2.x that are understood.
	Domains []Domain
}

// Marks are the marks of packets that carry INT, and its place in them. The search for INT follows them; the decoder
// gets the place.
type Marks struct {
	// DSCP marks packets with INT: those whose DSCP equals it in the bits of DSCPMask. A mask of 0 turns it off.
	DSCP, DSCPMask uint8
	// Ports mark them by UDP destination port.
	Ports []uint16
	// TailPort is the UDP destination port of an extra UDP header in front of INT 0.5 (Intel host INT). The tail of
	// the INT holds the original protocol. 0 turns it off.
	TailPort uint16
	// ProbeMarker is the 64-bit mark between the transport header and the shim. 0 turns it off.
	ProbeMarker uint64
	// BehindOptions: INT in TCP is behind the TCP options instead of directly behind the first 20 bytes.
	BehindOptions bool
	// GREProtocol is the protocol number of INT in GRE, which is not assigned. 0 turns it off.
	GREProtocol uint16
	// Tunnels: look for INT in VXLAN-GPE (UDP 4790, next protocol 0x82 or 0x80) and Geneve (UDP 6081, class 0x0103).
	Tunnels bool
}

// With returns m with the marks of o added. If both set a value, that of o counts, and ports add up.
func (m Marks) With(o Marks) Marks {
	if o.DSCPMask != 0 {
		m.DSCP, m.DSCPMask = o.DSCP, o.DSCPMask
	}
	m.Ports = append(slices.Clip(m.Ports), o.Ports...)
	m.TailPort = cmp.Or(o.TailPort, m.TailPort)
	m.ProbeMarker = cmp.Or(o.ProbeMarker, m.ProbeMarker)
	m.BehindOptions = m.BehindOptions || o.BehindOptions
	m.GREProtocol = cmp.Or(o.GREProtocol, m.GREProtocol)
	m.Tunnels = m.Tunnels || o.Tunnels
	return m
}

// Domain describes the domain specific metadata of one id. The words that every hop adds need no description: Hop ML
// counts them beyond the baseline.
type Domain struct {
	ID uint16
	// Layout is the meaning of the bitmap's bits in packets of the domain, and their widths. The zero value is that
	// of INT 2.1.
	Layout packet.Layout
	// SourceWords is the number of words that the source alone adds for each bit of the DS instruction, from bit 0,
	// the most significant one.
	SourceWords [16]uint8
}

// FANTDomain is the id under which hopscope's nodes send metadata with the widths of FANT. The article names no id,
// and the specification leaves all of them to operators.
const FANTDomain = 0xfa17

// FANT is the domain of FANT. A hop has 84 bytes of metrics for bitmap 0xffff and 28 for 0xf161, and 4 more each for
// the checksum complement.
var FANT = Domain{ID: FANTDomain, Layout: packet.INT2FANT}

// domain returns the description of an id, nil if there is none. The id 0 is that of the specification.
func (o *Options) domain(id uint16) *Domain {
	for i := range o.Domains {
		if id != 0 && o.Domains[i].ID == id {
			return &o.Domains[i]
		}
	}
	return nil
}

// Carrier is the protocol that the shim is part of.
type Carrier uint8

// The carriers. INT 0.5 and 1.0 are read behind TCP and UDP only.
const (
	TCPUDP Carrier = iota
	GRE
	VXLANGPE
	Geneve // the shim is the option header
)

// Place is the position of INT in a packet, and its content.
type Place struct {
	Carrier Carrier
	At      int // of the shim
	// IPEnd and End are where the packet ends by the IP header, and by the innermost length (UDP, or Geneve's
	// options). INT 0.5 is bounded by IPEnd alone, because its sources need not update the UDP length.
	IPEnd, End int
	ByPort     bool // recognised by UDP destination port: the only way to a next protocol type other than 0
	// SinkReport: inside a report of Intel host INT, whose sink took the tail away.
	SinkReport bool

	// Decode fills in the rest: Type always, what follows for headers that it accepts.

	Type uint8 // the type in the shim: TypeMX, TypeDestination, else TypeMD
	// NPT and Original identify what INT replaced. For NPT 1 this is the UDP destination port, for NPT 2 the IP
	// protocol, whose header starts at Next.
	NPT      uint8
	Original uint16
	Next     int // offset behind the stack, and the tail
}

// The types of a shim.
const (
	TypeMD          = 1 // 1.0: hop by hop
	TypeDestination = 2
	TypeMX          = 3

	typeHost = 3 // Intel's, 8 bits wide
)

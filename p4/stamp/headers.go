package stamp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ioam"
	"github.com/hopscope/hopscope/decode/packet"
)

// This file is about the extension headers of requests over IPv6: a trace of IOAM for routers to fill in (RFC 9197, RFC
// 9486), which the reflector's agent reports, and a list of segments to pass (RFC 8754).

// IOAM holds the trace that requests of sessions with ioam carry.
type IOAM struct {
	Namespace int    `yaml:"namespace" range:"0..65535" doc:"Namespace of traces. Routers that do not know it add nothing."`
	Type      string `yaml:"trace_type" doc:"Data that each router adds, as the 24 bits of RFC 9197. The default is hop limit and node, interfaces, and queue depth."`
	Nodes     int    `yaml:"nodes" range:"1..61" doc:"Routers for which a request has room. Those behind them add nothing."`
}

// unusable are the bits of a trace type that requests do not ask for. They are the checksum complement, which no packet
// of IPv6 needs, and those without a meaning.
const unusable = ioam.BitChecksum | 0xffc | 1

// TraceType reads the trace type.
func (c *IOAM) TraceType() (uint32, error) {
	n, err := strconv.ParseUint(c.Type, 0, 24)
	kind := uint32(n)
	switch {
	case err != nil || kind == 0:
		return 0, fmt.Errorf("trace_type: %q is no trace type of 24 bits, such as 0xc20000", c.Type)
	case kind&unusable != 0:
		return 0, fmt.Errorf("trace_type: %q asks for %#06x, of which collectors read nothing; leave these bits out", c.Type, kind&unusable)
	}
	return kind, nil
}

// NodeBytes is the room that a router needs for a trace type, with a snapshot of its state that is empty.
func NodeBytes(kind uint32) int {
	n := ioam.NodeLen(kind)
	if kind&ioam.BitSnapshot != 0 {
		n++
	}
	return 4 * n
}

// Validate finds what is wrong beyond the ranges of single values.
func (c *IOAM) Validate() error {
	kind, err := c.TraceType()
	if err != nil {
		return err
	}
	if size := NodeBytes(kind); size*c.Nodes > ioam.MaxData {
		return fmt.Errorf("nodes: %d routers with %d bytes each are more than the %d bytes that routers take; there is room for %d, or for more with a shorter trace_type",
			c.Nodes, size, ioam.MaxData, ioam.MaxData/size)
	}
	return nil
}

// Header is the hop-by-hop header with an empty trace.
func (c *IOAM) Header() ([]byte, error) {
	kind, err := c.TraceType()
	if err != nil {
		return nil, err
	}
	option, err := ioam.AppendTrace(nil, &ioam.Trace{Namespace: uint16(c.Namespace), Type: kind, Flags: decode.Active, Words: c.Nodes * NodeBytes(kind) / 4})
	if err != nil {
		return nil, err
	}
	return ioam.AppendExtension(nil, packet.ProtoUDP, option) // the kernel sets the number of the next header
}

// MostSegments are the segments that requests can pass.
const MostSegments = 16

// Segment reads a segment, an address to which packets can go.
func Segment(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Is4In6() || a.Zone() != "" || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() {
		return a, fmt.Errorf("%q is no segment, which is an IPv6 address that is routed", s)
	}
	return a, nil
}

// RoutingHeader is the segment routing header of requests that pass segments on the way to their destination; nil
// without segments. The first segment is the last entry. The destination is the first one, which the kernel fills in.
func RoutingHeader(segments []string) ([]byte, error) {
	n := len(segments)
	if n == 0 {
		return nil, nil
	}
	const fixed, size = 8, 16
	h := make([]byte, fixed+size*(n+1))
	h[1], h[2], h[3], h[4] = byte(len(h)/8-1), 4, byte(n), byte(n) // length, type, segments left, last entry
	for i, s := range segments {
		a, err := Segment(s)
		if err != nil {
			return nil, err
		}
		copy(h[fixed+size*(n-i):], a.AsSlice())
	}
	return h, nil
}

// Outcome is what became of an IOAM trace on its way to a reflector.
type Outcome uint8

// The closed list of outcomes.
const (
	Whole     Outcome = iota
	Overflow          // a router had no room
	Empty             // no router added anything
	Malformed         // it breaks a rule
	NumOutcomes
)

var outcomeNames = [NumOutcomes]string{"whole", "overflow", "empty", "malformed"}

// String is the name of the outcome in metrics.
func (o Outcome) String() string {
	if o < NumOutcomes {
		return outcomeNames[o]
	}
	return "outcome(" + strconv.Itoa(int(o)) + ")"
}

// ReadIOAM returns the IOAM trace among the options of a hop-by-hop header, from its option type on, and its outcome.
// It returns nil if there is none. Memory is in scratch.
func ReadIOAM(header []byte, scratch *decode.Report) (option []byte, outcome Outcome) {
	option = ioam.FindTrace(header)
	if option == nil {
		return nil, 0
	}
	scratch.Reset()
	ioam.DecodeOption(scratch, option, len(option), 0)
	switch {
	case scratch.Err.Reason != 0 || scratch.Flags&decode.Truncated != 0:
		return option, Malformed
	case len(scratch.Hops) == 0:
		outcome = Empty
	case scratch.Flags&decode.Overflow != 0:
		outcome = Overflow
	}
	return option[:2+int(option[1])], outcome
}

// AppendTraced appends the beginning of a request with a trace, as it came. Its port is [Port], whatever the reflector's is.
func AppendTraced(dst []byte, a *Arrival, option []byte) ([]byte, error) {
	start := len(dst)
	src, to := a.From.Addr(), a.To.Addr()
	dst = packet.AppendIPv6(dst, &packet.IPv6{TrafficClass: a.TOS, HopLimit: a.TTL, Proto: hopByHop, Src: src.As16(), Dst: to.As16()}, 0)
	dst, err := ioam.AppendExtension(dst, packet.ProtoUDP, option)
	if err != nil {
		return dst[:start], err
	}
	dst = packet.AppendUDP(dst, a.From.Port(), Port, 0)
	binary.BigEndian.PutUint16(dst[start+4:], uint16(len(dst)-start-packet.IPv6Len))
	return dst, nil
}

// hopByHop is the number of the header that routers read.
const hopByHop = 0

package probe

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
)

// Reason is why a frame that came is no probe that can be reported.
type Reason uint8

// These are the reasons. String returns their names in metrics.
const (
	OK         Reason = iota
	Foreign           // no IPv4 packet to the port of INT, a fragment, or without the mark of probes
	Unfinished        // its route has entries left: it came to a host too early
	BadINT            // the INT part breaks a rule of its format
	BadPayload        // behind INT is no payload of a probe
	Corrupt           // a checksum is wrong: it was changed on its way
	Unsigned          // it has no digest by a known key
	BadDigest         // its digest is wrong: it was made or changed by others
	NumReasons
)

var reasonNames = [NumReasons]string{"ok", "foreign", "unfinished", "bad-int", "bad-payload", "corrupt", "unsigned", "bad-digest"}

func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Arrival is a probe that came back.
type Arrival struct {
	Source [4]byte // address of its sender
	Number uint32  // of the probe, among those of its sender
	Epoch  uint32
	Seq    uint32
	Sent   int64 // ns since 1970, by the sender's clock
	Delay  int64 // time of receipt less Sent, ns; 0 where it is not known, and for the caller of Parse to set
	Hops   int
	// Ports stands for the ports by which it left its switches, as [portsOf] a route; 0 where one did not report its own.
	Ports uint32
	// Transit is the time that it spent in all switches together, in ns; 0 where it is not known.
	Transit uint64
	Flags   decode.Flags // HopLimit and MTU: a switch added nothing, and why
	Packet  []byte       // from the IP header on; part of the frame that was read

	Unchecked bool // a switch has taken the checksum of UDP off, and there is no digest
	Own       bool // a switch on the way has the node id of the agent
}

// Parser reads frames. It is for one goroutine, keeps nothing between two of them and allocates nothing.
type Parser struct {
	mark   uint8
	Node   uint32    // that no switch may have; 0 for none
	Keys   *Digester // nil where none are required
	Lax    bool      // frames without a digest are accepted
	ints   *intmd.Decoder
	report decode.Report
}

// NewParser makes a parser of probes with a DSCP.
func NewParser(mark uint8) *Parser {
	return &Parser{mark: mark, ints: intmd.New(intmd.Options{Versions: intmd.V21, Domains: []intmd.Domain{intmd.FANT}})}
}

// Parse reads a frame from its Ethernet header on. Nothing in it is trusted: whatever it holds, a is either a probe whose
// stack is whole, or a reason is given.
func (ps *Parser) Parse(a *Arrival, frame []byte) Reason {
	*a = Arrival{}
	var p packet.Packet
	p.Frame(packet.LinkEthernet, frame, len(frame))
	if p.EtherType == srint.TypeRoute {
		return Unfinished
	}
	if why := whole(&p, frame); why != OK {
		return why
	}
	if p.Fragment || p.DstPort() != INTPort || p.DSCP() != ps.mark {
		return Foreign
	}
	end := p.UDPEnd(frame)
	place := intmd.Place{At: p.L4 + packet.UDPLen, IPEnd: p.End, End: min(end, len(frame)), ByPort: true}
	if place.End < place.At+INTLen {
		return BadINT
	}
	r := &ps.report
	r.Reset()
	v := ps.ints.Decode(r, frame, &place)
	if v != decode.V21 || r.Err.Reason != 0 || r.Flags&decode.Truncated != 0 || place.Type != intmd.TypeMD || place.NPT != 1 || place.Original != OriginalPort {
		return BadINT
	}
	if n := place.End - place.Next; place.Next < 0 || n != PayloadLen && n != SignedLen {
		return BadPayload
	}
	b := frame[place.Next:place.End]
	if binary.BigEndian.Uint32(b) != Magic {
		return BadPayload
	}
	if why := ps.known(frame[p.L3:p.End], b); why != OK {
		return why
	}
	a.read(b)
	copy(a.Source[:], frame[p.L3+12:])
	a.Unchecked = binary.BigEndian.Uint16(frame[p.L4+6:]) == 0 && (ps.Keys == nil || len(b) != SignedLen)
	a.Hops, a.Flags, a.Packet = len(r.Hops), r.Flags&(decode.HopLimit|decode.MTU), frame[p.L3:p.End]
	a.Ports = portsOf(r.Hops, func(h *decode.Hop) int { return int(h.EgressIf) })
	if slices.ContainsFunc(r.Hops, func(h decode.Hop) bool { return h.Has&decode.HopEgressIf == 0 }) {
		a.Ports = 0
	}
	if a.Flags == 0 {
		a.Transit = transit(r.Hops)
	}
	if ps.Node != 0 {
		a.Own = slices.ContainsFunc(r.Hops, func(h decode.Hop) bool { return h.Has&decode.HopNodeID != 0 && h.NodeID == ps.Node })
	}
	return OK
}

// whole holds the lengths and checksums of a packet over UDP. A frame that is none, and ends as probes do, was one before a bit of its
// headers was changed. Bytes of the link behind the packet are none of it.
func whole(p *packet.Packet, frame []byte) Reason {
	wrong := Foreign
	if endsLikeProbe(frame) {
		wrong = Corrupt
	}
	switch {
	case p.IP == 6:
		return Foreign
	case p.IP == 0:
		return wrong
	case p.L3+4*int(frame[p.L3]&0x0f) > len(frame):
		return Foreign
	case packet.Fold(packet.Sum(frame[p.L3:p.L3+4*int(frame[p.L3]&0x0f)])) != 0xffff:
		return Corrupt
	case p.Fragment || p.Proto != packet.ProtoUDP || !p.HasPorts:
		return Foreign
	case p.End > len(frame) || p.End < p.L4+packet.UDPLen:
		return BadINT
	case int(binary.BigEndian.Uint16(frame[p.L4+4:])) != p.End-p.L4:
		return Corrupt // the length of UDP, which IP repeats
	}
	if sum := binary.BigEndian.Uint16(frame[p.L4+6:]); sum == 0 {
		return OK // a switch that does not keep it right has taken it off
	}
	if packet.Fold(packet.PseudoHeader(frame[p.L3+12:p.L3+20], packet.ProtoUDP, p.End-p.L4)+packet.Sum(frame[p.L4:p.End])) != 0xffff {
		return Corrupt
	}
	return OK
}

// endsLikeProbe reports whether the mark of a payload is where probes have it.
func endsLikeProbe(frame []byte) bool {
	for _, n := range [...]int{PayloadLen, SignedLen} {
		if len(frame) >= EthernetLen+PacketLen-PayloadLen+n && binary.BigEndian.Uint32(frame[len(frame)-n:]) == Magic {
			return true
		}
	}
	return false
}

// known holds the digest of a probe.
func (ps *Parser) known(ip, payload []byte) Reason {
	d := ps.Keys
	switch {
	case d == nil:
		return OK
	case len(payload) != SignedLen && ps.Lax:
		return OK
	case len(payload) != SignedLen:
		return Unsigned
	case ip[0] != 0x45:
		return BadDigest // which covers no options
	}
	place := d.find(binary.BigEndian.Uint32(payload[PayloadLen:]))
	if place < 0 {
		return Unsigned
	}
	copy(appendFixed(d.cover[:0], ip)[:coverLen][fixedLen:], payload[:PayloadLen+keyIDLen])
	if subtle.ConstantTimeCompare(d.at(place), payload[PayloadLen+keyIDLen:]) != 1 {
		return BadDigest
	}
	return OK
}

// read reads the fields of a payload.
func (a *Arrival) read(b []byte) {
	be := binary.BigEndian
	a.Number, a.Epoch, a.Seq, a.Sent = be.Uint32(b[4:]), be.Uint32(b[8:]), be.Uint32(b[12:]), int64(be.Uint64(b[16:]))
}

// Damaged reads the contents of a corrupt frame, which may be wrong. Without a payload of a probe in its place they are
// empty.
func (a *Arrival) Damaged(frame []byte) {
	*a = Arrival{}
	for _, n := range [...]int{PayloadLen, SignedLen} {
		if at := len(frame) - n; at >= EthernetLen+PacketLen-PayloadLen && binary.BigEndian.Uint32(frame[at:]) == Magic {
			a.read(frame[at:])
			copy(a.Source[:], frame[EthernetLen+12:])
			return
		}
	}
}

// MostTransit bounds the times that one probe spends in switches: above it a clock is wrong, and not a queue long.
const MostTransit = uint64(time.Minute)

// transit adds up the times in switches. Each is by one clock, so that no two have to agree. It is 0 where a switch reports none.
func transit(hops []decode.Hop) (ns uint64) {
	for k := range hops {
		d, ok := decode.DefaultUnits.Latency(&hops[k])
		if ok = ok && d <= MostTransit-ns; !ok {
			return 0
		}
		ns += d
	}
	return ns
}

package demux

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
)

const (
	portVXLANGPE = 4790
	portGeneve   = 6081

	classINT  = 0x0103 // Geneve option class
	nextINT21 = 0x82   // VXLAN-GPE next protocol, INT 2.1
	nextINT20 = 0x80   // INT 2.0
)

func contains(ports []uint16, port uint16) bool {
	for _, p := range ports {
		if p == port {
			return true
		}
	}
	return false
}

// find looks for the mark of INT in p, and says in place where the shim is. A marked packet without room for a shim has
// no INT.
func (d *Decoder) find(place *intmd.Place, p *packet.Packet, data []byte) bool {
	if p.L4 == 0 || p.Fragment {
		return false
	}
	c := &d.profile
	marked, byPort := c.DSCPMask != 0 && (p.DSCP()^c.DSCP)&c.DSCPMask == 0, false
	at := p.L4
	switch p.Proto {
	case packet.ProtoUDP:
		at += 8
		if port := p.DstPort(); p.HasPorts {
			if c.Tunnels && (port == portVXLANGPE || port == portGeneve) {
				put(place, at, p.End, p.UDPEnd(data), false)
				if tunnelled(place, port, data) {
					return place.At+4 <= place.End
				}
			}
			byPort = contains(c.INTPorts, port) || c.TailPort != 0 && port == c.TailPort
			marked = marked || byPort
		}
	case packet.ProtoTCP:
		at += 20
		if c.BehindOptions && len(data)-p.L4 > 12 {
			at = p.L4 + 4*int(data[p.L4+12]>>4)
		}
	case packet.ProtoGRE:
		put(place, at, p.End, p.End, false)
		return c.GREProtocol != 0 && gre(place, c.GREProtocol, data) && place.At+4 <= place.End
	default:
		return false
	}
	if c.ProbeMarker != 0 && len(data)-at >= 8 && binary.BigEndian.Uint64(data[at:]) == c.ProbeMarker {
		at += 8
		marked = true
	}
	if !marked || at+4 > p.End {
		return false
	}
	end := p.End
	if p.Proto == packet.ProtoUDP {
		end = p.UDPEnd(data)
	}
	put(place, at, p.End, end, byPort)
	return true
}

func put(place *intmd.Place, at, ipEnd, end int, byPort bool) {
	*place = intmd.Place{}
	place.At, place.IPEnd, place.End, place.ByPort = at, ipEnd, end, byPort
}

// always says where INT is in the packets of Intel's reports. The lengths of its IP and UDP headers are those before
// the sink changed the packet, so that only the report's end bounds it.
func always(place *intmd.Place, p *packet.Packet, end int) bool {
	if p.L4 == 0 || p.Fragment {
		return false
	}
	*place = intmd.Place{}
	place.IPEnd, place.End, place.SinkReport = end, end, true
	switch p.Proto {
	case packet.ProtoUDP:
		place.At = p.L4 + 8
	case packet.ProtoTCP:
		place.At = p.L4 + 20
	default:
		return false
	}
	return place.At+4 <= end
}

// tunnelled looks for INT in the VXLAN-GPE or Geneve header at place.At.
func tunnelled(place *intmd.Place, port uint16, data []byte) bool {
	at := place.At
	if len(data)-at < 8 {
		return false
	}
	h := data[at : at+8 : at+8]
	if port == portVXLANGPE {
		const nextProtocolBit = 0x04
		if h[0]&nextProtocolBit == 0 || h[3] != nextINT21 && h[3] != nextINT20 {
			return false
		}
		place.Carrier, place.At = intmd.VXLANGPE, at+8
		return true
	}
	if h[0]>>6 != 0 { // Geneve version
		return false
	}
	at += 8
	end := min(at+4*int(h[0]&0x3f), place.End)
	for end-at >= 4 && len(data)-at >= 4 {
		if binary.BigEndian.Uint16(data[at:]) == classINT {
			place.Carrier, place.At, place.End = intmd.Geneve, at, end
			return true
		}
		at += 4 + 4*int(data[at+3]&0x1f)
	}
	return false
}

// gre looks for INT behind the GRE header (RFC 2784, RFC 2890) at place.At.
func gre(place *intmd.Place, protocol uint16, data []byte) bool {
	at := place.At
	if len(data)-at < 4 || binary.BigEndian.Uint16(data[at+2:]) != protocol || data[at+1]&7 != 0 {
		return false
	}
	place.Carrier, place.At = intmd.GRE, at+4
	for _, bit := range [...]byte{0x80, 0x20, 0x10} { // checksum, key, sequence number
		if data[at]&bit != 0 {
			place.At += 4
		}
	}
	return true
}

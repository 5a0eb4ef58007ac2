package demux

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
)

func contains(ports []uint16, port uint16) bool {
	for _, p := range ports {
		if p == port {
			return true
		}
	}
	return false
}

// find searches p for the mark of INT, and sets place to that of the shim. A marked packet without room for a shim
// has no INT.
func (d *Decoder) find(place *intmd.Place, p *packet.Packet, data []byte) bool {
	if p.L4 == 0 || p.Fragment {
		return false
	}
	c := &d.profile.INT.Marks
	marked, byPort := c.DSCPMask != 0 && (p.DSCP()^c.DSCP)&c.DSCPMask == 0, false
	at := p.L4
	switch p.Proto {
	case packet.ProtoUDP:
		at += packet.UDPLen
		if port := p.DstPort(); p.HasPorts {
			if c.Tunnels && (port == intmd.PortVXLANGPE || port == intmd.PortGeneve) {
				put(place, at, p.End, p.UDPEnd(data), false)
				if port == intmd.PortVXLANGPE && place.InVXLANGPE(data) || port == intmd.PortGeneve && place.InGeneve(data) {
					return place.At+4 <= place.End
				}
			}
			byPort = contains(c.Ports, port) || c.TailPort != 0 && port == c.TailPort
			marked = marked || byPort
		}
	case packet.ProtoTCP:
		at += packet.TCPLen
		if c.BehindOptions && len(data)-p.L4 > 12 {
			words := int(data[p.L4+12] >> 4)
			if words < packet.TCPLen/4 { // it would stand in the header itself
				return false
			}
			at = p.L4 + 4*words
		}
	case packet.ProtoGRE:
		put(place, at, p.End, p.End, false)
		if c.GREProtocol != 0 && place.InGRE(c.GREProtocol, data) {
			return place.At+4 <= place.End
		}
		if len(data)-at >= 4 {
			d.gre = binary.BigEndian.Uint16(data[at+2:])
		}
		return false
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

// GRE returns the protocol number of the last GRE header in which d looked for no INT, of all since the last call; 0
// without.
func (d *Decoder) GRE() (protocol uint16) {
	protocol, d.gre = d.gre, 0
	return protocol
}

func put(place *intmd.Place, at, ipEnd, end int, byPort bool) {
	*place = intmd.Place{}
	place.At, place.IPEnd, place.End, place.ByPort = at, ipEnd, end, byPort
}

// always sets the place of INT in the packets of Intel's reports. The lengths of its IP and UDP headers are those
// before the sink changed the packet, so that only the report's end bounds it.
func always(place *intmd.Place, p *packet.Packet, end int) bool {
	if p.L4 == 0 || p.Fragment {
		return false
	}
	*place = intmd.Place{}
	place.IPEnd, place.End, place.SinkReport = end, end, true
	switch p.Proto {
	case packet.ProtoUDP:
		place.At = p.L4 + packet.UDPLen
	case packet.ProtoTCP:
		place.At = p.L4 + packet.TCPLen
	default:
		return false
	}
	return place.At+4 <= end
}

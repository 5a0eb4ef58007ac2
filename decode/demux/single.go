package demux

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// single reads into r what nearly all datagrams are, in one go: one report about a TCP or UDP packet over plain IPv4,
// with INT-MD 2.x or without INT, all of it well-formed and whole. It gives false for everything else, and then r is to
// be emptied and read again layer by layer. Both ways make the same reports of the same bytes.
func (d *Decoder) single(r *decode.Report, src *decode.Addr, data []byte) bool {
	r.Exporter = *src
	r.Has = decode.HasExporter
	inner, at, ok := telemetry.Single(r, &d.profile.Report, data)
	if !ok || inner == telemetry.InnerNone {
		return ok
	}
	be := binary.BigEndian
	switch inner {
	case telemetry.InnerEthernet:
		if len(data)-at < 14 || be.Uint16(data[at+12:]) != packet.EtherIPv4 {
			return false
		}
		at += 14
	case telemetry.InnerIPv6:
		return false
	}
	if len(data)-at < 20+8 {
		return false
	}
	h := data[at : at+28 : at+28]
	proto, ports, total := h[9], be.Uint32(h[20:]), int(be.Uint16(h[2:]))
	if h[0] != 0x45 || be.Uint16(h[6:])&0x3fff != 0 { // options, or a fragment
		return false
	}
	c := &d.profile
	marked, byPort := c.DSCPMask != 0 && (h[1]>>2^c.DSCP)&c.DSCPMask == 0, false
	shim, end := 28, total
	switch proto {
	case packet.ProtoUDP:
		port := uint16(ports)
		if c.Tunnels && (port == portVXLANGPE || port == portGeneve) {
			return false
		}
		if n := int(be.Uint16(h[24:])); n != 0 {
			end = min(20+n, total)
		}
		byPort = contains(c.INTPorts, port) || c.TailPort != 0 && port == c.TailPort
	case packet.ProtoTCP:
		shim = 40
		if c.BehindOptions {
			return false
		}
	default:
		return false
	}
	packet.FlowIPv4(&r.Flow, h, ports)
	r.TTL, r.PacketID = h[8], be.Uint16(h[4:])
	r.Has |= decode.HasFlow | decode.HasTTL | decode.HasPorts | decode.HasPacketID
	if r.Flags&decode.Tracked == 0 {
		return true
	}
	if c.ProbeMarker != 0 {
		return false
	}
	if !marked && !byPort {
		return true
	}
	if end < shim || end > len(data)-at {
		return false
	}
	local := len(r.Hops)
	b := data[at+shim : at+end]
	word := d.intmd.Whole(r, b, byPort)
	if word == 0 {
		return false
	}
	r.INT = decode.V21
	if r.Kind == decode.KindPostcard {
		r.Kind = decode.KindStack
	}
	switch word >> 26 & 3 {
	case 1:
		r.Flow.DstPort = uint16(word)
	case 2:
		r.Flow.Proto = uint8(word)
		setPorts(r, data, at+shim+4+4*int(word>>16&0xff))
	}
	mergeOwn(r, local)
	return true
}

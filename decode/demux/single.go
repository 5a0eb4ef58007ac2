package demux

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// This file is the short path: it reads nearly all datagrams in one pass. It is the only place outside of the
// formats' packages with their byte layout, because it saves a third of the time. The long path is [Decoder.group],
// which reads everything. Tests hold that both make the same reports of the same bytes.

// isSingle reports whether data can be the beginning of a datagram for [Decoder.single]. It has version 2, or version
// 1 and a header of at least 4 words.
func isSingle(data []byte) bool { return data[0] >= 1<<4|4 && data[0] < 3<<4 }

// single reads into r one report 1.0 or 2.0 about a TCP or UDP packet over plain IPv4. The packet has INT-MD 1.0 or
// 2.x, a digest or neither, all of it well-formed and whole. It returns false for everything else. r is then to be
// emptied and read by the long path.
func (d *Decoder) single(r *decode.Report, src *decode.Addr, data []byte) bool {
	r.Exporter = *src
	r.Has = decode.HasExporter
	var inner telemetry.InnerType
	var at int
	var ok bool
	if data[0]>>4 == 1 {
		inner, at, ok = singleReport10(r, &d.profile.Report, data)
	} else {
		inner, at, ok = singleReport(r, &d.profile.Report, data)
	}
	if !ok || inner == telemetry.InnerNone {
		return ok && len(r.Hops) > 0 // otherwise there is nothing in it
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
	if h[0] != 0x45 || be.Uint16(h[6:])&0x3fff != 0 || total < 28 { // options, a fragment, or no room for its ports
		return false
	}
	c := &d.profile.INT.Marks
	marked, byPort := c.DSCPMask != 0 && (h[1]>>2^c.DSCP)&c.DSCPMask == 0, false
	shim, end := 28, total
	switch proto {
	case packet.ProtoUDP:
		port := uint16(ports)
		if c.Tunnels && (port == intmd.PortVXLANGPE || port == intmd.PortGeneve) {
			return false
		}
		if n := int(be.Uint16(h[24:])); n != 0 {
			end = min(20+n, total)
		}
		byPort = contains(c.Ports, port) || c.TailPort != 0 && port == c.TailPort
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
	if c.ProbeMarker != 0 {
		return false
	}
	if r.Flags&decode.Tracked == 0 {
		return !marked && !byPort && !carries(data, at, total, proto, uint16(ports), 28) // else there may be INT that nothing announces
	}
	if !marked && !byPort {
		return !carries(data, at, total, proto, uint16(ports), 28)
	}
	if end < shim || end > len(data)-at {
		return false
	}
	local := len(r.Hops)
	b := data[at+shim : at+end]
	word, size := d.singleINT(r, b, byPort)
	if size == 0 {
		return false
	}
	if r.Kind == decode.KindPostcard {
		r.Kind = decode.KindStack
	}
	switch word >> 26 & 3 {
	case 1:
		r.Flow.DstPort = uint16(word)
	case 2:
		if r.Flow.Proto = uint8(word); r.Flow.Proto != packet.ProtoTCP && r.Flow.Proto != packet.ProtoUDP {
			return false
		}
		packet.ReportPorts(r, data[:min(len(data), at+total)], at+shim+size)
	}
	if behind := shim + size; behind < total && carries(data, at, total, proto, r.Flow.DstPort, behind) {
		return false
	}
	if local != 0 {
		mergeOwn(r, local)
	}
	return true
}

// carries reports whether the IPv4 packet at data[at] carries another packet, which is behind bytes from its start.
func carries(data []byte, at, total int, proto uint8, port uint16, behind int) bool {
	return proto == packet.ProtoUDP && packet.CarriesUDP(data[at:min(at+total, len(data))], port, behind)
}

// singleReport reads data, the payload of a datagram, if it is one whole report 2.0. The report holds a packet,
// metadata without a domain or both, or a packet with its digest. It returns the type and the place of the content.
// It is the twin of [telemetry.Reader].
func singleReport(r *decode.Report, opts *telemetry.Options, data []byte) (inner telemetry.InnerType, at int, ok bool) {
	const group, fixed = 8, 12 // bytes of the group header, and of it with the first word of a report
	be := binary.BigEndian
	if len(data) < fixed || data[0]>>4 != 2 || opts.Versions&telemetry.V20 == 0 {
		return 0, 0, false
	}
	first, node := be.Uint32(data), be.Uint32(data[4:])
	word := be.Uint32(data[group:])
	if 4*int(word>>16&0xff) != len(data)-fixed {
		return 0, 0, false
	}
	has := r.Has | decode.HasHWID | decode.HasNodeID | decode.HasSeq
	r.Format, r.Version = decode.TelemetryReport, decode.V20
	r.HWID, r.NodeID, r.Seq = uint8(first>>22&0x3f), node, first&0x3fffff
	if !opts.NoSequence {
		r.SeqBits, r.FirstOfGroup = 22, true
	}
	r.Flags |= decode.Flags(bits.Reverse8(uint8(word & 0xf0)))
	r.Kind = telemetry.KindOf(r.Flags)
	at = fixed
	switch word >> 28 {
	case 0:
	case 1:
		x := data[fixed:]
		if len(x) < 8 {
			return 0, 0, false
		}
		const other = 0x8000 | telemetry.MDDrop // the bit that has no size, and the drop reason
		main, size := be.Uint64(x), 4*int(word>>8&0xff)
		md, domain, base := uint16(main>>48), uint16(main>>32), 4*packet.Words(packet.INT2, uint16(main>>48))
		if x = x[8:]; size > len(x) || md&other != 0 {
			return 0, 0, false
		}
		switch {
		case domain == 0 && size == base:
		case domain != 0 && domain == opts.PINTDomain && size > base && word>>24&0x0f != 0 && telemetry.AddDigest(r, uint16(main>>16), x[base:size]):
			r.DomainID = domain
			has |= r.Has | decode.HasDomainID
			if r.Kind == decode.KindPostcard {
				r.Kind = decode.KindDigest
			}
		default:
			return 0, 0, false
		}
		if md != 0 {
			telemetry.AddMetadata(telemetry.OwnHop(r), md, x[:size])
		}
		at += 8 + size
	default:
		return 0, 0, false
	}
	r.Has = has
	switch in := word >> 24 & 0x0f; {
	case in >= 3 && in <= 5:
		return telemetry.InnerEthernet + telemetry.InnerType(in-3), at, true
	case in == 0 && at == len(data):
		return telemetry.InnerNone, at, true
	}
	return 0, 0, false
}

// singleReport10 is singleReport for a report 1.0.
func singleReport10(r *decode.Report, opts *telemetry.Options, data []byte) (inner telemetry.InnerType, at int, ok bool) {
	const fixed, lastInner = 16, 2
	be := binary.BigEndian
	if len(data) < fixed || opts.Versions&telemetry.V10 == 0 || opts.Postcard {
		return 0, 0, false
	}
	h := data[:fixed]
	word := be.Uint32(h)
	nprot, md, flags := word>>21&7, word>>15&0x3f, word>>6&7 // D, Q, F
	if opts.FlagsFirst {
		flags = word >> 12 & 7
	}
	at = 4 * int(word>>24&0x0f)
	if nprot > lastInner || at != fixed+4*bits.OnesCount32(md) || at > len(data) {
		return 0, 0, false
	}
	r.Format, r.Version = decode.TelemetryReport, decode.V10
	r.HWID, r.NodeID, r.Seq, r.HeaderTime = uint8(word&0x3f), be.Uint32(h[4:]), be.Uint32(h[8:]), be.Uint32(h[12:])
	if !opts.NoSequence {
		r.SeqBits, r.FirstOfGroup = 32, true
	}
	r.Has |= decode.HasHWID | decode.HasNodeID | decode.HasSeq | decode.HasHeaderTime
	r.Flags = decode.Flags(bits.Reverse8(uint8(flags << 5)))
	r.Kind = telemetry.KindOf(r.Flags)
	if md != 0 {
		telemetry.AddMetadata10(r, md, data[fixed:at])
	}
	return telemetry.InnerEthernet + telemetry.InnerType(nprot), at, true
}

// singleINT reads b, from the shim to the end of the packet, if it is whole INT-MD 1.0 or 2.x over TCP or UDP. It has
// no domain. It returns the shim of 2.x, and the size of the INT with its shim in bytes, 0 for everything else. It is
// the twin of [intmd.Decoder.Decode].
func (d *Decoder) singleINT(r *decode.Report, b []byte, byPort bool) (shim uint32, size int) {
	const shimLen, headerLen = 4, 12
	be, opts := binary.BigEndian, &d.profile.INT
	if len(b) < shimLen+headerLen {
		return 0, 0
	}
	if shim = be.Uint32(b); shim>>28 == 0 {
		return 0, d.singleINT10(r, b, shim)
	}
	if opts.Versions&intmd.V21 == 0 || opts.LeastFirst || opts.SwapNPT2 {
		return 0, 0
	}
	length, npt := int(shim>>14&0x3fc), shim>>26&3
	word := be.Uint64(b[4:])
	// Type 1, version 2, domain 0.
	if shim>>28 != intmd.TypeMD || word>>60 != 2 || uint16(word) != 0 || npt == 3 || npt != 0 && !byPort || length+4 > len(b) {
		return 0, 0
	}
	bitmap := uint16(word >> 16)
	plan := d.intmd.Plan(packet.INT2, bitmap)
	stride, n := 4*plan.Words, length-headerLen
	if n < 0 || stride == 0 || int(word>>38&0x7c) != stride {
		return 0, 0
	}
	count := int(uint32(n) / uint32(stride))
	if count*stride != n {
		return 0, 0
	}
	r.INT = decode.V21
	r.Instructions, r.RemainingHops = bitmap, uint8(word>>32)
	r.Has |= decode.HasInstructions | decode.HasRemainingHops
	if flags := decode.Flags(word >> 57 & 7); flags != 0 { // D, E, M
		r.Flags |= (flags>>2)*decode.Discard | (flags>>1&1)*decode.HopLimit | (flags&1)*decode.MTU
	}
	stack := b[4+headerLen : 4+length]
	if len(r.Hops) == 0 {
		plan.Stack(r.Grow(count), stack, stride)
	} else {
		d.intmd.Stack(r, stack, count, plan, stride)
	}
	return shim, shimLen + length
}

// singleINT10 is singleINT for 1.0, whose length counts its shim.
func (d *Decoder) singleINT10(r *decode.Report, b []byte, shim uint32) (size int) {
	const around = 4 + 8 // the shim and the header
	opts := &d.profile.INT
	size = int(shim >> 6 & 0x3fc)
	if shim>>24 != intmd.TypeMD || opts.Versions&intmd.V10 == 0 || opts.HostINT || opts.WideTimes || b[4]>>4 != 1 || size < around || size > len(b) {
		return 0
	}
	h := b[4:around:around]
	bitmap := binary.BigEndian.Uint16(h[4:])
	plan := d.intmd.Plan(packet.INT10, bitmap)
	stride, n := 4*plan.Words, size-around
	if stride == 0 || int(h[2]&0x1f)*4 != stride {
		return 0
	}
	count := int(uint32(n) / uint32(stride))
	if count*stride != n {
		return 0
	}
	r.INT, r.Instructions, r.RemainingHops = decode.V10, bitmap, h[3]
	r.Has |= decode.HasInstructions | decode.HasRemainingHops
	r.Flags |= decode.Flags(h[0]>>1&1)*decode.Copy | decode.Flags(h[0]&1)*decode.HopLimit | decode.Flags(h[1]>>7)*decode.MTU
	d.intmd.Stack(r, b[around:size], count, plan, stride)
	return size
}

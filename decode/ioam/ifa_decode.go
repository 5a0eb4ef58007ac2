package ioam

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

const formatIFA = decode.IFA

var be = binary.BigEndian

// decodeIFA reads IFA behind the IP header of p into r, whose flow has been read. Of a packet that is rejected the
// flow stays as it is on the wire.
func decodeIFA(r *decode.Report, p *packet.Packet, data []byte) {
	r.Format = formatIFA
	s := ifaStack{captured: len(data), end: p.End, header: p.L4}
	data = data[:min(len(data), p.End)]
	s.data = data
	if !s.check(r) {
		return
	}
	if have(data, s.header, headerLen) {
		s.accept(r)
	}
	if s.metadata > 0 && have(data, s.metadata, metadataLen) {
		s.acceptMetadata(r)
	}
	if len(data) < s.needed {
		r.Flags |= decode.Truncated
	}
}

// have reports whether n bytes from at on were captured.
func have(data []byte, at, n int) bool { return len(data) >= at+n }

// ifaStack is the places of the parts of IFA in a packet.
type ifaStack struct {
	data     []byte // as captured, up to the end of the packet
	captured int    // of the frame
	end      int    // of the packet, may be behind data
	header   int
	l4       int // the transport header
	metadata int // the metadata header; 0 if its announcement was not captured
	blocks   int // the first one, of the last hop
	hops     int // that the length announces
	needed   int // end of the bytes that were read, or would have been
}

// check searches for an error, in the order of the bytes. Missing bytes of a cut capture are no error.
func (s *ifaStack) check(r *decode.Report) bool {
	fail := func(field string, offset int, reason decode.Reason) bool {
		r.Fail(formatIFA, field, min(offset, s.captured), reason) // missing bytes are at the end of the capture
		return false
	}
	h := s.header
	s.needed = h + headerLen
	if s.end < s.needed {
		return fail("version", h, decode.Short)
	}
	if have(s.data, h, 1) && s.data[h]>>4 != version {
		return fail("version", h, decode.BadVersion)
	}
	if have(s.data, h+1, 1) && s.transport(s.data[h+1]) == 0 {
		return fail("next_header", h+1, decode.Unsupported)
	}
	if have(s.data, h+2, 1) && s.data[h+2]&(FlagFragment|FlagTail|FlagChecksum) != 0 {
		return fail("flags", h+2, decode.Unsupported)
	}
	if !have(s.data, h, headerLen) {
		return true
	}
	s.l4 = h + headerLen
	next := s.data[h+1]
	size := s.transport(next)
	s.needed = s.l4 + size
	switch next {
	case packet.ProtoGRE:
		if have(s.data, s.l4+1, 1) && s.data[s.l4+1]&7 != 0 {
			return fail("gre_version", s.l4+1, decode.Unsupported)
		}
		if !have(s.data, s.l4, 1) {
			break
		}
		for _, flag := range [...]uint8{0x80, 0x20, 0x10} { // checksum, key, sequence number
			if s.data[s.l4]&flag != 0 {
				size += 4
			}
		}
	case packet.ProtoTCP:
		if !have(s.data, s.l4+12, 1) {
			break
		}
		size = int(s.data[s.l4+12]>>4) * 4
		if size < tcpLen || s.l4+size > s.end {
			return fail("data_offset", s.l4+12, decode.BadLength)
		}
	}
	s.needed = s.l4 + size
	if s.end < s.needed+metadataLen {
		return fail("current_length", s.needed+3, decode.Short)
	}
	if next == packet.ProtoTCP && !have(s.data, s.l4+12, 1) || next == packet.ProtoGRE && !have(s.data, s.l4, 1) {
		return true
	}
	s.metadata = s.needed
	s.blocks = s.metadata + metadataLen
	s.needed = s.blocks
	if !have(s.data, s.metadata, metadataLen) {
		return true
	}
	words := int(s.data[s.metadata+3])
	switch {
	case s.blocks+4*words > s.end, words > int(s.data[h+3]):
		return fail("current_length", s.metadata+3, decode.BadLength)
	case 4*words%hopLen != 0:
		return fail("current_length", s.metadata+3, decode.BadStack)
	}
	s.hops = 4 * words / hopLen
	s.needed = s.blocks + 4*words
	for at := s.blocks; at < s.needed; at += hopLen {
		if s.data[h]&0xf == localSpaces && have(s.data, at, 1) && s.data[at]>>4 == routerSpace {
			return fail("lns", at, decode.Unsupported)
		}
	}
	for at := s.blocks; at < s.needed; at += hopLen {
		if have(s.data, at+12, 4) && be.Uint32(s.data[at+12:]) >= nanosecondEnd {
			return fail("ingress_fraction", at+12, decode.BadValue)
		}
	}
	return true
}

// transport is the least size of the following header. It is 0 if the place of the metadata behind it is undefined.
func (s *ifaStack) transport(next uint8) int {
	switch next {
	case packet.ProtoTCP:
		return tcpLen
	case packet.ProtoUDP:
		return udpLen
	case packet.ProtoGRE:
		return greLen
	}
	return 0
}

// accept sets the values of the header, and the flow as it was without IFA.
func (s *ifaStack) accept(r *decode.Report) {
	r.Kind = decode.KindTrace
	r.Version = decode.V20
	if f := s.data[s.header+2]; f&(FlagInband|FlagTurnAround) != 0 {
		r.Flags |= decode.Flags(f/FlagInband&1)*decode.Inband | decode.Flags(f/FlagTurnAround&1)*decode.TurnAround
	}
	r.Flow.Proto = s.data[s.header+1]
	packet.ReportPorts(r, s.data, s.l4)
}

// acceptMetadata sets the values of the metadata header and the hops with a captured value, the first of the path
// first.
func (s *ifaStack) acceptMetadata(r *decode.Report) {
	m := s.data[s.metadata:]
	x := &r.AddRare().IOAM
	x.Requested = m[0]
	x.Has |= decode.IFARequested
	if m[2] != noHopLimit {
		r.RemainingHops = m[2]
		r.Has |= decode.HasRemainingHops
	}
	r.Announced = uint8(s.hops)
	n := min(s.hops, (len(s.data)-s.blocks+hopLen-nodeIDEnd)/hopLen)
	hops, nodes := r.Grow(n), x.GrowNodes(n)
	for i := range n {
		at := s.blocks + (n-1-i)*hopLen
		hops[i] = decode.Hop{}
		readIFAHop(&hops[i], &nodes[i], s.data[at:min(at+hopLen, len(s.data))])
	}
}

// nodeIDEnd is where the first value of a hop ends.
const nodeIDEnd = 3

// readIFAHop reads a hop's block, of which b may lack some: values that were captured whole are taken.
func readIFAHop(h *decode.Hop, x *decode.IOAMNode, b []byte) {
	var whole [hopLen]byte
	n := copy(whole[:], b)
	word := func(at int) uint32 { return be.Uint32(whole[at:]) }
	item := func(end int, f decode.HopField) bool {
		if n < end {
			return false
		}
		h.Has |= f
		return true
	}
	of := func(end int, f decode.IOAMNodeField) bool {
		if n < end {
			return false
		}
		x.Has |= f
		return true
	}
	if item(nodeIDEnd, decode.HopNodeID) { // local name space 4 bits, device id 20
		h.NodeID = word(0) >> 8 & 0xfffff
	}
	if of(4, decode.IOAMHopLimit) {
		x.HopLimit = whole[3]
	}
	if of(5, decode.IFAPortSpeed) { // port speed 4, congestion 2, queue id 6, seconds 20
		x.PortSpeed = whole[4] >> 4
		h.QueueCongestion = uint32(whole[4] >> 2 & 3)
		h.Has |= decode.HopQueueCongestion
	}
	if item(6, decode.HopQueueID) {
		h.QueueID = uint8(word(4) >> 20 & 0x3f)
	}
	if of(8, decode.IOAMIngressSeconds) {
		x.IngressSeconds = word(4) & 0xfffff
	}
	if item(10, decode.HopEgressIf) {
		h.EgressIf = uint16(word(8) >> 16)
	}
	if item(12, decode.HopIngressIf) {
		h.IngressIf = uint16(word(8))
	}
	if of(16, decode.IOAMIngressFraction) {
		x.IngressFraction = word(12)
	}
	if item(20, decode.HopLatency) {
		h.Latency = word(16)
	}
	if item(24, decode.HopQueueOccupancy) {
		h.QueueOccupancy = word(20)
	}
	if of(28, decode.IFAQueueCells) {
		x.QueueCells = uint16(word(24))
	}
}

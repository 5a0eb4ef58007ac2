package telemetry

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// RepMdBits of report 2.0 §3.3, which have the places of an INT 2.x instruction bitmap. Bits 9 to 14 are reserved.
const (
	MDInterfaces uint16 = 0x4000 >> iota
	MDLatency
	MDQueue
	MDIngressTime
	MDEgressTime
	MDL2Interfaces
	MDTxUtilization
	MDBuffer
	MDDrop uint16 = 1

	mdReserved0 uint16 = 0x8000 // it has no size
	mdReserved  uint16 = 0x7e
)

// GroupLen is the size of the header that a datagram with reports 2.0 begins with.
const GroupLen = 8

// ToEnd is the Report Length of 2.0 that means up to the end of the datagram. Such a report is the last one, and has
// at least ToEnd words behind its first one.
const ToEnd = 0xff

// Header holds the fields of a report before the packet that it is about, in any of the three versions.
type Header struct {
	// HWID, Seq, NodeID and Time are in each report 0.5 and 1.0. With 2.0 the first three are in the header of the
	// group, and there is no time.
	HWID   uint8
	Seq    uint32
	NodeID uint32
	Time   uint32 // ingress time of the packet

	Flags decode.Flags // Dropped, Congested, Tracked; with 2.0 Transit
	Inner InnerType    // the content behind the header; with 0.5 always Ethernet

	// Metadata chooses the values of Hop that the header has, by the MD bits. A header 1.0 has the values whose bits
	// it defines. A header 0.5 ignores Metadata: it has interfaces with either drop reason or queue and egress time.
	Metadata   uint16
	Hop        decode.Hop
	DropReason uint8

	// Digest is that of a PINT packet, for 2.0; nil for none. DigestBits is its width, and Looped, if not 0, how often
	// a switch saw the packet come around again.
	Digest     *decode.Digest
	DigestBits int
	Looped     uint8

	// Probes are the outcomes of probes, for 2.0 and without a digest, or nil. They have at most [MostDelays] delays, or a way of at most [decode.MostWay] routers, or rounds.
	Probes *decode.ProbeCounts
}

// AppendGroup appends the group header of report 2.0. The sequence number counts datagrams, and has 22 bits.
func AppendGroup(dst []byte, hwID uint8, seq, nodeID uint32) []byte {
	first := 2<<28 | uint32(hwID&0x3f)<<22 | seq&(1<<22-1)
	return binary.BigEndian.AppendUint64(dst, uint64(first)<<32|uint64(nodeID))
}

// mdWords is the number of words of metadata in a report 2.0.
func (h *Header) mdWords() int {
	n := packet.Words(packet.INT2, h.Metadata) + bits.OnesCount16(h.digestBits())
	if h.Probes != nil {
		n += wordsOf(h.Probes)
	}
	return n
}

// Words is the Report Length of a report 2.0 with a packet of so many bytes, which are padded to words. From [ToEnd]
// on the report must be the last of its datagram.
func (h *Header) Words(inner int) int { return 2 + h.mdWords() + (inner+3)/4 }

// Append20 appends one report of a group, up to its packet, of which so many bytes follow. They are a multiple of 4.
func Append20(dst []byte, h *Header, inner int) []byte {
	be := binary.BigEndian
	inType := uint32(0)
	if h.Inner != InnerNone {
		inType = 3 + uint32(h.Inner-InnerEthernet)
	}
	md := h.mdWords()
	flags := bits.Reverse8(uint8(h.Flags & (decode.Dropped | decode.Congested | decode.Tracked | decode.Transit)))
	dst = be.AppendUint32(dst, 1<<28|inType<<24|uint32(min(h.Words(inner), ToEnd))<<16|uint32(md)<<8|uint32(flags))
	main, ds := uint64(h.Metadata)<<48, h.digestBits()
	switch {
	case ds != 0:
		main |= PINTDomain<<32 | uint64(ds)<<16
	case h.Probes != nil:
		main |= ProbeDomain<<32 | uint64(bitsOf(h.Probes))<<16
	}
	dst = be.AppendUint64(dst, main)
	dst = packet.AppendBlock(dst, packet.INT2, h.Metadata&^MDDrop, &h.Hop)
	if h.Metadata&MDDrop != 0 {
		dst = h.appendDrop(dst)
	}
	switch {
	case ds != 0:
		dst = appendDigest(dst, ds, h.Digest, h.Looped)
	case h.Probes != nil:
		dst = appendProbes(dst, h.Probes)
	}
	return dst
}

// appendDrop appends queue id and drop reason.
func (h *Header) appendDrop(dst []byte) []byte {
	return append(dst, h.queueID(), h.DropReason, 0, 0)
}

func (h *Header) queueID() uint8 {
	if h.Hop.Has&decode.HopQueueID == 0 {
		return 0xff
	}
	return h.Hop.QueueID
}

// Bits of the metadata of report 1.0 §3.1, in their order, as MD bits. Its ingress time is in the header.
var metadata10Bits = [...]uint16{MDInterfaces, MDLatency, MDQueue, MDEgressTime, MDDrop, MDTxUtilization}

// Append10 appends a report 1.0, up to its packet.
func Append10(dst []byte, h *Header) []byte {
	be, md := binary.BigEndian, uint32(0)
	for i, bit := range metadata10Bits {
		if h.Metadata&bit != 0 {
			md |= 0x20 >> i
		}
	}
	proto := uint32(0)
	if h.Inner != InnerNone {
		proto = uint32(h.Inner - InnerEthernet)
	}
	dst = be.AppendUint32(dst, 1<<28|uint32(4+bits.OnesCount32(md))<<24|proto<<21|md<<15|flags3(h.Flags)<<6|uint32(h.HWID&0x3f))
	dst = be.AppendUint32(dst, h.NodeID)
	dst = be.AppendUint32(dst, h.Seq)
	dst = be.AppendUint32(dst, h.Time)
	// The words are those of an INT 1.0 block, in its order, but for the drop reason before the utilisation.
	dst = packet.AppendBlock(dst, packet.INT10, h.Metadata&(MDInterfaces|MDLatency|MDQueue|MDEgressTime), &h.Hop)
	if h.Metadata&MDDrop != 0 {
		dst = h.appendDrop(dst)
	}
	return packet.AppendBlock(dst, packet.INT10, h.Metadata&MDTxUtilization, &h.Hop)
}

// flags3 returns D, Q and F in the three lowest bits.
func flags3(f decode.Flags) uint32 {
	return uint32(bits.Reverse8(uint8(f&(decode.Dropped|decode.Congested|decode.Tracked))) >> 5)
}

// Append05 appends a report 0.5 up to its Ethernet frame, with a drop header for a dropped packet and a switch local
// header for others.
func Append05(dst []byte, h *Header) []byte {
	be, nproto := binary.BigEndian, uint32(2)
	if h.Flags&decode.Dropped != 0 {
		nproto = 1
	}
	dst = be.AppendUint32(dst, nproto<<24|flags3(h.Flags)<<21|uint32(h.HWID&0x3f))
	dst = be.AppendUint32(dst, h.Seq)
	dst = be.AppendUint32(dst, h.Time)
	dst = be.AppendUint32(dst, h.NodeID)
	dst = packet.AppendBlock(dst, packet.INT05, MDInterfaces, &h.Hop)
	if nproto == 1 {
		return h.appendDrop(dst)
	}
	return packet.AppendBlock(dst, packet.INT05, MDQueue|MDEgressTime, &h.Hop)
}

// SequenceAt returns the place of the sequence number in a datagram of reports of any version, its width as a mask,
// and the hardware id. Recorded datagrams are renumbered by these. b must hold a whole header.
func SequenceAt(b []byte) (at int, mask uint32, hwID uint8) {
	switch b[0] >> 4 {
	case 2:
		return 0, 1<<22 - 1, b[0]<<2&0x3c | b[1]>>6
	case 1:
		return 8, 1<<32 - 1, b[3] & 0x3f
	}
	return 4, 1<<32 - 1, b[3] & 0x3f
}

package pint

import (
	"encoding/binary"
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// Numbers of the frames that the published programs write.
const (
	EtherTofino = 0x1337 // EtherType of Tofino-PINT

	tofinoHeader = 6   // digest, and the EtherType that was there before
	hpccSequence = 6   // the simulator's sequence header between UDP and the digest
	firstTTL     = 255 // with which senders of Mininet-PINT and Tofino-PINT send
)

// Frames reads the digests in packets of the network that one of the published programs wrote: CodingMininet,
// CodingTofino or CodingHPCC. Digests of plans come in telemetry reports.
type Frames struct {
	Coding decode.Coding
	Bytes  int // size of an HPCC digest, 1 or 2
}

var _ packet.Format = Frames{}

// Where returns which packets can hold a digest. The programs send nothing else.
func (f Frames) Where() packet.Where {
	switch f.Coding {
	case decode.CodingMininet:
		return packet.Where{Any: true, Alone: true, Mark: "IPv4 with TOS byte 1"}
	case decode.CodingTofino:
		return packet.Where{EtherTypes: []uint16{EtherTofino}, Alone: true}
	}
	return packet.Where{Any: true, Alone: true, Mark: "UDP behind PPP"}
}

// String names the format, with the program.
func (f Frames) String() string {
	if f.Coding == decode.CodingHPCC {
		return fmt.Sprintf("PINT digests of hpcc, %d byte", f.Bytes)
	}
	return "PINT digests of " + f.Coding.String()
}

// NewReader returns f itself, which keeps nothing.
func (f Frames) NewReader() packet.Reader { return &f }

// Read appends a report to b if p has a digest by the program.
func (f *Frames) Read(b *decode.Batch, p *packet.Packet, data []byte) (n int) {
	switch f.Coding {
	case decode.CodingMininet:
		return f.mininet(b, p, data)
	case decode.CodingTofino:
		return f.tofino(b, p, data)
	case decode.CodingHPCC:
		return f.hpcc(b, p, data)
	}
	return 0
}

// mininet reads the digest in the destination MAC address.
func (f *Frames) mininet(b *decode.Batch, p *packet.Packet, data []byte) (n int) {
	if p.Link != packet.LinkEthernet || p.IP != 4 || p.TOS != 1 {
		return 0
	}
	r := f.next(b, p, data)
	g := &r.Digest
	g.Value, g.AMS = binary.BigEndian.Uint64(data)>>16, binary.BigEndian.Uint16(data[10:])
	g.LastWriter = binary.BigEndian.Uint16(data[p.L3+10:])
	if !hops(r, p) {
		return 1
	}
	if _, ok := MininetLanes(g.Value); !ok {
		r.Fail(decode.PINT, "digest", 0, decode.BadDigest)
		return 1
	}
	r.Has |= decode.HasDigest
	return 1
}

// tofino reads the 6-byte header between Ethernet and the packet: the digest and the EtherType that was there before.
func (f *Frames) tofino(b *decode.Batch, p *packet.Packet, data []byte) (n int) {
	if p.Link != packet.LinkEthernet || p.EtherType != EtherTofino {
		return 0
	}
	at, end := p.L3, p.End
	fail := func(field string, offset int, why decode.Reason) int {
		r := b.Next()
		r.Format = decode.PINT
		r.Fail(decode.PINT, field, offset, why)
		return 1
	}
	if len(data)-at < tofinoHeader {
		return fail("digest", at, decode.Short)
	}
	value := binary.BigEndian.Uint32(data[at:])
	if ether := binary.BigEndian.Uint16(data[at+4:]); ether != packet.EtherIPv4 {
		return fail("next_header", at+4, decode.BadType)
	}
	p.IPv4(data, at+tofinoHeader, end)
	if p.IP == 0 {
		return fail("next_header", at+tofinoHeader, decode.Short)
	}
	r := f.next(b, p, data)
	r.Digest.Value = uint64(value)
	if hops(r, p) {
		r.Has |= decode.HasDigest
	}
	return 1
}

// hpcc reads the digest behind the simulator's sequence header.
func (f *Frames) hpcc(b *decode.Batch, p *packet.Packet, data []byte) (n int) {
	at := p.L4 + packet.UDPLen + hpccSequence
	if p.Fragment || p.L4 == 0 || p.Proto != packet.ProtoUDP || p.UDPEnd(data) < at+f.Bytes {
		return 0
	}
	r := f.next(b, p, data)
	if len(data) < at+f.Bytes {
		r.Flags |= decode.Truncated
		return 1
	}
	r.Digest.Value = uint64(data[at])
	if f.Bytes == 2 {
		r.Digest.Value |= uint64(data[at+1]) << 8
	}
	r.Has |= decode.HasDigest
	return 1
}

// next appends a report about the packet p with a digest of the program.
func (f *Frames) next(b *decode.Batch, p *packet.Packet, data []byte) *decode.Report {
	r := b.Next()
	p.Report(r, data)
	r.Format, r.Kind = decode.PINT, decode.KindDigest
	r.Digest.Coding, r.Digest.ID = f.Coding, uint32(p.ID)
	return r
}

// hops derives the number of switches from the TTL, which senders set to 255.
func hops(r *decode.Report, p *packet.Packet) bool {
	if p.TTL == firstTTL {
		r.Fail(decode.PINT, "ttl", p.L3+8, decode.BadDigest)
		return false
	}
	r.Digest.Hops = firstTTL - p.TTL
	return true
}

// AppendMininet appends the Ethernet header of Mininet-PINT. The destination address holds the digest as [MininetMAC]
// packs it, the source address that of the scheme for comparison. The IPv4 header behind it has the TOS byte 1, and
// the last writer's node id instead of its checksum.
func AppendMininet(dst []byte, mac uint64, ams uint16) []byte {
	dst = binary.BigEndian.AppendUint64(dst, mac<<16)
	dst = binary.BigEndian.AppendUint32(dst, uint32(ams))
	return binary.BigEndian.AppendUint16(dst, packet.EtherIPv4)
}

// AppendTofino appends the header of Tofino-PINT, which follows the Ethernet header of type EtherTofino and is
// followed by IPv4.
func AppendTofino(dst []byte, digest uint32) []byte {
	dst = binary.BigEndian.AppendUint32(dst, digest)
	return binary.BigEndian.AppendUint16(dst, packet.EtherIPv4)
}

// AppendHPCC appends the bytes behind the UDP header in HPCC-PINT. They are the simulator's sequence number and
// priority group, and the digest in one byte or two, least significant first.
func AppendHPCC(dst []byte, sequence uint32, group, digest uint16, bytes int) []byte {
	dst = binary.BigEndian.AppendUint32(dst, sequence)
	dst = binary.BigEndian.AppendUint16(dst, group)
	dst = append(dst, byte(digest))
	if bytes == 2 {
		dst = append(dst, byte(digest>>8))
	}
	return dst
}

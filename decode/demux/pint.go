package demux

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/pint"
)

const (
	etherTofinoPINT = 0x1337
	hpccSequence    = 6 // bytes of the simulator's sequence header between UDP and the digest
	firstTTL        = 255
)

// digest decodes the PINT digest in the frame that p was read from, if it has one by the profile's program.
func (d *Decoder) digest(b *decode.Batch, p *packet.Packet, link uint16, data []byte, time int64) (n int) {
	switch d.profile.PINT {
	case decode.CodingMininet:
		if link != packet.LinkEthernet || p.IP != 4 || p.TOS != 1 {
			return 0
		}
		r := d.nextDigest(b, p, data, time)
		g := &r.Digest
		g.Value, g.AMS = binary.BigEndian.Uint64(data)>>16, binary.BigEndian.Uint16(data[10:])
		g.LastWriter = binary.BigEndian.Uint16(data[p.L3+10:])
		if !hops(r, p) {
			return 1
		}
		if _, ok := pint.MininetLanes(g.Value); !ok {
			r.Fail(decode.PINT, "digest", 0, decode.BadDigest)
			return 1
		}
		r.Has |= decode.HasDigest
		return 1
	case decode.CodingTofino:
		if link != packet.LinkEthernet || p.EtherType != etherTofinoPINT {
			return 0
		}
		return d.tofino(b, p, data, time)
	case decode.CodingHPCC:
		at := p.L4 + 8 + hpccSequence
		if p.IP == 0 || p.Fragment || p.L4 == 0 || p.Proto != packet.ProtoUDP || p.UDPEnd(data) < at+d.profile.PINTBytes {
			return 0
		}
		r := d.nextDigest(b, p, data, time)
		if len(data) < at+d.profile.PINTBytes {
			r.Flags |= decode.Truncated
			return 1
		}
		r.Digest.Value = uint64(data[at])
		if d.profile.PINTBytes == 2 {
			r.Digest.Value |= uint64(data[at+1]) << 8
		}
		r.Has |= decode.HasDigest
		return 1
	}
	return 0
}

// tofino reads the 6-byte header between Ethernet and the packet: the digest and the EtherType that was there before.
func (d *Decoder) tofino(b *decode.Batch, p *packet.Packet, data []byte, time int64) (n int) {
	const header = 6
	at, end := p.L3, p.End
	if len(data)-at < header {
		r := d.next(b, time)
		r.Format = decode.PINT
		r.Fail(decode.PINT, "digest", at, decode.Short)
		return 1
	}
	value := binary.BigEndian.Uint32(data[at:])
	if ether := binary.BigEndian.Uint16(data[at+4:]); ether != packet.EtherIPv4 {
		r := d.next(b, time)
		r.Format = decode.PINT
		r.Fail(decode.PINT, "next_header", at+4, decode.BadType)
		return 1
	}
	p.IPv4(data, at+header, end)
	if p.IP == 0 {
		r := d.next(b, time)
		r.Format = decode.PINT
		r.Fail(decode.PINT, "next_header", at+header, decode.Short)
		return 1
	}
	r := d.nextDigest(b, p, data, time)
	r.Digest.Value = uint64(value)
	if hops(r, p) {
		r.Has |= decode.HasDigest
	}
	return 1
}

// nextDigest appends a report about the packet p with a digest of the profile's program.
func (d *Decoder) nextDigest(b *decode.Batch, p *packet.Packet, data []byte, time int64) *decode.Report {
	r := d.next(b, time)
	setFlow(r, p, data)
	r.Format, r.Kind = decode.PINT, decode.KindDigest
	r.Digest.Coding, r.Digest.ID = d.profile.PINT, uint32(p.ID)
	return r
}

// hops tells the number of switches from the TTL, which senders set to 255.
func hops(r *decode.Report, p *packet.Packet) bool {
	if p.TTL == firstTTL {
		r.Fail(decode.PINT, "ttl", p.L3+8, decode.BadDigest)
		return false
	}
	r.Digest.Hops = firstTTL - p.TTL
	return true
}

package program

import (
	"crypto/md5"
	"encoding/binary"
	"hash/crc32"
	"math"

	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/pint"
)

// PublishedPacket is a UDP packet over IPv4 as its sender gives it to the first switch of a network with a published
// PINT program. There are three such programs, one for each method. They carry the packet along a path, switch by
// switch, and append the frame that leaves the last one. The programs are reproduced as they are, faults included.
type PublishedPacket struct {
	Src, Dst         [4]byte
	SrcPort, DstPort uint16
	ID               uint16 // IPv4 identification, which two of the programs take for the packet id
	Payload          []byte
}

// ipv4 appends the packet from its IPv4 header on, with valid checksums. front comes before the payload.
func (p *PublishedPacket) ipv4(b []byte, ttl uint8, front ...byte) []byte {
	length := headers.UDPLen + len(front) + len(p.Payload)
	b = headers.AppendIPv4(b, &headers.IPv4{TTL: ttl, Proto: headers.ProtoUDP, ID: p.ID, Src: p.Src, Dst: p.Dst}, length)
	at := len(b)
	b = headers.AppendUDP(b, p.SrcPort, p.DstPort, length-headers.UDPLen)
	b = append(append(b, front...), p.Payload...)
	headers.ChecksumUDP(b[at:], headers.PseudoHeader(b[at-8:at], headers.ProtoUDP, length))
	return b
}

// TTL of the senders: those of Mininet-PINT and Tofino-PINT, and those of HPCC-PINT.
const (
	publishedTTL = 255
	hpccTTL      = 64
)

// publishedMAC is the locally administered address of a host or switch by the address of a host.
func publishedMAC(kind byte, a [4]byte) headers.MAC {
	return headers.MAC{0x02, kind, a[0], a[1], a[2], a[3]}
}

// AppendMininet appends the Ethernet frame that leaves the last of the switches with these node ids, in order. The
// digest is in the destination MAC address, that of the compared scheme (AMS2) in the source address, and ECN is 1. The
// id of the last switch that wrote either replaces the IPv4 checksum. A path has at most 254 switches; the rest is
// ignored.
func (p *PublishedPacket) AppendMininet(dst []byte, path []uint32) []byte {
	path = path[:min(len(path), publishedTTL-1)]
	var high, middle, low, ams, writer uint32 // fields of 16 bits
	id := binary.BigEndian.AppendUint16(nil, p.ID)
	number := func(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
	hash := func(parts ...[]byte) (h uint32) {
		for _, b := range parts {
			h = crc32.Update(h, crc32.IEEETable, b)
		}
		return h
	}
	decider := hash(id) % 100
	for i, node := range path {
		hop := uint32(i + 1)
		global, limit := hash(id, number(hop))%1000000, 1000000/hop
		switch {
		case decider < 50 && global < limit:
			h := hash(number(node), id)
			high, middle, low = h%255, h%7, 0
			writer = node
		case decider >= 50 && global <= 100000:
			high, middle, low = (low^node)&0xff, (middle^node)&0xf, (high^node)&1
			writer = node
		}
		if global < limit {
			j := hash(id) % 7
			ams = hash(number(node+j+1))%100<<3 + j
			writer = node
		}
	}
	at := len(dst)
	dst = pint.AppendMininet(dst, uint64(high)<<32|uint64(middle)<<16|uint64(low), uint16(ams))
	dst = p.ipv4(dst, publishedTTL-uint8(len(path)))
	if len(path) > 0 {
		dst[at+headers.EthernetLen+1] |= 1
		binary.BigEndian.PutUint16(dst[at+headers.EthernetLen+10:], uint16(writer))
	}
	return dst
}

// Sizes of the tables that hold the hashes of the Tofino program, and those of its limits.
const (
	TofinoIDs    = 1000
	TofinoHops   = 10
	TofinoValues = 64
)

var tofinoLimits = [...]uint32{65535, 32767, 21844, 16383, 13106, 10921, 9361, 8191, 7280, 6562}

// AppendTofino appends the Ethernet frame on the line behind the last of these switches. It has EtherType 0x1337 and a
// header of the digest and the original EtherType. The argument baseline is set where the hardware's hash of the packet
// id chooses the Baseline layer; how it cuts that hash is unknown.
//
// A hash that has no entry in the tables is 0, which makes every switch write.
func (p *PublishedPacket) AppendTofino(dst []byte, path []uint8, baseline bool) []byte {
	path = path[:min(len(path), publishedTTL-1)]
	le := binary.LittleEndian
	digest := uint32(0)
	for i, node := range path {
		hop := i + 1
		global, value := uint32(0), uint32(0)
		if p.ID < TofinoIDs && hop < TofinoHops {
			s := md5.Sum(le.AppendUint16([]byte{byte(hop), 0}, p.ID))
			global = uint32(binary.BigEndian.Uint16(s[14:]))
		}
		if p.ID < TofinoIDs && node < TofinoValues {
			s := md5.Sum(le.AppendUint16([]byte{node, 0, 0, 0}, p.ID))
			value = binary.BigEndian.Uint32(s[12:])
		}
		switch {
		case baseline && hop <= len(tofinoLimits) && global <= tofinoLimits[hop-1]:
			digest = value
		case !baseline && global < 8192:
			digest ^= value
		}
	}
	dst = headers.AppendEthernet(dst, publishedMAC(0x20, p.Dst), publishedMAC(0x10, p.Src), pint.EtherTofino)
	return p.ipv4(pint.AppendTofino(dst, digest), publishedTTL-uint8(len(path)))
}

// AppendHPCC appends the PPP frame that the simulator's switches leave behind. The digest follows UDP and its sequence
// header, in one byte, or in two, least significant first. Each switch maps the utilisation of its line (1 is full) to
// the exponent of base, and the packet keeps the largest. The function rnd draws from [0, 1).
func (p *PublishedPacket) AppendHPCC(dst []byte, sequence uint32, utilization []float64, base float64, bytes int, rnd func() float64) []byte {
	digest := uint16(0)
	for _, u := range utilization {
		scaled := max(1, math.Ceil(u*512))
		exponent := math.Log(scaled) / math.Log(base)
		low, high := math.Floor(exponent), math.Ceil(exponent)
		code := low
		if from, to := math.Pow(base, low), math.Pow(base, high); high > low && rnd() < (scaled-from)/(to-from) {
			code = high
		}
		digest = max(digest, uint16(code))
	}
	front := pint.AppendHPCC(nil, sequence, 3, digest, bytes) // priority group 3
	return p.ipv4(append(dst, 0x00, 0x21), hpccTTL-uint8(min(len(utilization), hpccTTL-1)), front...)
}

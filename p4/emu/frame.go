package emu

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	headers "github.com/hopscope/hopscope/decode/packet"
)

var be = binary.BigEndian

const (
	ethLen = headers.EthernetLen
	udpLen = headers.UDPLen
	tcpLen = headers.TCPLen
	tcp    = headers.ProtoTCP
	udp    = headers.ProtoUDP
)

// mac is a locally administered address.
func mac(kind byte, n int) headers.MAC {
	return headers.MAC{0x02, kind, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// Kinds of MAC addresses.
const (
	macSwitch = 0x10
	macHost   = 0x20
)

// hostAddr4 returns the address of host k (from 0) of the e-th switch with hosts, 10.e.e.k+1.
func hostAddr4(e, k int) [4]byte { return [4]byte{10, byte(e >> 8), byte(e), byte(k + 1)} }

// hostAddr6 returns the IPv6 address of the same host, fd00::e:k+1.
func hostAddr6(e, k int) (a [16]byte) {
	a[0], a[12], a[13], a[15] = 0xfd, byte(e>>8), byte(e), byte(k+1)
	return a
}

// flow is the state of one flow. It holds no pointer, so that a million of them cost the garbage collector nothing.
type flow struct {
	hash             uint32 // [programs.FlowHash]
	src, dst         int32  // hosts
	srcPort, dstPort uint16
	proto            uint8
	v6, options      bool
	dscp             uint8
	id               uint16 // of the next IP packet
	size             uint16 // of every packet; 0 for random sizes
	sent             uint32
	bytes            uint32 // TCP sequence number
	left             uint32 // packets until the flow ends; 0 for never
}

func (n *Network) key(f *flow) (k decode.FlowKey) {
	src, dst := &n.hosts[f.src], &n.hosts[f.dst]
	k = decode.FlowKey{SrcPort: f.srcPort, DstPort: f.dstPort, Proto: f.proto, IPVersion: 4}
	if f.v6 {
		k.IPVersion, k.Src, k.Dst = 6, src.v6, dst.v6
	} else {
		k.Src, k.Dst = decode.AddrFrom4(src.v4[:]), decode.AddrFrom4(dst.v4[:])
	}
	return k
}

// payloadKept is how much of the payload is held in memory; the rest is zeros that need no store.
const payloadKept = 16

// tcpOptions are two fillers and a timestamp option with constant values.
var tcpOptions = [12]byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1}

// build writes the headers and the first bytes of a packet of flow f, size bytes long from the Ethernet header on.
func (n *Network) build(p *packet, index int, f *flow, size int) {
	src, dst := &n.hosts[f.src], &n.hosts[f.dst]
	to, from := mac(macSwitch, int(src.node)), mac(macHost, int(f.src))
	b := p.Buf[:0]
	p.L3 = ethLen
	ip, addresses := size-ethLen, 0 // the latter is where the addresses begin
	if f.v6 {
		b = headers.AppendEthernet(b, to, from, headers.EtherIPv6)
		b = headers.AppendIPv6(b, &headers.IPv6{TrafficClass: f.dscp << 2, HopLimit: hostTTL, Proto: f.proto, Src: src.v6, Dst: dst.v6}, ip-headers.IPv6Len)
		addresses = ethLen + 8
	} else {
		b = headers.AppendEthernet(b, to, from, headers.EtherIPv4)
		b = headers.AppendIPv4(b, &headers.IPv4{TOS: f.dscp << 2, TTL: hostTTL, Proto: f.proto, ID: f.id, Src: src.v4, Dst: dst.v4}, ip-headers.IPv4Len)
		addresses = ethLen + 12
	}
	p.l4 = len(b)
	l4 := size - p.l4
	pseudo := headers.PseudoHeader(b[addresses:p.l4], f.proto, l4)
	check := p.l4 + 6
	if f.proto == udp {
		b = headers.AppendUDP(b, f.srcPort, f.dstPort, l4-udpLen)
	} else {
		check = p.l4 + 16
		h := headers.TCP{SrcPort: f.srcPort, DstPort: f.dstPort, Seq: f.bytes, Ack: 1, Flags: 0x18, Window: 0xffff}
		if f.options {
			h.Options = tcpOptions[:]
		}
		b = headers.AppendTCP(b, &h)
		f.bytes += uint32(size - len(b))
	}
	b = be.AppendUint32(b, uint32(index))
	b = be.AppendUint32(b, f.sent)
	b = append(b, make([]byte, payloadKept-8)...) // Validate demands packets that are long enough
	c := ^headers.Fold(pseudo + headers.Sum(b[p.l4:]))
	if c == 0 && f.proto == udp {
		c = 0xffff // 0 means that there is no checksum (RFC 768)
	}
	be.PutUint16(b[check:], c)
	p.Buf, p.Size, p.V6, p.proto, p.id = b, size, f.v6, f.proto, f.id
	f.id++
	f.sent++
}

// nextMAC is the address behind an interface.
func (n *Network) nextMAC(out int32) headers.MAC {
	if h := n.ports[out].host; h >= 0 {
		return mac(macHost, int(h))
	}
	return mac(macSwitch, int(n.ports[n.ports[out].peer].node))
}

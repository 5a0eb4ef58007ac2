package sim

import headers "github.com/hopscope/hopscope/decode/packet"

// Packet describes a packet over TCP or UDP as its host sends it.
type Packet struct {
	To, From         headers.MAC
	V6, Options      bool // over IPv6; TCP with options
	DSCP, TTL, Proto uint8
	ID               uint16 // of IPv4
	Src4, Dst4       [4]byte
	Src6, Dst6       [16]byte
	SrcPort, DstPort uint16
	Seq              uint32 // of TCP
	Flow, Number     uint32 // in the payload
}

// PayloadKept is how much of the payload is held in memory; the rest is zeros that need no store.
const PayloadKept = 16

// tcpOptions are two fillers and a timestamp option with constant values.
var tcpOptions = [12]byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1}

// Build makes p the frame of h, size bytes long. Payload is two numbers and zeros.
func (p *Frame) Build(h *Packet, size int) {
	b := p.Buf[:0]
	p.L3 = headers.EthernetLen
	ip, addresses := size-p.L3, 0 // the latter is where the addresses begin
	if h.V6 {
		b = headers.AppendEthernet(b, h.To, h.From, headers.EtherIPv6)
		b = headers.AppendIPv6(b, &headers.IPv6{TrafficClass: h.DSCP << 2, HopLimit: h.TTL, Proto: h.Proto, Src: h.Src6, Dst: h.Dst6}, ip-headers.IPv6Len)
		addresses = p.L3 + 8
	} else {
		b = headers.AppendEthernet(b, h.To, h.From, headers.EtherIPv4)
		b = headers.AppendIPv4(b, &headers.IPv4{TOS: h.DSCP << 2, TTL: h.TTL, Proto: h.Proto, ID: h.ID, Src: h.Src4, Dst: h.Dst4}, ip-headers.IPv4Len)
		addresses = p.L3 + 12
	}
	p.L4, p.Proto = len(b), h.Proto
	l4 := size - p.L4
	pseudo := headers.PseudoHeader(b[addresses:p.L4], h.Proto, l4)
	check := p.L4 + 6
	if h.Proto == headers.ProtoUDP {
		b = headers.AppendUDP(b, h.SrcPort, h.DstPort, l4-headers.UDPLen)
	} else {
		check = p.L4 + 16
		t := headers.TCP{SrcPort: h.SrcPort, DstPort: h.DstPort, Seq: h.Seq, Ack: 1, Flags: 0x18, Window: 0xffff}
		if h.Options {
			t.Options = tcpOptions[:]
		}
		b = headers.AppendTCP(b, &t)
	}
	b = be.AppendUint32(b, h.Flow)
	b = be.AppendUint32(b, h.Number)
	b = append(b, make([]byte, PayloadKept-8)...)
	c := ^headers.Fold(pseudo + headers.Sum(b[p.L4:]))
	if c == 0 && h.Proto == headers.ProtoUDP {
		c = 0xffff // 0 means that there is no checksum (RFC 768)
	}
	be.PutUint16(b[check:], c)
	p.Buf, p.Size, p.V6 = b, size, h.V6
}

package probe

import (
	"encoding/binary"
	"net/netip"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
)

// Ports of probes. The first marks INT, as public code has it; the second stands in the shim as the original one.
const (
	INTPort      = 17768
	OriginalPort = 17769

	FirstPort = 0xc000 // the source port is this and the lowest bits of the probe's number
	portBits  = 14
)

// Sizes of the parts of a frame.
const (
	EthernetLen = packet.EthernetLen
	INTLen      = 4 + 12
	PayloadLen  = 24
	PacketLen   = packet.IPv4Len + packet.UDPLen + INTLen + PayloadLen // IP packet of a probe that passed no switch
	probeINTLen = 4                                                    // EtherType and count of labels that srint writes behind a route

	Magic = 0x48505242 // "HPRB"
	ttl   = 64
)

// frameLen is the size of a probe with a route of n entries, as it is sent.
func frameLen(n int) int { return EthernetLen + 2 + 2*n + 2 + PacketLen }

// DialectHeader is the INT header of a dialect, without a limit of hops.
func DialectHeader(d Dialect, bitmap uint16) intmd.Header {
	h := intmd.Header{Version: decode.V21, NPT: 1, Original: OriginalPort, Flags: decode.Discard, Instructions: bitmap}
	if d == FANT {
		h.DomainID, h.Layout = intmd.FANTDomain, packet.INT2FANT
	}
	return h
}

// Ends are the addresses of a probe, and the marks by which its receiver checks that it is whole.
type Ends struct {
	ToMAC, FromMAC packet.MAC
	From, To       netip.Addr // IPv4
	Mark           uint8      // DSCP
	Checksum       bool       // of UDP; switches keep it right, or make it 0

	Digests *Digester // of the goroutine that sends; nil for none
}

// payload is the size of what stands behind INT.
func (e *Ends) payload() int {
	if e.Digests != nil {
		return SignedLen
	}
	return PayloadLen
}

// Template is the frame of a probe. AppendFrame fills in what is new in every round.
type Template struct {
	frame  []byte
	Seq    uint32
	Probe  int    // index in the plan
	Number uint32 // of the probe, among those of its sender

	l4      int    // where UDP begins
	tail    int    // where that begins which is new
	sum     uint64 // of UDP and its pseudo header without the tail, for the checksum; 0 for none
	fixed   [fixedLen]byte
	digests *Digester
}

// NewTemplate builds the frame of a probe with a route of srint, under a number.
func NewTemplate(p *Plan, x *Probe, number uint32, e *Ends) (t Template, err error) {
	payload := e.payload()
	b := make([]byte, 0, frameLen(len(x.Route))+payload-PayloadLen)
	b = packet.AppendEthernet(b, e.ToMAC, e.FromMAC, srint.TypeRoute)
	at := len(b) - 2 // the route begins with the EtherType
	if b, err = srint.AppendProbe(b[:at], x.Route); err != nil {
		return t, err
	}
	b = binary.BigEndian.AppendUint16(b[:len(b)-probeINTLen], packet.EtherIPv4) // the route leads a packet
	l3 := len(b)
	t.l4 = l3 + packet.IPv4Len
	h := p.Dialect.header(p.bitmap(x), len(x.Route))
	ip := packet.IPv4{TOS: e.Mark << 2, TTL: ttl, Proto: packet.ProtoUDP, DontFragment: true, Src: e.From.As4(), Dst: e.To.As4()}
	b = packet.AppendIPv4(b, &ip, packet.UDPLen+INTLen+payload)
	b = packet.AppendUDP(b, FirstPort|uint16(number)&(1<<portBits-1), INTPort, INTLen+payload)
	b = intmd.AppendHeader(b, &h, 0)
	be := binary.BigEndian
	b = be.AppendUint32(b, Magic)
	b = be.AppendUint32(b, number)
	b = be.AppendUint32(b, p.Epoch)
	t.tail = len(b)
	t.frame = append(b, make([]byte, payload-12)...)
	if e.Checksum {
		t.sum = packet.PseudoHeader(t.frame[l3+12:t.l4], packet.ProtoUDP, len(t.frame)-t.l4) + packet.Sum(t.frame[t.l4:t.tail])
	}
	if t.digests = e.Digests; t.digests != nil {
		appendFixed(t.fixed[:0], t.frame[l3:])
	}
	return t, nil
}

// Len is the size of the frame.
func (t *Template) Len() int { return len(t.frame) }

// AppendFrame appends the frame of the next round, sent at a time in nanoseconds since 1970.
func (t *Template) AppendFrame(dst []byte, now int64) []byte {
	be, tail := binary.BigEndian, t.frame[t.tail:]
	be.PutUint32(tail, t.Seq)
	be.PutUint64(tail[4:], uint64(now))
	t.Seq++
	if d := t.digests; d != nil {
		be.PutUint32(tail[12:], d.keys.list[0].id)
		copy(d.cover[copy(d.cover[:], t.fixed[:]):], t.frame[t.tail-12:])
		copy(tail[12+keyIDLen:], d.at(0))
	}
	if t.sum != 0 {
		sum := ^packet.Fold(t.sum + packet.Sum(tail))
		if sum == 0 {
			sum = 0xffff // 0 means that there is none
		}
		be.PutUint16(t.frame[t.l4+6:], sum)
	}
	return append(dst, t.frame...)
}

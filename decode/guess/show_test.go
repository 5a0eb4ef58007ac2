package guess

import (
	"bytes"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// The shown part of a frame has its headers and its INT, and no user data.
func TestShow(t *testing.T) {
	secret := bytes.Repeat([]byte("secret, "), 20)
	frame := func(ether uint16, b []byte) []byte {
		return append(packet.AppendEthernet(nil, packet.MAC{2, 5: 2}, packet.MAC{2, 5: 1}, ether), b...)
	}
	ip4 := func(proto uint8, b []byte) []byte {
		h := packet.IPv4{TTL: 60, Proto: proto, TOS: 0x17 << 2, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}
		return append(packet.AppendIPv4(nil, &h, len(b)), b...)
	}
	ip6 := func(proto uint8, b []byte) []byte {
		h := packet.IPv6{HopLimit: 60, Proto: proto, Src: [16]byte{0: 0xfd, 15: 1}, Dst: [16]byte{0: 0xfd, 15: 2}}
		return append(packet.AppendIPv6(nil, &h, len(b)), b...)
	}
	udp := func(port uint16, b []byte) []byte { return append(packet.AppendUDP(nil, 4000, port, len(b)), b...) }
	stack := func(v decode.Version) []byte {
		hop := decode.Hop{NodeID: 0x7a7a7a7a, Has: decode.HopNodeID}
		return intmd.Append(nil, &intmd.Header{Version: v, Instructions: 0x8000, RemainingHops: 8, Proto: packet.ProtoUDP, Original: 53}, []decode.Hop{hop})
	}
	spoilt := stack(decode.V10)
	spoilt[4] = 0x90 // a version that does not exist
	tcp := func(b []byte) []byte { return append([]byte{1, 1, 2, 2, 12: 0x50, 19: 0}, b...) }
	report := func(inner []byte) []byte {
		return append(telemetry.Append10(nil, &telemetry.Header{NodeID: 5, Inner: telemetry.InnerEthernet}), inner...)
	}
	vxlan := func(b []byte) []byte { return udp(4789, append([]byte{8, 0, 0, 0, 0, 0, 7, 0}, b...)) }
	g := New(Builtin())
	for _, c := range []struct {
		name string
		link uint16
		data []byte
		keep []byte // is shown
	}{
		{"report about UDP", Datagram, report(frame(0x0800, ip4(17, udp(5000, secret)))), []byte{0x13, 0x88}},
		{"report about TCP", Datagram, report(frame(0x0800, ip4(6, tcp(secret)))), []byte{1, 1, 2, 2}},
		{"report about IPv6", Datagram, report(frame(0x86dd, ip6(17, udp(5000, secret)))), []byte{0x13, 0x88}},
		{"report about ICMP", Datagram, report(frame(0x0800, ip4(1, append(make([]byte, 8), secret...)))), nil},
		{"report with INT 1.0", Datagram, report(frame(0x0800, ip4(17, udp(5000, append(stack(decode.V10), secret...))))), stack(decode.V10)},
		{"report with INT 2.1", Datagram, report(frame(0x0800, ip4(17, udp(5000, append(stack(decode.V21), secret...))))), stack(decode.V21)},
		{"report with INT of another version", Datagram, report(frame(0x0800, ip4(17, udp(5000, append(bytes.Clone(spoilt), secret...))))), spoilt},
		{"a header of another program, and IPv4", Datagram, append([]byte{9, 9, 9, 9}, ip4(17, udp(5000, secret))...), []byte{0x13, 0x88}},
		{"no packet", Datagram, bytes.Repeat([]byte{0xf1}, 50), bytes.Repeat([]byte{0xf1}, 50)},
		{"captured packet with INT", packet.LinkEthernet, frame(0x0800, ip4(17, udp(5000, append(stack(decode.V21), secret...)))), stack(decode.V21)},
		{"captured packet in VXLAN", packet.LinkEthernet, frame(0x0800, ip4(17, vxlan(frame(0x0800, ip4(1, append(make([]byte, 8), secret...)))))), nil},
		{"captured report", packet.LinkEthernet, frame(0x0800, ip4(17, udp(32766, report(frame(0x0800, ip4(1, append(make([]byte, 8), secret...))))))), nil},
		{"captured datagram without a packet", packet.LinkEthernet, frame(0x0800, ip4(17, udp(32766, bytes.Repeat([]byte{0xf1}, 30)))), bytes.Repeat([]byte{0xf1}, 30)},
	} {
		b := g.show(&Sample{Link: c.link, Data: c.data, Length: len(c.data)})
		if bytes.Contains(b, []byte("secr")) || len(b) > shown || !bytes.HasPrefix(c.data, b) {
			t.Errorf("%s: shows %q", c.name, b)
		}
		if !bytes.Contains(b, c.keep) {
			t.Errorf("%s: shows %x without %x", c.name, b, c.keep)
		}
	}
}

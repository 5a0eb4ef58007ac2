package demux

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/sflow"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// Labels of MPLS and sessions of PPPoE are in frames between Ethernet and IP. The packets behind them are read, in
// frames of the network, in packets inside of reports, and in samples. A report has them as the inner flow, since no
// header outside of it has addresses.
func TestLabels(t *testing.T) {
	ip := ipv4(0x17, packet.ProtoUDP, udp(5000, int10(0x8000, 2)))
	v6 := ipv6(0x17, packet.ProtoUDP, udp(5000, int10(0x8000, 2)))
	session := func(protocol uint16, b []byte) []byte {
		h := binary.BigEndian.AppendUint16([]byte{0x11, 0, 0, 9}, uint16(2+len(b)))
		return append(binary.BigEndian.AppendUint16(h, protocol), b...)
	}
	label := func(b []byte, bottom byte) []byte { return append([]byte{0, 6, 0x40 | bottom, 64}, b...) }
	frame := func(kind uint16, b []byte) []byte {
		x := ether(t, b)
		binary.BigEndian.PutUint16(x[12:], kind)
		return x
	}
	tag := func(kind uint16, b []byte) []byte {
		return append(binary.BigEndian.AppendUint16([]byte{0, 5}, kind), b...)
	}
	for _, c := range []struct {
		name string
		data []byte
		src  string
	}{
		{"one label", frame(0x8847, label(ip, 1)), "10.0.1.1"},
		{"two labels, multicast", frame(0x8848, label(label(ip, 1), 0)), "10.0.1.1"},
		{"a label, IPv6", frame(0x8847, label(v6, 1)), "fd00::1"},
		{"a pseudowire", frame(0x8847, label(append([]byte{0, 0, 0, 0}, ether(t, ip)...), 1)), "10.0.1.1"},
		{"a label behind a tag", frame(0x8100, tag(0x8847, label(ip, 1))), "10.0.1.1"},
		{"a session", frame(0x8864, session(0x21, ip)), "10.0.1.1"},
		{"a session, IPv6, behind a tag", frame(0x8100, tag(0x8864, session(0x57, v6))), "fd00::1"},
		{"labels without an end", frame(0x8847, label(label(nil, 0), 0)), ""},
		{"a session's control", frame(0x8864, session(0xc021, ip)), ""},
	} {
		whole := packet.Packet{}
		whole.Frame(packet.LinkEthernet, c.data, len(c.data))
		if (whole.IP != 0) != (c.src != "") {
			t.Errorf("%s: %+v", c.name, whole)
		}
		drop := sflow.Sample{Kind: sflow.Discard, Seq: 1, Reason: 259, Has: sflow.HasHeader, Protocol: 1, FrameLen: uint32(len(c.data)), Header: c.data}
		for _, way := range []struct {
			name string
			read func(d *Decoder, b *decode.Batch)
			node bool // a hop besides those of the stack
		}{
			{"frame", func(d *Decoder, b *decode.Batch) { d.Frame(b, packet.LinkEthernet, c.data, len(c.data), 7) }, false},
			{"report 1.0", func(d *Decoder, b *decode.Batch) {
				x := telemetry.Append10(nil, &telemetry.Header{NodeID: 5, Flags: decode.Tracked})
				d.Datagram(b, decode.AddrFrom4([]byte{192, 0, 2, 1}), append(x, c.data...), 7)
			}, false},
			{"sample", func(d *Decoder, b *decode.Batch) {
				d.Datagram(b, decode.AddrFrom4([]byte{192, 0, 2, 1}), datagramOf(1, 1, drop), 7)
			}, true},
		} {
			var b decode.Batch
			way.read(New(profile(t, "auto")), &b)
			hops, src := 0, ""
			for _, r := range b.Reports {
				if r.Err.Reason != 0 {
					t.Errorf("%s, %s: %s", c.name, way.name, lines(&b))
				}
				hops += len(r.Hops)
				if r.Has&decode.HasFlow != 0 {
					src = r.Flow.SrcAddr().String()
				} else if r.Has&decode.HasInner != 0 {
					src = r.Rare.Inner.SrcAddr().String()
				}
			}
			want := 0
			if c.src != "" {
				want = 2
			}
			if way.node {
				want++
			}
			if hops != want || src != c.src {
				t.Errorf("%s, %s: %d hops of a flow from %q, want %d from %q: %s", c.name, way.name, hops, src, want, c.src, lines(&b))
			}
		}
	}
	// Statistics are of the packet behind the labels; a decoder says that it is inside.
	var b decode.Batch
	plain := frame(0x8847, label(ipv4(0, packet.ProtoUDP, udp(5000, nil)), 1))
	x := append(telemetry.Append10(nil, &telemetry.Header{NodeID: 5, Flags: decode.Tracked}), plain...)
	New(profile(t, "auto")).Datagram(&b, decode.AddrFrom4([]byte{192, 0, 2, 1}), x, 7)
	var o map[string]any
	if err := json.Unmarshal([]byte(lines(&b)), &o); err != nil || o["flow"] != nil || o["inner_flow"] == nil {
		t.Errorf("%v, %s", err, lines(&b))
	}
	b.Reset()
	NewRouter(profile(t, "auto"), nil).Datagram(&b, decode.AddrFrom4([]byte{192, 0, 2, 1}), x, 7)
	if r := b.Reports[0]; r.Has&decode.HasFlow == 0 || r.Has&decode.HasPorts == 0 || r.Flow.DstPort != 5000 {
		t.Errorf("%+v", r)
	}
}

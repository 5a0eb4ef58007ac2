package main_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/ioam"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/sflow"
)

// ifaFrame is a packet with an IFA stack of nodes, the newest first, over a UDP header.
func ifaFrame(port uint16, nodes ...uint32) []byte {
	be := binary.BigEndian
	b := be.AppendUint16([]byte{0x2f, 17, ioam.FlagInband, 64}, port)
	b = append(b, 6000>>8, 6000&0xff, 0, 8+4, 0, 0, 0xff, 0, 64-byte(len(nodes)), 8*byte(len(nodes)))
	for i := len(nodes) - 1; i >= 0; i-- {
		b = append(be.AppendUint32(b, 1<<28|nodes[i]<<8|uint32(60-i)), 0x40, 0, 0, 0, 0, 2, 0, 1)
		b = append(b, make([]byte, 20)...)
	}
	return ether(0x0800, ip4(253, 0, 9, 8, append(b, "data"...)))
}

// A sampled packet with telemetry is decoded like the packet itself, whatever exports it. Its hops count once, and the
// packet as often as its sample says.
func TestSiblingsSampled(t *testing.T) {
	type sibling struct {
		name  string
		frame func(k, i int) []byte
	}
	var list []sibling
	for _, w := range ways() {
		for _, v := range versions {
			if w.gre || w.only21 && v.v != decode.V21 {
				continue
			}
			list = append(list, sibling{fmt.Sprintf("%v, %s", v, w.name), func(k, i int) []byte {
				x := w.tail(func(h intmd.Header) []byte { return v.stackOf(h, hopsOf(i, uint32(k*10+1001), uint32(k*10+1002))) })
				binary.BigEndian.PutUint16(x[bytes.LastIndex(x, []byte{5000 >> 8, 5000 & 0xff}):], uint16(20000+k))
				return x
			}})
		}
	}
	for _, destination := range []bool{false, true} {
		list = append(list, sibling{fmt.Sprintf("IOAM, destination %v", destination), func(k, i int) []byte {
			hops := hopsOf(i, uint32(k*10+1001), uint32(k*10+1002))
			return ether(0x86dd, trace(t, ioam.BitNodeID|ioam.BitInterfaces|ioam.BitTransitDelay, destination, hops, 17, udp(uint16(20000+k), 6000, []byte("data"))))
		}})
	}
	list = append(list, sibling{"IFA", func(k, i int) []byte {
		return ifaFrame(uint16(20000+k), uint32(k*10+1001), uint32(k*10+1002))
	}})
	const n, rate = 3, 100
	datagram := func(k int, port uint16, b []byte) []byte {
		src := source(k)
		return ether(0x0800, append(packet.AppendIPv4(nil, &packet.IPv4{TTL: 60, Proto: 17, Src: src, Dst: [4]byte{192, 0, 2, 100}}, 8+len(b)), udp(5555, port, b)...))
	}
	sample := func(kind sflow.Kind, header func(x []byte) (protocol uint32, b []byte)) func(k, i int, x []byte) []byte {
		return func(k, i int, x []byte) []byte {
			src := source(k)
			protocol, b := header(x)
			d := sflow.Datagram{Agent: decode.AddrFrom4(src[:]), IPv: 4, Seq: uint32(i + 1), Samples: 1}
			s := sflow.Sample{Kind: kind, Seq: uint32(i + 1), Rate: rate, Pool: rate, Reason: 256, Has: sflow.HasHeader, Protocol: protocol, FrameLen: uint32(len(b)), Header: b}
			return datagram(k, 6343, sflow.AppendSample(sflow.AppendDatagram(nil, &d), &s))
		}
	}
	record := func(element uint16, cut int) func(k, i int, x []byte) []byte {
		return func(k, i int, x []byte) []byte {
			template := decode.Template{Version: ipfix.V10, ID: 256, Fields: []decode.Element{{ID: 34, Length: 4}, {ID: element, Length: 65535}}}
			m := ipfix.Message{Version: ipfix.V10, Domain: 1, Time: uint32(1_700_000_000 + i), Seq: uint32(i)}
			return datagram(k, 4739, ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
				b = ipfix.AppendSet(b, 2, 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, &template) })
				return ipfix.AppendSet(b, 256, 0, func(b []byte) []byte {
					return ipfix.AppendValue(append(b, 0, 0, 0, rate), x[cut:])
				})
			}))
		}
	}
	whole := func(x []byte) (uint32, []byte) { return 1, x }
	network := func(x []byte) (uint32, []byte) { return map[byte]uint32{0x08: 11, 0x86: 12}[x[12]], x[14:] }
	for _, c := range []struct {
		name    string
		packets int
		make    func(k, i int, x []byte) []byte
	}{
		{"a capture", n, func(k, i int, x []byte) []byte { return x }},
		{"sFlow, Ethernet", n * rate, sample(sflow.Flow, whole)},
		{"sFlow, IP", n * rate, sample(sflow.Flow, network)},
		{"sFlow, discarded", n, sample(sflow.Discard, whole)},
		{"IPFIX, frames", n * rate, record(315, 0)},
		{"IPFIX, packets", n * rate, record(313, 14)},
	} {
		var f frames
		for i := range n {
			for k, x := range list {
				f = append(f, c.make(k, i, x.frame(k, i)))
			}
		}
		s := f.summary(t, "--flows", "10000", "--hops", "100000")
		nodes, _ := counts(&s)
		got := map[int]string{}
		for _, line := range seen(&s) {
			var src, dst string
			var k int
			if _, err := fmt.Sscanf(strings.Replace(line, ":2", " 2", 1), "flow %s %d > %s", &src, &k, &dst); err == nil && k >= 20000 {
				got[k-20000] = line
			} else if !strings.HasPrefix(line, "hop ") && !strings.Contains(line, "dropped 3 packets for reason 139") {
				t.Errorf("%s: %s", c.name, line)
			}
		}
		for k, x := range list {
			want := fmt.Sprintf("by %d %d, %d packets, 0 changes", k*10+1001, k*10+1002, c.packets)
			if c.name == "sFlow, discarded" { // no way that the packet went to its end
				want = fmt.Sprintf("by , %d packets, 0 changes", c.packets)
			}
			if !strings.Contains(got[k], want) {
				t.Errorf("%s, %s: %q, want %s", c.name, x.name, got[k], want)
			}
			for i := range 2 {
				if id := uint32(k*10 + 1001 + i); nodes[id] != n {
					t.Errorf("%s, %s: node %d has %d reports", c.name, x.name, id, nodes[id])
				}
			}
		}
	}
}

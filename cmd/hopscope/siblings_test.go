package main_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/ioam"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// The recordings of testdata/strangers stand for classes. The tests below write other members of these classes. They
// judge each by the rule of its class, mostly by a twin without the trouble.

// frames is a recording in the making: a packet every 10 ms.
type frames [][]byte

// file writes the recording, with the link type of Ethernet.
func (f frames) file(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	le := binary.LittleEndian
	b.Write(le.AppendUint32(le.AppendUint64(le.AppendUint64(nil, 0x0004_0002_a1b2c3d4), 0), 1<<18))
	b.Write(le.AppendUint32(nil, 1))
	for i, x := range f {
		at := uint64(i) * 10_000
		h := le.AppendUint32(le.AppendUint32(nil, uint32(1_700_000_000+at/1_000_000)), uint32(at%1_000_000))
		b.Write(le.AppendUint32(le.AppendUint32(h, uint32(len(x))), uint32(len(x))))
		b.Write(x)
	}
	path := filepath.Join(t.TempDir(), "input.pcap")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// summary is what a replay says of the recording.
func (f frames) summary(t *testing.T, args ...string) summary.Summary {
	t.Helper()
	return replayed(t, append([]string{f.file(t)}, args...)...)
}

func ip4(proto, tos uint8, src, dst byte, payload []byte) []byte {
	h := packet.IPv4{TOS: tos, TTL: 60, Proto: proto, ID: 7, Src: [4]byte{198, 51, 100, src}, Dst: [4]byte{198, 51, 100, dst}}
	return append(packet.AppendIPv4(nil, &h, len(payload)), payload...)
}

func ip6(proto, class uint8, src, dst byte, payload []byte) []byte {
	h := packet.IPv6{TrafficClass: class, HopLimit: 60, Proto: proto}
	h.Src = [16]byte{0x20, 1, 0x0d, 0xb8, 15: src}
	h.Dst = [16]byte{0x20, 1, 0x0d, 0xb8, 15: dst}
	return append(packet.AppendIPv6(nil, &h, len(payload)), payload...)
}

func udp(src, dst uint16, payload []byte) []byte {
	return append(packet.AppendUDP(nil, src, dst, len(payload)), payload...)
}

func tcp(src, dst uint16, payload []byte) []byte {
	return append(packet.AppendTCP(nil, &packet.TCP{SrcPort: src, DstPort: dst, Flags: 0x10, Window: 100}), payload...)
}

func ether(kind uint16, payload []byte) []byte {
	return append(packet.AppendEthernet(nil, packet.MAC{2, 5: 2}, packet.MAC{2, 5: 1}, kind), payload...)
}

// report puts the bytes of a report into a datagram of an exporter.
func reportFrame(src [4]byte, port uint16, report []byte) []byte {
	h := packet.IPv4{TTL: 60, Proto: 17, ID: 7, Src: src, Dst: [4]byte{192, 0, 2, 100}}
	d := udp(5555, port, report)
	return ether(packet.EtherIPv4, append(packet.AppendIPv4(nil, &h, len(d)), d...))
}

// version is a version of INT with what fits it.
type version struct {
	v      decode.Version
	bitmap uint16
}

func (v version) String() string { return fmt.Sprintf("INT %v bitmap %#04x", v.v, v.bitmap) }

// stackOf writes an INT-MD part.
func (v version) stackOf(h intmd.Header, hops []decode.Hop) []byte {
	h.Version, h.Instructions = v.v, v.bitmap
	if h.RemainingHops == 0 {
		h.RemainingHops = 8
	}
	return intmd.Append(nil, &h, hops)
}

func hopsOf(n int, ids ...uint32) (list []decode.Hop) {
	const all = decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy |
		decode.HopIngressTime | decode.HopEgressTime | decode.HopL2IngressIf | decode.HopL2EgressIf | decode.HopTxUtilization
	for i, id := range ids {
		t := uint64(1_000_000_000 + n*10_000_000 + i*5000)
		list = append(list, decode.Hop{Has: all, NodeID: id, IngressIf: uint16(i + 1), EgressIf: uint16(i + 2), Latency: 1500, QueueID: 2, QueueOccupancy: 50,
			IngressTime: t, EgressTime: t + 1500, TimeBits: 64, L2IngressIf: 8, L2EgressIf: 9, TxUtilization: 77})
	}
	return list
}

// way is a frame that carries INT: in IP of one version, and a carrier.
type way struct {
	name   string
	tail   func(part func(h intmd.Header) []byte) []byte // the frame
	only21 bool                                          // INT 2.1 alone is defined there
	gre    bool                                          // under a protocol number that auto does not know
}

func ways() []way {
	data := []byte("data of users...")
	over := func(six bool, l4 func(part func(intmd.Header) []byte) (proto uint8, b []byte), dscp uint8) func(func(intmd.Header) []byte) []byte {
		return func(part func(intmd.Header) []byte) []byte {
			proto, b := l4(part)
			if six {
				return ether(packet.EtherIPv6, ip6(proto, dscp<<2, 9, 8, b))
			}
			return ether(packet.EtherIPv4, ip4(proto, dscp<<2, 9, 8, b))
		}
	}
	var list []way
	for _, six := range []bool{false, true} {
		name := map[bool]string{false: "IPv4 ", true: "IPv6 "}[six]
		list = append(list,
			way{name: name + "UDP", tail: over(six, func(p func(intmd.Header) []byte) (uint8, []byte) {
				return 17, udp(5000, 6000, append(p(intmd.Header{Proto: 17, Original: 6000}), data...))
			}, 0x17)},
			way{name: name + "UDP port of INT", only21: true, tail: over(six, func(p func(intmd.Header) []byte) (uint8, []byte) {
				return 17, udp(5000, 17768, append(p(intmd.Header{NPT: 1, Proto: 17, Original: 6000}), data...))
			}, 0)},
			way{name: name + "TCP", tail: over(six, func(p func(intmd.Header) []byte) (uint8, []byte) {
				return 6, tcp(5000, 6000, append(p(intmd.Header{Proto: 6, Original: 6000}), data...))
			}, 0x17)},
			way{name: name + "VXLAN-GPE", only21: true, tail: over(six, func(p func(intmd.Header) []byte) (uint8, []byte) {
				inner := ip4(17, 0, 9, 8, udp(5000, 6000, data))
				return 17, udp(999, intmd.PortVXLANGPE, slices.Concat(intmd.AppendVXLANGPE(nil, 7), p(intmd.Header{Carrier: intmd.VXLANGPE, Original: 1}), inner))
			}, 0)},
			way{name: name + "Geneve", only21: true, tail: over(six, func(p func(intmd.Header) []byte) (uint8, []byte) {
				inner := ip4(17, 0, 9, 8, udp(5000, 6000, data))
				option := p(intmd.Header{Carrier: intmd.Geneve})
				return 17, udp(999, intmd.PortGeneve, slices.Concat(intmd.AppendGeneve(nil, 7, len(option), 0x0800), option, inner))
			}, 0)},
			way{name: name + "GRE", only21: true, gre: true, tail: over(six, func(p func(intmd.Header) []byte) (uint8, []byte) {
				inner := ip4(17, 0, 9, 8, udp(5000, 6000, data))
				return 47, slices.Concat(intmd.AppendGRE(nil, 0xbeef), p(intmd.Header{Carrier: intmd.GRE, Original: 0x0800}), inner)
			}, 0)},
			way{name: name + "in VXLAN", tail: over(six, func(p func(intmd.Header) []byte) (uint8, []byte) {
				inner := ether(0x0800, ip4(17, 0x17<<2, 9, 8, udp(5000, 6000, append(p(intmd.Header{Proto: 17, Original: 6000}), data...))))
				return 17, udp(999, 4789, slices.Concat([]byte{8, 0, 0, 0, 0, 0, 7, 0}, inner))
			}, 0)},
			way{name: name + "in GRE", tail: over(six, func(p func(intmd.Header) []byte) (uint8, []byte) {
				return 47, slices.Concat(intmd.AppendGRE(nil, 0x0800), ip4(17, 0x17<<2, 9, 8, udp(5000, 6000, append(p(intmd.Header{Proto: 17, Original: 6000}), data...))))
			}, 0)},
			way{name: name + "in IP", tail: over(six, func(p func(intmd.Header) []byte) (uint8, []byte) {
				return 4, ip4(17, 0x17<<2, 9, 8, udp(5000, 6000, append(p(intmd.Header{Proto: 17, Original: 6000}), data...)))
			}, 0)},
		)
	}
	return list
}

var versions = []version{{decode.V05, 0xe000}, {decode.V10, 0xfc00}, {decode.V10, 0x8000}, {decode.V21, 0xf000}, {decode.V21, 0xcc00}}

// reportOf writes a report about a frame.
func reportOf(v decode.Version, n int, flags decode.Flags, frame []byte) []byte {
	h := telemetry.Header{HWID: 1, Seq: uint32(n), NodeID: 3, Time: uint32(1_000_000_000 + n), Flags: flags, Inner: telemetry.InnerEthernet}
	h.Hop = hopsOf(n, 3)[0]
	switch v {
	case decode.V05:
		return append(telemetry.Append05(nil, &h), frame...)
	case decode.V10:
		return append(telemetry.Append10(nil, &h), frame...)
	}
	frame = append(slices.Clone(frame), make([]byte, (4-len(frame)%4)%4)...)
	return append(telemetry.Append20(telemetry.AppendGroup(nil, 1, uint32(n), 3), &h, len(frame)), frame...)
}

// source is the address of the exporter of the k-th sibling.
func source(k int) [4]byte { return [4]byte{10, 9, byte(k >> 8), byte(k)} }

// counts is the reports of a replay's hops by node, and what its remarks say, by exporter and name.
func counts(s *summary.Summary) (nodes map[uint32]uint64, remarks map[string]uint64) {
	nodes, remarks = map[uint32]uint64{}, map[string]uint64{}
	for _, h := range s.Hops {
		nodes[h.NodeID] += h.Reports
	}
	for _, r := range s.Remarks {
		remarks[r.Address+" "+r.What] += r.Count
	}
	return nodes, remarks
}

// trace is a packet with an IOAM trace in an IPv6 header, behind which the payload comes.
func trace(t *testing.T, kind uint32, destination bool, hops []decode.Hop, proto uint8, payload []byte) []byte {
	t.Helper()
	option, err := ioam.AppendTrace(nil, &ioam.Trace{Type: kind, Words: len(hops) * ioam.NodeLen(kind)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range hops {
		if err := ioam.AddNode(option, 0, &hops[i], &decode.IOAMNode{}); err != nil {
			t.Fatal(err)
		}
	}
	ext, err := ioam.AppendExtension(nil, proto, option)
	if err != nil {
		t.Fatal(err)
	}
	next := uint8(0)
	if destination {
		next = 60
	}
	return ip6(next, 0, 1, 2, append(ext, payload...))
}

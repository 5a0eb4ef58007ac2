package main_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ifa"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/ioam"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/sflow"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// The recordings of testdata/strangers stand for classes. The tests below write other members of these classes, and judge what is said of
// each by the rule of its class, mostly by a twin that has not got the trouble.

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

// What a report with F not set carries all the same is named, and the profile that is named reads what it has with F set.
func TestSiblingsUnflagged(t *testing.T) {
	type sibling struct {
		name  string
		rep   decode.Version
		flags decode.Flags
		v     version
		w     way
	}
	var list []sibling
	for _, rv := range []decode.Version{decode.V05, decode.V10, decode.V20} {
		for _, flags := range []decode.Flags{0, decode.Dropped, decode.Congested} {
			for _, v := range versions {
				for _, w := range ways() {
					if w.gre || w.only21 && v.v != decode.V21 {
						continue
					}
					list = append(list, sibling{fmt.Sprintf("report %v flags %v, %v, %s", rv, flags, v, w.name), rv, flags, v, w})
				}
			}
		}
	}
	var off, on frames
	const n = 4
	for k, x := range list {
		for i := range n {
			f := x.w.tail(func(h intmd.Header) []byte { return x.v.stackOf(h, hopsOf(i, uint32(k*10+1001), uint32(k*10+1002))) })
			off = append(off, reportFrame(source(k), 32766, reportOf(x.rep, i, x.flags, f)))
			on = append(on, reportFrame(source(k), 32766, reportOf(x.rep, i, x.flags|decode.Tracked, f)))
		}
	}
	a, b, c := off.summary(t, "--hops", "100000"), on.summary(t, "--hops", "100000"), off.summary(t, "--profile", "auto-unflagged", "--hops", "100000")
	_, said := counts(&a)
	flagged, _ := counts(&b)
	unflagged, _ := counts(&c)
	for k, x := range list {
		src := source(k)
		at := fmt.Sprintf("%d.%d.%d.%d unflagged-int", src[0], src[1], src[2], src[3])
		if said[at] != n {
			t.Errorf("%s: said of %d", x.name, said[at])
		}
		for i := range 2 {
			if id := uint32(k*10 + 1001 + i); flagged[id] != n || unflagged[id] != n {
				t.Errorf("%s: node %d has %d reports with F, %d by auto-unflagged", x.name, id, flagged[id], unflagged[id])
			}
		}
	}
}

// INT in GRE has no number of its own: under whatever one, the number is named, and the settings that are named read it. What only looks like
// it is not named.
func TestSiblingsGRE(t *testing.T) {
	type sibling struct {
		name, base string
		frame      func(k, i int, spoil bool) []byte
	}
	var list []sibling
	number := func(k int) uint16 { return uint16(0x7000 + 321*k) }
	for _, w := range ways() {
		if !w.gre {
			continue
		}
		for _, v := range versions {
			if v.v != decode.V21 {
				continue
			}
			packet := func(k, i int, spoil bool) []byte {
				x := w.tail(func(h intmd.Header) []byte {
					b := v.stackOf(h, hopsOf(i, uint32(k*10+1001), uint32(k*10+1002)))
					if spoil {
						b[6] |= 31 // more words a hop than its bitmap says
					}
					return b
				})
				at := bytes.LastIndex(x, []byte{0xbe, 0xef})
				binary.BigEndian.PutUint16(x[at:], number(k))
				return x
			}
			list = append(list, sibling{fmt.Sprintf("a packet, %v, %s", v, w.name), "auto", func(k, i int, spoil bool) []byte {
				x, src := packet(k, i, spoil), source(k)
				if x[12] == 8 {
					copy(x[26:], src[:])
					binary.BigEndian.PutUint16(x[24:], 0)
				} else {
					copy(x[34:], src[:])
				}
				return x
			}})
			for _, rv := range []decode.Version{decode.V05, decode.V10, decode.V20} {
				for _, flags := range []decode.Flags{0, decode.Dropped, decode.Congested, decode.Tracked} {
					base := "auto-unflagged"
					if flags == decode.Tracked {
						base = "auto"
					}
					list = append(list, sibling{fmt.Sprintf("report %v flags %v, %v, %s", rv, flags, v, w.name), base, func(k, i int, spoil bool) []byte {
						return reportFrame(source(k), 32766, reportOf(rv, i, flags, packet(k, i, spoil)))
					}})
				}
			}
		}
	}
	const n = 4
	var hidden, broken frames
	for k, x := range list {
		for i := range n {
			hidden, broken = append(hidden, x.frame(k, i, false)), append(broken, x.frame(k, i, true))
		}
	}
	a, b := hidden.summary(t, "--hops", "1000"), broken.summary(t)
	said := strings.Join(seen(&a), "\n")
	for k, x := range list {
		want := fmt.Sprintf("carry INT in GRE protocol %#04x, where profile auto looks for none; %s explains all of it: set gre_protocol: %#04x", number(k), x.base, number(k))
		if strings.Count(said, want) != 1 {
			t.Errorf("%s: no %q", x.name, want)
		}
		var f frames
		for i := range n {
			f = append(f, x.frame(k, i, false))
		}
		settings := settingsFile(t, fmt.Sprintf("exporters:\n  profile: own\n  dialects:\n    - name: own\n      base: %s\n      gre_protocol: %#x\n", x.base, number(k)))
		s := f.summary(t, "--config", settings)
		nodes, _ := counts(&s)
		for i := range 2 {
			if id := uint32(k*10 + 1001 + i); nodes[id] != n {
				t.Errorf("%s: node %d has %d reports with the settings that are named", x.name, id, nodes[id])
			}
		}
	}
	for _, line := range seen(&b) {
		if strings.Contains(line, "gre_protocol") {
			t.Errorf("stacks that are broken: %s", line)
		}
	}
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

// The flow is that of the packet that is measured, whatever carries it and the trace.
func TestSiblingsInnerFlow(t *testing.T) {
	type sibling struct {
		name string
		make func(k, i int) []byte
	}
	var list []sibling
	inners := []struct {
		name  string
		ether uint16
		proto uint8
		make  func(k int) []byte
	}{
		{"IPv4", 0x0800, 4, func(k int) []byte { return ip4(17, 0, 9, 8, udp(uint16(20000+k), 6000, []byte("data"))) }},
		{"IPv6", 0x86dd, 41, func(k int) []byte { return ip6(17, 0, 9, 8, udp(uint16(20000+k), 6000, []byte("data"))) }},
		{"IPv6 with a fragment's header behind a destination option", 0x86dd, 41, func(k int) []byte {
			return ip6(60, 0, 9, 8, slices.Concat([]byte{17, 0, 1, 4, 0, 0, 0, 0}, udp(uint16(20000+k), 6000, []byte("data"))))
		}},
	}
	vlan := func(kind uint16, b []byte) []byte {
		return ether(0x8100, binary.BigEndian.AppendUint16([]byte{0, 5}, kind))
	}
	_ = vlan
	for _, in := range inners {
		for _, tunnel := range []struct {
			name string
			make func(inner []byte) (uint8, []byte)
		}{
			{"IP", func(b []byte) (uint8, []byte) { return in.proto, b }},
			{"GRE", func(b []byte) (uint8, []byte) {
				return 47, append(binary.BigEndian.AppendUint16([]byte{0, 0}, in.ether), b...)
			}},
			{"GRE with a key", func(b []byte) (uint8, []byte) {
				return 47, slices.Concat(binary.BigEndian.AppendUint16([]byte{0x20, 0}, in.ether), []byte{0, 0, 0, 9}, b)
			}},
			{"NVGRE", func(b []byte) (uint8, []byte) {
				return 47, slices.Concat([]byte{0x20, 0, 0x65, 0x58, 0, 0, 9, 0}, ether(in.ether, b))
			}},
			{"VXLAN", func(b []byte) (uint8, []byte) {
				return 17, udp(999, 4789, slices.Concat([]byte{8, 0, 0, 0, 0, 0, 7, 0}, ether(in.ether, b)))
			}},
			{"VXLAN, tagged", func(b []byte) (uint8, []byte) {
				return 17, udp(999, 4789, slices.Concat([]byte{8, 0, 0, 0, 0, 0, 7, 0}, ether(0x8100, slices.Concat([]byte{0, 5}, binary.BigEndian.AppendUint16(nil, in.ether), b))))
			}},
			{"Geneve", func(b []byte) (uint8, []byte) {
				return 17, udp(999, 6081, slices.Concat(intmd.AppendGeneve(nil, 7, 0, in.ether), b))
			}},
			{"IP in IP", func(b []byte) (uint8, []byte) { return 4, ip4(in.proto, 0, 5, 6, b) }},
			{"IP in GRE", func(b []byte) (uint8, []byte) {
				return 47, slices.Concat([]byte{0, 0, 0x86, 0xdd}, ip6(in.proto, 0, 5, 6, b))
			}},
			{"a routing header", func(b []byte) (uint8, []byte) {
				return 43, slices.Concat([]byte{in.proto, 2, 4, 0, 0, 0, 0, 0}, make([]byte, 16), b)
			}},
		} {
			for _, destination := range []bool{false, true} {
				for _, around := range []string{"", "VXLAN", "a tag"} {
					list = append(list, sibling{fmt.Sprintf("%s in %s, destination %v, around %q", in.name, tunnel.name, destination, around), func(k, i int) []byte {
						proto, b := tunnel.make(in.make(k))
						x := trace(t, ioam.BitNodeID|ioam.BitInterfaces|ioam.BitTransitDelay, destination, hopsOf(i, uint32(k*10+1001), uint32(k*10+1002)), proto, b)
						switch around {
						case "VXLAN":
							return ether(0x0800, ip4(17, 0, 77, 78, udp(888, 4789, slices.Concat([]byte{8, 0, 0, 0, 0, 0, 3, 0}, ether(0x86dd, x)))))
						case "a tag":
							return ether(0x8100, slices.Concat([]byte{0, 5, 0x86, 0xdd}, x))
						}
						return ether(0x86dd, x)
					}})
				}
			}
		}
	}
	for _, w := range ways() {
		if w.gre {
			continue
		}
		list = append(list, sibling{"INT-MD, " + w.name, func(k, i int) []byte {
			x := w.tail(func(h intmd.Header) []byte {
				return version{decode.V21, 0xf000}.stackOf(h, hopsOf(i, uint32(k*10+1001), uint32(k*10+1002)))
			})
			at := bytes.LastIndex(x, []byte{5000 >> 8, 5000 & 0xff})
			binary.BigEndian.PutUint16(x[at:], uint16(20000+k))
			return x
		}})
	}
	var f frames
	const n = 3
	for i := range n {
		for k, x := range list {
			f = append(f, x.make(k, i))
		}
	}
	s := f.summary(t, "--flows", "10000")
	got := map[int]string{}
	for _, line := range seen(&s) {
		var src, dst string
		var k int
		if _, err := fmt.Sscanf(strings.Replace(line, ":2", " 2", 1), "flow %s %d > %s", &src, &k, &dst); err == nil && k >= 20000 {
			got[k-20000] = line
		} else if !strings.HasPrefix(line, "hop ") {
			t.Error(line)
		}
	}
	for k, x := range list {
		if want := fmt.Sprintf("by %d %d, %d packets, 0 changes", k*10+1001, k*10+1002, n); !strings.Contains(got[k], want) {
			t.Errorf("%s: %q, want %s", x.name, got[k], want)
		}
	}
}

// A time that was not set makes no latency, whichever it is, wherever it stands and how wide it is, and is said.
func TestSiblingsUnsetTimes(t *testing.T) {
	type sibling struct {
		name string
		make func(k, i int, unset bool) []byte
	}
	spoil := []struct {
		name string
		do   func(h *decode.Hop)
	}{
		{"ingress", func(h *decode.Hop) { h.IngressTime = 0 }},
		{"egress", func(h *decode.Hop) { h.EgressTime = 0 }},
		{"both", func(h *decode.Hop) { h.IngressTime, h.EgressTime = 0, 0 }},
		{"backwards", func(h *decode.Hop) { h.IngressTime, h.EgressTime = h.EgressTime, h.IngressTime }},
		{"ingress of a device that reckons", func(h *decode.Hop) { h.IngressTime, h.Latency = 0, uint32(h.EgressTime) }},
		{"egress of a device that reckons", func(h *decode.Hop) { h.Latency, h.EgressTime = uint32(-h.IngressTime), 0 }},
	}
	var list []sibling
	for _, sp := range spoil {
		for _, v := range []version{{decode.V05, 0x8c00}, {decode.V05, 0xac00}, {decode.V10, 0x8c00}, {decode.V10, 0xcc00}, {decode.V21, 0x8c00}, {decode.V21, 0xcf00}, {decode.V21, 0xac00}} {
			if strings.Contains(sp.name, "reckons") != (v.bitmap&0x2000 != 0) {
				continue
			}
			for _, at := range []int{0, 1, 2} {
				for _, rv := range []decode.Version{decode.V05, decode.V10, decode.V20} {
					for _, w := range ways()[:1] {
						list = append(list, sibling{fmt.Sprintf("%s, %v, hop %d, report %v", sp.name, v, at, rv), func(k, i int, unset bool) []byte {
							hops := hopsOf(i, uint32(k*10+1001), uint32(k*10+1002), uint32(k*10+1003))
							if unset {
								sp.do(&hops[at])
							}
							x := w.tail(func(h intmd.Header) []byte { return v.stackOf(h, hops) })
							h := telemetry.Header{HWID: 1, Seq: uint32(i), NodeID: 999, Flags: decode.Tracked, Inner: telemetry.InnerEthernet, Time: uint32(hops[2].IngressTime)}
							switch rv {
							case decode.V05:
								b := telemetry.Append05(nil, &h)
								b = b[:12]
								b[0] &= 0xf0
								return reportFrame(source(k), 32766, append(b, x...))
							case decode.V10:
								return reportFrame(source(k), 32766, append(telemetry.Append10(nil, &h), x...))
							}
							x = append(x, make([]byte, (4-len(x)%4)%4)...)
							return reportFrame(source(k), 32766, append(telemetry.Append20(telemetry.AppendGroup(nil, 1, uint32(i), 999), &h, len(x)), x...))
						}})
					}
				}
			}
		}
		// the reporting node's own hop
		for _, rv := range []decode.Version{decode.V05, decode.V10, decode.V20} {
			if rv == decode.V05 && strings.Contains(sp.name, "reckons") {
				continue
			}
			list = append(list, sibling{fmt.Sprintf("%s, own hop, report %v", sp.name, rv), func(k, i int, unset bool) []byte {
				hop := hopsOf(i, uint32(k*10+1001))[0]
				if unset {
					sp.do(&hop)
				}
				md := telemetry.MDInterfaces | telemetry.MDEgressTime | telemetry.MDIngressTime
				if strings.Contains(sp.name, "reckons") {
					md |= telemetry.MDLatency
				}
				h := telemetry.Header{HWID: 1, Seq: uint32(i), NodeID: hop.NodeID, Flags: decode.Tracked, Inner: telemetry.InnerEthernet, Time: uint32(hop.IngressTime), Hop: hop, Metadata: md}
				x := ether(0x0800, ip4(17, 0, 9, 8, udp(uint16(20000+k), 6000, []byte("databyte"))))
				switch rv {
				case decode.V05:
					return reportFrame(source(k), 32766, append(telemetry.Append05(nil, &h), x...))
				case decode.V10:
					return reportFrame(source(k), 32766, append(telemetry.Append10(nil, &h), x...))
				}
				x = append(x, make([]byte, (4-len(x)%4)%4)...)
				return reportFrame(source(k), 32766, append(telemetry.Append20(telemetry.AppendGroup(nil, 1, uint32(i), hop.NodeID), &h, len(x)), x...))
			}})
		}
	}
	var f frames
	const n = 10
	for i := range n {
		for k, x := range list {
			f = append(f, x.make(k, i, i%3 == 1))
		}
	}
	s := f.summary(t, "--hops", "100000")
	_, said := counts(&s)
	most, hops := map[uint32]uint64{}, map[uint32]uint64{}
	for _, h := range s.Hops {
		if h.Latency != nil {
			most[h.NodeID] = max(most[h.NodeID], uint64(h.Latency.Max))
		}
		hops[h.NodeID] += h.Reports
	}
	for k, x := range list {
		src := source(k)
		if at := fmt.Sprintf("%d.%d.%d.%d unset-times", src[0], src[1], src[2], src[3]); said[at] != 3 {
			t.Errorf("%s: said of %d times", x.name, said[at])
		}
		for i := range 3 {
			id := uint32(k*10 + 1001 + i)
			if i > 0 && strings.Contains(x.name, "own hop") {
				continue
			}
			if hops[id] != n || most[id] < 1400 || most[id] > 1600 {
				t.Errorf("%s: node %d has %d reports, the most is %d ns", x.name, id, hops[id], most[id])
			}
		}
	}
}

// A part of a path is no other path, whatever part, in whatever order, with the node that a loop passes twice.
func TestSiblingsParts(t *testing.T) {
	type sibling struct {
		name  string
		views [][2]int // of the path, from one place to another
		path  []uint32
	}
	var list []sibling
	for n := 2; n <= 7; n++ {
		for _, loop := range []bool{false, true} {
			path := make([]uint32, n)
			for i := range path {
				path[i] = uint32(i + 1)
			}
			if loop {
				if n < 4 {
					continue
				}
				path[2] = path[0] // 1 2 1 4 ...
			}
			parts := map[string][2]int{"prefix": {0, n - 1}, "suffix": {1, n}, "first": {0, 1}, "last": {n - 1, n}}
			all := [2]int{0, n}
			if n > 2 {
				parts["middle"] = [2]int{1, n - 1}
				parts["one inside"] = [2]int{1, 2}
			}
			if n > 3 {
				parts["short prefix"] = [2]int{0, 2}
				parts["short suffix"] = [2]int{n - 2, n}
			}
			maps.DeleteFunc(parts, func(_ string, v [2]int) bool { return path[v[0]] == path[0] && path[v[1]-1] == path[n-1] }) // the way without the loop
			for name, part := range parts {
				list = append(list, sibling{fmt.Sprintf("%d nodes, loop %v, %s, then all", n, loop, name), [][2]int{part, all}, path},
					sibling{fmt.Sprintf("%d nodes, loop %v, all, then %s", n, loop, name), [][2]int{all, part}, path},
					sibling{fmt.Sprintf("%d nodes, loop %v, %s twice, then all", n, loop, name), [][2]int{part, part, all}, path})
			}
			if n > 2 {
				list = append(list, sibling{fmt.Sprintf("%d nodes, loop %v, growing", n, loop), func() (v [][2]int) {
					for i := range path {
						v = append(v, [2]int{0, i + 1})
					}
					return v
				}(), path}, sibling{fmt.Sprintf("%d nodes, loop %v, growing from the end", n, loop), func() (v [][2]int) {
					for i := range path {
						if i == n-1 || path[n-1-i] != path[0] {
							v = append(v, [2]int{n - 1 - i, n})
						}
					}
					return v
				}(), path})
			}
		}
	}
	const n = 8
	for _, kind := range []string{"0.5", "1.0", "2.1", "IOAM", "report"} {
		var f frames
		for i := range n {
			for k, x := range list {
				for _, view := range x.views {
					all := make([]uint32, len(x.path))
					for j, id := range x.path {
						all[j] = uint32(k*10+1000) + id
					}
					hops := hopsOf(i, all...)[view[0]:view[1]]
					v := map[string]version{"0.5": {decode.V05, 0xc000}, "1.0": {decode.V10, 0xc000}, "2.1": {decode.V21, 0xe000}, "report": {decode.V21, 0xa000}}[kind]
					if kind == "IOAM" {
						f = append(f, ether(0x86dd, trace(t, ioam.BitNodeID|ioam.BitInterfaces, false, hops, 17, udp(uint16(20000+k), 6000, []byte("data")))))
						continue
					}
					h := intmd.Header{Proto: 17, Original: 6000}
					x := ether(0x0800, ip4(17, 0x17<<2, 9, 8, udp(uint16(20000+k), 6000, append(v.stackOf(h, hops), "data"...))))
					if kind == "report" {
						x = reportFrame([4]byte{192, 0, 2, 7}, 32766, append(telemetry.Append10(nil, &telemetry.Header{HWID: 1, Seq: uint32(len(f)), NodeID: 99, Flags: decode.Tracked, Inner: telemetry.InnerEthernet}), x...))
					}
					f = append(f, x)
				}
			}
		}
		s := f.summary(t, "--flows", "10000")
		got := map[int]string{}
		for _, line := range seen(&s) {
			var src, dst string
			var k int
			if _, err := fmt.Sscanf(strings.Replace(line, ":2", " 2", 1), "flow %s %d > %s", &src, &k, &dst); err == nil && k >= 20000 {
				got[k-20000] = line
			} else if strings.HasPrefix(line, "finding") {
				t.Errorf("%s: %s", kind, line)
			}
		}
		for k, x := range list {
			var ids []string
			for _, id := range x.path {
				ids = append(ids, fmt.Sprint(uint32(k*10+1000)+id))
			}
			if want := fmt.Sprintf("by %s, %d packets, 0 changes", strings.Join(ids, " "), n*len(x.views)); !strings.Contains(got[k], want) {
				t.Errorf("%s, %s: %q, want %s", kind, x.name, got[k], want)
			}
		}
	}
}

// What the wire has and no rule reads leaves a trace: data of a domain in the place of a packet, beside metadata, and among TLVs.
func TestSiblingsDomainData(t *testing.T) {
	type sibling struct {
		name, what string
		hop        bool
		report     func(k, i int) []byte
	}
	be := binary.BigEndian
	inner := ether(0x0800, ip4(17, 0, 9, 8, udp(5000, 6000, []byte("datawords."))))
	group := func(i int, report []byte) []byte {
		return append(telemetry.AppendGroup(nil, 1, uint32(i), 77), report...)
	}
	head := func(repType, inType, words, md uint32) []byte {
		return be.AppendUint32(nil, repType<<28|inType<<24|words<<16|md<<8)
	}
	data := func(words, i int) (b []byte) {
		for range words {
			b = be.AppendUint32(b, uint32(5000+i))
		}
		return b
	}
	var list []sibling
	for _, words := range []int{1, 2, 9, 200} {
		list = append(list, sibling{fmt.Sprintf("%d words in the place of a packet", words), "domain-data", false, func(k, i int) []byte {
			return group(i, append(head(0, 2, uint32(words), 0), data(words, i)...))
		}}, sibling{fmt.Sprintf("%d words in the place of a packet, behind metadata", words), "domain-data", true, func(k, i int) []byte {
			b := be.AppendUint64(head(1, 2, uint32(words+3), 1), uint64(telemetry.MDInterfaces)<<48)
			return group(i, slices.Concat(be.AppendUint32(b, 0x00010002), data(words, i)))
		}})
	}
	for _, words := range []int{1, 3} {
		list = append(list, sibling{fmt.Sprintf("%d words of a domain beside metadata", words), "more-data", true, func(k, i int) []byte {
			b := be.AppendUint64(head(1, 3, uint32(3+words+len(inner)/4), uint32(1+words)), uint64(telemetry.MDInterfaces)<<48|uint64(0x1234)<<32|0x8000<<16)
			return group(i, slices.Concat(be.AppendUint32(b, 0x00010002), data(words, i), inner))
		}})
	}
	for _, kind := range []uint32{0, 4, 15} {
		list = append(list, sibling{fmt.Sprintf("a TLV of type %d beside a packet", kind), "more-data", false, func(k, i int) []byte {
			tlvs := slices.Concat(be.AppendUint32(nil, 1<<28|uint32(len(inner)/4)<<16), inner, be.AppendUint32(nil, kind<<28|2<<16), data(2, i))
			return group(i, append(head(0, 1, uint32(len(tlvs)/4), 0), tlvs...))
		}})
	}
	if len(inner)%4 != 0 {
		t.Fatal("the packet is no whole words")
	}
	const n = 3
	var f frames
	for i := range n {
		for k, x := range list {
			f = append(f, reportFrame(source(k), 32766, x.report(k, i)))
		}
	}
	s := f.summary(t)
	_, said := counts(&s)
	out, diag, _ := run(t, t.TempDir(), "decode", f.file(t))
	lines := strings.Split(out, "\n")
	for k, x := range list {
		src := source(k)
		if at := fmt.Sprintf("%d.%d.%d.%d %s", src[0], src[1], src[2], src[3], x.what); said[at] != n {
			t.Errorf("%s: said of %d: %v", x.name, said[at], s.Malformed)
		}
		if !strings.Contains(lines[k], `"unknown":"0x00001388`) || strings.Contains(lines[k], `"error"`) {
			t.Errorf("%s: decode shows %s", x.name, lines[k])
		}
		if address := fmt.Sprintf("%d.%d.%d.%d ", src[0], src[1], src[2], src[3]); !strings.Contains(diag, fmt.Sprintf("%d reports of %s", n, address)) {
			t.Errorf("%s: decode says nothing", x.name)
		}
	}
}

// A port of the settings that has a type takes that alone in captures, too, and what else comes there is named with the port.
func TestPortTypesOfCaptures(t *testing.T) {
	datagram := func(port uint16, b []byte) []byte {
		return ether(0x0800, ip4(17, 0, 9, 8, udp(5555, port, b)))
	}
	x := sflow.Datagram{Agent: decode.AddrFrom4([]byte{192, 0, 2, 1}), IPv: 4, Seq: 1, Samples: 1}
	sample := sflow.Sample{Kind: sflow.Flow, Rate: 100, Pool: 100}
	flows := sflow.AppendSample(sflow.AppendDatagram(nil, &x), &sample)
	m := ipfix.Message{Version: ipfix.V10, Domain: 1, Time: 1_790_000_000}
	template := decode.Template{Version: ipfix.V10, ID: 256, Fields: []decode.Element{{ID: 8, Length: 4}, {ID: 12, Length: 4}}}
	export := ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
		b = ipfix.AppendSet(b, 2, 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, &template) })
		return ipfix.AppendSet(b, 256, 0, func(b []byte) []byte { return append(b, 10, 0, 0, 1, 10, 0, 0, 2) })
	})
	report := reportOf(decode.V10, 1, decode.Tracked, ether(0x0800, ip4(17, 0, 9, 8, udp(5000, 6000, []byte("databyte")))))
	var f frames
	for _, port := range []uint16{32766, 6343, 4739} {
		f = append(f, datagram(port, flows), datagram(port, export), datagram(port, report))
	}
	file := f.file(t)
	for _, c := range []struct {
		name, settings string
		flags          []string
		want           string // kinds of what is read, in the order of frames
		says           []string
	}{
		{"no type", "ports: [\"6343\", \"4739\", \"32766\"]\n", nil, "1 sflow, 2 ipfix, 3 telemetry-report, 4 sflow, 5 ipfix, 7 sflow, 8 ipfix", nil},
		{"types", "ports: [\"6343 sflow\", \"[::]:4739 ipfix\", \"0.0.0.0:32766 reports\"]\n", nil, "3 telemetry-report, 4 sflow, 8 ipfix",
			[]string{"UDP port 32766 takes reports alone", "UDP port 6343 takes sFlow alone", "UDP port 4739 takes IPFIX and NetFlow 9 alone"}},
		{"reports alone at the ports of others", "ports: [\"6343 reports\", \"4739 reports\", \"32766 sflow\"]\n", nil, "1 sflow", []string{"UDP port 4739 takes reports alone"}},
		{"one port with two types", "ports: [\"127.0.0.1:6343 reports\", \"[::1]:6343 sflow\", \"32766 reports\"]\n", nil, "3 telemetry-report, 4 sflow, 5 ipfix, 7 sflow, 8 ipfix", nil},
		{"another report port", "ports: [\"6343 sflow\", \"4739 ipfix\", \"32766 reports\"]\n", []string{"--report-port", "32766"}, "1 sflow, 2 ipfix, 3 telemetry-report, 4 sflow, 5 ipfix, 7 sflow, 8 ipfix", nil},
	} {
		settings := settingsFile(t, c.settings)
		out, diag, status := run(t, t.TempDir(), append([]string{"decode", file, "--config", settings}, c.flags...)...)
		if status != 0 {
			t.Fatalf("%s: %s", c.name, diag)
		}
		var read []string
		for line := range strings.Lines(out) {
			var o struct {
				Frame  int
				Format string
				Error  *struct{ Reason string }
			}
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatal(err)
			}
			if o.Error == nil {
				read = append(read, fmt.Sprint(o.Frame, " ", o.Format))
			}
		}
		if got := strings.Join(read, ", "); got != c.want {
			t.Errorf("%s: decode reads %s, want %s", c.name, got, c.want)
		}
		s := replayed(t, append([]string{file, "--config", settings}, c.flags...)...)
		if n := uint64(len(read)); s.Reports != n {
			t.Errorf("%s: replay reads %d reports, decode %d", c.name, s.Reports, n)
		}
		said := strings.Join(seen(&s), "\n")
		for _, w := range c.says {
			if !strings.Contains(said, w) || !strings.Contains(diag, w) {
				t.Errorf("%s: no %q in\n%s\nor in\n%s", c.name, w, said, diag)
			}
		}
	}
}

// ifaFrame is a packet with an IFA stack of nodes, the newest first, over a UDP header.
func ifaFrame(port uint16, nodes ...uint32) []byte {
	be := binary.BigEndian
	b := be.AppendUint16([]byte{0x2f, 17, ifa.FlagInband, 64}, port)
	b = append(b, 6000>>8, 6000&0xff, 0, 8+4, 0, 0, 0xff, 0, 64-byte(len(nodes)), 8*byte(len(nodes)))
	for i := len(nodes) - 1; i >= 0; i-- {
		b = append(be.AppendUint32(b, 1<<28|nodes[i]<<8|uint32(60-i)), 0x40, 0, 0, 0, 0, 2, 0, 1)
		b = append(b, make([]byte, 20)...)
	}
	return ether(0x0800, ip4(253, 0, 9, 8, append(b, "data"...)))
}

// A sampled packet that carries telemetry is read as the packet itself, whatever exports it: its hops count once, and the packet as often as its sample says.
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

// exported are datagrams of exporters, numbered: the member k of a class sends its report i, of a time of its own.
type exported struct {
	name string
	make func(src [4]byte, k, number, time int) []byte
}

func numbered() []exported {
	var list []exported
	inner := func(k int, part []byte, dscp uint8) []byte {
		x := ether(0x0800, ip4(17, dscp<<2, 9, 8, udp(uint16(20000+k), 6000, append(part, "databyte"...))))
		return append(x, make([]byte, (4-len(x)%4)%4)...)
	}
	for _, rv := range []decode.Version{decode.V05, decode.V10, decode.V20} {
		for _, kind := range []string{"stack", "postcard", "drop", "queue"} {
			list = append(list, exported{fmt.Sprintf("%s, report %v", kind, rv), func(src [4]byte, k, number, time int) []byte {
				hops := hopsOf(time, uint32(k*10+1001), uint32(k*10+1002))
				h := telemetry.Header{HWID: 1, Seq: uint32(number), NodeID: 99, Flags: decode.Tracked, Inner: telemetry.InnerEthernet, Time: uint32(hops[0].IngressTime)}
				x := inner(k, version{decode.V21, 0xf000}.stackOf(intmd.Header{Proto: 17, Original: 6000}, hops), 0x17)
				if kind != "stack" {
					h.Flags = map[string]decode.Flags{"postcard": decode.Tracked, "drop": decode.Dropped, "queue": decode.Congested}[kind]
					h.NodeID, h.Hop, h.Metadata = hops[0].NodeID, hops[0], telemetry.MDInterfaces|telemetry.MDQueue|telemetry.MDEgressTime
					x = inner(k, nil, 0)
				}
				switch rv {
				case decode.V05:
					b := telemetry.Append05(nil, &h)
					if kind == "stack" {
						b = b[:12]
						b[0] &= 0xf0
					}
					return reportFrame(src, 32766, append(b, x...))
				case decode.V10:
					return reportFrame(src, 32766, append(telemetry.Append10(nil, &h), x...))
				}
				return reportFrame(src, 32766, append(telemetry.Append20(telemetry.AppendGroup(nil, 1, uint32(number), h.NodeID), &h, len(x)), x...))
			}})
		}
	}
	for _, kind := range []string{"flow", "delay", "discard", "flow with a stack"} {
		list = append(list, exported{"sFlow, " + kind, func(src [4]byte, k, number, time int) []byte {
			x := inner(k, nil, 0)
			if kind == "flow with a stack" {
				x = inner(k, version{decode.V21, 0xf000}.stackOf(intmd.Header{Proto: 17, Original: 6000}, hopsOf(time, uint32(k*10+1001), uint32(k*10+1002))), 0x17)
			}
			d := sflow.Datagram{Agent: decode.AddrFrom4(src[:]), IPv: 4, Seq: uint32(number), Uptime: uint32(time * 10), Samples: 1}
			sample := sflow.Sample{Kind: sflow.Flow, Seq: uint32(number), Rate: 100, Pool: uint32(100 * time), Reason: 256, Has: sflow.HasHeader, Protocol: 1, FrameLen: uint32(len(x)), Header: x,
				Input: sflow.Port{Value: 1}, Output: sflow.Port{Value: 2}}
			switch kind {
			case "delay":
				sample.Has, sample.Delay = sample.Has|sflow.HasDelay, 1500
			case "discard":
				sample.Kind = sflow.Discard
			}
			return reportFrame(src, 6343, sflow.AppendSample(sflow.AppendDatagram(nil, &d), &sample))
		}})
	}
	return list
}

// What an exporter sent before counts once and is said, however it came again. What another exporter sends, or one that began anew, counts.
func TestSiblingsCopies(t *testing.T) {
	list := numbered()
	const n = 12
	type sent struct{ number, time, exporter int }
	order := func(again func(i int) []sent) (all []sent) {
		for i := range n {
			all = append(all, sent{number: i + 1, time: i})
			all = append(all, again(i)...)
		}
		return all
	}
	figures := func(s *summary.Summary) (lines []string) {
		for _, line := range seen(s) {
			if !strings.HasPrefix(line, "remark") {
				lines = append(lines, line)
			}
		}
		slices.Sort(lines)
		return lines
	}
	replay := func(all []sent) (s summary.Summary) {
		var f frames
		for _, x := range all {
			for k, e := range list {
				src := source(k)
				src[1] += byte(x.exporter)
				f = append(f, e.make(src, k, x.number, x.time))
			}
		}
		return f.summary(t, "--flows", "1000", "--hops", "1000")
	}
	once := replay(order(func(int) []sent { return nil }))
	want := figures(&once)
	for _, c := range []struct {
		name   string
		copies uint64
		list   []sent
	}{
		{"right behind", n, order(func(i int) []sent { return []sent{{number: i + 1, time: i}} })},
		{"twice", 2 * n, order(func(i int) []sent { return []sent{{number: i + 1, time: i}, {number: i + 1, time: i}} })},
		{"one later", n - 1, order(func(i int) []sent {
			if i == 0 {
				return nil
			}
			return []sent{{number: i, time: i - 1}}
		})},
		{"five later", n - 5, order(func(i int) []sent {
			if i < 5 {
				return nil
			}
			return []sent{{number: i - 4, time: i - 5}}
		})},
	} {
		s := replay(c.list)
		_, said := counts(&s)
		for k, e := range list {
			src := source(k)
			want := c.copies
			if e.name == "sFlow, flow with a stack" {
				want *= 2 // reports a datagram
			}
			if at := fmt.Sprintf("%d.%d.%d.%d copies", src[0], src[1], src[2], src[3]); said[at] != want {
				t.Errorf("%s, %s: said of %d copies, want %d", c.name, e.name, said[at], want)
			}
		}
		if got := figures(&s); !slices.Equal(got, want) {
			for _, line := range got {
				if !slices.Contains(want, line) {
					t.Errorf("%s: %s", c.name, line)
				}
			}
		}
	}
	// All of it counts.
	packets := func(s *summary.Summary) map[uint16]uint64 {
		m := map[uint16]uint64{}
		for _, f := range s.Flows {
			m[f.Flow.SrcPort] += f.Packets
		}
		return m
	}
	base := packets(&once)
	anew := order(func(int) []sent { return nil })
	for i := range n {
		anew = append(anew, sent{number: i + 1, time: n + i})
	}
	for _, c := range []struct {
		name   string
		copies uint64
		list   []sent
	}{
		{"another exporter", 0, order(func(i int) []sent { return []sent{{number: i + 1, time: i, exporter: 1}} })},
		{"another exporter, one later", 0, append(order(func(i int) []sent {
			if i == 0 {
				return nil
			}
			return []sent{{number: i, time: i - 1, exporter: 1}}
		}), sent{number: n, time: n - 1, exporter: 1})},
		{"anew", 0, anew},
	} {
		s := replay(c.list)
		_, said := counts(&s)
		got := packets(&s)
		for k, e := range list {
			src := source(k)
			if at := fmt.Sprintf("%d.%d.%d.%d copies", src[0], src[1], src[2], src[3]); said[at] != c.copies {
				t.Errorf("%s, %s: said of %d copies, want %d", c.name, e.name, said[at], c.copies)
			}
			if port := uint16(20000 + k); got[port] != 2*base[port] || base[port] < n {
				t.Errorf("%s, %s: %d packets, once %d", c.name, e.name, got[port], base[port])
			}
		}
	}
}

// A hop without an id is no node 0, on no path, and is apart by its exporter and its place, whatever wrote it.
func TestSiblingsNameless(t *testing.T) {
	type sibling struct {
		name string
		make func(k, i int) []byte
	}
	var list []sibling
	for _, v := range []version{{decode.V05, 0x5000}, {decode.V10, 0x5000}, {decode.V10, 0x1000}, {decode.V21, 0x5000}, {decode.V21, 0x7000}, {decode.V21, 0x1000}} {
		for _, w := range ways() {
			if w.gre || w.only21 && v.v != decode.V21 {
				continue
			}
			packet := func(k, i int) []byte {
				hops := hopsOf(i, 0, 0, 0)
				for j := range hops {
					hops[j].QueueOccupancy = uint32(1000*(k+1) + 100*j)
				}
				return w.tail(func(h intmd.Header) []byte { return v.stackOf(h, hops) })
			}
			for _, rv := range []decode.Version{decode.V10, decode.V20} {
				list = append(list, sibling{fmt.Sprintf("report %v, %v, %s", rv, v, w.name), func(k, i int) []byte {
					return reportFrame(source(k), 32766, reportOf(rv, i, decode.Tracked, packet(k, i)))
				}})
			}
		}
	}
	const n, most = 3, 80 // members at a time: exporters and places without names are bounded
	for list := range slices.Chunk(list, most) {
		var f frames
		for i := range n {
			for k, x := range list {
				f = append(f, x.make(k, i))
			}
		}
		s := f.summary(t, "--flows", "10000", "--hops", "100000")
		_, said := counts(&s)
		for _, h := range s.Hops {
			if h.NodeID == 0 {
				t.Errorf("node 0 has %d reports", h.Reports)
			}
		}
		for _, x := range s.Flows {
			for _, id := range x.Path.NodeIDs {
				if id != nil && *id == 0 {
					t.Errorf("node 0 is on the path of %v", x.Flow)
				}
			}
		}
		got := map[string]summary.Nameless{}
		for _, x := range s.Nameless {
			got[fmt.Sprint(x.Exporter, " ", x.Position)] = x
		}
		for k, x := range list {
			src := source(k)
			address := fmt.Sprintf("%d.%d.%d.%d", src[0], src[1], src[2], src[3])
			if said[address+" nameless-hops"] != 3*n {
				t.Errorf("%s: said of %d hops", x.name, said[address+" nameless-hops"])
			}
			for j := range 3 {
				h := got[fmt.Sprint(address, " ", j+1)]
				if q := float64(1000*(k+1) + 100*j); h.Reports != n || h.Queue == nil || float64(h.Queue.P50) < .95*q || float64(h.Queue.Max) > 1.05*q {
					t.Errorf("%s: position %d is %+v, %+v, want queue %g", x.name, j+1, h, h.Queue, q)
				}
			}
		}
	}
}

// A report whose flag F is set about a packet without INT is read: nothing inside is no dialect that is not read.
func TestSiblingsPlain(t *testing.T) {
	inners := []struct {
		name string
		x    []byte
	}{
		{"UDP", ether(0x0800, ip4(17, 0, 9, 8, udp(5000, 6000, []byte("databyte"))))},
		{"UDP in IPv6", ether(0x86dd, ip6(17, 0, 9, 8, udp(5000, 6000, []byte("databyte"))))},
		{"TCP", ether(0x0800, ip4(6, 0, 9, 8, tcp(5000, 6000, []byte("databyte"))))},
		{"TCP in IPv6", ether(0x86dd, ip6(6, 0, 9, 8, tcp(5000, 6000, nil)))},
		{"ICMP", ether(0x0800, ip4(1, 0, 9, 8, []byte{8, 0, 0, 0, 0, 1, 0, 1}))},
		{"a tag", ether(0x8100, append([]byte{0, 5, 8, 0}, ip4(17, 0, 9, 8, udp(5000, 6000, []byte("databyte")))...))},
		{"VXLAN", ether(0x0800, ip4(17, 0, 9, 8, udp(999, 4789, append([]byte{8, 0, 0, 0, 0, 0, 7, 0}, ether(0x0800, ip4(17, 0, 9, 8, udp(5000, 6000, []byte("databyte"))))...))))},
		{"GRE", ether(0x0800, ip4(47, 0, 9, 8, append([]byte{0, 0, 8, 0}, ip4(17, 0, 9, 8, udp(5000, 6000, []byte("databyte")))...)))},
		{"GRE of another protocol", ether(0x0800, ip4(47, 0, 9, 8, append([]byte{0, 0, 0x77, 0x77}, "data of another protocol"...)))},
		{"VXLAN-GPE", ether(0x0800, ip4(17, 0, 9, 8, udp(999, 4790, append([]byte{0x0c, 0, 0, 1, 0, 0, 7, 0}, ip4(17, 0, 9, 8, udp(5000, 6000, []byte("databyte")))...))))},
		{"Geneve", ether(0x0800, ip4(17, 0, 9, 8, udp(999, 6081, append(intmd.AppendGeneve(nil, 7, 0, 0x0800), ip4(17, 0, 9, 8, udp(5000, 6000, []byte("databyte")))...))))},
		{"IP in IP", ether(0x0800, ip4(4, 0, 9, 8, ip4(17, 0, 9, 8, udp(5000, 6000, []byte("databyte")))))},
		{"a fragment", ether(0x0800, func() []byte {
			x := ip4(17, 0, 9, 8, udp(5000, 6000, []byte("databyte")))
			x[6] = 0x20
			return x
		}())},
	}
	type sibling struct {
		name   string
		report func(i int) []byte
	}
	var list []sibling
	for _, in := range inners {
		for _, rv := range []decode.Version{decode.V05, decode.V10, decode.V20} {
			for _, flags := range []decode.Flags{decode.Tracked, decode.Tracked | decode.Congested, decode.Tracked | decode.Dropped} {
				list = append(list, sibling{fmt.Sprintf("%s, report %v flags %v", in.name, rv, flags), func(i int) []byte { return reportOf(rv, i, flags, in.x) }})
			}
		}
		list = append(list, sibling{in.name + ", report 0.5 without more", func(i int) []byte {
			b := reportOf(decode.V05, i, decode.Tracked, nil)[:12]
			b[0] &= 0xf0
			return append(b, in.x...)
		}})
	}
	const n = 20
	var f frames
	for i := range n {
		for k, x := range list {
			f = append(f, reportFrame(source(k), 32766, x.report(i)))
		}
	}
	s := f.summary(t)
	if s.Malformed != 0 || s.Reports != uint64(n*len(list)) {
		t.Errorf("%d reports of %d, %d malformed: %v", s.Reports, n*len(list), s.Malformed, s.MalformedReasons)
	}
	for _, d := range s.Dialects {
		t.Errorf("said: %s", d.Text)
	}
	for _, m := range s.Remarks {
		t.Errorf("said: %s", m.Text)
	}
}

// A remark names what cannot stand under a shim: a type that is not defined, and a stack under a type that has none. Under a type that has one it is read.
func TestSiblingsShims(t *testing.T) {
	type sibling struct {
		name string
		kind byte
		v    version
		make func(i int) []byte
	}
	var list []sibling
	for _, v := range []version{{decode.V05, 0xe000}, {decode.V10, 0xfc00}, {decode.V21, 0xf000}} {
		for _, w := range ways() {
			if w.gre || w.only21 && v.v != decode.V21 || strings.Contains(w.name, "Geneve") { // where the shim is the option, the carrier finds it by its class
				continue
			}
			for kind := range byte(16) {
				packet := func(i int) []byte {
					return w.tail(func(h intmd.Header) []byte {
						b := v.stackOf(h, hopsOf(i, 1001, 1002, 1003))
						if v.v == decode.V21 {
							b[0] = kind<<4 | b[0]&0x0f
						} else {
							b[0] = kind
						}
						return b
					})
				}
				for _, rv := range []decode.Version{decode.V10, decode.V20} {
					list = append(list, sibling{fmt.Sprintf("type %d, report %v, %v, %s", kind, rv, v, w.name), kind, v, func(i int) []byte {
						return reportOf(rv, i, decode.Tracked, packet(i))
					}})
				}
			}
		}
	}
	const n = 2
	var f frames
	for i := range n {
		for k, x := range list {
			f = append(f, reportFrame(source(k), 32766, x.make(i)))
		}
	}
	s := f.summary(t)
	_, said := counts(&s)
	out, _, _ := run(t, t.TempDir(), "decode", f.file(t))
	lines := strings.Split(out, "\n")
	for k, x := range list {
		src := source(k)
		address := fmt.Sprintf("%d.%d.%d.%d", src[0], src[1], src[2], src[3])
		read := strings.Contains(lines[k], `"node_id":1001,`) && strings.Contains(lines[k], `"node_id":1003,`)
		told := strings.Contains(lines[k], `"error"`) || said[address+" stack-in-mx"] == n || said[address+" more-data"] == n && strings.Contains(lines[k], `"unknown":"0x`)
		if read != (x.kind == 1) || told == read {
			t.Errorf("%s: read %v, told %v: %s", x.name, read, told, lines[k])
		}
	}
}

// A time or delay that a node did not fill makes no latency: those of IOAM, and saturated ones of sFlow.
func TestSiblingsUnsetDelays(t *testing.T) {
	type sibling struct {
		name    string
		latency bool // of 1500 ns
		make    func(k, i int, unset bool) []byte
	}
	var list []sibling
	const times = ioam.BitSeconds | ioam.BitFraction
	for _, kind := range []uint32{ioam.BitNodeID | times, ioam.BitNodeID | times | ioam.BitTransitDelay, ioam.BitNodeID | ioam.BitTransitDelay} {
		list = append(list, sibling{fmt.Sprintf("IOAM %#06x", kind), kind&ioam.BitTransitDelay != 0, func(k, i int, unset bool) []byte {
			hops := hopsOf(i, uint32(k*10+1001))
			if unset {
				hops[0].IngressTime, hops[0].EgressTime = 0, 0
				hops[0].Latency = 1<<32 - 1 // of a field that a node does not fill
			}
			return ether(0x86dd, trace(t, kind, false, hops, 17, udp(uint16(20000+k), 6000, []byte("data"))))
		}})
	}
	for _, has := range []sflow.Field{sflow.HasDelay, sflow.HasDelay | sflow.HasDepth, sflow.HasDelay | sflow.HasQueue} {
		list = append(list, sibling{fmt.Sprintf("sFlow %#x", has), true, func(k, i int, unset bool) []byte {
			x := ether(0x0800, ip4(17, 0, 9, 8, udp(uint16(20000+k), 6000, []byte("data"))))
			id := uint32(k*10 + 1001)
			d := sflow.Datagram{Agent: decode.AddrFrom4(binary.BigEndian.AppendUint32(nil, id)), IPv: 4, Seq: uint32(i + 1), Samples: 1}
			s := sflow.Sample{Kind: sflow.Flow, Seq: uint32(i + 1), Rate: 1, Has: has | sflow.HasHeader, Protocol: 1, FrameLen: uint32(len(x)), Header: x, Delay: 1500, Queue: 255, Input: sflow.Port{Value: 1}, Output: sflow.Port{Value: 2}}
			if unset {
				s.Delay, s.Depth = 1<<32-1, 1<<32-1
			}
			return reportFrame(source(k), 6343, sflow.AppendSample(sflow.AppendDatagram(nil, &d), &s))
		}})
	}
	const n = 9
	var f frames
	for i := range n {
		for k, x := range list {
			f = append(f, x.make(k, i, i%3 == 1))
		}
	}
	s := f.summary(t, "--hops", "1000")
	got := map[uint32]*summary.Quantiles{}
	for _, h := range s.Hops {
		got[h.NodeID] = h.Latency
	}
	for k, x := range list {
		q := got[uint32(k*10+1001)]
		if !x.latency && q != nil || x.latency && (q == nil || q.P50 < 1400 || q.Max > 1600) {
			t.Errorf("%s: latency %+v", x.name, q)
		}
	}
}

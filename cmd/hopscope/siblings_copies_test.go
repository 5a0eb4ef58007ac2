package main_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/sflow"
	"github.com/hopscope/hopscope/decode/telemetry"
)

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

// messages are those of IPFIX and NetFlow 9, whose numbers move as they do of exporters.
func messages() []exported {
	be := binary.BigEndian
	var list []exported
	for _, v := range []uint16{ipfix.V10, ipfix.V9} {
		for _, kind := range []string{"flow", "two flows", "sample", "delay", "exception", "late template"} {
			if v == ipfix.V9 && (kind == "exception" || kind == "sample") {
				continue // numbers of enterprises, and variable lengths
			}
			list = append(list, exported{fmt.Sprintf("version %d, %s", v, kind), func(src [4]byte, k, number, time int) []byte {
				template := decode.Template{Version: v, ID: 300, Fields: []decode.Element{{ID: 8, Length: 4}, {ID: 12, Length: 4}, {ID: 4, Length: 1}, {ID: 7, Length: 2}, {ID: 11, Length: 2}, {ID: 1, Length: 4}}}
				record := slices.Concat([]byte{198, 51, 100, 9, 198, 51, 100, 8, 17}, be.AppendUint16(nil, uint16(20000+k)), []byte{6000 >> 8, 6000 & 0xff}, be.AppendUint32(nil, uint32(100+time)))
				records := 1
				switch kind {
				case "two flows":
					record = append(record, record...)
					records = 2
				case "sample":
					template.Fields = []decode.Element{{ID: 34, Length: 4}, {ID: 315, Length: decode.VariableLength}}
					x := ether(0x0800, ip4(17, 0, 9, 8, udp(uint16(20000+k), 6000, fmt.Appendf(nil, "data %d", time))))
					record = ipfix.AppendValue([]byte{0, 0, 0, 100}, x)
				case "delay":
					template.Fields = append(template.Fields, decode.Element{ID: 530, Length: 4})
					record = append(record, 0, 0, 0, byte(100+time))
				case "exception":
					template.Fields = append(template.Fields, decode.Element{PEN: ipfix.Juniper, ID: 137, Length: 2})
					record = append(record, 2<<2, 66)
				}
				m := ipfix.Message{Version: v, Domain: 1, Uptime: uint32(time * 100), Time: uint32(1_700_000_000 + time), Seq: uint32(number * records)}
				if v == ipfix.V9 {
					m.Seq, m.Count = uint32(number), uint16(records)
				}
				return reportFrame(src, 4739, ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
					if kind != "late template" || number%3 == 0 {
						b = ipfix.AppendSet(b, ipfix.TemplateSet(&template), 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, &template) })
					}
					return ipfix.AppendSet(b, 300, 0, func(b []byte) []byte { return append(b, record...) })
				}))
			}})
		}
	}
	return list
}

// What an exporter sent before counts once and is said, however it came again. What another exporter sends, or one that began anew, counts.
func TestSiblingsCopies(t *testing.T) {
	t.Run("reports", func(t *testing.T) { testCopies(t, numbered()) })
	t.Run("messages", func(t *testing.T) { testCopies(t, messages()) })
}

func testCopies(t *testing.T, list []exported) {
	const n = 12
	type sent struct{ number, time, exporter int }
	order := func(second func(i int) []sent) (all []sent) {
		for i := range n {
			all = append(all, sent{number: i + 1, time: i})
			all = append(all, second(i)...)
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
			if e.name == "sFlow, flow with a stack" || strings.HasSuffix(e.name, "two flows") {
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

// Of an exporter whose numbers stand still a copy is known by the times in it, where these move. Else nothing is known: all counts, and that is said.
func TestSiblingsAlike(t *testing.T) {
	type sibling struct {
		name  string
		known bool
		make  func(src [4]byte, k, time int) []byte
	}
	var list []sibling
	be := binary.BigEndian
	for _, id := range []uint16{0, 150, 152, 154, 156, 323, 324, 325} { // of a time
		list = append(list, sibling{fmt.Sprintf("IPFIX with element %d", id), id > 150, func(src [4]byte, k, time int) []byte {
			template := decode.Template{Version: ipfix.V10, ID: 300, Fields: []decode.Element{{ID: 8, Length: 4}, {ID: 12, Length: 4}, {ID: 4, Length: 1}, {ID: 7, Length: 2}, {ID: 11, Length: 2}, {ID: 1, Length: 4}}}
			record := slices.Concat([]byte{198, 51, 100, 9, 198, 51, 100, 8, 17}, be.AppendUint16(nil, uint16(20000+k)), []byte{6000 >> 8, 6000 & 0xff}, be.AppendUint32(nil, uint32(100+time)))
			if id != 0 {
				template.Fields = append(template.Fields, decode.Element{ID: id, Length: 8})
				record = be.AppendUint64(record, uint64(1_700_000_000_000+time))
			}
			m := ipfix.Message{Version: ipfix.V10, Domain: 1, Time: 1_700_000_000}
			return reportFrame(src, 4739, ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
				b = ipfix.AppendSet(b, 2, 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, &template) })
				return ipfix.AppendSet(b, 300, 0, func(b []byte) []byte { return append(b, record...) })
			}))
		}})
	}
	for _, rv := range []decode.Version{decode.V05, decode.V10} {
		for _, timed := range []bool{false, true} {
			for _, flags := range []decode.Flags{decode.Tracked, decode.Dropped, decode.Congested} {
				list = append(list, sibling{fmt.Sprintf("report %v, flags %v, timed %v", rv, flags, timed), timed, func(src [4]byte, k, time int) []byte {
					hop := hopsOf(time, uint32(k*10+1001))[0]
					hop.IngressTime, hop.EgressTime = 0, 0
					h := telemetry.Header{HWID: 1, NodeID: hop.NodeID, Flags: flags, Inner: telemetry.InnerEthernet, Hop: hop, Metadata: telemetry.MDInterfaces | telemetry.MDQueue}
					if timed {
						h.Time = uint32(1_000_000_000 + 10_000*time)
					}
					x := ether(0x0800, ip4(17, 0, 9, 8, udp(uint16(20000+k), 6000, fmt.Appendf(nil, "databytes %d", time))))
					if rv == decode.V05 {
						return reportFrame(src, 32766, append(telemetry.Append05(nil, &h), x...))
					}
					return reportFrame(src, 32766, append(telemetry.Append10(nil, &h), x...))
				}})
			}
		}
	}
	const n, times = 12, 2
	var f frames
	for i := range n {
		for range times {
			for k, x := range list {
				f = append(f, x.make(source(k), k, i))
			}
		}
	}
	s := f.summary(t, "--flows", "1000")
	_, said := counts(&s)
	packets := map[int]uint64{}
	for _, x := range s.Flows {
		packets[int(x.Flow.SrcPort)-20000] += x.Packets
	}
	for k, x := range list {
		src := source(k)
		at := fmt.Sprintf("%d.%d.%d.%d ", src[0], src[1], src[2], src[3])
		copies, alike := said[at+"copies"], said[at+"alike"]
		if packets[k]+copies != times*n {
			t.Errorf("%s: %d packets and %d copies, of %d", x.name, packets[k], copies, times*n)
		}
		if x.known && (copies != n || alike != 0) || !x.known && (copies > 1 || copies+alike != n) { // the second one of all, by which its numbers stand still
			t.Errorf("%s: %d are copies, %d may be", x.name, copies, alike)
		}
	}
}

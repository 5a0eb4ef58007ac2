package main_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/ioam"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/sflow"
	"github.com/hopscope/hopscope/decode/telemetry"
)

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

// An unset or impossible path delay of an exporter is left out and reported, in any numbering and width. The rest of
// the record stands, and so do the records beside it.
func TestSiblingsPathDelays(t *testing.T) {
	be := binary.BigEndian
	type values struct{ mean, min, max, sum, packets uint64 }
	good := values{100, 50, 200, 1000, 10} // µs
	spoil := []struct {
		name string
		do   func(v *values, most, sums uint64) // greatest numbers of the fields
		left string                             // values that stand
	}{
		{"the least is not set", func(v *values, most, _ uint64) { v.min = most }, "max mean sum"},
		{"the greatest is saturated", func(v *values, most, _ uint64) { v.max = most }, "mean min sum"},
		{"the mean is not set", func(v *values, most, _ uint64) { v.mean = most }, "max mean min sum"}, // of the sum
		{"none is set", func(v *values, most, sums uint64) { v.mean, v.min, v.max, v.sum = most, most, most, sums }, ""},
		{"the greatest is 0", func(v *values, _, _ uint64) { v.max = 0 }, "mean min sum"},
		{"the mean is 0", func(v *values, _, _ uint64) { v.mean = 0 }, "max mean min sum"},
		{"the least above the greatest", func(v *values, _, _ uint64) { v.min, v.max = v.max, v.min }, "mean sum"},
		{"the mean above the greatest", func(v *values, _, _ uint64) { v.mean, v.sum = 1000, 500 }, "mean sum"},
		{"the sum is saturated", func(v *values, _, sums uint64) { v.sum = sums }, "max mean min"},
		{"the sum wrapped", func(v *values, _, _ uint64) { v.sum = 3 }, "max mean min"},
		{"of no packets", func(v *values, _, _ uint64) { v.packets = 0 }, ""},
		{"backwards", func(v *values, most, _ uint64) { v.mean, v.min, v.max = most-20, most-30, most-10 }, "mean sum"},
		{"none is set, of no packets", func(v *values, most, _ uint64) { *v = values{0, most, 0, 0, 0} }, ""},
	}
	type numbering struct {
		name, settings string
		pen            uint32
		ids            [4]uint16
		width, sums    uint16
	}
	var list []struct {
		numbering
		spoiled int
	}
	for _, x := range []numbering{
		{"RFC 9951", "", 0, [4]uint16{530, 531, 532, 533}, 4, 8},
		{"RFC 9951, reduced", "", 0, [4]uint16{530, 531, 532, 533}, 3, 6},
		{"RFC 9951, wide", "", 0, [4]uint16{530, 531, 532, 533}, 8, 8},
		{"Huawei", "", ipfix.Huawei, [4]uint16{521, 523, 525, 527}, 4, 8},
		{"pmacct", "", 0, [4]uint16{600, 601, 602, 603}, 4, 4},
		{"fluvia", "ipfix:\n  path_delay: fluvia\n", 0, [4]uint16{521, 523, 525, 527}, 4, 4},
		{"fluvia, ns", "ipfix:\n  path_delay: fluvia\n", 0, [4]uint16{522, 524, 526, 528}, 4, 4},
	} {
		for i := range spoil {
			if x.width == 3 && spoil[i].name == "backwards" { // 17 s: nothing says that it is one
				continue
			}
			list = append(list, struct {
				numbering
				spoiled int
			}{x, i})
		}
	}
	const n = 3
	for _, settings := range []string{"", "ipfix:\n  path_delay: fluvia\n"} {
		var f frames
		var of []int
		for k, x := range list {
			if x.settings != settings {
				continue
			}
			value := func(b []byte, v uint64, width uint16) []byte { return append(b, be.AppendUint64(nil, v)[8-width:]...) }
			most, sums := uint64(1)<<(8*x.width-1)<<1-1, uint64(1)<<(8*x.sums-1)<<1-1
			template := decode.Template{Version: ipfix.V10, ID: 256, Fields: []decode.Element{{ID: 8, Length: 4}, {ID: 12, Length: 4}, {ID: 2, Length: 4}}}
			for i, id := range x.ids {
				template.Fields = append(template.Fields, decode.Element{PEN: x.pen, ID: id, Length: map[bool]uint16{false: x.width, true: x.sums}[i == 3]})
			}
			for i := range n {
				of = append(of, k)
				m := ipfix.Message{Version: ipfix.V10, Domain: 1, Time: uint32(1_700_000_000 + i), Seq: uint32(i)}
				f = append(f, reportFrame(source(k), 4739, ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
					b = ipfix.AppendSet(b, 2, 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, &template) })
					return ipfix.AppendSet(b, 256, 0, func(b []byte) []byte {
						v := good
						if i == 1 {
							spoil[x.spoiled].do(&v, most, sums)
						}
						b = value(append(b, 10, 0, 0, 1, 10, 0, 0, 2), v.packets, 4)
						return value(value(value(value(b, v.mean, x.width), v.min, x.width), v.max, x.width), v.sum, x.sums)
					})
				})))
			}
		}
		flags := []string{"--config", settingsFile(t, settings)}
		s := f.summary(t, flags...)
		_, said := counts(&s)
		out, diag, status := run(t, t.TempDir(), append([]string{"decode", f.file(t)}, flags...)...)
		if status != 0 {
			t.Fatal(diag)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != len(of) {
			t.Fatalf("%d lines of %d records", len(lines), len(of))
		}
		for i, line := range lines {
			x := list[of[i]]
			name := x.name + ", " + spoil[x.spoiled].name
			var r struct {
				Delay map[string]uint64 `json:"path_delay"`
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			unit, want := uint64(1000), "max mean min sum"
			if strings.HasSuffix(x.name, ", ns") {
				unit = 1
			}
			if i%n == 1 {
				want = spoil[x.spoiled].left
			}
			var left []string
			for _, value := range []string{"max", "mean", "min", "sum"} {
				v, ok := r.Delay[value+"_ns"]
				if !ok {
					continue
				}
				left = append(left, value)
				if least, most := 50*unit, 1000*unit; v < least || v > most {
					t.Errorf("%s: %s is %d ns", name, value, v)
				}
			}
			if got := strings.Join(left, " "); got != want {
				t.Errorf("%s, record %d: %q stand, want %q", name, i%n, got, want)
			}
			src := source(of[i])
			if at := fmt.Sprintf("%d.%d.%d.%d unset-delays", src[0], src[1], src[2], src[3]); said[at] != 1 {
				t.Errorf("%s: said of %d records", name, said[at])
			}
		}
	}
}

package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
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

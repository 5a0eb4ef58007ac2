package main_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/sflow"
	"github.com/hopscope/hopscope/internal/testkit"
)

// INT in GRE has no number of its own: under whatever one, the number is named, and the settings that are named read it. What only looks like
// it is not named.
func TestSiblingsGRE(t *testing.T) {
	type sibling struct {
		name, base string
		frame      func(k, i int, spoil bool) []byte
		port       uint16 // of reports, if no profile names it
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
			}, 0})
			for _, kind := range []sflow.Kind{sflow.Flow, sflow.Discard} {
				list = append(list, sibling{fmt.Sprintf("a sample of sFlow of kind %v, %v, %s", kind, v, w.name), "auto", func(k, i int, spoil bool) []byte {
					x, src := packet(k, i, spoil), source(k)
					d := sflow.Datagram{Agent: decode.AddrFrom4(src[:]), IPv: 4, Seq: uint32(i + 1), Samples: 1}
					sample := sflow.Sample{Kind: kind, Seq: uint32(i + 1), Rate: 100, Pool: 100, Reason: 256, Has: sflow.HasHeader, Protocol: 1, FrameLen: uint32(len(x)), Header: x}
					return reportFrame(src, 6343, sflow.AppendSample(sflow.AppendDatagram(nil, &d), &sample))
				}, 0})
			}
			for _, in := range []struct {
				format      string
				version, id uint16
				element     uint16
			}{{"IPFIX", ipfix.V10, 700, 315}, {"IPFIX", ipfix.V10, 701, 313}, {"NetFlow 9", ipfix.V9, 702, 104}} {
				list = append(list, sibling{fmt.Sprintf("a sample in element %d of %s, %v, %s", in.element, in.format, v, w.name), "auto", func(k, i int, spoil bool) []byte {
					x, src := packet(k, i, spoil), source(k)
					if in.element == 313 {
						x = x[14:]
					}
					t := &decode.Template{Version: in.version, ID: in.id, Domain: 7, Fields: []decode.Element{{ID: in.element, Length: uint16(len(x))}}}
					m := ipfix.Message{Version: in.version, Domain: 7, Seq: uint32(i), Time: 1_700_000_000, Count: 2}
					return reportFrame(src, 4739, ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
						b = ipfix.AppendSet(b, ipfix.TemplateSet(t), 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, t) })
						return ipfix.AppendSet(b, in.id, 0, func(b []byte) []byte { return append(b, x...) })
					}))
				}, 0})
			}
			for _, rv := range []decode.Version{decode.V05, decode.V10, decode.V20} {
				for _, flags := range []decode.Flags{0, decode.Dropped, decode.Congested, decode.Tracked} {
					base := "auto-unflagged"
					if flags == decode.Tracked {
						base = "auto"
					}
					for _, port := range []uint16{0, 9555} {
						list = append(list, sibling{fmt.Sprintf("report %v flags %v to port %d, %v, %s", rv, flags, port, v, w.name), base, func(k, i int, spoil bool) []byte {
							return reportFrame(source(k), cmp.Or(port, 32766), reportOf(rv, i, flags, packet(k, i, spoil)))
						}, port})
					}
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
		if x.port != 0 {
			want += fmt.Sprintf(" in a dialect that has it as its base and report_ports: [%d]", x.port)
		}
		if strings.Count(said, want) != 1 {
			t.Errorf("%s: no %q", x.name, want)
		}
		if k%7 != 0 && !testkit.Night() { // 30 of each way, so that each format has its turn
			continue
		}
		var f frames
		for i := range n {
			f = append(f, x.frame(k, i, false))
		}
		settings := settingsFile(t, fmt.Sprintf("exporters:\n  profile: own\n  dialects:\n    - name: own\n      base: %s\n      gre_protocol: %#x\n      report_ports: [%d]\n", x.base, number(k), cmp.Or(x.port, 32766)))
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
		for k, x := range list {
			if src := source(k); strings.HasPrefix(x.name, "a sample") && strings.HasPrefix(line, "dialect") && strings.Contains(line, fmt.Sprintf(" of %d.%d.%d.%d ", src[0], src[1], src[2], src[3])) {
				t.Errorf("%s, with a stack that is broken: %s", x.name, line)
			}
		}
	}
}

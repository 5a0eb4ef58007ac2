package main_test

import (
	"fmt"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
)

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

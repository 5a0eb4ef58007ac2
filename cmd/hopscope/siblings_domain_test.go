package main_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/telemetry"
)

// Bytes that no rule decodes leave a trace: data of a domain in the place of a packet, beside metadata, and among TLVs.
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

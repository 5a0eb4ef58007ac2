package stamp

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ioam"
	"github.com/hopscope/hopscope/decode/packet"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestHeaders compares extension headers with bytes that were put together by hand from RFC 8200, 9197, 9322 and 9486,
// and from RFC 8754.
func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		of   IOAM
		want string
	}{
		// next header, 4 * 8 bytes, PadN; option, 22 bytes, type 0; namespace, 3 words a node, Active, 3 words of room, trace type; room; PadN
		{IOAM{123, "0xc20000", 1}, "11 03 0100  31 16 00 00  007b 1903 c2000000  000000000000000000000000  01020000"},
		{IOAM{0xffff, "0x800000", 2}, "11 02 0100  31 12 00 00  ffff 0902 80000000  0000000000000000"},
		// a snapshot has its own word, which the length of a node does not count
		{IOAM{1, "0x800002", 1}, "11 02 0100  31 12 00 00  0001 0902 80000200  0000000000000000"},
	} {
		got, err := c.of.Header()
		if want := unhex(t, c.want); err != nil || !bytes.Equal(got, want) || len(got) != 8*(int(want[1])+1) {
			t.Errorf("%+v: %x, %v\nwant %x", c.of, got, err, want)
		}
	}
	got, err := RoutingHeader([]string{"2001:db8:a::1", "2001:db8:b::1"})
	// 6 * 8 more bytes, type 4, 2 segments left, last entry 2; the destination, the last segment, the first one
	want := unhex(t, "00 06 04 02 02 00 0000"+strings.Repeat("00", 16)+"20010db8000b00000000000000000001"+"20010db8000a00000000000000000001")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, %v\nwant %x", got, err, want)
	}
	if h, err := RoutingHeader(nil); h != nil || err != nil {
		t.Errorf("without segments there is %x, %v", h, err)
	}
}

// arrivalOf is of a request over IPv6.
func arrivalOf() *Arrival {
	return &Arrival{From: netip.MustParseAddrPort("[2001:db8::1]:49152"), To: netip.MustParseAddrPort("[2001:db8::2]:8620"), TTL: 251, TOS: 40}
}

// FuzzIOAM has any hop-by-hop header come to a reflector. What it reports is what the decoder reads of the header, in a
// packet that holds nothing else.
func FuzzIOAM(f *testing.F) {
	empty, err := (&IOAM{123, "0xc20000", 2}).Header()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(empty)
	full := slices.Clone(empty)
	for _, id := range []uint32{11, 12, 13} { // the third one has no room
		if err := ioam.AddNode(full[4:], 123, &decode.Hop{Has: decode.HopNodeID, NodeID: id}, &decode.IOAMNode{}); err != nil {
			f.Fatal(err)
		}
		f.Add(slices.Clone(full))
	}
	f.Add([]byte{17, 0, 5, 2, 0, 0, 1, 0})
	f.Add([]byte{17, 1, 0x11, 6, 0, 3, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0})
	var scratch decode.Report
	f.Fuzz(func(t *testing.T, header []byte) {
		option, outcome := ReadIOAM(header, &scratch)
		if option == nil || outcome == Malformed {
			return
		}
		got := scratch.Hops
		b, err := AppendTraced([]byte("before"), arrivalOf(), option)
		if err != nil {
			t.Fatalf("%x: %v", header, err)
		}
		b = b[len("before"):]
		var p packet.Packet
		p.Frame(packet.LinkRaw, b, len(b))
		var batch decode.Batch
		if n := (ioam.IPv6{}).Read(&batch, &p, b); n != 1 || p.End != len(b) || !p.HasPorts || p.SrcPort() != 49152 || p.DstPort() != Port || p.TTL != 251 || p.DSCP() != 10 {
			t.Fatalf("%x: %d options in %x: %+v", header, n, b, p)
		}
		if r := batch.Reports[0]; r.Err.Reason != 0 || !slices.Equal(r.Hops, got) || r.Flags != scratch.Flags || (outcome == Empty) != (len(got) == 0) {
			t.Fatalf("%x: %+v\n%v", header, r, got)
		}
	})
}

// TestReadIOAM gives each outcome its count.
func TestReadIOAM(t *testing.T) {
	header, err := (&IOAM{123, "0xc20000", 2}).Header()
	if err != nil {
		t.Fatal(err)
	}
	var scratch decode.Report
	check := func(want Outcome) {
		t.Helper()
		if option, got := ReadIOAM(header, &scratch); option == nil || got != want {
			t.Errorf("%x: %x is %s, want %s", header, option, got, want)
		}
	}
	add := func(id uint32) {
		if err := ioam.AddNode(header[4:], 123, &decode.Hop{Has: decode.HopNodeID, NodeID: id}, &decode.IOAMNode{}); err != nil {
			t.Fatal(err)
		}
	}
	check(Empty)
	add(1)
	check(Whole)
	add(2)
	check(Whole)
	add(3)
	check(Overflow)
	header[10] = 0x20 // words of a node
	check(Malformed)
	for _, none := range [][]byte{nil, {17}, {17, 0, 0, 0, 0, 0, 0, 0}, header[:16], {17, 0, 0x31, 4, 0, 2, 0, 0}} {
		if option, _ := ReadIOAM(none, &scratch); option != nil {
			t.Errorf("%x has a trace: %x", none, option)
		}
	}
}

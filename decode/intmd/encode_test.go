package intmd

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

const hasQueue = decode.HopQueueID | decode.HopQueueOccupancy

// written are parts whose bytes are worked examples.
var written = []struct {
	name   string
	header Header
	hops   []decode.Hop
	front  func(dst []byte) []byte // what carries it
	want   string
	from   int
	length int
}{
	{"0.5 over UDP", Header{Version: decode.V05, Instructions: 0xc000, RemainingHops: 14, Original: 5001, Proto: 17}, []decode.Hop{
		{Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf, NodeID: 0x11, IngressIf: 1, EgressIf: 2},
		{Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf, NodeID: 0x22, IngressIf: 4, EgressIf: 1},
	}, nil, "int05-udp", 0, 32},
	{"1.0 over TCP", Header{Version: decode.V10, Instructions: 0x9000, RemainingHops: 6, DSCP: 10}, []decode.Hop{
		{Has: decode.HopNodeID | hasQueue, NodeID: 1, QueueOccupancy: 42},
		{Has: decode.HopNodeID | hasQueue, NodeID: 2, QueueID: 3, QueueOccupancy: 336},
	}, nil, "int10-tcp", 54, 28},
	{"2.1 over UDP, by port", Header{Version: decode.V21, Instructions: 0xdc00, RemainingHops: 6, NPT: 1, Original: 4789}, []decode.Hop{
		{
			Has:    decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | hasQueue | decode.HopIngressTime | decode.HopEgressTime,
			NodeID: 1, IngressIf: 3, EgressIf: 4, QueueOccupancy: 5, IngressTime: 1699999999999990000, EgressTime: 1699999999999991250,
		},
		{
			Has:    decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | hasQueue | decode.HopIngressTime | decode.HopEgressTime,
			NodeID: 2, IngressIf: 11, EgressIf: 12, QueueID: 1, QueueOccupancy: 96, IngressTime: 1700000000000001000, EgressTime: 1700000000000003500,
		},
	}, nil, "int21-udp", 42, 72},
	{"GRE", Header{Version: decode.V21, Carrier: GRE, Tunnel: true, Instructions: 0x8000, RemainingHops: 3, Original: 0x0800}, nodes(0x11, 0x21),
		func(dst []byte) []byte { return AppendGRE(dst, 0x4569) }, "int21-gre", 0, 28},
	{"VXLAN-GPE", Header{Version: decode.V21, Carrier: VXLANGPE, Tunnel: true, Instructions: 0x8000, RemainingHops: 3, Original: 3}, nodes(0x11, 0x21),
		func(dst []byte) []byte { return AppendVXLANGPE(dst, 0xaabb) }, "int21-gpe", 0, 32},
	{"Geneve", Header{Version: decode.V21, Carrier: Geneve, Instructions: 0x8000, RemainingHops: 3}, nodes(0x11, 0x21),
		func(dst []byte) []byte { return AppendGeneve(dst, 0xaabb, 24, 0x6558) }, "int21-geneve", 0, 32},
}

func nodes(ids ...uint32) (hops []decode.Hop) {
	for _, id := range ids {
		hops = append(hops, node(id))
	}
	return hops
}

func TestAppend(t *testing.T) {
	buf := make([]byte, 0, 256)
	for _, tt := range written {
		encode := func(dst []byte) []byte {
			if tt.front != nil {
				dst = tt.front(dst)
			}
			return Append(dst, &tt.header, tt.hops)
		}
		if got, want := encode(nil), bytesOf(t, tt.want)[tt.from:][:tt.length]; !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", tt.name, got, want)
		}
		if n := testing.AllocsPerRun(100, func() { buf = encode(buf[:0]) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", tt.name, n)
		}
	}
	mx := Header{Version: decode.V21, Type: TypeMX, NPT: 2, Original: 6, Instructions: 0x9000, DomainID: 0xabcd, DomainBits: 0xc000}
	if got, want := AppendHeader(nil, &mx, 8), bytesOf(t, "38050006 20000000 9000abcd c0000000"); !bytes.Equal(got, want) {
		t.Errorf("INT-MX:\n got %x\nwant %x", got, want)
	}
}

// A node adds its block to a part, or returns an error, and the sink node reads the source node's values.
func TestPart(t *testing.T) {
	for _, version := range []decode.Version{decode.V10, decode.V21} {
		h := Header{Version: version, Instructions: 0x8000, RemainingHops: 2, DSCP: 10}
		b := Append(nil, &h, nodes(1))
		p := PartAt(b, version)
		p.Grow(1)
		h.RemainingHops = 1
		if want := AppendHeader(nil, &h, 8); p.RemainingHops() != 1 || !bytes.Equal(p.Header(), want) {
			t.Errorf("%v: grown to %x, want %x", version, p.Header(), want)
		}
		for _, why := range []decode.Flags{decode.HopLimit, decode.MTU} {
			p.Refuse(why)
			h.Flags |= why
			if want := AppendHeader(nil, &h, 8); !bytes.Equal(p.Header(), want) {
				t.Errorf("%v: refused to %x, want %x", version, p.Header(), want)
			}
		}
		if npt, _, dscp := p.Restore(); npt != 0 || dscp != 10 {
			t.Errorf("%v: NPT %d, DSCP %d", version, npt, dscp)
		}
	}
	for npt, original := range map[uint8]uint16{1: 4789, 2: 6} {
		b := Append(nil, &Header{Version: decode.V21, NPT: npt, Original: original}, nil)
		if n, o, _ := PartAt(b, decode.V21).Restore(); n != npt || o != original {
			t.Errorf("NPT %d of %d, want %d of %d", n, o, npt, original)
		}
	}
}

// FuzzRoundTrip holds that the decoder returns what the encoder was given, in all versions and carriers.
func FuzzRoundTrip(f *testing.F) {
	f.Add(uint8(2), uint8(0), uint16(0xf000), uint8(5), uint8(3), uint8(1), uint16(4789), uint8(1), []byte("values of hops"))
	f.Add(uint8(1), uint8(0), uint16(0xff00), uint8(2), uint8(255), uint8(0), uint16(0), uint8(7), []byte{})
	f.Add(uint8(0), uint8(0), uint16(0xff00), uint8(2), uint8(4), uint8(0), uint16(80), uint8(3), []byte{})
	f.Add(uint8(2), uint8(3), uint16(0x8000), uint8(7), uint8(4), uint8(0), uint16(80), uint8(3), []byte{})
	f.Add(uint8(2), uint8(128), uint16(0xffff), uint8(5), uint8(3), uint8(0), uint16(0), uint8(1), []byte("values of hops"))
	f.Add(uint8(2), uint8(131), uint16(0x0007), uint8(5), uint8(3), uint8(0), uint16(0), uint8(1), []byte("values of hops"))
	f.Fuzz(func(t *testing.T, version, carrier uint8, bitmap uint16, n, remaining, npt uint8, original uint16, flags uint8, data []byte) {
		h := Header{
			Version: []decode.Version{decode.V05, decode.V10, decode.V21}[version%3], RemainingHops: remaining, Instructions: bitmap,
			Flags: decode.Flags(flags) << 5 & (decode.HopLimit | decode.MTU | decode.Copy | decode.Discard),
		}
		place := Place{ByPort: true}
		switch h.Version {
		case decode.V05:
			h.Flags &= decode.HopLimit | decode.Copy
			h.RemainingHops = min(remaining, 255-63)
		case decode.V10:
			h.Flags &^= decode.Discard
		default:
			h.Flags &^= decode.Copy
			h.Carrier = Carrier(carrier % 4)
			if carrier >= 128 {
				h.DomainID, h.Layout = FANT.ID, FANT.Layout
			}
			place.Carrier = h.Carrier
			if h.Carrier == TCPUDP {
				h.NPT, h.Original = npt%3, original
				if h.NPT == 2 {
					h.Original &= 0xff
				}
			}
		}
		stride, most := h.HopWords(), 255-6
		if h.Carrier == Geneve {
			most = 31 - 3
		}
		if stride == 0 && h.Version == decode.V05 {
			return // asks for nothing, which 0.5 does not allow
		}
		hops := make([]decode.Hop, min(int(n), most/max(stride, 1), 63))
		if stride == 0 {
			hops = nil
		}
		plan, block := packet.Compile(h.layout(), bitmap), make([]byte, 4*max(stride, 1))
		for i := range hops {
			copy(block, data[min(i, len(data)):])
			plan.Stack(hops[i:i+1], block, len(block))
		}
		b := Append(nil, &h, hops)
		place.End, place.IPEnd = len(b), len(b)
		want := decode.Report{Flags: h.Flags, Instructions: bitmap, RemainingHops: h.RemainingHops, Has: decode.HasInstructions | decode.HasRemainingHops}
		if h.DomainID != 0 {
			want.DomainID = h.DomainID
			want.Has |= decode.HasDomainID
		}
		if h.Version == decode.V05 {
			want.RemainingHops = 0
			want.Has = decode.HasInstructions
		}
		var got decode.Report
		if v := New(Options{Versions: AllVersions, Domains: []Domain{FANT}}).Decode(&got, b, &place); v != h.Version {
			t.Fatalf("%x: version %v, %v", b, v, got.Error())
		}
		if len(hops) != len(got.Hops) || len(hops) > 0 && !reflect.DeepEqual(got.Hops, hops) {
			t.Fatalf("%x:\n got %+v\nwant %+v", b, got.Hops, hops)
		}
		got.Hops, got.Announced, got.Rare = nil, 0, nil
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%x:\n got %+v\nwant %+v", b, got, want)
		}
		if place.NPT != h.NPT || h.NPT != 0 && place.Original != h.Original || place.Next != len(b) {
			t.Fatalf("%x: place %+v", b, place)
		}
	})
}

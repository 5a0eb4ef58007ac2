package telemetry

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/internal/testkit"
)

// bytesOf returns vectors and hex ("tr10 45000000"), with changes "47:06" of single bytes applied.
func bytesOf(t testing.TB, in string, changes ...string) (b []byte) {
	t.Helper()
	for _, f := range strings.Fields(in) {
		part, err := testkit.Vector(f)
		if err != nil {
			if part, err = hex.DecodeString(f); err != nil {
				t.Fatal(err)
			}
		}
		b = append(b, part...)
	}
	for _, c := range changes {
		var at int
		var v byte
		if _, err := fmt.Sscanf(c, "%d:%x", &at, &v); err != nil {
			t.Fatal(err)
		}
		b[at] = v
	}
	return b
}

var all = Options{Versions: AllVersions}

const (
	hasHeader = decode.HasHWID | decode.HasSeq
	hasQueue  = decode.HopQueueID | decode.HopQueueOccupancy
	hasIfs    = decode.HopIngressIf | decode.HopEgressIf
)

// one is a report and its content.
type one struct {
	r  decode.Report
	in Inner
}

var good = []struct {
	name    string
	opts    Options
	in      string
	changes []string
	want    []one
}{
	{"0.5, nothing but the header", all, "00200003 00000029 075bcd15", nil, []one{{
		decode.Report{
			Version: decode.V05, Kind: decode.KindPostcard, Flags: decode.Tracked, Has: hasHeader | decode.HasHeaderTime,
			HWID: 3, Seq: 41, SeqBits: 32, FirstOfGroup: true, HeaderTime: 123456789,
		},
		Inner{Type: InnerEthernet, At: 12, End: 12},
	}}},
	{"0.5, drop", all, "tr05-drop", nil, []one{{
		decode.Report{
			Version: decode.V05, Kind: decode.KindDrop, Flags: decode.Dropped | decode.Tracked,
			Has:    hasHeader | decode.HasHeaderTime | decode.HasNodeID | decode.HasDropReason,
			NodeID: 0xa1, HWID: 3, Seq: 41, SeqBits: 32, FirstOfGroup: true, HeaderTime: 123456789, DropReason: 80,
			Hops: []decode.Hop{{
				Has:    decode.HopNodeID | hasIfs | decode.HopQueueID | decode.HopIngressTime,
				NodeID: 0xa1, IngressIf: 7, IngressTime: 123456789, TimeBits: 32,
			}},
		},
		Inner{Type: InnerEthernet, At: 24, End: 70},
	}}},
	{"0.5, local", all, "tr05-local", nil, []one{{
		decode.Report{
			Version: decode.V05, Kind: decode.KindQueue, Flags: decode.Congested | decode.Tracked,
			Has:    hasHeader | decode.HasHeaderTime | decode.HasNodeID,
			NodeID: 0xa1, HWID: 3, Seq: 42, SeqBits: 32, FirstOfGroup: true, HeaderTime: 1000000000,
			Hops: []decode.Hop{{
				Has:    decode.HopNodeID | hasIfs | hasQueue | decode.HopIngressTime | decode.HopEgressTime,
				NodeID: 0xa1, IngressIf: 7, EgressIf: 9, QueueID: 5, QueueOccupancy: 1200,
				IngressTime: 1000000000, EgressTime: 1000002500, TimeBits: 32,
			}},
		},
		Inner{Type: InnerEthernet, At: 28, End: 28},
	}}},
	{"0.5, values marked invalid, reserved bits set", all, "021fffff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff", nil, []one{{
		decode.Report{
			Version: decode.V05, Kind: decode.KindPostcard, Has: hasHeader | decode.HasHeaderTime | decode.HasNodeID,
			NodeID: 0xffffffff, HWID: 63, Seq: 0xffffffff, SeqBits: 32, FirstOfGroup: true, HeaderTime: 0xffffffff,
			Hops: []decode.Hop{{Has: decode.HopNodeID, NodeID: 0xffffffff}},
		},
		Inner{Type: InnerEthernet, At: 28, End: 28},
	}}},
	{"0.5 under version nibble 1", all, "tr05-ver1", nil, []one{{
		decode.Report{
			Version: decode.V05, Kind: decode.KindPostcard, Flags: decode.Tracked,
			Has:    hasHeader | decode.HasHeaderTime | decode.HasNodeID,
			NodeID: 9, HWID: 4, Seq: 7, SeqBits: 32, FirstOfGroup: true, HeaderTime: 4096,
			Hops: []decode.Hop{{
				Has:    decode.HopNodeID | hasIfs | hasQueue | decode.HopIngressTime | decode.HopEgressTime,
				NodeID: 9, IngressIf: 2, EgressIf: 3, QueueID: 1, QueueOccupancy: 12, IngressTime: 4096, EgressTime: 4196, TimeBits: 32,
			}},
		},
		Inner{Type: InnerEthernet, At: 28, End: 28},
	}}},
	{"host INT, latency", Options{Versions: V05, HostINT: true}, "04200000 00000001 6b00272a 00000016 45", nil, []one{{
		decode.Report{
			Version: decode.V05, Kind: decode.KindPostcard, Flags: decode.Tracked,
			Has:    hasHeader | decode.HasHeaderTime | decode.HasNodeID,
			NodeID: 22, Seq: 1, SeqBits: 32, FirstOfGroup: true, HeaderTime: 1795172138,
		},
		Inner{Type: InnerIPv4, INT: true, At: 16, End: 17},
	}}},
	{"host INT, latency, no sink id", Options{Versions: V05, HostINT: true, NoSinkID: true}, "04200000 00000001 6b00272a 45", nil, []one{{
		decode.Report{
			Version: decode.V05, Kind: decode.KindPostcard, Flags: decode.Tracked, Has: hasHeader | decode.HasHeaderTime,
			Seq: 1, SeqBits: 32, FirstOfGroup: true, HeaderTime: 1795172138,
		},
		Inner{Type: InnerIPv4, INT: true, At: 12, End: 13},
	}}},
	{"host INT, loss", Options{Versions: V05, HostINT: true},
		"03a00000 0000000e 6b002730 0000000b 00000016 00020003 6b00272f 00000006 0000000b 4500", nil, []one{{
			decode.Report{
				Version: decode.V05, Kind: decode.KindDrop, Flags: decode.Dropped | decode.Tracked,
				Has:    hasHeader | decode.HasHeaderTime | decode.HasNodeID | decode.HasGap | decode.HasSourceSeq,
				NodeID: 22, Seq: 14, SeqBits: 32, FirstOfGroup: true, HeaderTime: 1795172144,
				SourceSeq: 6, GapTime: 1795172143, Lost: 11,
				Hops: []decode.Hop{
					{Has: decode.HopNodeID | decode.HopEgressIf, NodeID: 11, EgressIf: 2},
					{Has: decode.HopNodeID | decode.HopIngressIf, NodeID: 22, IngressIf: 3},
				},
			},
			Inner{Type: InnerIPv4, StandIn: true, At: 36, End: 38},
		}}},
	{"1.0, bits 0, 2, 3", all, "tr10", nil, []one{{
		decode.Report{
			Version: decode.V10, Kind: decode.KindQueue, Flags: decode.Congested | decode.Tracked,
			Has:    hasHeader | decode.HasHeaderTime | decode.HasNodeID,
			NodeID: 0xb2, HWID: 9, Seq: 100, SeqBits: 32, FirstOfGroup: true, HeaderTime: 0xfffffff0,
			Hops: []decode.Hop{{
				Has:    decode.HopNodeID | hasIfs | hasQueue | decode.HopIngressTime | decode.HopEgressTime,
				NodeID: 0xb2, IngressIf: 3, EgressIf: 4, QueueID: 2, QueueOccupancy: 77,
				IngressTime: 0xfffffff0, EgressTime: 0x200, TimeBits: 32,
			}},
		},
		Inner{Type: InnerIPv4, At: 28, End: 28},
	}}},
	{"1.0, no metadata, Ethernet, reserved bits set", all, "14007e40 00000005 00000007 00000009", nil, []one{{
		decode.Report{
			Version: decode.V10, Kind: decode.KindPostcard, Flags: decode.Tracked, Has: hasHeader | decode.HasHeaderTime | decode.HasNodeID,
			NodeID: 5, Seq: 7, SeqBits: 32, FirstOfGroup: true, HeaderTime: 9,
		},
		Inner{Type: InnerEthernet, At: 16, End: 16},
	}}},
	{"1.0, everything, IPv6", all, "1a5f8180 00000005 00000007 00000009 00010002 00000003 04000005 00000006 0708ffff 00000009", nil, []one{{
		decode.Report{
			Version: decode.V10, Kind: decode.KindDrop, Flags: decode.Dropped | decode.Congested,
			Has:    hasHeader | decode.HasHeaderTime | decode.HasNodeID | decode.HasDropReason,
			NodeID: 5, Seq: 7, SeqBits: 32, FirstOfGroup: true, HeaderTime: 9, DropReason: 8,
			Hops: []decode.Hop{{
				Has: decode.HopNodeID | hasIfs | hasQueue | decode.HopLatency | decode.HopIngressTime | decode.HopEgressTime |
					decode.HopTxUtilization,
				NodeID: 5, IngressIf: 1, EgressIf: 2, Latency: 3, QueueID: 4, QueueOccupancy: 5,
				IngressTime: 9, EgressTime: 6, TimeBits: 32, TxUtilization: 9,
			}},
		},
		Inner{Type: InnerIPv6, At: 40, End: 40},
	}}},
	{"1.0, flags before the reserved bits", Options{Versions: V10, FlagsFirst: true, NoSequence: true}, "14001001 00000003 00000000 00380d95", nil, []one{{
		decode.Report{
			Version: decode.V10, Kind: decode.KindPostcard, Flags: decode.Tracked, Has: hasHeader | decode.HasHeaderTime | decode.HasNodeID,
			NodeID: 3, HWID: 1, HeaderTime: 0x380d95,
		},
		Inner{Type: InnerEthernet, At: 16, End: 16},
	}}},
	{"1.0, flags before the reserved bits, read by the book", all, "14001001 00000003 00000000 00380d95", nil, []one{{
		decode.Report{
			Version: decode.V10, Kind: decode.KindPostcard, Has: hasHeader | decode.HasHeaderTime | decode.HasNodeID,
			NodeID: 3, HWID: 1, SeqBits: 32, FirstOfGroup: true, HeaderTime: 0x380d95,
		},
		Inner{Type: InnerEthernet, At: 16, End: 16},
	}}},
	{"postcard of 40 bytes", Options{Versions: V10, FlagsFirst: true, Postcard: true},
		"14001001 00000001 00000000 0000004d 00001f46 00000002 00356aa5 003589eb 00010009 00000000", nil, []one{{
			decode.Report{
				Version: decode.V10, Kind: decode.KindPostcard, Flags: decode.Tracked, Has: hasHeader | decode.HasNodeID | decode.HasFlowID,
				NodeID: 1, HWID: 1, SeqBits: 32, FirstOfGroup: true, FlowID: 77,
				Hops: []decode.Hop{{
					Has: decode.HopNodeID | hasIfs | hasQueue | decode.HopLatency | decode.HopIngressTime | decode.HopEgressTime |
						decode.HopTxUtilization,
					NodeID: 1, IngressIf: 1, EgressIf: 9, Latency: 8006, QueueOccupancy: 2, IngressTime: 3500709, EgressTime: 3508715, TimeBits: 32,
				}},
			},
			Inner{Type: InnerEthernet, At: 40, End: 40},
		}}},
	{"2.0, a group of two", all, "tr20-group", nil, []one{
		{
			decode.Report{
				Version: decode.V20, Kind: decode.KindPostcard, Flags: decode.Tracked, Has: hasHeader | decode.HasNodeID,
				NodeID: 195, HWID: 5, Seq: 300, SeqBits: 22, FirstOfGroup: true,
				Hops: []decode.Hop{{
					Has:    decode.HopNodeID | hasIfs | hasQueue | decode.HopIngressTime,
					NodeID: 195, IngressIf: 11, EgressIf: 12, QueueID: 1, QueueOccupancy: 96, IngressTime: 1700000000000001000, TimeBits: 64,
				}},
			},
			Inner{Type: InnerIPv4, At: 36, End: 64},
		},
		{
			decode.Report{
				Version: decode.V20, Kind: decode.KindDrop, Flags: decode.Dropped, Has: hasHeader | decode.HasNodeID | decode.HasDropReason,
				NodeID: 195, HWID: 5, Seq: 300, SeqBits: 22, DropReason: 71,
				Hops: []decode.Hop{{Has: decode.HopNodeID | hasIfs | decode.HopQueueID, NodeID: 195, IngressIf: 11, QueueID: 4}},
			},
			Inner{At: 84, End: 84},
		},
	}},
	{"2.0, an inner type without an inner packet", all, "tr20-group", []string{"64:14"}, []one{
		{
			decode.Report{
				Version: decode.V20, Kind: decode.KindPostcard, Flags: decode.Tracked, Has: hasHeader | decode.HasNodeID,
				NodeID: 195, HWID: 5, Seq: 300, SeqBits: 22, FirstOfGroup: true,
				Hops: []decode.Hop{{
					Has:    decode.HopNodeID | hasIfs | hasQueue | decode.HopIngressTime,
					NodeID: 195, IngressIf: 11, EgressIf: 12, QueueID: 1, QueueOccupancy: 96, IngressTime: 1700000000000001000, TimeBits: 64,
				}},
			},
			Inner{Type: InnerIPv4, At: 36, End: 64},
		},
		{
			decode.Report{
				Version: decode.V20, Kind: decode.KindDrop, Flags: decode.Dropped, Has: hasHeader | decode.HasNodeID | decode.HasDropReason,
				NodeID: 195, HWID: 5, Seq: 300, SeqBits: 22, DropReason: 71,
				Hops: []decode.Hop{{Has: decode.HopNodeID | hasIfs | decode.HopQueueID, NodeID: 195, IngressIf: 11, QueueID: 4}},
			},
			Inner{Type: InnerIPv4, At: 84, End: 84},
		},
	}},
	{"2.0, TLVs and domain specific words", all, "20000001 00000007 tr20-tlv", nil, []one{{
		decode.Report{
			Version: decode.V20, Kind: decode.KindPostcard, Flags: decode.Tracked, Has: hasHeader | decode.HasNodeID | decode.HasDomainID,
			NodeID: 7, Seq: 1, SeqBits: 22, FirstOfGroup: true, DomainID: 0x4142,
			Hops:    []decode.Hop{{Has: decode.HopNodeID | decode.HopLatency, NodeID: 7, Latency: 1500}},
			Unknown: []byte{0xca, 0xfe, 0, 1},
			Remarks: decode.RemarkMoreData,
		},
		Inner{Type: InnerIPv4, At: 44, End: 72},
	}}},
	{"2.0, TLVs: domain extension alone", all, "20000001 00000007 01020000 00010000 deadbeef", nil, []one{{
		decode.Report{
			Version: decode.V20, Kind: decode.KindPostcard, Has: hasHeader | decode.HasNodeID,
			NodeID: 7, Seq: 1, SeqBits: 22, FirstOfGroup: true, Remarks: decode.RemarkMoreData, Unknown: []byte{0xde, 0xad, 0xbe, 0xef},
		},
		Inner{At: 12, End: 12},
	}}},
	{"2.0, inner only, domain extension", all, "20000001 00000007 02010910 deadbeef", nil, []one{{
		decode.Report{
			Version: decode.V20, Kind: decode.KindPostcard, Flags: decode.Transit, Has: hasHeader | decode.HasNodeID,
			NodeID: 7, Seq: 1, SeqBits: 22, FirstOfGroup: true, Remarks: decode.RemarkDomainData, Unknown: []byte{0xde, 0xad, 0xbe, 0xef},
		},
		Inner{At: 12, End: 16},
	}}},
	{"2.0, to the end", all, "20000001 00000007 03ff0030 " + strings.Repeat("00000000", 255) + " 01", nil, []one{{
		decode.Report{
			Version: decode.V20, Kind: decode.KindPostcard, Flags: decode.Transit | decode.Tracked, Has: hasHeader | decode.HasNodeID,
			NodeID: 7, Seq: 1, SeqBits: 22, FirstOfGroup: true,
		},
		Inner{Type: InnerEthernet, At: 12, End: 12 + 1021},
	}}},
	{"2.0, to the end, short", Options{Versions: V20, ShortToEnd: true}, "20000001 00000007 03ff0030 000102", nil, []one{{
		decode.Report{
			Version: decode.V20, Kind: decode.KindPostcard, Flags: decode.Transit | decode.Tracked, Has: hasHeader | decode.HasNodeID,
			NodeID: 7, Seq: 1, SeqBits: 22, FirstOfGroup: true,
		},
		Inner{Type: InnerEthernet, At: 12, End: 15},
	}}},
	{"2.0, length 0 to the end", Options{Versions: V20, ZeroToEnd: true}, "20400000 00000003 13000020 0000000000000000 000102", nil, []one{{
		decode.Report{
			Version: decode.V20, Kind: decode.KindPostcard, Flags: decode.Tracked, Has: hasHeader | decode.HasNodeID,
			NodeID: 3, HWID: 1, SeqBits: 22, FirstOfGroup: true,
		},
		Inner{Type: InnerEthernet, At: 20, End: 23},
	}}},
	{"2.0, everything", all,
		"2fffffff 00000007 101600f0 7fff000000000000 00010002 00000003 04000005 0000000000000006 0000000000000007" +
			" 0000000800000009 0000000a 0b00000c 11111111 22222222 33333333 44444444 55555555 66666666 0d0e0000",
		[]string{"9:14", "10:12"}, []one{{
			decode.Report{
				Version: decode.V20, Kind: decode.KindDrop, Flags: decode.Dropped | decode.Congested | decode.Tracked | decode.Transit,
				Has:    hasHeader | decode.HasNodeID | decode.HasDropReason,
				NodeID: 7, HWID: 63, Seq: 1<<22 - 1, SeqBits: 22, FirstOfGroup: true, DropReason: 14,
				Hops: []decode.Hop{{
					Has: decode.HopNodeID | hasIfs | hasQueue | decode.HopLatency | decode.HopIngressTime | decode.HopEgressTime |
						decode.HopL2IngressIf | decode.HopL2EgressIf | decode.HopTxUtilization | decode.HopBufferID | decode.HopBufferOccupancy,
					NodeID: 7, IngressIf: 1, EgressIf: 2, Latency: 3, QueueID: 4, QueueOccupancy: 5, IngressTime: 6, EgressTime: 7,
					TimeBits: 64, L2IngressIf: 8, L2EgressIf: 9, TxUtilization: 10, BufferID: 11, BufferOccupancy: 12,
				}},
			},
			Inner{At: 92, End: 92},
		}}},
}

// read returns all reports of the payload, which starts at byte 5 of what the reader gets, with offsets from 0.
func read(rd *Reader, opts *Options, payload []byte, length int) (list []one) {
	const at = 5
	buf := append(make([]byte, at, at+len(payload)), payload...)
	rd.Start(opts, buf, at, at+length)
	for more := true; more; {
		var o one
		more = rd.Next(&o.r, &o.in)
		if o.in != (Inner{}) {
			o.in.At -= at
			o.in.End -= at
		}
		if o.r.Err.Reason != 0 {
			o.r.Err.Offset -= at
		}
		list = append(list, o)
	}
	return list
}

func equal(a, b one) bool {
	a.r.Format, b.r.Format = 0, 0
	if len(a.r.Hops) == 0 && len(b.r.Hops) == 0 {
		a.r.Hops, b.r.Hops = nil, nil
	}
	if len(a.r.Unknown) == 0 && len(b.r.Unknown) == 0 {
		a.r.Unknown, b.r.Unknown = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

func TestAccept(t *testing.T) {
	var rd Reader
	for _, c := range good {
		t.Run(c.name, func(t *testing.T) {
			data := bytesOf(t, c.in, c.changes...)
			got := read(&rd, &c.opts, data, len(data))
			if len(got) != len(c.want) {
				t.Fatalf("%d reports from %x, want %d", len(got), data, len(c.want))
			}
			for i := range got {
				if !equal(got[i], c.want[i]) {
					t.Errorf("report %d of %x =\n%+v, want\n%+v", i, data, got[i], c.want[i])
				}
				if got[i].r.Format != decode.TelemetryReport {
					t.Errorf("format %v", got[i].r.Format)
				}
			}
			var r decode.Report
			var in Inner
			if n := testing.AllocsPerRun(100, func() {
				rd.Start(&c.opts, data, 0, len(data))
				for more := true; more; {
					r.Reset()
					more = rd.Next(&r, &in)
				}
			}); n != 0 {
				t.Errorf("%v allocs per datagram, want 0", n)
			}
		})
	}
}

package intmd

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/internal/testkit"
)

// bytesOf returns a vector ("int10-tcp@54": from byte 54 on) or hex, with changes "47:06" of single bytes applied.
func bytesOf(t testing.TB, in string, changes ...string) []byte {
	t.Helper()
	name, from, _ := strings.Cut(in, "@")
	b, err := testkit.Vector(name)
	if err != nil {
		if b, err = hex.DecodeString(strings.Join(strings.Fields(in), "")); err != nil {
			t.Fatal(err)
		}
	}
	var skip int
	if from != "" {
		if _, err := fmt.Sscan(from, &skip); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range changes {
		var at int
		var v byte
		if _, err := fmt.Sscanf(c, "%d:%x", &at, &v); err != nil {
			t.Fatal(err)
		}
		b[at] = v
	}
	return b[skip:]
}

func node(id uint32) decode.Hop { return decode.Hop{Has: decode.HopNodeID, NodeID: id} }

var all = Options{Versions: AllVersions}

// tests of headers and stacks that are accepted. Every one starts at a shim; "place" is relative to the data.
var good = []struct {
	name    string
	opts    Options
	in      string
	changes []string
	place   Place // End and IPEnd 0: the end of the data
	want    decode.Report
	version decode.Version
	next    int
	npt     uint8
	orig    uint16
}{
	{
		name: "1.0 over TCP, two hops", opts: all, in: "int10-tcp@54",
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops,
			Instructions: 0x9000, RemainingHops: 6,
			Hops: []decode.Hop{
				{Has: decode.HopNodeID | decode.HopQueueID | decode.HopQueueOccupancy, NodeID: 1, QueueOccupancy: 42},
				{Has: decode.HopNodeID | decode.HopQueueID | decode.HopQueueOccupancy, NodeID: 2, QueueID: 3, QueueOccupancy: 336},
			},
		},
		version: decode.V10, next: 28,
	},
	{
		name: "1.0, E set", opts: all, in: "int10-tcp@54", changes: []string{"58:11"},
		want: decode.Report{
			Has: decode.HasInstructions | decode.HasRemainingHops, Flags: decode.HopLimit,
			Instructions: 0x9000, RemainingHops: 6,
			Hops: []decode.Hop{
				{Has: decode.HopNodeID | decode.HopQueueID | decode.HopQueueOccupancy, NodeID: 1, QueueOccupancy: 42},
				{Has: decode.HopNodeID | decode.HopQueueID | decode.HopQueueOccupancy, NodeID: 2, QueueID: 3, QueueOccupancy: 336},
			},
		},
		version: decode.V10, next: 28,
	},
	{
		name: "1.0, all items, M set, utilisation invalid", opts: all, in: "int10-all",
		want: decode.Report{
			Has: decode.HasInstructions | decode.HasRemainingHops, Flags: decode.MTU, Instructions: 0xff00,
			Hops: []decode.Hop{{
				Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID |
					decode.HopQueueOccupancy | decode.HopIngressTime | decode.HopEgressTime | decode.HopL2IngressIf | decode.HopL2EgressIf,
				NodeID: 7, IngressIf: 5, EgressIf: 9, Latency: 1500, QueueID: 2, QueueOccupancy: 300,
				IngressTime: 1000000000, EgressTime: 1000001500, TimeBits: 32, L2IngressIf: 0x10005, L2EgressIf: 0x10009,
			}},
		},
		version: decode.V10, next: 48,
	},
	{
		name: "1.0, empty stack", opts: all, in: "01 00 03 00 10 00 02 08 90 00 00 00",
		want:    decode.Report{Has: decode.HasInstructions | decode.HasRemainingHops, Instructions: 0x9000, RemainingHops: 8},
		version: decode.V10, next: 12,
	},
	{
		name: "1.0, empty stack and empty bitmap", opts: all, in: "01 00 03 00 12 00 00 00 00 00 00 00",
		want:    decode.Report{Has: decode.HasInstructions | decode.HasRemainingHops, Flags: decode.Copy},
		version: decode.V10, next: 12,
	},
	{
		name: "1.0, reserved bits of header and bitmap", opts: all,
		in:      "01 ff 07 ff 1c 7f e4 ff 80 7f ff ff 00000005 ffffffff 00000001 00000002",
		changes: []string{"6:04", "8:80", "9:31"}, // reserved bits around Hop ML, instructions 0, 10, 11, 15
		want: decode.Report{
			Has: decode.HasInstructions | decode.HasRemainingHops, Instructions: 0x8031, RemainingHops: 255,
			Hops: []decode.Hop{node(5)},
		},
		version: decode.V10, next: 28,
	},
	{
		name: "1.0, destination header is skipped", opts: all, in: "02 00 03 00 0102030405060708",
		want: decode.Report{Unknown: []byte{1, 2, 3, 4, 5, 6, 7, 8}, Remarks: decode.RemarkMoreData}, version: decode.V10, next: 12,
	},
	{
		name: "0.5 with tail", opts: all, in: "int05-udp",
		want: decode.Report{
			Has: decode.HasInstructions, Instructions: 0xc000,
			Hops: []decode.Hop{
				{Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf, NodeID: 0x11, IngressIf: 1, EgressIf: 2},
				{Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf, NodeID: 0x22, IngressIf: 4, EgressIf: 1},
			},
		},
		version: decode.V05, next: 32,
	},
	{
		name: "0.5, stale UDP length", opts: all, in: "int05-udp", place: Place{IPEnd: 32, End: 1},
		want: decode.Report{
			Has: decode.HasInstructions, Instructions: 0xc000,
			Hops: []decode.Hop{
				{Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf, NodeID: 0x11, IngressIf: 1, EgressIf: 2},
				{Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf, NodeID: 0x22, IngressIf: 4, EgressIf: 1},
			},
		},
		version: decode.V05, next: 32,
	},
	{
		name: "0.5, congestion status beside queue occupancy", opts: all,
		in: "01 00 06 00 03 02 10 01 12 00 00 00 05000007 06000008 00000000",
		want: decode.Report{
			Has: decode.HasInstructions, Flags: decode.Copy | decode.HopLimit, Instructions: 0x1200,
			Hops: []decode.Hop{{
				Has:     decode.HopQueueID | decode.HopQueueOccupancy | decode.HopQueueCongestion,
				QueueID: 5, QueueOccupancy: 7, QueueCongestion: 8,
			}},
		},
		version: decode.V05, next: 24,
	},
	{
		name: "0.5, no hops", opts: all, in: "01 00 04 00 00 01 10 00 80 00 00 00 11 13 89 00",
		want: decode.Report{Has: decode.HasInstructions, Instructions: 0x8000}, version: decode.V05, next: 16,
	},
	{
		name: "host INT in the network", opts: Options{Versions: V05, HostINT: true},
		in: "03 00 07 00 00 01 02 02 80 00 00 00 00000016 0000000b 00000011 06000000",
		want: decode.Report{
			Has: decode.HasInstructions | decode.HasSourceSeq, Instructions: 0x8000, SourceSeq: 17, Hops: []decode.Hop{node(11), node(22)},
		},
		version: decode.V05, next: 28,
	},
	{
		name: "host INT in a report, nothing bounds it but the data", opts: Options{Versions: V05, HostINT: true},
		in: "03 00 06 00 00 01 02 02 80 00 00 00 00000016 0000000b 00000011", place: Place{SinkReport: true, End: 1, IPEnd: 24},
		want: decode.Report{
			Has: decode.HasInstructions | decode.HasSourceSeq, Instructions: 0x8000, SourceSeq: 17, Hops: []decode.Hop{node(11), node(22)},
		},
		version: decode.V05, next: 24,
	},
	{
		name: "the 1.0 layout under version 0", opts: Options{Versions: V10, Version0: true}, in: "int10-tcp@54", changes: []string{"58:00"},
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops,
			Instructions: 0x9000, RemainingHops: 6,
			Hops: []decode.Hop{
				{Has: decode.HopNodeID | decode.HopQueueID | decode.HopQueueOccupancy, NodeID: 1, QueueOccupancy: 42},
				{Has: decode.HopNodeID | decode.HopQueueID | decode.HopQueueOccupancy, NodeID: 2, QueueID: 3, QueueOccupancy: 336},
			},
		},
		version: decode.V10, next: 28,
	},
	{
		name: "1.0 with wide times", opts: Options{Versions: V10, WideTimes: true},
		in: "01 00 06 00 10 00 03 01 0a 00 01 02 0000000000000007 0003 ffff",
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops | decode.HasSourceSeq,
			Instructions: 0x0a00, RemainingHops: 1, SourceSeq: 0x0102,
			Hops: []decode.Hop{{Has: decode.HopIngressTime | decode.HopL2IngressIf, IngressTime: 7, TimeBits: 64, L2IngressIf: 3}},
		},
		version: decode.V10, next: 24,
	},
	{
		name: "2.1 over UDP, NPT 1", opts: all, in: "int21-udp@42", place: Place{ByPort: true},
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops,
			Instructions: 0xdc00, RemainingHops: 6,
			Hops: []decode.Hop{
				{
					Has:    has21,
					NodeID: 1, IngressIf: 3, EgressIf: 4, QueueOccupancy: 5,
					IngressTime: 1699999999999990000, EgressTime: 1699999999999991250, TimeBits: 64,
				},
				{
					Has:    has21,
					NodeID: 2, IngressIf: 11, EgressIf: 12, QueueID: 1, QueueOccupancy: 96,
					IngressTime: 1700000000000001000, EgressTime: 1700000000000003500, TimeBits: 64,
				},
			},
		},
		version: decode.V21, next: 72, npt: 1, orig: 4789,
	},
	{
		name: "2.1, domain with words of the source alone", in: "int21-srconly", place: Place{ByPort: true},
		opts: Options{Versions: V21, Domains: []Domain{{ID: 7}, {ID: 0x4142, SourceWords: [16]uint8{0: 2, 3: 9}}}},
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops | decode.HasDomainID,
			Instructions: 0x8000, RemainingHops: 5, DomainID: 0x4142,
			Hops:    []decode.Hop{node(10), node(20), node(30)},
			Unknown: []byte{0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0, 0},
		},
		version: decode.V21, next: 36, npt: 2, orig: 6,
	},
	{
		name: "2.1, NPT 2 with its bytes swapped", in: "int21-srconly", changes: []string{"2:06", "3:00"}, place: Place{ByPort: true},
		opts: Options{Versions: V21, SwapNPT2: true, Domains: []Domain{{ID: 0x4142, SourceWords: [16]uint8{2}}}},
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops | decode.HasDomainID,
			Instructions: 0x8000, RemainingHops: 5, DomainID: 0x4142,
			Hops:    []decode.Hop{node(10), node(20), node(30)},
			Unknown: []byte{0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0, 0},
		},
		version: decode.V21, next: 36, npt: 2, orig: 6,
	},
	{
		name: "2.1, domain words in every block", in: "10 07 00 00 2e 00 02 05 80 00 00 09 00 40 00 00 00000002 aaaaaaaa 00000001 bbbbbbbb",
		opts: Options{Versions: V21, Domains: []Domain{{ID: 9}}},
		want: decode.Report{
			Has: decode.HasInstructions | decode.HasRemainingHops | decode.HasDomainID, Flags: decode.Discard | decode.HopLimit | decode.MTU,
			Instructions: 0x8000, RemainingHops: 5, DomainID: 9,
			Hops: []decode.Hop{node(1), node(2)},
		},
		version: decode.V21, next: 32,
	},
	{
		name: "2.1, domain without domain words needs no description", opts: all,
		in: "10 04 00 00 20 00 01 05 80 00 00 09 00 00 00 00 00000002",
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops | decode.HasDomainID,
			Instructions: 0x8000, RemainingHops: 5, DomainID: 9, Hops: []decode.Hop{node(2)},
		},
		version: decode.V21, next: 20,
	},
	{
		name: "2.1, domain words without a domain are reserved", opts: all,
		in: "10 04 00 00 20 00 01 05 80 00 00 00 ff ff 00 00 00000002",
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops,
			Instructions: 0x8000, RemainingHops: 5, Hops: []decode.Hop{node(2)},
		},
		version: decode.V21, next: 20,
	},
	{
		name: "2.1, empty stack, no hops left", opts: all, in: "10 03 00 00 20 00 01 00 80 00 00 00 00 00 00 00",
		want:    decode.Report{Has: decode.HasInstructions | decode.HasRemainingHops, Instructions: 0x8000},
		version: decode.V21, next: 16,
	},
	{
		name: "2.1, checksum complement", opts: all, in: "int21-cc-2@8",
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops,
			Instructions: 0x8001, RemainingHops: 6, Hops: []decode.Hop{node(1), node(2)},
		},
		version: decode.V21, next: 32,
	},
	{
		name: "2.1, checksum complement at the source", opts: all, in: "int21-cc-1@8",
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops,
			Instructions: 0x8001, RemainingHops: 7, Hops: []decode.Hop{node(1)},
		},
		version: decode.V21, next: 24,
	},
	{
		name: "2.1, bitmap from the least significant bit, flow number", opts: Options{Versions: V21, LeastFirst: true},
		in: "10 06 00 00 20 00 03 08 00 0d 00 05 00 00 01 02 00000007 00000063 02000009",
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops | decode.HasFlowID,
			Instructions: 0x000d, RemainingHops: 8, FlowID: 0x0102,
			Hops: []decode.Hop{{
				Has:    decode.HopNodeID | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy,
				NodeID: 7, Latency: 99, QueueID: 2, QueueOccupancy: 9,
			}},
		},
		version: decode.V21, next: 28,
	},
	{
		name: "FANT, basic", opts: fantOptions, in: "fant-basic",
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops | decode.HasDomainID,
			Instructions: 0xf161, RemainingHops: 6, DomainID: FANTDomain,
			Hops: fantHops(decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID |
				decode.HopQueueOccupancy | decode.HopTxUtilization),
			Rare: &decode.Rare{Counts: fantCounts(decode.HopTxPackets | decode.HopDroppedPackets)},
		},
		version: decode.V21, next: 4 + 12 + 2*32,
	},
	{
		name: "FANT, detailed", opts: fantOptions, in: "fant-detailed",
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops | decode.HasDomainID,
			Instructions: 0xffff, RemainingHops: 6, DomainID: FANTDomain, Hops: fantHops(allFields), Rare: &decode.Rare{Counts: fantCounts(^decode.HopCount(0))},
		},
		version: decode.V21, next: 4 + 12 + 2*88,
	},
	{
		name: "another domain has the widths of 2.1 beside FANT", opts: fantOptions, in: "10 05 00 00 20 00 02 05 80 02 00 09 00 00 00 00 00000002 ffffffff",
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops | decode.HasDomainID,
			Instructions: 0x8002, RemainingHops: 5, DomainID: 9, Hops: []decode.Hop{node(2)},
		},
		version: decode.V21, next: 24,
	},
	{
		name: "2.1, destination header is skipped", opts: all, in: "20 02 00 00 0102030405060708",
		want: decode.Report{Unknown: []byte{1, 2, 3, 4, 5, 6, 7, 8}, Remarks: decode.RemarkMoreData}, version: decode.V21, next: 12,
	},
	{
		name: "INT-MX", opts: all, in: "int21-mx", place: Place{ByPort: true},
		want: decode.Report{
			Has: decode.HasInstructions | decode.HasDomainID | decode.HasSourceMetadata, Flags: decode.Discard,
			Instructions: 0x9000, DomainID: 0xabcd, SourceMetadata: []byte{0, 0, 0, 15, 0x12, 0x34, 0x56, 0x78},
		},
		version: decode.V21, next: 24, npt: 1, orig: 53,
	},
	{
		name: "INT-MX, instructions alone", opts: all, in: "30 03 00 00 20 00 00 00 90 00 00 00 00 00 00 00",
		want: decode.Report{Has: decode.HasInstructions, Instructions: 0x9000}, version: decode.V21, next: 16,
	},
	{
		name: "GRE", opts: all, in: "int21-gre@4", place: Place{Carrier: GRE},
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops,
			Instructions: 0x8000, RemainingHops: 3, Hops: []decode.Hop{node(0x11), node(0x21)},
		},
		version: decode.V21, next: 24,
	},
	{
		name: "VXLAN-GPE", opts: all, in: "int21-gpe@8", place: Place{Carrier: VXLANGPE},
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops,
			Instructions: 0x8000, RemainingHops: 3, Hops: []decode.Hop{node(0x11), node(0x21)},
		},
		version: decode.V21, next: 24,
	},
	{
		name: "Geneve", opts: all, in: "int21-geneve@8", place: Place{Carrier: Geneve},
		want: decode.Report{
			Has:          decode.HasInstructions | decode.HasRemainingHops,
			Instructions: 0x8000, RemainingHops: 3, Hops: []decode.Hop{node(0x11), node(0x21)},
		},
		version: decode.V21, next: 24,
	},
}

const has21 = decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopQueueID | decode.HopQueueOccupancy |
	decode.HopIngressTime | decode.HopEgressTime

const allFields = has21 | decode.HopLatency | decode.HopL2IngressIf | decode.HopL2EgressIf | decode.HopTxUtilization | decode.HopBufferID |
	decode.HopBufferOccupancy

// fantHops are the hops of the vectors of FANT with the given values.
func fantHops(has decode.HopField) []decode.Hop {
	hops := []decode.Hop{
		{
			Has: allFields, NodeID: 1, IngressIf: 3, EgressIf: 4, Latency: 1250, QueueOccupancy: 5, IngressTime: 1699999999999990000,
			EgressTime: 1699999999999991250, TimeBits: 64, L2IngressIf: 0x10003, L2EgressIf: 0x10004, TxUtilization: 2500, BufferID: 1, BufferOccupancy: 64,
		},
		{
			Has: allFields, NodeID: 2, IngressIf: 11, EgressIf: 12, Latency: 2500, QueueID: 1, QueueOccupancy: 96, IngressTime: 1700000000000001000,
			EgressTime: 1700000000000003500, TimeBits: 64, L2IngressIf: 0x2000b, L2EgressIf: 0x2000c, TxUtilization: 7500, BufferID: 1, BufferOccupancy: 640,
		},
	}
	for i := range hops {
		hops[i].Drop(^has)
	}
	return hops
}

// fantCounts are the counts of the vectors of FANT with the given ones.
func fantCounts(has decode.HopCount) (list []decode.HopCounts) {
	for range fantHops(allFields) {
		var c decode.HopCounts
		for i, v := range [...]uint32{9, 10, 11, 12, 1200, 13, 1300, 14, 1400} {
			if has>>i&1 != 0 {
				*c.All()[i] = v
				c.Has |= 1 << i
			}
		}
		list = append(list, c)
	}
	return list
}

// run decodes data at offset 3, so that nothing works by starting at 0.
func run(d *Decoder, r *decode.Report, data []byte, p Place) (decode.Version, Place) {
	const at = 3
	buf := append(make([]byte, at, at+len(data)), data...)
	p.At += at
	for _, end := range []*int{&p.End, &p.IPEnd} {
		if *end == 0 {
			*end = len(data)
		}
		*end += at
	}
	v := d.Decode(r, buf, &p)
	p.Next -= at
	r.Err.Offset -= at
	return v, p
}

// equal compares reports, and the empty list of hops equals nil. The announced number of hops must fit the hops of
// the report. It is their number, except for one of the reporting node, or more if the stack was cut.
func equal(a, b decode.Report) bool {
	if n := int(a.Announced); n > len(a.Hops) && a.Flags&decode.Truncated == 0 || n > 0 && n < len(a.Hops)-1 {
		return false
	}
	a.Announced = b.Announced
	if len(a.Hops) == 0 && len(b.Hops) == 0 {
		a.Hops, b.Hops = nil, nil
	}
	if a.Rare == nil {
		a.AddRare() // which takes the memory that a keeps
		a.Rare = nil
	}
	return reflect.DeepEqual(a, b)
}

func TestAccept(t *testing.T) {
	var r decode.Report // one for all cases, the longest before shorter ones
	for _, c := range good {
		t.Run(c.name, func(t *testing.T) {
			d := New(c.opts)
			data := bytesOf(t, c.in, c.changes...)
			r.Reset()
			v, p := run(d, &r, data, c.place)
			if r.Err.Reason == 0 {
				r.Err = decode.Error{}
			}
			if v != c.version || !equal(r, c.want) {
				t.Errorf("Decode(%x) = %v\n%+v, want\n%v\n%+v", data, v, r, c.version, c.want)
			}
			if p.Next != c.next || p.NPT != c.npt || p.Original != c.orig {
				t.Errorf("next %d, NPT %d, original %d, want %d, %d, %d", p.Next, p.NPT, p.Original, c.next, c.npt, c.orig)
			}
			place := c.place
			place.End, place.IPEnd = len(data), len(data)
			if n := testing.AllocsPerRun(100, func() { r.Reset(); d.Decode(&r, data, &place) }); n != 0 {
				t.Errorf("%v allocs per packet, want 0", n)
			}
		})
	}
}

package telemetry

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// sent are headers whose bytes are worked examples.
var sent = []struct {
	name   string
	append func(dst []byte) []byte
	want   string // vectors or hex, the changes cut what the encoder does not write
	length int
}{
	{"0.5, drop", func(dst []byte) []byte {
		return Append05(dst, &Header{
			HWID: 3, Seq: 41, NodeID: 0xa1, Time: 123456789, Flags: decode.Dropped | decode.Tracked, DropReason: 80,
			Hop: decode.Hop{Has: hasIfs | decode.HopQueueID, IngressIf: 7},
		})
	}, "tr05-drop", 24},
	{"0.5, local", func(dst []byte) []byte {
		return Append05(dst, &Header{
			HWID: 3, Seq: 42, NodeID: 0xa1, Time: 1000000000, Flags: decode.Congested | decode.Tracked,
			Hop: decode.Hop{Has: hasIfs | hasQueue | decode.HopEgressTime, IngressIf: 7, EgressIf: 9, QueueID: 5, QueueOccupancy: 1200, EgressTime: 1000002500},
		})
	}, "tr05-local", 28},
	{"1.0", func(dst []byte) []byte {
		return Append10(dst, &Header{
			HWID: 9, Seq: 100, NodeID: 0xb2, Time: 0xfffffff0, Flags: decode.Congested | decode.Tracked, Inner: InnerIPv4,
			Metadata: MDInterfaces | MDQueue | MDEgressTime,
			Hop:      decode.Hop{Has: hasIfs | hasQueue | decode.HopEgressTime, IngressIf: 3, EgressIf: 4, QueueID: 2, QueueOccupancy: 77, EgressTime: 0x200},
		})
	}, "tr10", 28},
	{"2.0, the first of a group", func(dst []byte) []byte {
		return Append20(AppendGroup(dst, 5, 300, 0xc3), &Header{
			Flags: decode.Tracked, Inner: InnerIPv4, Metadata: MDInterfaces | MDQueue | MDIngressTime,
			Hop: decode.Hop{
				Has: hasIfs | hasQueue | decode.HopIngressTime, IngressIf: 11, EgressIf: 12, QueueID: 1, QueueOccupancy: 96,
				IngressTime: 1700000000000001000,
			},
		}, 28)
	}, "tr20-group", 36},
	{"2.0, PINT digest", func(dst []byte) []byte {
		return Append20(AppendGroup(dst, 0, 300, 3), &Header{
			Flags: decode.Tracked, Inner: InnerIPv4, DigestBits: 40, Looped: 2,
			Digest: &decode.Digest{Epoch: 7, Hops: 5, ID: 0x01020304, Value: 0xaa_11223344},
		}, 40)
	}, "2000012c 00000003 14110520 0000 5049 f800 0000 07050000 01020304 11223344 000000aa 02000000", 40},
	{"2.0, counts of probes", func(dst []byte) []byte {
		return Append20(AppendGroup(dst, 0, 300, 3), &Header{Inner: InnerIPv4, Probes: &probesSent}, 28)
	}, "2000012c 00000003 14160d00 0000 5052 8000 0000 00000007 00000002 00000064 00000060 00000005 00000001 00000002 00000003 00000004 fffffffe 00000006 00100009 00550001", 72},
	{"2.0, way of probes", func(dst []byte) []byte {
		return Append20(AppendGroup(dst, 0, 300, 3), &Header{Inner: InnerIPv4, Probes: &waySent}, 28)
	}, "2000012c 00000003 14170e00 0000 5052 4000 0000 00000007 00000002 00000000000000000000ffff0a000001 00000000000000000000000000000000 00000000000000000000ffff0a000002", 76},
	{"2.0, rounds of probes", func(dst []byte) []byte {
		return Append20(AppendGroup(dst, 0, 300, 3), &Header{Inner: InnerIPv4, Probes: &roundsSent}, 28)
	}, "2000012c 00000003 14110800 0000 5052 2000 0000 00000007 00000002 00000002 9e3779b9 00000009 00000003 00000067 00000060", 52},
}

var roundsSent = decode.ProbeCounts{Path: 7, Epoch: 2, Rounds: decode.ProbeRounds{End: decode.Receiver, Count: 0x9e3779b9, Turn: 9, First: 3, Next: 103, Received: 96}}

var waySent = decode.ProbeCounts{Path: 7, Epoch: 2, Way: []decode.Addr{decode.AddrFrom4([]byte{10, 0, 0, 1}), {}, decode.AddrFrom4([]byte{10, 0, 0, 2})}}

var probesSent = decode.ProbeCounts{
	Path: 7, Epoch: 2, Sent: 100, Received: 96, Missed: 5, Late: 1, Twice: 2, Corrupt: 3, Reordered: 4, Forward: -2, Back: 6,
	Delays: []decode.DelayCount{{Code: 16, Count: 9}, {Code: 85, Count: 1}},
}

func TestAppend(t *testing.T) {
	for _, tt := range sent {
		if got, want := tt.append(nil), bytesOf(t, tt.want)[:tt.length]; !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", tt.name, got, want)
		}
	}
	buf := make([]byte, 0, 256)
	for _, tt := range sent {
		if n := testing.AllocsPerRun(100, func() { buf = tt.append(buf[:0]) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", tt.name, n)
		}
	}
}

// FuzzRoundTrip holds that the decoder returns what the encoder was given, in all versions.
func FuzzRoundTrip(f *testing.F) {
	f.Add(uint8(0), uint8(3), uint32(41), uint32(7), uint32(9), uint16(MDInterfaces|MDQueue), uint8(5), uint8(80), false, uint64(1), []byte("values"))
	f.Add(uint8(1), uint8(63), uint32(1<<31), uint32(7), uint32(9), uint16(0xffff), uint8(5), uint8(80), false, uint64(1), []byte{})
	f.Add(uint8(2), uint8(3), uint32(1<<22), uint32(7), uint32(9), uint16(MDDrop|MDBuffer), uint8(13), uint8(80), true, uint64(1<<40), []byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, version, hw uint8, seq, node, time uint32, md uint16, flags, reason uint8, digest bool, value uint64, data []byte) {
		// A hop that holds what a switch might report, values that it could not report included.
		plan, block := packet.Compile(packet.INT2, 0x7f80), make([]byte, 4*packet.MaxWords)
		copy(block, data)
		var hops [1]decode.Hop
		plan.Stack(hops[:], block[:4*plan.Words], 4*plan.Words)
		h := Header{
			HWID: hw & 0x3f, Seq: seq, NodeID: node, Time: time, Flags: decode.Flags(flags & 7), Inner: InnerEthernet,
			Hop: hops[0], DropReason: reason,
			Metadata: md & (MDInterfaces | MDLatency | MDQueue | MDIngressTime | MDEgressTime | MDL2Interfaces | MDTxUtilization | MDBuffer | MDDrop),
		}
		want := decode.Report{
			Format: format, Flags: h.Flags, Kind: KindOf(h.Flags), Has: decode.HasHWID | decode.HasNodeID | decode.HasSeq,
			HWID: h.HWID, Seq: seq, NodeID: node, SeqBits: 32, FirstOfGroup: true,
		}
		var b []byte
		switch version % 3 {
		case 0:
			b = Append05(nil, &h)
			want.Version, want.HeaderTime = decode.V05, time
			want.Has |= decode.HasHeaderTime
			want.Hops = append(want.Hops, reported(&h, MDInterfaces|MDQueue|MDEgressTime, 32))
			if h.Flags&decode.Dropped != 0 {
				want.Hops[0] = reported(&h, MDInterfaces|MDDrop, 32)
				want.DropReason = reason
				want.Has |= decode.HasDropReason
			}
		case 1:
			h.Metadata &= MDInterfaces | MDLatency | MDQueue | MDEgressTime | MDDrop | MDTxUtilization
			b = Append10(nil, &h)
			want.Version, want.HeaderTime = decode.V10, time
			want.Has |= decode.HasHeaderTime
			if h.Metadata != 0 {
				want.Hops = append(want.Hops, reported(&h, h.Metadata, 32))
			}
		case 2:
			h.Flags = decode.Flags(flags & 15)
			if digest {
				h.Digest = &decode.Digest{Value: value, ID: time, Hops: hw, Epoch: reason}
				h.DigestBits, h.Looped = 64, flags>>4
				want.Digest = *h.Digest
				want.DomainID = PINTDomain
				want.Has |= decode.HasDigest | decode.HasDomainID
			}
			b = Append20(AppendGroup(nil, hw&0x3f, seq, node), &h, 0)
			if got := int(b[9]); got != h.Words(0) || len(b) != GroupLen+4+4*got {
				t.Fatalf("%d bytes of length %d, Words says %d", len(b), got, h.Words(0))
			}
			want.Version, want.Seq, want.SeqBits, want.Flags, want.Kind = decode.V20, seq&(1<<22-1), 22, h.Flags, KindOf(h.Flags)
			if digest && want.Kind == decode.KindPostcard {
				want.Kind = decode.KindDigest
			}
			if digest && h.Looped > 0 {
				want.Flags |= decode.Loop
			}
			if h.Metadata != 0 {
				want.Hops = append(want.Hops, reported(&h, h.Metadata, 64))
			}
		}
		if version%3 != 0 && h.Metadata&MDDrop != 0 {
			want.DropReason = reason
			want.Has |= decode.HasDropReason
		}
		var got decode.Report
		var in Inner
		var rd Reader
		rd.Start(&Options{Versions: AllVersions, PINTDomain: PINTDomain}, b, 0, len(b))
		if more := rd.Next(&got, &in); more || !reflect.DeepEqual(got, want) {
			t.Fatalf("%x:\n got %+v\nwant %+v", b, got, want)
		}
		if in != (Inner{Type: InnerEthernet, At: len(b), End: len(b)}) {
			t.Fatalf("%x: inside %+v", b, in)
		}
	})
}

// reported is the hop that a report with the given metadata says, with times of so many bits.
func reported(h *Header, md uint16, bits uint8) (hop decode.Hop) {
	layout := packet.INT2
	if bits == 32 {
		layout = packet.INT10
	}
	plan := packet.Compile(layout, md&^MDDrop)
	var hops [1]decode.Hop
	plan.Stack(hops[:], packet.AppendBlock(nil, layout, md&^MDDrop, &h.Hop), 0)
	hop = hops[0]
	hop.TimeBits = 0
	hop.NodeID = h.NodeID
	hop.Has |= decode.HopNodeID
	if bits == 32 && h.Time != 1<<32-1 {
		hop.IngressTime = uint64(h.Time)
		hop.Has |= decode.HopIngressTime
	}
	if hop.Has&(decode.HopIngressTime|decode.HopEgressTime) != 0 {
		hop.TimeBits = bits
	}
	if md&MDDrop != 0 && md&MDQueue == 0 && h.Hop.Has&decode.HopQueueID != 0 {
		hop.QueueID = h.Hop.QueueID
		hop.Has |= decode.HopQueueID
	}
	return hop
}

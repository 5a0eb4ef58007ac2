package world

import (
	"net/netip"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
)

// What the encoder writes is what the decoders read: two programs of one set of pages, which share nothing else.
func TestReportsAreReadAsTheyWereMeant(t *testing.T) {
	const at = 1_790_000_000_123_456_789
	path := []record{
		{node: 7, in: 49, out: 1, latency: 1500, queue: 3000, ingress: at, egress: at + 1500, load: 4321},
		{node: 101, in: 1, out: 3, latency: 900, queue: 0, class: 1, ingress: at + 4000, egress: at + 4900, load: 100},
		{node: 9, in: 2, out: 50, latency: 123456, queue: 65000, ingress: at + 9000, egress: at + 132456, load: 10000},
	}
	for _, proto := range []uint8{6, 17} {
		h := header{netip.MustParseAddr("10.7.0.1"), netip.MustParseAddr("10.9.0.2"), proto, 40000, 5001, 77, 61}
		for _, c := range []struct {
			name  string
			bytes []byte
			kind  decode.Kind
			hops  []record
			wide  bool // times of 64 bits
			said  bool // latency and utilisation stand on the wire
		}{
			{"int21", inner20(group20(nil, 1, 9, 5), tracked20, h.stack21(nil, path, false)), decode.KindStack, path, true, true},
			{"int10", report10(nil, &path[2], 5, h.stack10(nil, path[:2], false)), decode.KindStack, path, false, true},
			{"xd20", report20(group20(nil, 1, 9, 5), tracked20, &path[2], -1, h.bare(nil)), decode.KindPostcard, path[2:], true, true},
			{"local05", local05(nil, &path[2], 5, h.bare(nil)), decode.KindPostcard, path[2:], false, false},
			{"entry", inner20(group20(nil, 2, 9, 5), tracked20|transit20, h.bare(nil)), decode.KindPostcard, nil, false, false},
			{"drop20", report20(group20(nil, 1, 9, 5), dropped20, &path[2], denied, h.bare(nil)), decode.KindDrop, path[2:], false, false},
			{"drop10", drop10(nil, &path[2], 5, denied, h.bare(nil)), decode.KindDrop, path[2:], false, false},
			{"drop05", drop05(nil, &path[2], 5, denied, h.bare(nil)), decode.KindDrop, path[2:], false, false},
		} {
			profile, _ := demux.Lookup("auto")
			var b decode.Batch
			if demux.New(profile).Datagram(&b, decode.AddrFrom(netip.MustParseAddr("10.255.0.9")), c.bytes, at) != 1 {
				t.Errorf("%s: %d reports", c.name, len(b.Reports))
				continue
			}
			r := b.Reports[0]
			key := decode.FlowKey{Src: decode.AddrFrom(h.src), Dst: decode.AddrFrom(h.dst), SrcPort: 40000, DstPort: 5001, Proto: proto, IPVersion: 4}
			if r.Err.Reason != 0 || r.Kind != c.kind || r.Flow != key || r.PacketID != 77 || r.Seq != 5 || len(r.Hops) != len(c.hops) && c.name != "entry" {
				t.Errorf("%s: error %+v, kind %v, flow %v, id %d, number %d, %d hops", c.name, r.Err, r.Kind, r.Flow, r.PacketID, r.Seq, len(r.Hops))
				continue
			}
			if c.kind == decode.KindDrop && r.DropReason != denied {
				t.Errorf("%s: reason %d", c.name, r.DropReason)
			}
			for i, want := range c.hops {
				got := r.Hops[i]
				if got.NodeID != want.node || uint32(got.IngressIf) != want.in || uint32(got.EgressIf) != want.out {
					t.Errorf("%s: hop %d is %d %d > %d, want %+v", c.name, i, got.NodeID, got.IngressIf, got.EgressIf, want)
				}
				if c.kind == decode.KindDrop {
					continue
				}
				if got.QueueOccupancy != want.queue || c.said && (got.Latency != want.latency || got.TxUtilization != want.load) {
					t.Errorf("%s: hop %d says %d ns, %d B, load %d, want %+v", c.name, i, got.Latency, got.QueueOccupancy, got.TxUtilization, want)
				}
				if c.wide && (got.IngressTime != want.ingress || got.EgressTime != want.egress) || !c.wide && uint32(got.EgressTime) != uint32(want.egress) {
					t.Errorf("%s: hop %d was there from %d to %d, want %+v", c.name, i, got.IngressTime, got.EgressTime, want)
				}
			}
		}
	}
}

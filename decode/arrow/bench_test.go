package arrow_test

import (
	"testing"

	"github.com/hopscope/hopscope/decode"
	rows "github.com/hopscope/hopscope/decode/arrow"
)

// benchKinds are the reports that collectors publish most, as demux makes them.
func benchKinds() map[string]decode.Report {
	const has = decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq | decode.HasFlow | decode.HasPorts | decode.HasPacketID | decode.HasTTL
	flow := decode.FlowKey{Src: decode.AddrFrom4([]byte{10, 0, 0, 1}), Dst: decode.AddrFrom4([]byte{10, 0, 0, 2}), SrcPort: 4607, DstPort: 5001, Proto: 17, IPVersion: 4}
	report := decode.Report{
		Time: 1795172393690447000, Format: decode.TelemetryReport, Kind: decode.KindStack, Version: decode.V20, INT: decode.V21, Flags: decode.Tracked,
		Has: has | decode.HasInstructions | decode.HasRemainingHops, Exporter: flow.Src, To: 7, NodeID: 5, HWID: 1, Seq: 77, SeqBits: 22, FirstOfGroup: true,
		Flow: flow, PacketID: 9, TTL: 60, Instructions: 0xf000, RemainingHops: 3, Units: &decode.DefaultUnits,
	}
	hop := func(i int, has decode.HopField) decode.Hop {
		all := decode.Hop{
			Has: 1<<17 - 1, NodeID: uint32(i), IngressIf: 1, EgressIf: 2, Latency: 8006, QueueOccupancy: 2, BufferOccupancy: 3, TxUtilization: 4, QueueCongestion: 5,
			L2IngressIf: 6, L2EgressIf: 7, IngressTime: 3500709, EgressTime: 3508715, EnqTime: 8, QueueDelay: 9, DeqOccupancy: 10, QueueID: 11, BufferID: 12, TimeBits: 64,
		}
		all.Drop(^has)
		if has&(decode.HopIngressTime|decode.HopEgressTime) == 0 {
			all.TimeBits = 0
		}
		return all
	}
	const f000 = decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy
	five, full, mixed, postcard, digest := report, report, report, report, report
	for i := range 5 {
		five.Hops = append(five.Hops, hop(i, f000))
		full.Hops = append(full.Hops, hop(i, 1<<17-1))
		if i%2 == 0 {
			mixed.Hops = append(mixed.Hops, hop(i, f000|decode.HopTxUtilization))
		} else {
			mixed.Hops = append(mixed.Hops, hop(i, f000&^decode.HopLatency))
		}
	}
	postcard.Kind, postcard.Has, postcard.Hops = decode.KindPostcard, has, []decode.Hop{hop(1, f000)}
	digest.Format, digest.Kind, digest.Has = decode.PINT, decode.KindDigest, decode.HasExporter|decode.HasFlow|decode.HasPorts|decode.HasPacketID|decode.HasTTL|decode.HasDigest
	digest.Digest = decode.Digest{Value: 0xabcd, ID: 99, Hops: 5, Epoch: 1}
	return map[string]decode.Report{"5hops": five, "5hops-all": full, "5hops-mixed": mixed, "postcard": postcard, "digest": digest}
}

const benchRows = 1024

// BenchmarkAppend is reports to the columns of an encoder.
func BenchmarkAppend(b *testing.B) {
	for name, r := range benchKinds() {
		b.Run(name, func(b *testing.B) {
			var e rows.Encoder
			b.ReportAllocs()
			for b.Loop() {
				e.Reset()
				for range benchRows {
					e.Append(&r)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchRows), "ns/report")
		})
	}
}

// BenchmarkDecode is a stream to reports.
func BenchmarkDecode(b *testing.B) {
	for name, r := range benchKinds() {
		b.Run(name, func(b *testing.B) {
			var e rows.Encoder
			for range benchRows {
				e.Append(&r)
			}
			stream := e.AppendStream(nil)
			var d rows.Decoder
			var batch decode.Batch
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				if _, err := d.Decode(stream, &batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchRows), "ns/report")
		})
	}
}

package demux

import (
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// datagrams are the most frequent ones at collectors.
func datagrams() []struct {
	name    string
	payload []byte
} {
	md := []byte{0, 3, 0, 4, 0, 0, 0, 99, 1, 0, 0, 7}
	own := telemetry.Header{
		NodeID: 7, Time: 9, Flags: decode.Tracked, Inner: telemetry.InnerIPv4, Metadata: telemetry.MDInterfaces | telemetry.MDLatency | telemetry.MDQueue | telemetry.MDDrop,
		Hop: decode.Hop{Has: decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueOccupancy, IngressIf: 3, EgressIf: 4, Latency: 99, QueueOccupancy: 7},
	}
	digest := telemetry.Header{Flags: decode.Tracked, Inner: telemetry.InnerIPv4, Digest: &decode.Digest{Value: 1 << 39, ID: 77, Hops: 4, Epoch: 2}, DigestBits: 40, Looped: 1}
	about := ipv4(0, 17, udp(5000, nil))
	return []struct {
		name    string
		payload []byte
	}{
		{"report20-int21-5hops", report20(flagF, 0, nil, ipv4(0, 17, udp(17768, int21(0xdc00, 5))))},
		{"report20-int21-5hops-f000", report20(flagF, 0, nil, ipv4(0, 17, udp(17768, int21(0xf000, 5))))},
		{"report20-int21-5hops-all", report20(flagF, 0, nil, ipv4(0, 17, udp(17768, int21(0xff80, 5))))},
		{"report20-int21-4hops+sink", report20(flagF, 0x7000, md, ipv4(0, 17, udp(17768, int21(0xdc00, 4))))},
		{"postcard20", report20(flagF, 0x7000, md, ipv4(0, 17, udp(5000, nil)))},
		{"postcard20-no-packet", report20(0, 0x7000, md, nil)},
		{"report10-int10-4hops+sink", append(telemetry.Append10(nil, &own), ipv4(0x17, 17, udp(5000, int10(0xfc00, 4)))...)},
		{"postcard10", append(telemetry.Append10(nil, &own), ipv4(0, 17, udp(5000, nil))...)},
		{"digest20", append(telemetry.Append20(telemetry.AppendGroup(nil, 0, 7, 5), &digest, len(about)), about...)},
		{"report10-int10-5hops", headed10(1, 0x41, ipv4(0x17, 17, udp(5000, int10(0xfc00, 5))))},
	}
}

func BenchmarkDatagram(b *testing.B) {
	for _, bm := range datagrams() {
		b.Run(bm.name, func(b *testing.B) {
			d := New(profile(b, "auto"))
			var batch decode.Batch
			src := decode.Addr{15: 1}
			b.SetBytes(int64(len(bm.payload)))
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				d.Datagram(&batch, src, bm.payload, 1)
			}
			if r := batch.Reports[0]; r.Error() != nil {
				b.Fatal(r.Error())
			}
		})
	}
}

func BenchmarkFrame(b *testing.B) {
	for _, bm := range datagrams() {
		b.Run(bm.name, func(b *testing.B) {
			d := New(profile(b, "auto"))
			var batch decode.Batch
			data := ether(b, ipv4(0, 17, udp(32766, bm.payload)))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				d.Frame(&batch, 1, data, len(data), 1)
			}
			if r := batch.Reports[0]; r.Error() != nil {
				b.Fatal(r.Error())
			}
		})
	}
}

// BenchmarkLazy reads datagrams that agree with a shape.
func BenchmarkLazy(b *testing.B) {
	p := profile(b, "auto")
	rt := NewRouter(p, nil)
	data := report20(flagF, 0, nil, ipv4(0, 17, udp(17768, int21(0xf000, 5))))
	var records decode.LazyBatch
	b.ReportAllocs()
	for b.Loop() {
		if len(records.List) == 128 {
			records.Reset()
		}
		rt.Lazy(&records, exporter, data, len(data), 7)
	}
}

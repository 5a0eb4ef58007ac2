package traffic_test

import (
	"net/netip"
	"testing"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference/sequence"
)

// The collector's own decoder reads everything that the generator says, and its exporter tracking misses nothing.
func TestDecode(t *testing.T) {
	profile, ok := demux.Lookup("auto")
	if !ok {
		t.Fatal("no profile auto")
	}
	for _, cfg := range []traffic.Config{
		traffic.DefaultConfig(),
		{Seed: 2, Flows: 300, Hops: 0, Exporters: 3, Bytes: 60},
		{Seed: 3, Flows: 300, Hops: 1, Exporters: 1, Bytes: 1472},
		{Seed: 4, Flows: 300, Hops: 12, Exporters: 7, Bytes: 400},
	} {
		g, err := traffic.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		d := demux.New(profile)
		tracker := sequence.New(sequence.DefaultConfig(), 1)
		src := decode.AddrFrom(netip.MustParseAddr("127.0.0.1"))
		var batch decode.Batch
		var buf []byte
		const n = 3000
		for i := range n {
			buf = g.Next(buf)
			batch.Reset()
			d.Datagram(&batch, src, buf, int64(i))
			if len(batch.Reports) != 1 {
				t.Fatalf("seed %d: %d reports in %x", cfg.Seed, len(batch.Reports), buf)
			}
			r := batch.Reports[0]
			if err := r.Error(); err != nil {
				t.Fatalf("seed %d: %v in %x", cfg.Seed, err, buf)
			}
			tracker.Observe(r)

			a := r.Flow.Src.Netip().As4()
			want := g.Flow(int(a[1])<<16 | int(a[2])<<8 | int(a[3]))
			if got := netip.AddrPortFrom(r.Flow.Src.Netip(), r.Flow.SrcPort); got != want.Src {
				t.Fatalf("seed %d: source %v, want %v", cfg.Seed, got, want.Src)
			}
			if got := netip.AddrPortFrom(r.Flow.Dst.Netip(), r.Flow.DstPort); got != want.Dst || r.Flow.Proto != 17 {
				t.Fatalf("seed %d: destination %v, want %v", cfg.Seed, got, want.Dst)
			}
			if int(r.NodeID) != want.Exporter+1 {
				t.Fatalf("seed %d: node %d, want %d", cfg.Seed, r.NodeID, want.Exporter+1)
			}
			nodes := want.Nodes
			kind := decode.KindStack
			if cfg.Hops == 0 {
				kind, nodes = decode.KindPostcard, []uint32{r.NodeID}
			}
			if r.Kind != kind || len(r.Hops) != len(nodes) {
				t.Fatalf("seed %d: %v with %d hops, want %v with %d", cfg.Seed, r.Kind, len(r.Hops), kind, len(nodes))
			}
			const values = decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy
			for j := range r.Hops {
				h := &r.Hops[j]
				if h.NodeID != nodes[j] || h.Has != values || h.Latency < 500 || h.Latency > 20_000 || h.QueueOccupancy > 1000 {
					t.Fatalf("seed %d: hop %d is %+v, want node %d", cfg.Seed, j, h, nodes[j])
				}
			}
		}
		reports := uint64(0)
		for _, e := range tracker.Cut(nil, n) {
			reports += e.Reports
			if uint64(e.Lost)+e.Duplicated+e.Reordered+e.Malformed+e.Restarts != 0 || !e.Sequenced {
				t.Errorf("seed %d: exporter tracking found %+v", cfg.Seed, e)
			}
		}
		if reports != n {
			t.Errorf("seed %d: %d reports tracked, want %d", cfg.Seed, reports, n)
		}
	}
}

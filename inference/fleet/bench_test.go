package fleet

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// busy returns a collector's partial of a window: 640 hops, five a report, 100 candidates for the busiest of 10,000
// flows.
func busy(reports int, seed uint64) *window.Partial {
	rng := rand.New(rand.NewPCG(seed, 5))
	p := &window.Partial{}
	p.Span(1e18, 1e18+1e10)
	p.Reports, p.FlowCount = uint64(reports), 10_000
	value := func(mean float64) uint64 { return uint64(mean * rng.ExpFloat64()) }
	for n := range 640 {
		h := p.Hop(inference.HopKey{Node: uint32(n/8) + 1, EgressIf: uint32(n%8) + 1})
		for range reports * 5 / 640 {
			h.Latency.AddValue(500 + value(1000))
			h.Queue.AddValue(80 * value(20))
		}
	}
	for n := range uint32(100) {
		f := window.FlowPart{Key: flowKey(n + 100*uint32(seed)), Packets: 300, PathID: rng.Uint64(), Last: 1e18 + rng.Int64N(1e10)}
		for i := range 5 {
			k := inference.HopKey{Node: rng.Uint32N(80) + 1, EgressIf: uint32(i) + 1}
			f.Path = append(f.Path, k)
			h := f.Hop(k)
			for range 300 {
				h.Latency.AddValue(500 + value(1000))
				h.Queue.AddValue(80 * value(20))
			}
		}
		p.AddFlow(&f)
	}
	for n := range uint32(80) {
		p.AddExporters([]inference.ExporterStats{{ExporterKey: inference.ExporterKey{Addr: flowKey(n + 80*uint32(seed)).Src, Node: n}, Reports: 25_000, Last: 1e18 + rng.Int64N(1e10), Sequenced: true}})
	}
	return p
}

const benchSlices = 16

// BenchmarkWindow makes the records of a window of a collector: it is cut into slices, encoded and compressed.
func BenchmarkWindow(b *testing.B) {
	p := busy(2_000_000, 1)
	pub := NewPublisher(PublisherConfig{From: "c", Boot: 1, Slicer: window.NewSlicer(1, benchSlices), Window: 1e10})
	b.ReportAllocs()
	var out []Out
	for b.Loop() {
		var err error
		if out, err = pub.Window(out[:0], p, 1e18+1e10, nil, 0); err != nil {
			b.Fatal(err)
		}
	}
	size := 0
	for _, o := range out {
		size += len(o.Value) + len(o.Head.Append(nil))
	}
	b.ReportMetric(float64(size), "B/window")
	b.ReportMetric(float64(len(out)), "records/window")
}

// BenchmarkMerge16 merges the windows of 16 collectors, all slices: it decompresses, decodes and merges what they sent.
func BenchmarkMerge16(b *testing.B) {
	slicer := window.NewSlicer(1, benchSlices)
	logs := make([][]Record, benchSlices)
	for i := range 16 {
		pub := NewPublisher(PublisherConfig{From: string(rune('a' + i)), Boot: 1, Slicer: slicer, Window: 1e10})
		out, err := pub.Window(nil, busy(2_000_000, uint64(i)), 1e18+1e10, nil, 0)
		if err != nil {
			b.Fatal(err)
		}
		for _, o := range out {
			logs[o.Partition] = append(logs[o.Partition], Record{Offset: int64(len(logs[o.Partition])), Head: o.Head, Value: o.Value})
		}
	}
	var mergers []*Merger
	for i := range logs {
		m, err := NewMerger(Options{Slice: i, Window: 1e10, Limits: wide})
		if err != nil {
			b.Fatal(err)
		}
		mergers = append(mergers, m)
	}
	b.ReportAllocs()
	offset, end := int64(0), int64(1e18+1e10)
	for b.Loop() {
		for i, m := range mergers {
			for j := range logs[i] {
				r := logs[i][j]
				r.Offset, r.Head.End, r.Head.Seq = offset+int64(j), end, uint64(end)
				if _, err := m.Add(&r); err != nil {
					b.Fatal(err)
				}
			}
			e, err := m.Add(&Record{Offset: offset + 16, Head: Head{Kind: Close, Slice: uint32(i), End: end}, Value: nil})
			if err != nil || e.Closed == nil {
				b.Fatal(e, err)
			}
			m.Release(e.Closed)
		}
		offset += 17
		end += 1e10
	}
}

// BenchmarkAssemble puts the slices of a window of 16 collectors together.
func BenchmarkAssemble(b *testing.B) {
	var all window.Partial
	for i := range 16 {
		all.Merge(busy(2_000_000, uint64(i)))
	}
	slicer := window.NewSlicer(1, benchSlices)
	into := make([]*window.Partial, benchSlices)
	for i := range into {
		into[i] = &window.Partial{}
	}
	all.Split(&slicer, into)
	codec := NewCodec(0, wide)
	var records []Out
	for i := range into {
		var err error
		if records, err = EncodeSlice(records, codec, "o", i, &Merged{Start: 1e18, End: 1e18 + 1e10, Partial: into[i]}, 1<<20); err != nil {
			b.Fatal(err)
		}
	}
	a, err := NewAssembler(Options{Slices: benchSlices, Window: 1e10, Limits: wide})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	offset, end := int64(0), int64(1e18+1e10)
	var last *Assembled
	for b.Loop() {
		for i := range records {
			r := Record{Offset: offset, Head: records[i].Head, Value: records[i].Value}
			r.Head.End = end
			e, err := a.Add(&r)
			if err != nil {
				b.Fatal(err)
			}
			if len(e.Whole) > 0 {
				a.Release(last)
				last = e.Whole[0]
			}
			offset++
		}
		end += 1e10
	}
	want, _ := all.AppendBinary(nil)
	if got, _ := last.Partial.AppendBinary(nil); !bytes.Equal(got, want) {
		b.Fatal("the slices are not the window")
	}
}

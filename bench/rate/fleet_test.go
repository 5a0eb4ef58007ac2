package rate

import (
	"reflect"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/arrow"
)

const benchBatch = 3000

func benchReports(tb testing.TB) []*decode.Report {
	list, err := reports(30 * benchBatch)
	if err != nil {
		tb.Fatal(err)
	}
	return list
}

func newZstd(tb testing.TB) (*zstd.Encoder, *zstd.Decoder) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		tb.Fatal(err)
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		tb.Fatal(err)
	}
	return w, r
}

// TestWays holds that both ways give the reports back as they were.
func TestWays(t *testing.T) {
	list := benchReports(t)[:benchBatch]
	library, err := newLibraryWriter().encode(list)
	if err != nil {
		t.Fatal(err)
	}
	var theirs, ours decode.Batch
	if err := libraryRead(library, &theirs); err != nil {
		t.Fatal(err)
	}
	var e arrow.Encoder
	for _, r := range list {
		e.Append(r)
	}
	var d arrow.Decoder
	if _, err := d.Decode(e.AppendStream(nil), &ours); err != nil {
		t.Fatal(err)
	}
	for i, r := range list {
		// The bare loop carries what the statistics need.
		want := *ours.Reports[i]
		want.SeqBits, want.FirstOfGroup, want.Announced, want.To, want.RemainingHops = 0, false, 0, 0, 0
		want.Has &= theirs.Reports[i].Has
		want.Instructions, want.Flow = r.Instructions, r.Flow
		got := *theirs.Reports[i]
		got.Instructions = r.Instructions
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("report %d: the bare loop gives\n%+v, ours\n%+v", i, got, want)
		}
	}
}

// TestBytes holds the bytes of a report to the promise of at most 70. Its batches are as long as a collector's after
// the longest wait.
func TestBytes(t *testing.T) {
	z, _ := newZstd(t)
	demo, err := demoReports(20 * benchBatch)
	if err != nil || len(demo) < 20*benchBatch {
		t.Fatalf("%d reports, %v", len(demo), err)
	}
	for name, list := range map[string][]*decode.Report{"random": benchReports(t), "demo": demo} {
		var e arrow.Encoder
		bytes, plain, n := 0, 0, 0
		for part := range slices.Chunk(list, 2400) {
			e.Reset()
			for _, r := range part {
				e.Append(r)
			}
			stream := e.AppendStream(nil)
			bytes, plain, n = bytes+len(z.EncodeAll(stream, nil)), plain+len(stream), n+len(part)
		}
		each := float64(bytes) / float64(n)
		t.Logf("%s: %d reports, %.1f bytes each, %.1f before compression", name, n, each, float64(plain)/float64(n))
		if each > 70 || each < 20 {
			t.Errorf("%s: %.1f bytes a report", name, each)
		}
	}
}

// BenchmarkEncode is reports to compressed bytes.
func BenchmarkEncode(b *testing.B) {
	list := benchReports(b)
	z, _ := newZstd(b)
	run := func(encode func([]*decode.Report) []byte) func(*testing.B) {
		return func(b *testing.B) {
			var out []byte
			n, bytes := 0, 0
			for b.Loop() {
				at := n % len(list)
				out = z.EncodeAll(encode(list[at:at+benchBatch]), out[:0])
				n += benchBatch
				bytes += len(out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/report")
			b.ReportMetric(float64(bytes)/float64(n), "B/report")
			b.ReportMetric(0, "ns/op")
		}
	}
	var e arrow.Encoder
	var stream []byte
	w := newLibraryWriter()
	b.Run("ours", run(func(list []*decode.Report) []byte {
		e.Reset()
		for _, r := range list {
			e.Append(r)
		}
		stream = e.AppendStream(stream[:0])
		return stream
	}))
	b.Run("library", run(func(list []*decode.Report) []byte {
		out, err := w.encode(list)
		if err != nil {
			b.Fatal(err)
		}
		return out
	}))
}

// BenchmarkDecode is compressed bytes to reports.
func BenchmarkDecode(b *testing.B) {
	list := benchReports(b)
	z, unz := newZstd(b)
	run := func(b *testing.B, stream []byte, read func([]byte, *decode.Batch) error) {
		packed := z.EncodeAll(stream, nil)
		var plain []byte
		var batch decode.Batch
		n := 0
		for b.Loop() {
			batch.Reset()
			var err error
			if plain, err = unz.DecodeAll(packed, plain[:0]); err == nil {
				err = read(plain, &batch)
			}
			if err != nil || len(batch.Reports) != benchBatch {
				b.Fatal(err, len(batch.Reports))
			}
			n += benchBatch
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/report")
		b.ReportMetric(0, "ns/op")
	}
	var e arrow.Encoder
	for _, r := range list[:benchBatch] {
		e.Append(r)
	}
	ours := e.AppendStream(nil)
	library, err := newLibraryWriter().encode(list[:benchBatch])
	if err != nil {
		b.Fatal(err)
	}
	var d arrow.Decoder
	b.Run("ours", func(b *testing.B) {
		run(b, ours, func(p []byte, batch *decode.Batch) error { _, err := d.Decode(p, batch); return err })
	})
	b.Run("library", func(b *testing.B) { run(b, library, libraryRead) })
}

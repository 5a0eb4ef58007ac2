package kafka

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// drawn is a histogram of random values over many magnitudes, and the values in order.
func drawn(rng *rand.Rand, n int) (h quantile.Histogram, values []uint64) {
	for range n {
		v := rng.Uint64() >> rng.UintN(64)
		if rng.IntN(50) == 0 {
			v = 0
		}
		h.AddValue(v)
		values = append(values, v)
	}
	slices.Sort(values)
	return h, values
}

func protoOf(t testing.TB, h *quantile.Histogram) []byte {
	t.Helper()
	s, err := Sketch(h)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	s.EncodeProto(&b)
	return b.Bytes()
}

func readSketch(t testing.TB, b []byte) *ddsketch.DDSketch {
	t.Helper()
	var pb sketchpb.DDSketch
	if err := proto.Unmarshal(b, &pb); err != nil {
		t.Fatal(err)
	}
	s, err := ddsketch.FromProto(&pb)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A quantile of a sketch that went through protobuf is within sketchError of the true one.
func TestSketchError(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	worst := 0.0
	for range 50 {
		h, values := drawn(rng, 1+rng.IntN(3000))
		s := readSketch(t, protoOf(t, &h))
		if s.GetCount() != float64(len(values)) {
			t.Fatalf("count %v, want %d", s.GetCount(), len(values))
		}
		for q := 0.0; q <= 1; q += 0.01 {
			got, err := s.GetValueAtQuantile(q)
			if err != nil {
				t.Fatal(err)
			}
			want := float64(values[int(q*float64(len(values)-1))])
			if want == 0 {
				if got != 0 {
					t.Errorf("q %v: %v, want 0", q, got)
				}
				continue
			}
			worst = max(worst, math.Abs(got-want)/want)
		}
	}
	if worst > sketchError || worst < sketchError/4 {
		t.Errorf("the largest error is %.4f, stated is %.4f", worst, sketchError)
	}
}

// The merge of sketches by other programs is the sketch of what hopscope merges.
func TestSketchMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 50 {
		var all quantile.Histogram
		var merged *ddsketch.DDSketch
		for range 1 + rng.IntN(16) {
			h, _ := drawn(rng, 1+rng.IntN(500))
			all.Merge(&h)
			s := readSketch(t, protoOf(t, &h))
			if merged == nil {
				merged = s
			} else if err := merged.MergeWith(s); err != nil {
				t.Fatal(err)
			}
		}
		want := readSketch(t, protoOf(t, &all))
		if got, want := bins(merged), bins(want); got != want {
			t.Fatalf("merged:\n%s\nof the merged histogram:\n%s", got, want)
		}
	}
}

func bins(s *ddsketch.DDSketch) (out string) {
	out = fmt.Sprint(s.GetZeroCount(), s.IndexMapping.RelativeAccuracy())
	s.GetPositiveValueStore().ForEach(func(i int, n float64) bool {
		out += fmt.Sprintf(" %d:%v", i, n)
		return false
	})
	return out
}

// testPartial has hops of all sorts.
func testPartial() *window.Partial {
	var p window.Partial
	for i := range uint32(300) {
		h := p.Hop(inference.HopKey{Node: 300 - i, EgressIf: i % 7})
		for k := range uint64(100) {
			h.Latency.AddValue(1000 + uint64(i)*k)
			if i%2 == 0 {
				h.Queue.AddValue(k * k)
			}
		}
		if i%3 == 0 {
			h.Utilization, h.HasUtilization = float64(i)/300, true
		}
		h.NoLatency = uint64(i % 2)
	}
	p.Hop(inference.HopKey{Other: true}).NoLatency = 4
	return &p
}

func TestHopRows(t *testing.T) {
	p := testPartial()
	value, err := HopRows(p, 10, 20, 3)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	stream, err := z.DecodeAll(value, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil || !r.Next() {
		t.Fatalf("the library reads no rows: %v", err)
	}
	record := r.Record()
	if v, _ := record.Schema().Metadata().GetValue("hopscope.schema_version"); v != rowsVersion {
		t.Errorf("schema version %q", v)
	}
	w := p.Window(window.Limits{})
	if int(record.NumRows()) != len(w.Hops) {
		t.Fatalf("%d rows of %d hops", record.NumRows(), len(w.Hops))
	}
	number := func(col, i int) (uint64, bool) {
		c := record.Column(col).(*array.Uint64)
		return c.Value(i), c.IsValid(i)
	}
	for i := range w.Hops {
		h := &w.Hops[i]
		if record.Column(rowNode).(*array.Uint32).Value(i) != h.Node || record.Column(rowEgress).(*array.Uint32).Value(i) != h.EgressIf ||
			record.Column(rowOther).(*array.Boolean).Value(i) != h.Other || record.Column(rowStart).(*array.Timestamp).Value(i) != arrow.Timestamp(10) ||
			record.Column(rowEnd).(*array.Timestamp).Value(i) != arrow.Timestamp(20) {
			t.Fatalf("row %d is not %+v", i, h)
		}
		for _, c := range []struct {
			first, sketch int
			s             inference.Summary
		}{{rowLatencyCount, rowLatencySketch, h.Latency}, {rowQueueCount, rowQueueSketch, h.Queue}} {
			for k, want := range []uint64{c.s.Count, c.s.P50, c.s.P90, c.s.P99, c.s.Max} {
				if got, ok := number(c.first+k, i); ok != (c.s.Count > 0 || k == 0) || ok && got != want {
					t.Fatalf("row %d, column %d: %d, %v; want %d of %+v", i, c.first+k, got, ok, want, h)
				}
			}
			b := record.Column(c.sketch).(*array.Binary)
			if b.IsValid(i) != (c.s.Count > 0) || b.IsValid(i) && readSketch(t, b.Value(i)).GetCount() != float64(c.s.Count) {
				t.Fatalf("row %d: the sketch is not that of %+v", i, c.s)
			}
		}
		if got, _ := number(rowCount, i); got != h.Count {
			t.Fatalf("row %d: count %d of %+v", i, got, h)
		}
		if u := record.Column(rowUtilization).(*array.Float64); u.IsValid(i) != h.HasUtilization || u.IsValid(i) && u.Value(i) != h.Utilization {
			t.Fatalf("row %d: utilization of %+v", i, h)
		}
	}
}

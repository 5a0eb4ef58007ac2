package kafka

import (
	"bytes"
	"errors"
	"sync"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/klauspost/compress/zstd"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// rowsVersion is the version of the schema of [HopRows]. Columns may be added; a column that is there keeps its meaning.
const rowsVersion = "1"

// sketchAccuracy is the relative accuracy of the DDSketches. They are made of the codes of histograms, whose values
// are already within 1/64 of the true ones. A quantile of a sketch is therefore within sketchError of the true one.
const (
	sketchAccuracy = 0.01
	sketchError    = (1+quantile.DenseRelativeError)*(1+sketchAccuracy) - 1
)

// Columns of the hops of a slice, for all readers.
const (
	rowStart = iota
	rowEnd
	rowRevision
	rowNode
	rowEgress
	rowOther
	rowCount
	rowLatencyCount
	rowLatencyP50
	rowLatencyP90
	rowLatencyP99
	rowLatencyMax
	rowQueueCount
	rowQueueP50
	rowQueueP90
	rowQueueP99
	rowQueueMax
	rowUtilization
	rowLatencySketch
	rowQueueSketch
)

var rowsSchema = sync.OnceValue(func() *arrow.Schema {
	u64, u32 := arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Uint32
	moment := arrow.FixedWidthTypes.Timestamp_ns
	unit := func(name string, t arrow.DataType, unit string) arrow.Field {
		f := arrow.Field{Name: name, Type: t, Nullable: true}
		if unit != "" {
			f.Metadata = arrow.NewMetadata([]string{"unit"}, []string{unit})
		}
		return f
	}
	meta := arrow.NewMetadata([]string{"hopscope.dataset", "hopscope.schema_version"}, []string{"hops", rowsVersion})
	return arrow.NewSchema([]arrow.Field{
		{Name: "window_start", Type: moment}, {Name: "window_end", Type: moment}, {Name: "revision", Type: u64},
		{Name: "node_id", Type: u32}, {Name: "egress_if", Type: u32}, {Name: "other", Type: arrow.FixedWidthTypes.Boolean},
		{Name: "count", Type: u64},
		{Name: "latency_count", Type: u64}, unit("latency_p50", u64, "ns"), unit("latency_p90", u64, "ns"),
		unit("latency_p99", u64, "ns"), unit("latency_max", u64, "ns"),
		{Name: "queue_count", Type: u64}, unit("queue_p50", u64, "bytes"), unit("queue_p90", u64, "bytes"),
		unit("queue_p99", u64, "bytes"), unit("queue_max", u64, "bytes"), unit("tx_utilization_max", arrow.PrimitiveTypes.Float64, "1"),
		unit("latency_sketch", arrow.BinaryTypes.Binary, ""), unit("queue_sketch", arrow.BinaryTypes.Binary, ""),
	}, &meta)
})

// HopRows returns the hops of a merged slice as the value of a record of topic series. The value is an Arrow stream in
// one frame of zstd, one row a hop. A reader needs no other knowledge of hopscope; docs/reports-arrow.md lists the
// columns.
func HopRows(p *window.Partial, start, end int64, revision uint64) ([]byte, error) {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), rowsSchema())
	defer b.Release()
	number := func(col int, v uint64) { b.Field(col).(*array.Uint64Builder).Append(v) }
	summary := func(count int, s *inference.Summary) {
		number(count, s.Count)
		for i, v := range []uint64{s.P50, s.P90, s.P99, s.Max} {
			if s.Count == 0 {
				b.Field(count + 1 + i).AppendNull()
			} else {
				number(count+1+i, v)
			}
		}
	}
	var proto bytes.Buffer
	var failed error
	sketch := func(col int, h *quantile.Histogram) {
		f := b.Field(col).(*array.BinaryBuilder)
		if h.Count() == 0 {
			f.AppendNull()
			return
		}
		s, err := Sketch(h)
		if err != nil {
			failed = errors.Join(failed, err)
			f.AppendNull()
			return
		}
		proto.Reset()
		s.EncodeProto(&proto)
		f.Append(proto.Bytes())
	}
	for h := range p.AllHops() {
		s := h.Stats()
		b.Field(rowStart).(*array.TimestampBuilder).Append(arrow.Timestamp(start))
		b.Field(rowEnd).(*array.TimestampBuilder).Append(arrow.Timestamp(end))
		number(rowRevision, revision)
		b.Field(rowNode).(*array.Uint32Builder).Append(s.Node)
		b.Field(rowEgress).(*array.Uint32Builder).Append(s.EgressIf)
		b.Field(rowOther).(*array.BooleanBuilder).Append(s.Other)
		number(rowCount, s.Count)
		summary(rowLatencyCount, &s.Latency)
		summary(rowQueueCount, &s.Queue)
		if u := b.Field(rowUtilization).(*array.Float64Builder); s.HasUtilization {
			u.Append(s.Utilization)
		} else {
			u.AppendNull()
		}
		sketch(rowLatencySketch, &h.Latency)
		sketch(rowQueueSketch, &h.Queue)
	}
	record := b.NewRecord()
	defer record.Release()
	var stream bytes.Buffer
	w := ipc.NewWriter(&stream, ipc.WithSchema(rowsSchema()))
	if err := errors.Join(failed, w.Write(record), w.Close()); err != nil {
		return nil, err
	}
	return rowsZstd().EncodeAll(stream.Bytes(), nil), nil
}

var rowsZstd = sync.OnceValue(func() *zstd.Encoder {
	z, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)) // the options are constants
	return z
})

// Sketch makes a DDSketch of a histogram: each code counts as the value in the middle of its cell. Since the same code
// always falls into the same bucket, merging the sketches of two histograms gives the sketch of the merged histogram.
func Sketch(h *quantile.Histogram) (*ddsketch.DDSketch, error) {
	m, err := mapping.NewLogarithmicMapping(sketchAccuracy)
	if err != nil {
		return nil, err
	}
	s := ddsketch.NewDDSketch(m, store.NewDenseStore(), store.NewDenseStore())
	for code, n := range h.All() {
		if err := s.AddWithCount(float64(quantile.DecodeDense(code)), float64(n)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

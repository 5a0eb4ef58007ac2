package jsonl

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// One window of 1000 hops. json is what encoding/json takes for the same lines.
func BenchmarkEncode(b *testing.B) {
	const n = 1000
	points := make([]sink.Point, n)
	for i := range points {
		points[i] = hopPoint(i)
	}
	perPoint := func(b *testing.B) {
		b.ReportAllocs()
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/point")
	}
	b.Run("ours", func(b *testing.B) {
		var buf []byte
		for b.Loop() {
			buf = buf[:0]
			for i := range points {
				buf, _ = AppendPoint(buf, &points[i])
			}
		}
		b.SetBytes(int64(len(buf)))
		perPoint(b)
	})
	b.Run("json", func(b *testing.B) {
		type object struct {
			Measurement string            `json:"measurement"`
			Time        time.Time         `json:"time"`
			Tags        map[string]string `json:"tags"`
			Fields      map[string]any    `json:"fields"`
		}
		for b.Loop() {
			for i := range points {
				p := &points[i]
				o := object{p.Measurement, time.Unix(0, p.Time).UTC(), map[string]string{}, map[string]any{}}
				for _, t := range p.Tags {
					o.Tags[t.Key] = t.Value
				}
				for _, f := range p.Fields {
					if o.Fields[f.Key] = f.Int; f.Kind == sink.Float {
						o.Fields[f.Key] = f.Float
					}
				}
				if _, err := json.Marshal(o); err != nil {
					b.Fatal(err)
				}
			}
		}
		perPoint(b)
	})
}

// One window of 1000 hops to a file, with and without forcing it to the disk.
func BenchmarkWrite(b *testing.B) {
	batch := &sink.Batch{}
	for i := range 1000 {
		batch.Points = append(batch.Points, hopPoint(i))
	}
	for name, sync := range map[string]bool{"sync": true, "no sync": false} {
		b.Run(name, func(b *testing.B) {
			c := DefaultConfig()
			c.Path, c.Sync, c.KeepFiles = filepath.Join(b.TempDir(), "series.jsonl"), sync, 1
			w, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			b.ReportAllocs()
			for b.Loop() {
				if err := w.Write(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(w.Stats().Bytes) / int64(b.N))
		})
	}
}

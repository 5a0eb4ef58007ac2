package influx

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	influxwrite "github.com/influxdata/influxdb-client-go/v2/api/write"

	"github.com/hopscope/hopscope/sink"
)

// BenchmarkEncode encodes one window of 1000 hops with both encoders. The case client+convert includes the conversion
// to the client's points, which a collector with the client's encoder has to make first.
func BenchmarkEncode(b *testing.B) {
	const n = 1000
	points := make([]sink.Point, n)
	converted := make([]*influxwrite.Point, n)
	for i := range points {
		points[i] = hopPoint(i)
		converted[i] = clientPoint(&points[i])
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
	encode := func(buf *bytes.Buffer, points []*influxwrite.Point) {
		buf.Reset()
		e := clientEncoder(buf)
		for _, p := range points {
			e.Encode(p)
		}
	}
	b.Run("client", func(b *testing.B) {
		var buf bytes.Buffer
		for b.Loop() {
			encode(&buf, converted)
		}
		b.SetBytes(int64(buf.Len()))
		perPoint(b)
	})
	b.Run("client+convert", func(b *testing.B) {
		var buf bytes.Buffer
		made := make([]*influxwrite.Point, n)
		for b.Loop() {
			for i := range points {
				made[i] = clientPoint(&points[i])
			}
			encode(&buf, made)
		}
		b.SetBytes(int64(buf.Len()))
		perPoint(b)
	})
}

// What Config.Gzip costs and saves: a window of 1000 hops with values of their own.
func BenchmarkGzip(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var payload []byte
	for i := range 1000 {
		p := hopPoint(i)
		p.Tags[1].Value = fmt.Sprint(i)
		for j := range p.Fields {
			p.Fields[j].Int = int64(r.ExpFloat64() * 20_000)
		}
		payload, _ = AppendPoint(payload, &p)
	}
	var out bytes.Buffer
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		out.Reset()
		z := gzip.NewWriter(&out)
		if _, err := io.Copy(z, bytes.NewReader(payload)); err != nil {
			b.Fatal(err)
		}
		z.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(payload)), "ns/byte")
	b.ReportMetric(float64(out.Len())/float64(len(payload)), "of-the-bytes")
}

package rate

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/pcapfile"
)

// writeFrames writes a pcap file with datagrams of a load behind headers of zeros.
func writeFrames(tb testing.TB, n int) (path string, want sum) {
	tb.Helper()
	g, err := traffic.New(traffic.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	le, buf := binary.NativeEndian, make([]byte, g.Bytes())
	b := make([]byte, 24)
	le.PutUint32(b, 0xa1b23c4d) // ns
	le.PutUint16(b[4:], 2)
	le.PutUint16(b[6:], 4)
	le.PutUint32(b[16:], 1<<16)
	le.PutUint32(b[20:], 1) // Ethernet
	for i := range n {
		d := g.NextFrom(i%g.Exporters(), buf)
		want.add(d)
		b = le.AppendUint32(le.AppendUint32(b, uint32(i)), 0)
		b = le.AppendUint32(le.AppendUint32(b, uint32(frameHeaders+len(d))), uint32(frameHeaders+len(d)))
		b = append(append(b, make([]byte, frameHeaders)...), d...)
	}
	path = filepath.Join(tb.TempDir(), "frames.pcap")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path, want
}

// readFile reads a file as hopscope does.
func readFile(tb testing.TB, path string, s *sum) (n uint64) {
	tb.Helper()
	r, err := pcapfile.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	var batch ingest.Batch
	for {
		err := r.ReadBatch(&batch, 256)
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			tb.Fatal(err)
		}
		n += uint64(len(batch.Frames))
		if s != nil {
			for i := range batch.Frames {
				s.add(batch.Frames[i].Data[frameHeaders:])
			}
		}
	}
}

// The bare reader and that of hopscope count what was written.
func TestBareFile(t *testing.T) {
	path, want := writeFrames(t, 3000)
	var bare, ours sum
	if n, err := bareFile(path, &bare); err != nil || n != 3000 || bare != want {
		t.Errorf("bare: %d records, %+v, %v, want %+v", n, bare, err, want)
	}
	if n := readFile(t, path, &ours); n != 3000 || ours != want {
		t.Errorf("hopscope: %d records, %+v, want %+v", n, ours, want)
	}
}

// BenchmarkFile has the bare reader beside ingest/pcapfile, which copies nothing either, in turns. The ratio is the median of pairs.
func BenchmarkFile(b *testing.B) {
	const frames = 200_000
	path, _ := writeFrames(b, frames)
	var bare, ours, ratios []float64
	for b.Loop() {
		start := time.Now()
		if _, err := bareFile(path, nil); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		readFile(b, path, nil)
		x, y := between.Sub(start).Seconds(), time.Since(between).Seconds()
		bare, ours, ratios = append(bare, 1e9*x/frames), append(ours, 1e9*y/frames), append(ratios, y/x)
	}
	b.ReportMetric(harness.Median(bare), "ns/frame-bare")
	b.ReportMetric(harness.Median(ours), "ns/frame")
	b.ReportMetric(harness.Median(ratios), "ratio")
}

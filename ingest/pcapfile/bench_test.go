package pcapfile

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/gopacket/pcapgo"

	"github.com/hopscope/hopscope/ingest"
)

// BenchmarkRead compares the reader with pcapgo on the same file of 200-byte frames, from the page cache.
func BenchmarkRead(b *testing.B) {
	const frames = 200_000
	records := make([]frame, frames)
	for i := range records {
		records[i] = frame{Data: strings.Repeat("r", 200), Length: 200, Time: int64(i) * 1000}
	}
	path := filepath.Join(b.TempDir(), "bench.pcap")
	data := pcapBytes(binary.LittleEndian, magicMicro, 1, records...)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	ng := append(sectionBlock(binary.LittleEndian), interfaceBlock(binary.LittleEndian, 1, 0)...)
	for _, r := range records {
		ng = append(ng, enhancedBlock(binary.LittleEndian, 0, uint64(r.Time), r.Data, r.Length)...)
	}
	pathNG := path + "ng"
	if err := os.WriteFile(pathNG, ng, 0o600); err != nil {
		b.Fatal(err)
	}
	perFrame := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/frames, "ns/frame")
	}
	own := func(b *testing.B, path string, limit int) {
		var batch ingest.Batch
		for b.Loop() {
			r, err := Open(path)
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for r.ReadBatch(&batch, limit) == nil {
				for i := range batch.Frames {
					n += int(batch.Frames[i].Data[0]) // touch the frame, as a decoder will
				}
			}
			r.Close()
			if n != frames*'r' {
				b.Fatal(n)
			}
		}
		perFrame(b)
	}
	twin := func(b *testing.B, path string, open func(io.Reader) (func() byte, error)) {
		for b.Loop() {
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			next, err := open(f)
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for c := next(); c != 0; c = next() {
				n += int(c)
			}
			f.Close()
			if n != frames*'r' {
				b.Fatal(n)
			}
		}
		perFrame(b)
	}
	first := func(data []byte, err error) byte {
		if err != nil {
			return 0
		}
		return data[0]
	}
	b.Run("pcap/own", func(b *testing.B) { own(b, path, 256) })
	b.Run("pcap/own-one-by-one", func(b *testing.B) { own(b, path, 1) })
	b.Run("pcap/pcapgo", func(b *testing.B) {
		twin(b, path, func(f io.Reader) (func() byte, error) {
			r, err := pcapgo.NewReader(f)
			return func() byte { data, _, err := r.ZeroCopyReadPacketData(); return first(data, err) }, err
		})
	})
	b.Run("pcapng/own", func(b *testing.B) { own(b, pathNG, 256) })
	b.Run("pcapng/pcapgo", func(b *testing.B) {
		twin(b, pathNG, func(f io.Reader) (func() byte, error) {
			r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
			return func() byte { data, _, err := r.ZeroCopyReadPacketData(); return first(data, err) }, err
		})
	})
	b.Run("pcap/own-from-memory", func(b *testing.B) {
		var batch ingest.Batch
		for b.Loop() {
			r, err := newReader(bytes.NewReader(data), "bench")
			if err != nil {
				b.Fatal(err)
			}
			for r.ReadBatch(&batch, 256) == nil {
			}
		}
		perFrame(b)
	})
}

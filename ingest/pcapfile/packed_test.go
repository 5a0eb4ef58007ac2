package pcapfile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

// packers are the compressions that captures come in.
var packers = map[string]func([]byte) []byte{
	"gzip": func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		z.Write(b)
		z.Close()
		return out.Bytes()
	},
	"zstd": func(b []byte) []byte { return zstdOf(b, 1<<20) },
}

// zstdOf is b as one zstd frame with a checksum, that refers back by window bytes at most.
func zstdOf(b []byte, window int) []byte {
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	z.Write(b)
	z.Close()
	return out.Bytes()
}

func TestReaderCompressed(t *testing.T) {
	le := binary.LittleEndian
	data := pcapBytes(le, magicMicro, 1, frame{Data: "abc", Length: 3}, frame{Data: strings.Repeat("d", 9999), Length: 9999})
	for name, pack := range packers {
		t.Run(name, func(t *testing.T) {
			packed := pack(data)
			path := filepath.Join(t.TempDir(), "a.pcap")
			if err := os.WriteFile(path, packed, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got, err := all(r)
			if err != nil || len(got) != 2 || got[1].Length != 9999 {
				t.Errorf("%d frames, %v", len(got), err)
			}

			// Cut in the compressed bytes, and cut before: both name a byte of the capture.
			for n := 4; n < len(packed); n++ {
				if got, err := read(t, packed[:n]); !errors.Is(err, ErrTruncated) {
					t.Errorf("%d of %d compressed bytes: %d frames, %v", n, len(packed), len(got), err)
				}
			}
			if got, err := read(t, pack(data[:60])); err == nil || err.Error() != "t: record 2 at byte 43: file ends after 17 of 10015 bytes" {
				t.Errorf("capture cut, then compressed: %d frames, %v", len(got), err)
			}
			// Damage is distinguished from a file that cannot be read.
			bad := bytes.Clone(packed)
			bad[len(bad)-5] ^= 0x40 // gzip: the checksum; zstd: the last block
			if got, err := read(t, bad); !errors.Is(err, errDamaged) {
				t.Errorf("damaged: %d frames, %v", len(got), err)
			}
			broken := errors.New("the disk is broken")
			if r, err = newReader(io.MultiReader(bytes.NewReader(packed[:len(packed)-3]), iotest.ErrReader(broken)), "t"); err == nil {
				_, err = all(r)
			}
			if !errors.Is(err, broken) || errors.Is(err, errDamaged) {
				t.Errorf("unreadable: %v", err)
			}
		})
	}
}

// Compressed captures that were written one after the other are one.
func TestConcatenatedCompressed(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	for name, pack := range packers {
		one := pack(pcapBytes(le, magicMicro, 1, frame{Data: "a", Length: 1}))
		two := pack(pcapBytes(be, magicNano, 101, frame{Data: "b", Length: 1}))
		if name == "zstd" { // as parallel compressors write: each frame behind one that is skipped
			two = append([]byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4}, two...)
		}
		for _, both := range [][]byte{append(bytes.Clone(one), two...), append(bytes.Clone(two), one...)} {
			got, err := read(t, both)
			if err != nil || len(got) != 2 || got[0].Link == got[1].Link {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
		if got, err := read(t, append(bytes.Clone(one), two[:len(two)-2]...)); !errors.Is(err, ErrTruncated) || len(got) < 1 {
			t.Errorf("%s, the second cut: %v, %v", name, got, err)
		}
	}
}

// The memory for reading a compressed capture depends neither on its header nor on its expansion.
func TestCompressedMemory(t *testing.T) {
	header := pcapBytes(binary.LittleEndian, magicMicro, 1)
	wide := zstdOf(append(bytes.Clone(header), bytes.Repeat([]byte("0123456789abcdef"), 100_000)...), 64<<20)
	if _, err := read(t, wide); !errors.Is(err, errFormat) || !strings.Contains(err.Error(), "--long") {
		t.Errorf("a window of 64 MiB: %v", err)
	}
	claims := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0} // 3 GiB in a single segment
	if _, err := read(t, claims); !errors.Is(err, errFormat) {
		t.Errorf("a segment of 3 GiB: %v", err)
	}
	const records = 3 << 20 // empty ones: 48 MiB
	for name, pack := range packers {
		packed := pack(append(bytes.Clone(header), make([]byte, 16*records)...))
		r, err := newReader(bytes.NewReader(packed), "t")
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := 0
		for err == nil {
			if err = r.ReadBatch(&r.one, 256); err == nil {
				n += len(r.one.Frames)
			}
		}
		runtime.ReadMemStats(&after)
		if n != records || err != io.EOF {
			t.Errorf("%s: %d records, %v", name, n, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > maxWindow+8<<20 {
			t.Errorf("%s: %d bytes allocated for %d", name, got, len(packed))
		}
		r.Close()
	}
}

// Captures that were written one after the other are one, whatever their formats, byte orders and link types. The joint
// is found wherever the first bytes of the next one arrive.
func TestConcatenated(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	ng := func(o order, link uint16) []byte {
		return append(append(sectionBlock(o), interfaceBlock(o, link, 0)...), enhancedBlock(o, 0, 0, "data", 9)...)
	}
	pcap := func(o order, magic, link uint32) []byte {
		return pcapBytes(o, magic, link, frame{Data: "data", Length: 9})
	}
	kinds := []struct {
		name string
		data []byte
		link uint16
	}{
		{"microseconds, little-endian", pcap(le, magicMicro, 1), 1},
		{"microseconds, big-endian", pcap(be, magicMicro, 101), 101},
		{"nanoseconds, little-endian", pcap(le, magicNano, 113), 113},
		{"nanoseconds, big-endian", pcap(be, magicNano, 0), 0},
		{"pcapng, little-endian", ng(le, 9), 9},
		{"pcapng, big-endian", ng(be, 108), 108},
		{"no frames", pcapBytes(be, magicNano, 1), 1},
	}
	for _, a := range kinds {
		for _, b := range kinds {
			for _, c := range kinds {
				data := append(append(bytes.Clone(a.data), b.data...), c.data...)
				want := []uint16{a.link, b.link, c.link}
				name := a.name + ", " + b.name + ", " + c.name
				got, err := read(t, data)
				if r, e := newReader(iotest.OneByteReader(bytes.NewReader(data)), "t"); e != nil {
					t.Errorf("%s, byte by byte: %v", name, e)
				} else if slow, e := all(r); e != nil || len(slow) != len(got) {
					t.Errorf("%s, byte by byte: %d frames, %v", name, len(slow), e)
				}
				i := 0
				for k, x := range []string{a.name, b.name, c.name} {
					if x == "no frames" {
						continue
					}
					if i >= len(got) || got[i].Link != want[k] || got[i].Data != "data" || got[i].Length != 9 || got[i].Number != uint64(i+1) {
						t.Errorf("%s: %v, %v", name, got, err)
						break
					}
					i++
				}
				if err != nil || i != len(got) {
					t.Errorf("%s: %d frames, want %d; %v", name, len(got), i, err)
				}
			}
		}
	}
	// A record like any other, but for its strange time, is none of this.
	one := pcap(le, magicMicro, 1)
	strange := frame{Data: "x", Length: 1, Time: int64(magicMicro) * 1e9}
	if got, err := read(t, append(one, pcapBytes(le, magicMicro, 1, strange)[fileHeaderLen:]...)); err != nil || len(got) != 2 || got[1].Time != strange.Time {
		t.Errorf("%v, %v", got, err)
	}
}

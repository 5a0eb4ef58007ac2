package pcapfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/iotest"
)

// Any bytes give no panic, frames inside the input, and an end or an error with the offset of a byte. The frames are
// the same however the input arrives.
func FuzzReader(f *testing.F) {
	for _, path := range captures(f) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 2000)])
	}
	for i := range uint64(8) {
		data := randomCapture(rand.New(rand.NewPCG(i, 2)))
		f.Add(data[:min(len(data), 1000)])
	}
	le := binary.LittleEndian
	f.Add(bytes.Join([][]byte{sectionBlock(le), interfaceBlock(le, 1, 0, optTimeResolution, []byte{9}), enhancedBlock(le, 0, 1, "x", 2)}, nil))
	one, two := pcapBytes(le, magicMicro, 1, frame{Data: "x", Length: 2}), pcapBytes(binary.BigEndian, magicNano, 101, frame{Data: "y", Length: 1})
	f.Add(slices.Concat(one, two, sectionBlock(le), one))
	for _, pack := range packers {
		f.Add(slices.Concat(pack(one), pack(two)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		frames, err := read(t, data)
		total := 0
		for i, f := range frames {
			if f.Number != uint64(i+1) || f.Length < len(f.Data) {
				t.Fatalf("frame %d: %v", i+1, f)
			}
			total += len(f.Data)
		}
		if packingOf(data) == plain {
			if total > len(data) {
				t.Fatalf("%d bytes in frames of %d bytes", total, len(data))
			}
			if e, ok := errors.AsType[*Error](err); err != nil && (!ok || e.Offset > int64(len(data))) {
				t.Fatalf("error %v for %d bytes", err, len(data))
			}
		}
		r, err2 := newReader(iotest.OneByteReader(bytes.NewReader(data)), "t")
		var second []frame
		if err2 == nil {
			second, err2 = batched(r, 3)
		}
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("read at once: %v, byte by byte: %v", err, err2)
		}
		sameFrames(t, "byte by byte", second, frames)
	})
}

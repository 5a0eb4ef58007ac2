package pcapfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// frame is a frame whose bytes are its own.
type frame struct {
	Data   string
	Time   int64
	Number uint64
	Length int
	Link   uint16
}

// all reads r to its end through Next.
func all(r *Reader) (frames []frame, err error) {
	for {
		f, err := r.Next()
		if err == io.EOF {
			return frames, nil
		} else if err != nil {
			return frames, err
		}
		frames = append(frames, frame{string(f.Data), f.Time, f.Number, f.Length, f.Link})
	}
}

// batched reads r to its end through ReadBatch.
func batched(r *Reader, limit int) (frames []frame, err error) {
	var b ingest.Batch
	for {
		if err := r.ReadBatch(&b, limit); err == io.EOF {
			return frames, nil
		} else if err != nil {
			return frames, err
		}
		for _, f := range b.Frames {
			frames = append(frames, frame{string(f.Data), f.Time, f.Number, f.Length, f.Link})
		}
	}
}

func read(t *testing.T, data []byte) ([]frame, error) {
	t.Helper()
	r, err := newReader(bytes.NewReader(data), "t")
	if err != nil {
		return nil, err
	}
	return all(r)
}

// twin reads a capture with pcapgo.
func twin(t *testing.T, data []byte) (frames []frame) {
	t.Helper()
	var next func() ([]byte, gopacket.CaptureInfo, error)
	var link func(gopacket.CaptureInfo) layers.LinkType
	if binary.LittleEndian.Uint32(data) == magicSection {
		r, err := pcapgo.NewNgReader(bytes.NewReader(data), pcapgo.NgReaderOptions{WantMixedLinkType: true})
		if err != nil {
			t.Fatalf("pcapgo: %v", err)
		}
		next = r.ReadPacketData
		link = func(ci gopacket.CaptureInfo) layers.LinkType { return ci.AncillaryData[0].(layers.LinkType) }
	} else {
		r, err := pcapgo.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("pcapgo: %v", err)
		}
		next = r.ReadPacketData
		link = func(gopacket.CaptureInfo) layers.LinkType { return r.LinkType() }
	}
	for {
		data, ci, err := next()
		if err == io.EOF {
			return frames
		} else if err != nil {
			t.Fatalf("pcapgo: frame %d: %v", len(frames)+1, err)
		}
		f := frame{string(data), ci.Timestamp.UnixNano(), uint64(len(frames) + 1), ci.Length, uint16(link(ci))}
		if ci.Timestamp.IsZero() {
			f.Time = 0
		}
		frames = append(frames, f)
	}
}

func sameFrames(t *testing.T, what string, got, want []frame) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d frames, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: frame %d: got %v, want %v", what, i+1, got[i], want[i])
		}
	}
}

// order writes numbers in one byte order.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// pcapBytes builds a capture record by record.
func pcapBytes(o order, magic uint32, link uint32, records ...frame) []byte {
	b := o.AppendUint32(nil, magic)
	b = o.AppendUint16(o.AppendUint16(b, 2), 4)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = o.AppendUint32(o.AppendUint32(b, 65535), link)
	unit := int64(1000)
	if magic == magicNano {
		unit = 1
	}
	for _, f := range records {
		b = o.AppendUint32(b, uint32(f.Time/1e9))
		b = o.AppendUint32(b, uint32(f.Time%1e9/unit))
		b = o.AppendUint32(o.AppendUint32(b, uint32(len(f.Data))), uint32(f.Length))
		b = append(b, f.Data...)
	}
	return b
}

// block builds a block of pcapng.
func block(o order, kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	n := uint32(len(body) + 12)
	b := o.AppendUint32(o.AppendUint32(nil, kind), n)
	return o.AppendUint32(append(b, body...), n)
}

func sectionBlock(o order) []byte {
	b := o.AppendUint32(nil, byteOrderMagic)
	b = o.AppendUint16(o.AppendUint16(b, 1), 0)
	return block(o, magicSection, o.AppendUint64(b, ^uint64(0)))
}

// interfaceBlock describes an interface; options are code, value pairs.
func interfaceBlock(o order, link uint16, snap uint32, options ...any) []byte {
	b := o.AppendUint32(o.AppendUint16(o.AppendUint16(nil, link), 0), snap)
	for i := 0; i < len(options); i += 2 {
		v := options[i+1].([]byte)
		b = append(o.AppendUint16(o.AppendUint16(b, uint16(options[i].(int))), uint16(len(v))), v...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
	}
	if len(options) > 0 {
		b = append(b, 0, 0, 0, 0)
	}
	return block(o, blockInterface, b)
}

func enhancedBlock(o order, id uint32, ticks uint64, data string, length int) []byte {
	b := o.AppendUint32(nil, id)
	b = o.AppendUint32(o.AppendUint32(b, uint32(ticks>>32)), uint32(ticks))
	b = o.AppendUint32(o.AppendUint32(b, uint32(len(data))), uint32(length))
	return block(o, blockEnhanced, append(b, data...))
}

// captures are the recordings that are kept with the tests of the module.
func captures(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.pcap*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	return files
}

func TestReaderAgreesWithPcapgoOnCaptures(t *testing.T) {
	for _, path := range captures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got, err := all(r)
			if err != nil {
				t.Fatal(err)
			}
			sameFrames(t, path, got, twin(t, data))
			if read, size := r.Progress(); read != int64(len(data)) || size != read {
				t.Errorf("Progress() = %d, %d, want %d twice", read, size, len(data))
			}
		})
	}
}

// randomCapture builds a valid capture of either format. It leaves out what pcapgo gets wrong and other tests
// have: binary time resolutions (its 2^-10 s has 976562 ns) and link types above 255.
func randomCapture(rng *rand.Rand) []byte {
	o := order(binary.LittleEndian)
	if rng.IntN(2) == 0 {
		o = binary.BigEndian
	}
	data := func() string {
		b := make([]byte, rng.IntN(300)>>rng.IntN(9)*(1+rng.IntN(10)))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return string(b)
	}
	links := []uint16{ingest.LinkEthernet, ingest.LinkRaw, ingest.LinkLinuxSLL, ingest.LinkIPv6, 127}
	if rng.IntN(2) == 0 {
		magic := []uint32{magicMicro, magicNano}[rng.IntN(2)]
		var records []frame
		for range rng.IntN(200) {
			d := data()
			records = append(records, frame{Data: d, Time: rng.Int64N(1 << 32 * 1e9), Length: len(d) + rng.IntN(2)*rng.IntN(100)})
		}
		return pcapBytes(o, magic, uint32(links[rng.IntN(len(links))]), records...)
	}
	var b []byte
	for range 1 + rng.IntN(3) {
		b = append(b, sectionBlock(o)...)
		n := 0
		describe := func() {
			var options []any
			if rng.IntN(2) == 0 {
				options = append(options, 2, []byte(data()+"x"))
			}
			if rng.IntN(2) == 0 {
				options = append(options, optTimeResolution, []byte{[]byte{3, 6, 9, 7, 11}[rng.IntN(5)]})
			}
			if rng.IntN(3) == 0 {
				options = append(options, optTimeOffset, o.AppendUint64(nil, uint64(rng.Uint32N(1<<20))))
			}
			b = append(b, interfaceBlock(o, links[rng.IntN(len(links))], uint32(rng.IntN(2)*64), options...)...)
			n++
		}
		describe()
		for range rng.IntN(60) {
			switch d := data(); rng.IntN(8) {
			case 0:
				describe()
			case 1:
				b = append(b, block(o, 4, []byte(d))...) // name resolution
			case 2:
				body := o.AppendUint16(o.AppendUint16(nil, uint16(rng.IntN(n))), 7)
				body = o.AppendUint32(o.AppendUint32(body, 1), rng.Uint32())
				body = o.AppendUint32(o.AppendUint32(body, uint32(len(d))), uint32(len(d)))
				b = append(b, block(o, blockPacket, append(body, d...))...)
			default:
				b = append(b, enhancedBlock(o, uint32(rng.IntN(n)), rng.Uint64N(1<<40), d, len(d)+rng.IntN(2)*rng.IntN(100))...)
			}
		}
	}
	return b
}

func TestReaderAgreesWithPcapgoOnRandomFiles(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range 300 {
		data := randomCapture(rng)
		want := twin(t, data)
		what := fmt.Sprintf("seed %d, file %d", seed, i)
		got, err := read(t, data)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		sameFrames(t, what, got, want)
		r, err := newReader(iotest.HalfReader(bytes.NewReader(data)), "t")
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, err = batched(r, 1+rng.IntN(300)); err != nil {
			t.Fatalf("%s, batches: %v", what, err)
		}
		sameFrames(t, what+", batches", got, want)
	}
}

func TestReaderTimes(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	pcap := func(o order, magic uint32, at int64) []byte {
		return pcapBytes(o, magic, 1, frame{Data: "x", Time: at, Length: 1})
	}
	ng := func(ticks uint64, options ...any) []byte {
		b := append(sectionBlock(le), interfaceBlock(le, 1, 0, options...)...)
		return append(b, enhancedBlock(le, 0, ticks, "x", 1)...)
	}
	tests := []struct {
		name string
		in   []byte
		want int64
	}{
		{"microseconds", pcap(le, magicMicro, 1795171850330628000), 1795171850330628000},
		{"nanoseconds", pcap(le, magicNano, 1795171850330628123), 1795171850330628123},
		{"microseconds, big-endian", pcap(be, magicMicro, 1795171850330628000), 1795171850330628000},
		{"nanoseconds, big-endian", pcap(be, magicNano, 1795171850330628123), 1795171850330628123},
		{"after 2106 in seconds' last value", pcap(le, magicNano, 4294967295999999999), 4294967295999999999},
		{"pcapng without an option", ng(1795171850330628), 1795171850330628000},
		{"pcapng, nanoseconds", ng(1795171850330628123, optTimeResolution, []byte{9}), 1795171850330628123},
		{"pcapng, seconds", ng(1795171850, optTimeResolution, []byte{0}), 1795171850000000000},
		{"pcapng, 100 fs", ng(18_0000000000001, optTimeResolution, []byte{13}), 18_000000000},
		{"pcapng, 2^-32 s", ng(5<<32|1<<31, optTimeResolution, []byte{0x80 | 32}), 5_500000000},
		{"pcapng, 2^-63 s", ng(1<<62, optTimeResolution, []byte{0x80 | 63}), 500000000},
		{"pcapng, offset", ng(7, optTimeOffset, le.AppendUint64(nil, 1795171850)), 1795171850000007000},
		{"pcapng, negative offset", ng(7_000000, optTimeOffset, le.AppendUint64(nil, ^uint64(2))), 4_000000000},
	}
	for _, tt := range tests {
		got, err := read(t, tt.in)
		if err != nil || len(got) != 1 || got[0].Time != tt.want {
			t.Errorf("%s: %+v, %v, want time %d", tt.name, got, err, tt.want)
		}
	}
}

func TestReaderLinkTypes(t *testing.T) {
	le := binary.LittleEndian
	for in, want := range map[uint32]uint16{
		1: ingest.LinkEthernet, 101: ingest.LinkRaw, 12: ingest.LinkRaw, 14: ingest.LinkRaw, 113: ingest.LinkLinuxSLL,
		276: ingest.LinkLinuxSLL2, 228: ingest.LinkIPv4, 229: ingest.LinkIPv6, 127: 127,
		0x24000001: ingest.LinkEthernet, // frame check sequence of 2 words announced
	} {
		got, err := read(t, pcapBytes(le, magicMicro, in, frame{Data: "x", Length: 1}))
		if err != nil || len(got) != 1 || got[0].Link != want {
			t.Errorf("link type %#x: %+v, %v, want %d", in, got, err, want)
		}
		if Known(want) != (want != 127) {
			t.Errorf("Known(%d) = %v", want, Known(want))
		}
	}
}

func TestReaderAcceptsWhatWritersGetWrong(t *testing.T) {
	le := binary.LittleEndian
	long := strings.Repeat("x", 70000)
	got, err := read(t, pcapBytes(le, magicMicro, 1, frame{Data: long, Length: 70000}, frame{Data: "abcd", Length: 2}))
	want := []frame{{long, 0, 1, 70000, 1}, {"abcd", 0, 2, 4, 1}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("frame above the snapshot length, frame longer than on the wire: %d frames, %v", len(got), err)
	}
}

func TestReaderErrors(t *testing.T) {
	le := binary.LittleEndian
	good := pcapBytes(le, magicMicro, 1, frame{Data: "abcdef", Length: 6}) // ends at byte 46
	head := append(sectionBlock(le), interfaceBlock(le, 1, 0)...)          // 28 + 20
	patch := func(b []byte, at int, v uint32) []byte {
		b = bytes.Clone(b)
		le.PutUint32(b[at:], v)
		return b
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	packet := enhancedBlock(le, 0, 0, "abcdef", 6)
	tests := []struct {
		name, want string
		in         []byte
		frames     int
		err        error
	}{
		{"empty", "t: byte 0: empty file", nil, 0, ErrTruncated},
		{"three bytes", "t: byte 0: file ends after 3 of 4 bytes of its header", good[:3], 0, ErrTruncated},
		{"half a header", "t: byte 0: file ends after 12 of 24 bytes of its header", good[:12], 0, ErrTruncated},
		{"text", "t: byte 0: neither pcap nor pcapng (magic number 68656c6c)", []byte("hello, world"), 0, errFormat},
		{"pcap 2.3", "t: byte 4: pcap version 2.3 is not read, only 2.4", patch(good, 4, 2|3<<16), 0, errFormat},
		{"half a record header", "t: record 2 at byte 46: file ends after 5 of 16 bytes", join(good, good[24:29]), 1, ErrTruncated},
		{"half a record", "t: record 2 at byte 46: file ends after 20 of 22 bytes", join(good, good[24:44]), 1, ErrTruncated},
		{"absurd length", "t: record 1 at byte 24: capture length 4294967295 exceeds 262144", patch(good, 32, 1<<32-1), 0, errDamaged},
		{"length just too long", "t: record 1 at byte 24: capture length 262145 exceeds 262144", patch(good, 32, 262145), 0, errDamaged},
		{"gzip", "t: byte 0: the compressed file ends early", []byte{0x1f, 0x8b, 8, 0}, 0, ErrTruncated},
		{"gzip of another kind", "t: byte 0: the compressed file is damaged: gzip: invalid header", []byte("\x1f\x8b456789abcdef"), 0, errDamaged},
		{"zstd", "t: byte 0: the compressed file ends early", []byte{0x28, 0xb5, 0x2f, 0xfd, 0}, 0, ErrTruncated},

		{"ng: half a section", "t: record 1 at byte 0: file ends after 20 of 28 bytes", head[:20], 0, ErrTruncated},
		{"ng: byte order", "t: record 1 at byte 0: byte order mark 00000000", patch(head, 8, 0), 0, errDamaged},
		{"ng: version", "t: record 1 at byte 0: pcapng version 2.0 is not read, only 1.0", patch(head, 12, 2), 0, errFormat},
		{"ng: block of 8", "t: record 1 at byte 28: block of 8 bytes", patch(head, 32, 8), 0, errDamaged},
		{"ng: odd block", "t: record 1 at byte 28: block of 21 bytes", patch(head, 32, 21), 0, errDamaged},
		{"ng: absurd packet", "t: record 1 at byte 48: block of 4294967292 bytes exceeds 327680", patch(join(head, packet), 52, 1<<32-4), 0, errDamaged},
		{"ng: absurd other block", "t: record 1 at byte 48: file ends after 40 of 4294967292 bytes", patch(patch(join(head, packet), 52, 1<<32-4), 48, 4), 0, ErrTruncated},
		{"ng: lengths differ", "t: record 1 at byte 48: block of 40 bytes says 44 at its end", patch(join(head, packet), 84, 44), 0, errDamaged},
		{"ng: short interface", "t: record 1 at byte 28: block of type 1 with 4 bytes of content, at least 8", join(head[:28], block(le, 1, make([]byte, 4))), 0, errDamaged},
		{"ng: option too long", "t: record 1 at byte 28: interface option 9 of 64 bytes is longer than its block",
			join(head[:28], patch(interfaceBlock(le, 1, 0, optTimeResolution, []byte{6}), 16, 9|64<<16)), 0, errDamaged},
		{"ng: resolution", "t: record 1 at byte 28: time resolution 0x14 of an interface", join(head[:28], interfaceBlock(le, 1, 0, optTimeResolution, []byte{20})), 0, errDamaged},
		{"ng: resolution of 2^-64", "t: record 1 at byte 28: time resolution 0xc0 of an interface", join(head[:28], interfaceBlock(le, 1, 0, optTimeResolution, []byte{0xc0})), 0, errDamaged},
		{"ng: interface", "t: record 2 at byte 88: interface 1 of 1", join(head, packet, enhancedBlock(le, 1, 0, "x", 1)), 1, errDamaged},
		{"ng: interface forgotten with its section", "t: record 2 at byte 116: interface 0 of 0", join(head, packet, head[:28], packet), 1, errDamaged},
		{"ng: capture beyond block", "t: record 1 at byte 48: capture length 9 exceeds the 8 bytes of its block", patch(join(head, packet), 68, 9), 0, errDamaged},
		{"ng: absurd capture", "t: record 1 at byte 48: capture length 2147483648 exceeds 262144", patch(join(head, packet), 68, 1<<31), 0, errDamaged},
		{"ng: simple without interface", "t: record 1 at byte 28: packet without an interface", join(head[:28], block(le, blockSimple, make([]byte, 8))), 0, errDamaged},
		{"ng: simple beyond block", "t: record 1 at byte 48: length 9 exceeds the 4 bytes of its block", join(head, block(le, blockSimple, []byte{9, 0, 0, 0, 1, 2, 3, 4})), 0, errDamaged},
		{"ng: half a packet", "t: record 2 at byte 88: file ends after 39 of 40 bytes", join(head, packet, packet[:39]), 1, ErrTruncated},
		{"ng: half a block header", "t: record 2 at byte 88: file ends after 7 of 12 bytes", join(head, packet, packet[:7]), 1, ErrTruncated},
	}
	for _, tt := range tests {
		got, err := read(t, tt.in)
		if err == nil || err.Error() != tt.want || !errors.Is(err, tt.err) || len(got) != tt.frames {
			t.Errorf("%s: %d frames, %v, want %d and %s", tt.name, len(got), err, tt.frames, tt.want)
		}
	}
}

// Every cut of a good file gives the whole frames. Unless it falls between two frames, it also gives one error with
// the byte where the broken record starts.
func TestReaderCutAtEveryByte(t *testing.T) {
	le := binary.LittleEndian
	pcap := pcapBytes(le, magicMicro, 1, frame{Data: "abcdef", Length: 6}, frame{Data: "", Length: 0}, frame{Data: "0123456789", Length: 90})
	ng := bytes.Join([][]byte{sectionBlock(le), interfaceBlock(le, 1, 0), enhancedBlock(le, 0, 0, "abcdef", 6),
		block(le, 4, make([]byte, 20)), enhancedBlock(le, 0, 0, "0123456789", 90)}, nil)
	for name, tt := range map[string]struct {
		data []byte
		ends []int // of the records, the header first
	}{"pcap": {pcap, []int{24, 46, 62, 88}}, "pcapng": {ng, []int{28, 48, 88, 120, 164}}} {
		whole, err := read(t, tt.data)
		if err != nil {
			t.Fatal(err)
		}
		if last := tt.ends[len(tt.ends)-1]; last != len(tt.data) {
			t.Fatalf("%s: %d bytes, the case says %d", name, len(tt.data), last)
		}
		for n := range len(tt.data) {
			start := 0
			for _, end := range tt.ends {
				if end <= n {
					start = end
				}
			}
			got, err := read(t, tt.data[:n])
			e, _ := errors.AsType[*Error](err)
			switch {
			case n == start && n > 0 && err != nil:
				t.Errorf("%s cut at %d, between records: %v", name, n, err)
			case (n != start || n == 0) && (e == nil || e.Offset != int64(start) || !errors.Is(err, ErrTruncated)):
				t.Errorf("%s cut at %d: %v, want an error at byte %d", name, n, err, start)
			}
			if !reflect.DeepEqual(got, whole[:len(got)]) && len(got) > 0 {
				t.Errorf("%s cut at %d: frames differ", name, n)
			}
		}
	}
}

func TestReaderErrorIsSticky(t *testing.T) {
	r, err := newReader(bytes.NewReader(pcapBytes(binary.LittleEndian, magicMicro, 1, frame{Data: "abc", Length: 3})[:42]), "t")
	if err != nil {
		t.Fatal(err)
	}
	_, first := r.Next()
	_, second := r.Next()
	if first == nil || first != second {
		t.Errorf("Next() = %v, then %v", first, second)
	}
}

func TestReaderPassesOnReadErrors(t *testing.T) {
	data := pcapBytes(binary.LittleEndian, magicMicro, 1, frame{Data: "abc", Length: 3})
	broken := errors.New("cable cut")
	r, err := newReader(io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)), "t")
	if err != nil {
		t.Fatal(err)
	}
	got, err := all(r)
	if len(got) != 1 || !errors.Is(err, broken) || err.Error() != "t: record 2 at byte 43: cable cut" {
		t.Errorf("%d frames, %v", len(got), err)
	}
}

func TestReaderSkipsLongBlocksAndGrowsForLongRecords(t *testing.T) {
	le := binary.LittleEndian
	long := strings.Repeat("y", maxCapture)
	data := bytes.Join([][]byte{sectionBlock(le), interfaceBlock(le, 1, 0), block(le, 0xbad, make([]byte, 1<<20)),
		enhancedBlock(le, 0, 0, long, len(long)), block(le, 0xbad, make([]byte, 3<<20)), enhancedBlock(le, 0, 0, "end", 3)}, nil)
	got, err := read(t, data)
	if err != nil || len(got) != 2 || got[0].Data != long || got[1].Data != "end" {
		t.Errorf("%d frames, %v", len(got), err)
	}
}

func TestReadBatchAllocatesNothing(t *testing.T) {
	var records []frame
	for range 5000 {
		records = append(records, frame{Data: strings.Repeat("r", 200), Length: 200})
	}
	data := bytes.NewReader(pcapBytes(binary.LittleEndian, magicMicro, 1, records...))
	r, err := newReader(data, "t")
	if err != nil {
		t.Fatal(err)
	}
	var b ingest.Batch
	if err := r.ReadBatch(&b, 256); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10, func() {
		if err := r.ReadBatch(&b, 256); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a batch, want 0", n)
	}
}

func (f frame) String() string {
	return fmt.Sprintf("number %d, time %d, %d bytes on the wire, link type %d, %.60q", f.Number, f.Time, f.Length, f.Link, f.Data)
}

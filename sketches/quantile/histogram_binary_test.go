package quantile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// readPlain reads the bytes of a histogram one number after the other, as FORMAT.md of package inference/window draws
// them.
func readPlain(b []byte) (counts map[uint16]uint64, rest uint64, at int, err error) {
	next := func() (v uint64) {
		if err != nil {
			return 0
		}
		v, n := binary.Uvarint(b[at:])
		switch {
		case n == 0:
			err = ErrTruncated
		case n < 0, n > 1 && b[at+n-1] == 0:
			err = ErrCorrupt
		default:
			at += n
			return v
		}
		return 0
	}
	counts = map[uint16]uint64{}
	stopped, total := false, uint64(0)
	for code := uint64(0); ; {
		start := at
		run := next()
		if run == 0 {
			break
		}
		gap := next()
		if err != nil {
			break
		}
		if run > DenseCodes || gap > DenseCodes || code+gap+run > DenseCodes || gap == 0 && code > 0 {
			return nil, 0, start, ErrCorrupt
		}
		code += gap
		for ; run > 0; run-- {
			start := at
			n := next()
			if err == nil && (n == 0 || n > math.MaxUint32) {
				return nil, 0, start, ErrCorrupt
			}
			counts[uint16(code)] = n
			total += n
			stopped = stopped || n == math.MaxUint32
			code++
		}
	}
	if err == nil && stopped {
		start := at
		if rest = next(); rest > math.MaxUint64-total {
			return nil, 0, start, ErrCorrupt
		}
	}
	return counts, rest, at, err
}

// TestBytes draws the bytes of some histograms by hand, and refuses others with the place that is wrong.
func TestBytes(t *testing.T) {
	const most = "ffffffff0f" // 2³²-1
	whole := func(counter string) string { return "800f 00" + strings.Repeat(counter, DenseCodes) }
	for _, tt := range []struct {
		name, hex string
		codes     map[uint16]uint64
		count     uint64
		err       error
		at        int
	}{
		{name: "empty", hex: "00"},
		{name: "the first code", hex: "01 00 07 00", codes: map[uint16]uint64{0: 7}, count: 7},
		{name: "two runs, and a counter of two bytes", hex: "02 03 01 ac02 01 05 01 00", codes: map[uint16]uint64{3: 1, 4: 300, 10: 1}, count: 302},
		{name: "a run over the border of two octaves", hex: "03 1f 01 02 03 00", codes: map[uint16]uint64{31: 1, 32: 2, 33: 3}, count: 6},
		{name: "the last code", hex: "01 ff0e 01 00", codes: map[uint16]uint64{DenseCodes - 1: 1}, count: 1},
		{name: "a counter stopped with its last value", hex: "01 05" + most + "00 00", codes: map[uint16]uint64{5: math.MaxUint32}, count: math.MaxUint32},
		{name: "a counter stopped, and one did not", hex: "02 05" + most + "02 00 09", codes: map[uint16]uint64{5: math.MaxUint32 + 9, 6: 2}, count: math.MaxUint32 + 11},
		{name: "all codes", hex: whole("03") + "00", count: 3 * DenseCodes},
		{name: "nothing", err: ErrTruncated},
		{name: "a run without a gap", hex: "01", err: ErrTruncated, at: 1},
		{name: "a gap without counters", hex: "02 03", err: ErrTruncated, at: 2},
		{name: "half of a counter", hex: "02 03 01 ac", err: ErrTruncated, at: 3},
		{name: "no end", hex: "01 00 07", err: ErrTruncated, at: 3},
		{name: "nothing after a counter that stopped", hex: "01 05" + most + "00", err: ErrTruncated, at: 8},
		{name: "more values than can be counted", hex: "01 05" + most + "00 ffffffffffffffffff01", err: ErrCorrupt, at: 8},
		{name: "a counter of zero", hex: "02 03 01 00 00", err: ErrCorrupt, at: 3},
		{name: "a counter too large", hex: "01 03 8080808010 00", err: ErrCorrupt, at: 2},
		{name: "runs that are one", hex: "01 03 01 01 00 01 00", err: ErrCorrupt, at: 3},
		{name: "a longer number than it has to be", hex: "01 8300 01 00", err: ErrCorrupt, at: 1},
		{name: "one code too many", hex: "01 800f 01 00", err: ErrCorrupt, at: 0},
		{name: "a run of one code too many", hex: "810f 00", err: ErrCorrupt, at: 0},
		{name: "a run and a gap whose sum is small", hex: "f6ffffffffffffffff01 14 01 00", err: ErrCorrupt, at: 0},
		{name: "a gap that leads back", hex: "01 05 01 01 fcffffffffffffffff01 01 00", err: ErrCorrupt, at: 3},
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(tt.hex, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		var h, got Histogram
		got.AddN(77, 7)
		for c, n := range tt.codes {
			h.AddN(c, n)
		}
		at, err := got.Read(b)
		if tt.err != nil {
			if err != tt.err || at != tt.at || got.Count() != 0 || len(got.Append(nil)) != 1 {
				t.Errorf("%s: Read() = %d, %v and leaves %d values, want %d, %v and none", tt.name, at, err, got.Count(), tt.at, tt.err)
			}
			fresh := Histogram{}
			got.Add(9)
			if fresh.Add(9); !bytes.Equal(got.Append(nil), fresh.Append(nil)) {
				t.Errorf("%s: values of what was refused stay: %x", tt.name, got.Append(nil))
			}
			continue
		}
		if err != nil || at != len(b) || got.Count() != tt.count || !bytes.Equal(got.Append(nil), b) {
			t.Errorf("%s: Read() = %d, %v with %d values: %x; want %d with %d values: %x", tt.name, at, err, got.Count(), got.Append(nil), len(b), tt.count, b)
		}
		if tt.codes != nil && !bytes.Equal(h.Append([]byte("x"))[1:], b) {
			t.Errorf("%s: Append() = %x, want %x", tt.name, h.Append(nil), b)
		}
	}
}

// TestHistogramMergeBytes adds up histograms of all kinds of counters by their bytes, of which some are damaged. It
// compares with reading one number after the other.
func TestHistogramMergeBytes(t *testing.T) {
	refused := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 6))
		var h, want Histogram
		for range 1 + r.IntN(4) {
			var o Histogram
			size := []int{1, 7, 8, 9, 14, 15, 32}[r.IntN(7)] // bits of counters
			dense := r.IntN(2) == 0
			for c, end := r.IntN(DenseCodes), 0; end < 1+r.IntN(100) && c < DenseCodes; end++ {
				n := r.Uint64() >> (64 - size)
				if r.IntN(60) == 0 {
					n = r.Uint64() >> r.IntN(64)
				}
				o.AddN(uint16(c), n)
				if c++; !dense {
					c += r.IntN(5)
				}
			}
			b := o.Append(nil)
			for range r.IntN(3) {
				if r.IntN(3) == 0 {
					b[r.IntN(len(b))] = []byte{0, 1, 0x7f, 0x80, 0x81, 0xff}[r.IntN(6)]
				} else if r.IntN(3) == 0 {
					b = b[:1+r.IntN(len(b))]
				}
			}
			if r.IntN(2) == 0 {
				b = append(b, 0, 1, 2, 3, 0, 1, 2, 3) // whatever follows
			}
			counts, rest, wantAt, wantErr := readPlain(b)
			at, err := h.MergeBytes(b)
			var one Histogram
			oneAt, oneErr := one.Read(b)
			if at != wantAt || err != wantErr || oneAt != wantAt || oneErr != wantErr {
				t.Fatalf("seed %d: %x: added up to %d, %v, read up to %d, %v, want %d, %v", seed, b, at, err, oneAt, oneErr, wantAt, wantErr)
			}
			if err != nil {
				refused++
				if h.Reset(); h.Count() != 0 || len(h.Append(nil)) != 1 || one.Count() != 0 {
					t.Fatalf("seed %d: %x: values stay after %v", seed, b, err)
				}
				want = Histogram{}
				continue
			}
			for c, n := range counts {
				want.AddN(c, n)
			}
			want.count = sum(want.count, rest)
			if !slices.Equal(h.Append(nil), want.Append(nil)) || h.Count() != want.Count() || h.Min() != want.Min() || h.Max() != want.Max() {
				t.Fatalf("seed %d: %x: %d values from %d to %d, want %d from %d to %d", seed, b, h.Count(), h.Min(), h.Max(), want.Count(), want.Min(), want.Max())
			}
		}
	}
	if refused < 200 {
		t.Errorf("%d histograms were refused, want many", refused)
	}
}

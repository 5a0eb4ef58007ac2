package logcode

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// readPlain reads the bytes of a histogram one number after the other, as FORMAT.md of package inference draws them.
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

// TestHistogramMergeBytes adds up histograms of all kinds of counters by their bytes, of which some are damaged, and compares
// with reading one number after the other.
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

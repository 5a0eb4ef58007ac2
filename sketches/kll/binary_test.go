package kll

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func fill[T Number](k, n int, seed uint64, value func(r *rand.Rand) T) *Sketch[T] {
	s, r := New[T](k, seed), rand.New(rand.NewPCG(seed, 1))
	for range n {
		s.Update(value(r))
	}
	return s
}

func roundTrip[T Number](t *testing.T, name string, value func(r *rand.Rand) T) {
	t.Run(name, func(t *testing.T) {
		for _, n := range []int{0, 1, 15, 16, 17, 500, 5000, 200_000} {
			s := fill(25, n, uint64(n), value)
			b, err := s.AppendBinary([]byte("before"))
			if err != nil {
				t.Fatal(err)
			}
			var got Sketch[T]
			if err := got.UnmarshalBinary(b[len("before"):]); err != nil {
				t.Fatalf("%d values: %v", n, err)
			}
			// The copy goes on as the original does.
			r1, r2 := rand.New(rand.NewPCG(9, 9)), rand.New(rand.NewPCG(9, 9))
			for range 3000 {
				s.Update(value(r1))
				got.Update(value(r2))
			}
			want, _ := s.AppendBinary(nil)
			if b, _ := got.AppendBinary(nil); !bytes.Equal(b, want) {
				t.Fatalf("%d values: a copy went another way:\n%x\n%x", n, b, want)
			}
		}
	})
}

type celsius float32

func TestBinaryRoundTrip(t *testing.T) {
	roundTrip(t, "uint16", func(r *rand.Rand) uint16 { return uint16(r.Uint32()) })
	roundTrip(t, "int8", func(r *rand.Rand) int8 { return int8(r.Uint32()) })
	roundTrip(t, "int32", func(r *rand.Rand) int32 { return int32(r.Uint32()) })
	roundTrip(t, "uint64", func(r *rand.Rand) uint64 { return r.Uint64() })
	roundTrip(t, "int", func(r *rand.Rand) int { return int(r.Uint64()) })
	roundTrip(t, "float32", func(r *rand.Rand) celsius { return celsius(r.NormFloat64()) })
	roundTrip(t, "float64", func(r *rand.Rand) float64 { return r.NormFloat64() })
}

// Every way of being wrong, and the byte that the error names.
func TestUnmarshalRefuses(t *testing.T) {
	good, _ := fill(25, 1000, 1, func(r *rand.Rand) uint16 { return uint16(r.Uint32()) }).AppendBinary(nil)
	if good[6] < 3 {
		t.Fatalf("%d levels, want some", good[6])
	}
	sizes := headerLen + 4
	first := sizes + 2*(int(good[6])+1)
	tests := []struct {
		name  string
		wrong func(b []byte) []byte
		err   error
		off   int
	}{
		{"empty", func(b []byte) []byte { return nil }, ErrTruncated, 0},
		{"not a sketch", func(b []byte) []byte { b[0] = 'k'; return b }, ErrVersion, 0},
		{"version 2", func(b []byte) []byte { b[3] = 2; return b }, ErrVersion, 0},
		{"type", func(b []byte) []byte { b[4] = 0x22; return b }, ErrType, 4},
		{"base", func(b []byte) []byte { b[5] = 63; return b }, ErrCorrupt, 5},
		{"top", func(b []byte) []byte { b[6] = 9; return b }, ErrCorrupt, 6},
		{"buffered", func(b []byte) []byte { b[7] = 16; return b }, ErrCorrupt, 7},
		{"k too small", func(b []byte) []byte { b[8] = 7; return b }, ErrCorrupt, 8},
		{"k too large", func(b []byte) []byte { b[8], b[9] = 1, 16; return b }, ErrCorrupt, 8},
		{"reserved", func(b []byte) []byte { b[14] = 1; return b }, ErrCorrupt, 14},
		{"count", func(b []byte) []byte { b[16]++; return b }, ErrCorrupt, 16},
		{"huge count", func(b []byte) []byte { b[23] = 0xff; return b }, ErrCorrupt, 16},
		{"skip", func(b []byte) []byte { b[32] = 1; return b }, ErrCorrupt, 32},
		{"minimum above maximum", func(b []byte) []byte {
			copy(b[headerLen:], b[headerLen+2:headerLen+4])
			b[headerLen+2] = 0
			b[headerLen+3] = 0
			return b
		}, ErrCorrupt, headerLen},
		{"too many items", func(b []byte) []byte { b[sizes+1] = 1; return b }, ErrCorrupt, sizes},
		{"one value too many", func(b []byte) []byte { return append(b, 0, 0) }, ErrCorrupt, len(good)},
		{"level out of order", func(b []byte) []byte {
			i := len(b) - 2*int(b[7]) - 4 // the last two values of the heaviest level
			b[i], b[i+1], b[i+2], b[i+3] = b[i+2], b[i+3], b[i], b[i+1]
			return b
		}, ErrCorrupt, len(good) - 2*int(good[7]) - 2},
		{"value above maximum", func(b []byte) []byte { b[headerLen+2], b[headerLen+3] = b[headerLen], b[headerLen+1]; return b }, ErrCorrupt, first},
	}
	for _, c := range tests {
		s := fill(25, 10, 1, func(r *rand.Rand) uint16 { return 7 })
		err := s.UnmarshalBinary(c.wrong(bytes.Clone(good)))
		e, ok := errors.AsType[*Error](err)
		if !ok || !errors.Is(err, c.err) || e.Offset != c.off {
			t.Errorf("%s: %v, want %v at byte %d", c.name, err, c.err, c.off)
		}
		if s.Count() != 10 || s.Max() != 7 {
			t.Errorf("%s: a refused sketch left traces", c.name)
		}
	}
	for n := range good {
		var s Sketch[uint16]
		err := s.UnmarshalBinary(good[:n])
		if e, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, ErrTruncated) && n >= 4 || e.Offset > n {
			t.Errorf("cut at byte %d: %v", n, err)
		}
	}
	f, _ := fill(25, 100, 1, func(r *rand.Rand) float64 { return r.Float64() }).AppendBinary(nil)
	copy(f[len(f)-8:], appendValue(nil, math.NaN()))
	var s Sketch[float64]
	if err := s.UnmarshalBinary(f); !errors.Is(err, ErrCorrupt) {
		t.Errorf("NaN: %v, want %v", err, ErrCorrupt)
	}
}

// Whatever is accepted encodes back to the same bytes and works.
func FuzzUnmarshal(f *testing.F) {
	for _, n := range []int{0, 1, 20, 1000, 100_000} {
		b, _ := fill(8, n, 1, func(r *rand.Rand) uint16 { return uint16(r.Uint32()) }).AppendBinary(nil)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Sketch[uint16]
		if err := s.UnmarshalBinary(b); err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || e.Offset > len(b) {
				t.Fatalf("UnmarshalBinary(%x) = %v", b, err)
			}
			if !reflect.DeepEqual(s, Sketch[uint16]{}) {
				t.Fatalf("UnmarshalBinary(%x) left traces", b)
			}
			return
		}
		if again, _ := s.AppendBinary(nil); !bytes.Equal(again, b) {
			t.Fatalf("read %x, wrote %x", b, again)
		}
		o := fill(8, 1000, 2, func(r *rand.Rand) uint16 { return uint16(r.Uint32()) })
		count := s.Count() + o.Count()
		o.Merge(&s)
		s.Merge(fill(8, 1000, 2, func(r *rand.Rand) uint16 { return uint16(r.Uint32()) }))
		for i := range 1000 {
			s.Update(uint16(i))
		}
		if o.Count() != count || s.Count() != count+1000 {
			t.Fatalf("%x: counts %d and %d, want %d and 1000 more", b, o.Count(), s.Count(), count)
		}
		q := s.Quantiles(nil, 0, 0.5, 0.99, 1)
		if q[0] > q[1] || q[1] > q[2] || q[2] > q[3] || q[0] != s.Min() || q[3] != s.Max() {
			t.Fatalf("%x: quantiles %v", b, q)
		}
		if r := s.Rank(q[1]); r < 0 || r > 1 {
			t.Fatalf("%x: rank %g", b, r)
		}
		if size, most := s.SizeBytes(), 128+2*s.limit(); size > most {
			t.Fatalf("%x: %d bytes, want at most %d", b, size, most)
		}
	})
}

package pint

import (
	"math"
	"math/rand/v2"
	"testing"
)

func hpcc(t testing.TB, base float64) *HPCC {
	h, err := NewHPCC(base)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHPCCBits(t *testing.T) {
	for _, c := range []struct {
		base        float64
		bits, bytes int
	}{{1.05, 8, 1}, {1.01, 11, 2}, {1.0005, 15, 2}, {2, 5, 1}} {
		if h := hpcc(t, c.base); h.Bits() != c.bits || h.Bytes() != c.bytes {
			t.Errorf("base %v: %d bits, %d bytes, want %d, %d", c.base, h.Bits(), h.Bytes(), c.bits, c.bytes)
		}
	}
	for _, base := range []float64{math.NaN(), math.Inf(1), 1, .5, -1, 1e6} {
		if _, err := NewHPCC(base); err == nil {
			t.Errorf("base %v: no error", base)
		}
	}
}

// The worked example: 0.75 with base 1.05 is 122 with probability 0.96, else 121; 122 is 0.751.
func TestHPCCExample(t *testing.T) {
	h := hpcc(t, 1.05)
	const u = UtilizationUnit * 3 / 4
	if got := h.Encode(u, 95<<32/100); got != 122 {
		t.Errorf("digest %d, want 122", got)
	}
	if got := h.Encode(u, 97<<32/100); got != 121 {
		t.Errorf("digest %d, want 121", got)
	}
	if got := h.Decode(122) / UtilizationUnit; math.Abs(got-.751) > .0005 {
		t.Errorf("utilisation %.4f, want 0.751", got)
	}
	if b := h.AppendDigest(nil, 122); len(b) != 1 || b[0] != 0x7a {
		t.Errorf("bytes %x, want 7a", b)
	}
	h = hpcc(t, 1.01)
	b := h.AppendDigest(nil, 0x25a)
	if len(b) != 2 || b[0] != 0x5a || b[1] != 0x02 {
		t.Errorf("bytes %x, want 5a02", b)
	}
	if d, ok := h.Digest(b); d != 0x25a || !ok {
		t.Errorf("Digest(%x) = %#x, %v", b, d, ok)
	}
	if _, ok := h.Digest([]byte{0, 8}); ok {
		t.Error("a digest of 12 bits was taken for one of 11")
	}
	if _, ok := h.Digest([]byte{0}); ok {
		t.Error("one byte was taken for two")
	}
}

// Rounding goes to the neighbours and keeps the mean, and larger utilisations do not have smaller digests.
func TestHPCCRounding(t *testing.T) {
	h := hpcc(t, 1.05)
	for v := uint64(0); v < 4*UtilizationUnit; v += 97 {
		low, high := h.Encode(v, math.MaxUint32), h.Encode(v, 0)
		if high-low > 1 {
			t.Fatalf("%d: digests %d and %d", v, low, high)
		}
		up := 0
		const steps = 1024
		for r := range uint32(steps) {
			if h.Encode(v, r<<22|1<<21) == high && high != low {
				up++
			}
		}
		steps512 := math.Max(1, math.Ceil(float64(v)*512/UtilizationUnit)) * UtilizationUnit / 512
		mean := h.Decode(low) + (h.Decode(high)-h.Decode(low))*float64(up)/steps
		if math.Abs(mean-steps512) > (h.Decode(high)-h.Decode(low))/steps+1e-9 {
			t.Fatalf("%d: mean %v, want %v", v, mean, steps512)
		}
	}
	for range 10000 {
		a, b, rnd := rand.Uint64N(1<<20), rand.Uint64N(1<<20), rand.Uint32()
		if a < b && h.Encode(a, rnd) > h.Encode(b, rnd) {
			t.Fatalf("%d has a larger digest than %d", a, b)
		}
	}
	if got := h.Encode(math.MaxUint64, 0); got != 255 {
		t.Errorf("the largest utilisation is %d, want 255", got)
	}
	if a, b := h.Write(122, UtilizationUnit/2, 0), h.Write(100, UtilizationUnit*3/4, 0); a != 122 || b != 122 {
		t.Errorf("the larger digest is %d and %d, want 122", a, b)
	}
	if h.Decode(math.MaxUint32) != h.Decode(255) {
		t.Error("wide digest")
	}
}

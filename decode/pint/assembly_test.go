package pint

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The assembly computes the same as the Go code, for all lengths, and writes nothing beyond them.
func FuzzAssembly(f *testing.F) {
	f.Add(uint64(1), uint32(2), uint32(3), 59, 24)
	f.Add(uint64(0), uint32(0xffffffff), uint32(0), 8, 0)
	f.Fuzz(func(t *testing.T, seed uint64, k1, k2 uint32, n, shift int) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n, shift = n&1023, shift&31
		var limits [MaxHops]uint32
		values := make([]uint32, n)
		for i := range limits {
			limits[i] = rng.Uint32() >> rng.UintN(33)
		}
		for i := range values {
			values[i] = rng.Uint32() >> rng.UintN(33)
		}
		k := min(n, MaxHops)
		// A limit that is just reached is the case that counts.
		limits[0] = mix(k1, k2, 1)
		limits[1] = mix(k1, k2, 2) - 1
		if got, want := mixBelow(k1, k2, &limits, k), mixBelowGo(k1, k2, &limits, k); got != want {
			t.Fatalf("mixBelow(%#x, %#x, …, %d) = %b, want %b", k1, k2, k, got, want)
		}
		limits[0] = crcHash(k1, crc(1))
		limits[1] = crcHash(k1, crc(2)) - 1
		if got, want := crcBelow(k1, &limits, k), crcBelowGo(k1, &limits, k); got != want {
			t.Fatalf("crcBelow(%#x, …, %d) = %b, want %b", k1, k, got, want)
		}
		if n >= 64 {
			for i := range values[:64] {
				if rng.IntN(2) == 0 {
					values[i] = k1
				}
			}
			block := (*[64]uint32)(values)
			if got, want := equal64(block, k1), equal64Go(block, k1); got != want {
				t.Fatalf("equal64(%x, %#x) = %b, want %b", values, k1, got, want)
			}
		}
		got, want := make([]uint32, n+8), make([]uint32, n+8)
		mixValues(got[:n], k1, k2, values, shift)
		mixValuesGo(want[:n], k1, k2, values, shift)
		if !slices.Equal(got, want) {
			t.Fatalf("mixValues(%#x, %#x, %d values, %d) = %x, want %x", k1, k2, n, shift, got, want)
		}
		crcValues(got[:n], k1, values, shift)
		crcValuesGo(want[:n], k1, values, shift)
		if !slices.Equal(got, want) {
			t.Fatalf("crcValues(%#x, %d values, %d) = %x, want %x", k1, n, shift, got, want)
		}
	})
}

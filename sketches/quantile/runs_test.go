package quantile

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// Zeros and ones are enough (Knuth, TAOCP 3, §5.3.4, theorem Z): a network that sorts all of them sorts everything.
func TestSort16(t *testing.T) {
	for x := range 1 << 16 {
		var a [tinyChunk]uint16
		for i := range a {
			a[i] = uint16(x >> i & 1)
		}
		sort16(&a)
		for i := range a {
			if want := i >= tinyChunk-bits.OnesCount16(uint16(x)); (a[i] == 1) != want {
				t.Fatalf("%016b is sorted to %d", x, a)
			}
		}
	}
}

func TestMergeRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		all := make([]uint16, r.IntN(40))
		for i := range all {
			all[i] = uint16(r.IntN(20))
		}
		n := r.IntN(len(all) + 1)
		a := slices.Clone(all[:n])
		dst := slices.Clone(all)
		slices.Sort(a)
		slices.Sort(dst[n:])
		merge(dst, a)
		if slices.Sort(all); !slices.Equal(dst, all) {
			t.Fatalf("merged %v, want %v", dst, all)
		}
	}
}

package opt

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// whole reports whether the chosen sets have all elements that any set has, and with separate whether they separate all pairs that any set separates.
func whole(sets [][]int32, chosen []int32, n int, separate bool) bool {
	marks := func(list []int32) [][]bool {
		m := make([][]bool, n)
		for e := range m {
			for _, i := range list {
				m[e] = append(m[e], slices.Contains(sets[i], int32(e)))
			}
		}
		return m
	}
	all, some := marks(Ascending[int32](len(sets))), marks(chosen)
	for e := range n {
		if slices.Contains(all[e], true) != slices.Contains(some[e], true) {
			return false
		}
		for f := range e {
			if separate && slices.Equal(all[e], all[f]) != slices.Equal(some[e], some[f]) {
				return false
			}
		}
	}
	return true
}

// TestCover holds that choices do what is asked, and that on small problems no choice is below the bound, by trying all.
func TestCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	exact := 0
	for range 300 {
		n, m := 1+rng.IntN(8), 1+rng.IntN(10)
		sets := make([][]int32, m)
		for i := range sets {
			for e := range n {
				if rng.IntN(3) == 0 {
					sets[i] = append(sets[i], int32(e))
				}
			}
		}
		for _, separate := range []bool{false, true} {
			chosen, bound := Cover(sets, CoverConfig{Elements: n, Separate: separate, Rounds: 50, Seed: rng.Uint64()})
			if !whole(sets, chosen, n, separate) {
				t.Fatalf("%v of %v do not do all (separate %v)", chosen, sets, separate)
			}
			least := m
			for choice := range uint(1) << m {
				var list []int32
				for i := range m {
					if choice>>i&1 != 0 {
						list = append(list, int32(i))
					}
				}
				if k := bits.OnesCount(choice); k < least && whole(sets, list, n, separate) {
					least = k
				}
			}
			if bound > least || len(chosen) < least {
				t.Fatalf("%d sets of %v with the bound %d, and %d are enough (separate %v)", len(chosen), sets, bound, least, separate)
			}
			if len(chosen) == least {
				exact++
			}
		}
	}
	if exact < 590 {
		t.Errorf("%d of 600 choices are the smallest", exact)
	}
}

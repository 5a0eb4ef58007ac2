package sim

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// Alias draws from a discrete distribution in constant time (Walker 1977, in Vose's form of 1991).
type Alias struct {
	prob  []uint32 // of keeping the column, in 2^-32
	other []int32
}

// NewAlias returns the table that picks indices of weights with probabilities in proportion to them. One weight at least is above 0.
func NewAlias(weights []float64) Alias {
	n := len(weights)
	a := Alias{prob: make([]uint32, n), other: make([]int32, n)}
	total := 0.0
	for _, w := range weights {
		total += w
	}
	scaled := make([]float64, n)
	var small, large []int32
	for i, w := range weights {
		scaled[i] = w * float64(n) / total
		if scaled[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.prob[s], a.other[s] = uint32(scaled[s]*(1<<32-1)), l
		scaled[l] -= 1 - scaled[s]
		if scaled[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) {
		a.prob[i], a.other[i] = math.MaxUint32, i
	}
	return a
}

// Pick returns a random index.
func (a *Alias) Pick(r *rand.Rand) int {
	v := r.Uint64()
	i := pick(v<<32, len(a.prob))
	if uint32(v>>32) < a.prob[i] {
		return i
	}
	return int(a.other[i])
}

// Mix spreads the bits of a hash (Stafford's variant 13 of the finaliser of MurmurHash3).
func Mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// pick maps a hash to 0..n-1.
func pick(hash uint64, n int) int {
	hi, _ := bits.Mul64(hash, uint64(n))
	return int(hi)
}

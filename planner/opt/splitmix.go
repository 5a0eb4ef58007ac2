package opt

import (
	"math"
	"math/bits"
)

// SplitMix is the SplitMix64 generator (Steele, Lea, Flood, OOPSLA 2014): the same numbers in every language.
type SplitMix uint64

// Next is the next 64 random bits.
func (s *SplitMix) Next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns a number from 0 up to and without n, by the high word of a product. The bias is too small for a second
// draw.
func (s *SplitMix) Below(n int) int {
	hi, _ := bits.Mul64(s.Next(), uint64(n))
	return int(hi)
}

// Shuffle puts a list into any order.
func (s *SplitMix) Shuffle(list []int32) {
	for k := range list {
		j := k + s.Below(len(list)-k)
		list[k], list[j] = list[j], list[k]
	}
}

// Float returns a number from 0 up to and without 1.
func (s *SplitMix) Float() float64 { return float64(s.Next()>>11) / (1 << 53) }

// Normal returns a number of the standard normal distribution, by the cosine half of Box and Muller's method: two draws
// a number.
func (s *SplitMix) Normal() float64 {
	u, v := 1-s.Float(), s.Float()
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}

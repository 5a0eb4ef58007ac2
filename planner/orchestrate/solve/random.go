package solve

import (
	"math"
	"math/bits"
)

// splitMix is the SplitMix64 generator (Steele, Lea, Flood, OOPSLA 2014): the same numbers in every language.
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below gives a number from 0 up to and without n, by the high word of a product: no bias worth a second draw.
func (s *splitMix) below(n int) int {
	hi, _ := bits.Mul64(s.next(), uint64(n))
	return int(hi)
}

// shuffle puts a list into any order.
func (s *splitMix) shuffle(list []int32) {
	for k := range list {
		j := k + s.below(len(list)-k)
		list[k], list[j] = list[j], list[k]
	}
}

// float gives a number from 0 up to and without 1.
func (s *splitMix) float() float64 { return float64(s.next()>>11) / (1 << 53) }

// normal gives a number of the standard normal distribution, by the cosine half of Box and Muller's method: two draws a
// number.
func (s *splitMix) normal() float64 {
	u, v := 1-s.float(), s.float()
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}

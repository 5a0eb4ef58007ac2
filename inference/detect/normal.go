package detect

import "math"

// z99 is the 99th percentile of the normal distribution.
const z99 = 2.3263478740408408

// normalQuantile is the inverse of the normal distribution function.
func normalQuantile(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }

// rank is the probability below which the value of nearest rank lies on average (Blom).
func rank(q, n float64) float64 { return (math.Ceil(q*n-1e-9) - .375) / (n + .25) }

const manyValues = 2000 // of which the 99th percentile needs no correction

// ofRank holds, by the number of values, the inverse of the normal quantile of the 90th percentile by nearest rank, and
// what the 99th lacks.
var ofRank = func() (t [manyValues + 1]struct{ inverse90, lack99 float32 }) {
	for n := 1; n <= manyValues; n++ {
		t[n].inverse90 = float32(1 / max(normalQuantile(rank(.9, float64(n))), .5))
		if n < manyValues {
			t[n].lack99 = float32(z99 - normalQuantile(rank(.99, float64(n))))
		}
	}
	return t
}()

const logBits = 7

var logOf = func() (t [1 << logBits]struct{ log, inverse float64 }) {
	for i := range t {
		c := 1 + (float64(i)+.5)/(1<<logBits)
		t[i].log, t[i].inverse = math.Log(c), 1/c
	}
	return t
}()

// logarithm is that of a positive, normal number, to 1e-9.
func logarithm(x float64) float32 {
	b := math.Float64bits(x)
	t := &logOf[b>>(52-logBits)&(1<<logBits-1)]
	r := math.Float64frombits(b&(1<<52-1)|1023<<52)*t.inverse - 1
	return float32(float64(int(b>>52)-1023)*math.Ln2 + t.log + r*(1-r*(.5-r*(1./3))))
}

// logRatio is the logarithm of a/b for positive numbers, to .09: good enough to let a tail decay.
func logRatio(a, b float32) float32 {
	return float32(int32(math.Float32bits(a)-math.Float32bits(b))) * (math.Ln2 / (1 << 23))
}

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }
